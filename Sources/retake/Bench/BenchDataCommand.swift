import ArgumentParser
import Foundation

/// Measures how fast messages go over a data channel.
struct BenchDataCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "data",
    abstract: "Measure how fast messages go over a data channel between two peers.",
    discussion: """
      Two peers send over loopback UDP, each on a thread of its own as in an application. The \
      sender keeps 1 MiB of messages waiting; with --record both peers are recorded meanwhile.

      Example:
        retake bench data --message-size 16384 --seconds 5
      """)

  @Option(help: "How long messages are counted, after a second that is not.")
  var seconds = 5.0

  @Option(help: "The size of each message in bytes.")
  var messageSize = 16_384

  @Flag(help: "Record both peers, into takes that are removed afterwards.")
  var record = false

  @Flag(help: "Print JSON for programs.")
  var json = false

  func validate() throws {
    if !(0.1...600).contains(seconds) {
      throw ValidationError("--seconds takes a number from 0.1 to 600, not \(seconds).")
    }
    if !(1...1 << 20).contains(messageSize) {
      throw ValidationError("--message-size takes a number from 1 to 1048576, not \(messageSize).")
    }
  }

  func run() async throws {
    let folder = record ? try BenchFolder() : nil
    defer { folder?.remove() }
    let result = try await DataThroughput.measure(
      messageSize: messageSize, seconds: seconds, recordingIn: folder?.url)
    print(json ? result.json : result.text)
  }
}
