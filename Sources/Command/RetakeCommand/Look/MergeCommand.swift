import ArgumentParser
import FoundationEssentials
import Queries
import Tape
import Wire

/// Two ends of a call on one clock.
struct MergeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Lay the takes of both ends of a call on one clock and measure one-way delays.",
    discussion: """
      Datagrams that both takes hold, as sent and as received, tell how far the clocks of the two \
      machines are apart: the fastest ones are taken to need equally long both ways. The rest of \
      every datagram's time is its one-way delay, and what did not come was lost on the way. \
      --json also gives the delays in each second. With --out both ends go into one take on \
      the clock of the first, which replays like any other; its view one_way_delay has the time \
      of every packet. There the second end is moved by one number, since each peer keeps its own \
      time: where the two clocks drift, those delays are right in the middle of the call and off \
      by half of the drift at its ends, which is printed; the table has them corrected.

      Takes of a room are laid on one clock by the frames that one participant sent and the other \
      decoded, because the server makes other datagrams of them; the delays then end with the \
      playout.

      Examples:
        retake merge here.take there.take
        retake merge here.take there.take --out joint.take
        retake merge anna.take ben.take
        retake merge both.take both.take --first-peer 1 --second-peer 2
      """)

  @Argument(
    help: "The take of one end; its clock is the common one.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var first: String

  @Argument(
    help: "The take of the other end.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var second: String

  @Option(
    help: "The peer of the first take, when it has several.",
    completion: .custom { words, _, _ in Completions.peerNumbers(in: words, take: 0) },
    transform: Taking.peer)
  var firstPeer: Int64?

  @Option(
    help: "The peer of the second take, when it has several.",
    completion: .custom { words, _, _ in Completions.peerNumbers(in: words, take: 1) },
    transform: Taking.peer)
  var secondPeer: Int64?

  @Option(
    help: "Write both ends into a take on one clock.", completion: .file(), transform: Taking.path)
  var out: String?

  @Flag(help: "Print JSON for programs.")
  var json = false

  @OptionGroup var overwrite: OverwriteOption
  @OptionGroup var pager: PagerOptions

  func run() throws {
    noteEndings(of: first, second)
    // What cannot be written is said before the work.
    if let out {
      try overwrite.check(out, reading: first, second)
      _ = try WritingWhole.file(out, overwrite.present, isTake: true)
      try reading { () throws(TapeError) in try JointTake.check([first, second]) }
    }
    do {
      let merged = try Progress("merging").follow {
        try MergedTakes(first: first, peer: firstPeer, second: second, peer: secondPeer)
      }
      try json
        ? Output.json(merged.json, in: JSONForm()) : pager.show(merged.text(pager.look))
      if let out { try join(merged, out) }
    } catch let error as MergedTakes.Refusal {
      switch error {
      case .unreadable(let reason): throw CommandFailure(reason)
      case .nothingInCommon(let reason): throw CommandFailure(.difference, reason)
      }
    }
  }

  private func join(_ merged: MergedTakes, _ out: String) throws {
    let ends = [
      JointTake.End(path: first, peer: number(firstPeer), added: .zero),
      JointTake.End(
        path: second, peer: number(secondPeer),
        added: Interval(nanoseconds: merged.jointOffsetNanoseconds)),
    ]
    let made = try WritingWhole.take(out, overwrite.present) { temporary in
      try Progress("merging").follow {
        try reading { () throws(TapeError) in try JointTake.write(ends, to: temporary) }
      }
    }
    if !json {
      let note = merged.jointNote.map { "; \($0)" } ?? ""
      try Output.line(
        "\(out): \(counted(made.steps, "step")) of \(counted(made.peers, "peer")) on one clock"
          + note)
    }
    if !made.toolchainDifferences.isEmpty {
      printError(
        "retake: \(second): made with other \(made.toolchainDifferences.joined(separator: ", ")) "
          + "than \(first); a replay of \(out) needs --substitute where that matters")
    }
  }

  private func number(_ peer: Int64?) -> UInt32? { peer.flatMap { UInt32(exactly: $0) } }
}
