import RetakeCommand

/// The program `retake`: all of it is in the library, so that others can run its commands too.
@main
enum Main {
  @MainActor static func main() async { await RetakeProgram.main() }
}
