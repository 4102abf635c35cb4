import ArgumentParser
import Debug
import FoundationEssentials
import Queries
import Tape
import Wire

/// Compares both ends of a call on a common clock.
struct MergeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Put the takes of both ends of a call on one clock and measure one-way delays.",
    discussion: """
      Datagrams in both takes, as sent and as received, show how far the clocks of the two \
      machines are apart: the fastest ones are assumed to take equally long in both directions. \
      The rest of every datagram's time is its one-way delay; datagrams that never arrived are \
      lost. --json also prints the delays in each second. With --out both ends are written into \
      one take on the clock of the first, which replays like any other; its view one_way_delay has \
      the time of every packet. There the second end's times are shifted by a constant: if the two \
      clocks drift, those delays are exact in the middle of the call and off by half of the drift \
      at its ends, which is printed; the table has them corrected.

      Takes of a room are aligned by the frames that one participant sent and the other decoded, \
      because the server sends them in new datagrams; the delays then end with the playout.

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
    help: "The peer of the first take, if it has several.",
    completion: .custom { words, _, _ in Completions.peerNumbers(in: words, take: 0) },
    transform: Taking.peer)
  var firstPeer: Int64?

  @Option(
    help: "The peer of the second take, if it has several.",
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
    reportEndings(of: first, second)
    // Report an unwritable file before doing the work.
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
    let made = try WritingWhole.writeTake(out, overwrite.present) { temporary in
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

// MARK: - DiffCommand

/// Prints two takes' differences.
struct DiffCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare two sessions, or one session under two builds, the first difference first.",
    discussion: """
      Both takes are put on one clock. The comparison covers the setup, signaling (descriptions \
      section by section, without values that are random in every session), states, tracks, pairs, \
      frames, freezes, refusals and stats. The exit status is 0 when nothing differs, 1 otherwise.

      Two folders, such as the captures of two builds, are compared by the results of all their \
      takes: the median, 10th and 90th percentiles of each measure, and the number of takes with \
      each finding. Takes with the same label are compared as pairs. A measure differs if its \
      median or 90th percentile, or a pair, changed by more than a tenth and by more than a person \
      would notice.

      Examples:
        retake diff before.take after.take
        retake diff build-41/ build-42/
        retake diff good.take bad.take --align connected --json
        retake diff bad.take again-page.take --first-peer 2 --second-peer 1
      """)

  @Argument(
    help: "The first take, or a folder of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var first: String

  @Argument(
    help: "The second take, or a folder of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var second: String

  @Option(help: "How to align the clocks of two takes: start, connected or wall. Default: start.")
  var align: TakeDiff.Alignment?

  @Option(
    help: """
      Compare this peer of the first take with one of the second. Default: peers with the same \
      label, or else the same number.
      """,
    completion: .custom { words, _, _ in Completions.peerNumbers(in: words, take: 0) },
    transform: Taking.peer)
  var firstPeer: Int64?

  @Option(
    help: "The peer of the second take that --first-peer is compared with.",
    completion: .custom { words, _, _ in Completions.peerNumbers(in: words, take: 1) },
    transform: Taking.peer)
  var secondPeer: Int64?

  @Flag(help: "Print JSON for programs.")
  var json = false

  @OptionGroup var pager: PagerOptions

  func validate() throws {
    guard (firstPeer == nil) == (secondPeer == nil) else {
      throw ValidationError("--first-peer and --second-peer belong together: give both or neither.")
    }
  }

  func run() throws {
    let kinds = [first, second].map { FileBytes.kind(of: $0) }
    if kinds.contains(.folder) { return try compareFolders(kinds) }
    reportEndings(of: first, second)
    let pair = try peers()
    let diff = try Progress("comparing").follow {
      try reading { () throws(TapeError) in
        try TakeDiff(first, second, alignment: align ?? .start, pair: pair)
      }
    }
    try Output.verdict {
      try json
        ? Output.json(diff.json, in: JSONForm()) : pager.show(diff.text(pager.look) + "\n")
    }
    if !diff.isEmpty { throw CommandFailure(.difference, "") }
  }

  /// Returns the two peers to compare, if they were named.
  private func peers() throws -> (left: Int64, right: Int64)? {
    guard let firstPeer, let secondPeer else { return nil }
    for (take, option, number) in [
      (first, "--first-peer", firstPeer), (second, "--second-peer", secondPeer),
    ] {
      let known = try reading { () throws(TapeError) in try TakePeers.all(in: take) }
      guard !known.contains(where: { $0.number == number }) else { continue }
      let names = known.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
      throw CommandFailure(
        .usage, "\(take): \(option) \(number): there is no such peer; the take has \(names)")
    }
    return (firstPeer, secondPeer)
  }

  /// Compares the outcomes of all takes in two folders.
  private func compareFolders(_ kinds: [FileBytes.Kind?]) throws {
    guard align == nil, firstPeer == nil else {
      throw CommandFailure(
        .usage,
        "\(align == nil ? "--first-peer" : "--align") applies to two takes; leave it out for "
          + "folders")
    }
    for (path, kind) in zip([first, second], kinds) where kind != .folder {
      let one =
        kind == nil ? "there is no such file or folder" : "it is not a folder, but the other one is"
      throw CommandFailure(
        kind == nil ? .noSuchFile : .usage, "\(path): \(one); compare two takes or two folders")
    }
    let looks = [try FolderLook([first]), try FolderLook([second])]
    let diff = try reading { () throws(TapeError) in
      try FolderDiff(looks[0].catalogue, looks[1].catalogue, folders: [first, second])
    }
    try Output.verdict {
      try json ? Output.json(diff.json) : pager.show(diff.text(pager.look))
    }
    for look in looks { FolderLook.report(look.catalogue.failures) }
    if !diff.isEmpty { throw CommandFailure(.difference, "") }
    try FolderLook.fail(of: looks.flatMap(\.catalogue.failures))
  }
}

extension TakeDiff.Alignment: ExpressibleByArgument {}
