import ArgumentParser
import Queries
import Tape

/// Two ends of a call on one clock.
struct MergeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Lay the takes of both ends of a call on one clock and measure one-way delays.",
    discussion: """
      Datagrams that both takes hold, as sent and as received, tell how far the clocks of the two \
      machines are apart: the fastest ones are taken to need equally long both ways. The rest of \
      every datagram's time is its one-way delay, and what did not come was lost on the way. \
      --json also gives the delays in each second.

      Examples:
        retake merge here.take there.take
        retake merge both.take both.take --first-peer 1 --second-peer 2
      """)

  @Argument(help: "The take of one end; its clock is the common one.")
  var first: String

  @Argument(help: "The take of the other end.")
  var second: String

  @Option(help: "The peer of the first take, when it has several.")
  var firstPeer: Int64?

  @Option(help: "The peer of the second take, when it has several.")
  var secondPeer: Int64?

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    do throws(MergedTakes.Refusal) {
      let merged = try MergedTakes(
        first: first, peer: firstPeer, second: second, peer: secondPeer)
      print(json ? merged.json : merged.description)
    } catch {
      switch error {
      case .unreadable(let reason): throw CommandFailure(reason)
      case .nothingInCommon(let reason): throw CommandFailure(.difference, reason)
      }
    }
  }
}
