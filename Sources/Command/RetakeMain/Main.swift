import RetakeCommand

/// The program `retake`; everything else is in a library, so that other programs can run its
/// commands.
@main
enum Main {
  @MainActor static func main() async { await RetakeProgram.main() }
}
