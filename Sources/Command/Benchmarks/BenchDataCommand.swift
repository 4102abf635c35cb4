import ArgumentParser
import FoundationEssentials
import RetakeCommand

/// Measures how fast messages go over a data channel.
struct BenchDataCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "data",
    abstract: "Measure how fast messages go over a data channel between two peers.",
    discussion: """
      Two peers send over loopback UDP, each on a thread of its own as in an application. The \
      sender keeps 1 MiB of messages waiting; with --record both peers are recorded meanwhile.

      Example:
        retake-bench data --message-size 16384 --seconds 5
      """)

  @Option(
    help:
      """
      For how many seconds messages are counted, after one without. Default: \(Self.usualSeconds).
      """,
    transform: Taking.seconds(0.1...600))
  var seconds = Double(Self.usualSeconds)

  @Option(
    help: "The size of each message in bytes. Default: \(Self.usualSize).",
    transform: Taking.whole(1...1 << 20))
  var messageSize = Self.usualSize

  private static let usualSeconds = 5
  private static let usualSize = 16_384

  @Flag(help: "Record both peers, into takes that are removed afterwards.")
  var record = false

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() async throws {
    let folder = record ? try BenchFolder() : nil
    defer { folder?.remove() }
    let result = try await DataThroughput.measure(
      messageSize: messageSize, seconds: seconds, recordingIn: folder?.url)
    try json ? Output.json(result.json, in: .bench) : Output.line(result.text)
  }
}
