import Foundation
import Testing

/// On a full disk, every verb ends with status 74.
///
/// If the reader closes the pipe, as `head` does, the verb ends without an error.
struct OutputTests {
  /// Verbs that print something, with `TAKE` in place of the take.
  private static let verbs = [
    "--help", "--version", "record demo --help", "info TAKE", "info TAKE --json", "timeline TAKE",
    "stats TAKE", "stats TAKE --series", "stats TAKE --series --csv", "stats TAKE --sdk",
    "stats TAKE --problems", "speakers TAKE", "sql TAKE 'SELECT * FROM packet'",
    "sql TAKE 'SELECT * FROM packet' --csv", "sql TAKE 'SELECT * FROM packet' --json",
    "sql --schema", "replay TAKE --skip-codecs", "diff TAKE TAKE", "verify TAKE",
    "debug TAKE -c next", "whatif TAKE --drop 'packet rtp share=1%'",
    "export TAKE --pcap /dev/null", "record demo --seed 1 --seconds 0.1 --size 32x32 --out NEW",
  ]

  private func line(_ verb: String, _ take: String, _ folder: Folder) -> String {
    "\"$RETAKE\" "
      + verb.replacing("TAKE", with: "'\(take)'").replacing("NEW", with: "'\(folder.file("n"))'")
  }

  @Test(arguments: verbs)
  func aFullDiskIsReported(verb: String) async throws {
    let (take, folder) = (try await Takes.lossyCall(), try Folder())
    let outcome = try await Tool.shell(line(verb, take.path, folder) + " > /dev/full")
    #expect(outcome.status == 74 && !outcome.wasKilled, "\(outcome)")
    #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
    #expect(outcome.errors.contains("standard output cannot be written: No space left"))
  }

  @Test(arguments: verbs)
  func aClosedReaderIsNoError(verb: String) async throws {
    let (take, folder) = (try await Takes.lossyCall(), try Folder())
    // The shell opens the pipe for reading and writing, then closes the only reader.
    let outcome = try await Tool.shell(
      """
      mkfifo '\(folder.file("pipe"))' && exec 3<>'\(folder.file("pipe"))' \
      && exec 4>'\(folder.file("pipe"))' 3<&- && \(line(verb, take.path, folder)) >&4
      """)
    #expect(outcome.status == 0 && !outcome.wasKilled && outcome.errors.isEmpty, "\(outcome)")
  }

  @Test func aClosedStreamIsReportedAndNoFileReplacesIt() async throws {
    let (take, folder) = (try await Takes.lossyCall(), try Folder())
    let page = folder.file("page.html")
    let outcome = try await Tool.shell("\"$RETAKE\" page '\(take.path)' --out '\(page)' >&- 2>&-")
    #expect(outcome.status == 74 && !outcome.wasKilled, "\(outcome)")
    let text = try String(contentsOfFile: page, encoding: .utf8)
    #expect(text.hasPrefix("<!") && text.hasSuffix(">\n"), "\(text.suffix(100))")
  }

  @Test func errorsThatCannotBeWrittenEndNothingEarly() async throws {
    let take = try await Takes.lossyCall()
    let outcome = try await Tool.shell(
      "\"$RETAKE\" info '\(take.path)' 2> /dev/full && \"$RETAKE\" info none 2> /dev/full")
    #expect(outcome.status == 66 && outcome.output.contains("peer 1"), "\(outcome)")
  }
}
