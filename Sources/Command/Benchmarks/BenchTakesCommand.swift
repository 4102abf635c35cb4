import ArgumentParser
import FoundationEssentials
import Glibc
import Media
import Page
import Peer
import Queries
import Replay
import RetakeCommand
import Tape
import Wire

/// Measures recording and replay against the C libraries, in one run on one machine.
struct BenchTakesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "takes",
    abstract: "Measure replaying, recording and takes against what the C libraries alone need.",
    discussion: """
      Holds calls of 640x360 video at 30 frames per second and audio in virtual time, and \
      replays them. The floor is the time that libvpx, libopus and libsrtp need for the same \
      frames and packets, measured in the same run; of a size it is a packet capture of the same \
      datagrams. Of several rounds the fastest counts, because a machine's other work only ever \
      slows one down. The size of the executable without symbols (as it is installed) and of the \
      call's page, and the time of its start (retake --help), stand beside their goals.

      Each line is printed when it is measured; all of them take about four minutes on two cores. \
      No measurement is repeated any more once it has taken a minute.

      Example:
        retake-bench takes --seconds 60
      """)

  @Option(
    help: "How long the calls are, in whole virtual seconds. Default: \(Self.usualSeconds).",
    transform: Taking.wholeSeconds(2...3600))
  var seconds = Self.usualSeconds

  @Option(
    help: "How often each replay and its floor are measured. Default: \(Self.usualRounds).",
    transform: Taking.whole(1...100))
  var rounds = Self.usualRounds

  private static let usualSeconds = 60
  private static let usualRounds = 3

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    let temporary = try BenchFolder()
    defer { temporary.remove() }
    let folder = temporary.url
    var table = try BenchTable(seconds: seconds, show: json ? nil : { try Output.line($0) })
    do {
      try measureCall(folder, &table)
      announce("the executable and a page")
      try FrontDoorBench(path: folder.appendingPathComponent("call.take").path).measure(&table)
      try measureReceiver(folder, &table)
      try measureWithoutCodecs(folder, &table)
      try measureRecording(folder, &table)
      announce("the stats of a call of \(StatsBench.seconds) s")
      try StatsBench(path: folder.appendingPathComponent("stats.take").path).measure(&table)
      announce("audio of a device")
      try AudioBench().measure(&table)
      announce("frames of a camera")
      try VideoBench(path: folder.appendingPathComponent("camera.take").path).measure(&table)
    } catch let error as TapeError {
      throw CommandFailure(error)
    }
    try table.end()
  }

  /// Runs a measurement several times, but starts no further round after `longEnough` seconds.
  private func repeated(_ count: Int, _ body: (_ round: Int) throws -> Void) rethrows {
    let watch = Stopwatch()
    for round in 0..<count where round == 0 || watch.elapsed.wall < Self.longEnough {
      try body(round)
    }
  }

  /// The time in seconds after which a measurement is not repeated again.
  private static let longEnough = 60.0

  private func announce(_ text: String) {
    if isatty(STDERR_FILENO) != 0 { printError("bench: \(text)") }
  }

  // MARK: Replays

  /// Measures a call in which both peers send: the replay's time and the take's size.
  private func measureCall(_ folder: URL, _ table: inout BenchTable) throws {
    announce("a call of \(seconds) s, both ways")
    let whole = folder.appendingPathComponent("call.take").path
    let bare = folder.appendingPathComponent("bare.take").path
    try BenchCall(senders: [0, 1], seconds: seconds).run([
      BenchCall.Recording(path: whole), BenchCall.Recording(path: bare, keepsMedia: false),
    ])
    let best = try replays(whole)
    try table.add(
      "replay of a call, wall time", best.replay.wall, floor: best.floor.sum, "s", .atMost, 1.5)
    try table.add(
      "replay of a call, processor time", best.replay.processor, floor: best.floor.sum, "s",
      .atMost, 1.5)
    table.floor = [
      "VP8 encoding": best.floor.videoEncoding, "VP8 decoding": best.floor.videoDecoding,
      "Opus encoding": best.floor.audioEncoding, "Opus decoding": best.floor.audioDecoding,
      "SRTP": best.floor.protection,
    ]
    for (what, path, goal) in [
      ("size without media copy", bare, 1.1), ("size with media copy", whole, 2.1),
    ] {
      let info = try TakeInfo(path: path)
      try table.add(
        what, Double(info.fileBytes) / 1e6, floor: Double(info.captureBytes) / 1e6, "MB", .atMost,
        goal)
    }
  }

  /// Measures a peer that only receives, alone in its take.
  private func measureReceiver(_ folder: URL, _ table: inout BenchTable) throws {
    announce("a peer that only receives")
    let path = folder.appendingPathComponent("receiver.take").path
    try BenchCall(senders: [0], seconds: seconds).run([
      BenchCall.Recording(path: path, peers: [1])
    ])
    let best = try replays(path)
    let length = Double(seconds)
    try table.add(
      "receiver, times real time", best.replay.wall, floor: best.floor.sum, "s",
      ratio: length / best.replay.wall, .atLeast, 40)
    var skipping = Double.infinity
    try repeated(rounds) { _ in skipping = min(skipping, try replay(path, skipsCodecs: true).wall) }
    try table.add(
      "receiver without codecs, times real time", skipping, floor: best.floor.protection, "s",
      ratio: length / skipping, .atLeast, 200)
  }

  /// Measures a lossy call in which both peers send, replayed without codecs.
  private func measureWithoutCodecs(_ folder: URL, _ table: inout BenchTable) throws {
    announce("a call of \(seconds) s over a lossy path")
    let path = folder.appendingPathComponent("lossy.take").path
    try BenchCall(senders: [0, 1], seconds: seconds, lossPerMille: 10).run([
      BenchCall.Recording(path: path)
    ])
    var best = Double.infinity
    try repeated(rounds) { _ in
      best = min(best, try replay(path, skipsCodecs: true).processor)
    }
    let packets = try TakeInfo(path: path).peers.reduce(0) { $0 + $1.packetsIn + $1.packetsOut }
    let scale = 1e6 / Double(packets)
    try table.add(
      "a packet of a lossy call without codecs", best * scale,
      floor: Self.packetGoal, "us", .atMost, 1)
  }

  /// The goal for the processor time per packet, in microseconds: enough for 150,000 packets a
  /// second.
  private static let packetGoal = 1e6 / 150_000

  /// Returns a take's fastest replay and the libraries' fastest run on it, measured alternately.
  private func replays(_ path: String) throws -> (replay: Elapsed, floor: LibraryFloor) {
    var replayed = Elapsed(wall: .infinity, processor: .infinity)
    var floor: LibraryFloor?
    try repeated(rounds) { _ in
      let elapsed = try replay(path)
      replayed.wall = min(replayed.wall, elapsed.wall)
      replayed.processor = min(replayed.processor, elapsed.processor)
      let libraries = try LibraryFloor(path: path)
      if libraries.sum < floor?.sum ?? .infinity { floor = libraries }
    }
    return (replayed, try floor ?? LibraryFloor(path: path))
  }

  private func replay(_ path: String, skipsCodecs: Bool = false) throws -> Elapsed {
    var options = Replayer.Options()
    options.skipsCodecs = skipsCodecs
    let watch = Stopwatch()
    let replayer = try Replayer(
      path: path, options: options, codecs: { LibraryCodecs() },
      peer: { PeerMachine(codecs: $0) })
    let report = try replayer.run()
    let elapsed = watch.elapsed
    guard case .identical = report.verdict else {
      throw CommandFailure(.difference, report.description)
    }
    return elapsed
  }

  // MARK: Recording

  /// Compares a call's least processor time with and without recording, measured alternately.
  private func measureRecording(_ folder: URL, _ table: inout BenchTable) throws {
    let pairs = max(3, rounds)
    let call = BenchCall(senders: [0, 1], seconds: seconds)
    var plain = Double.infinity
    var recorded = Double.infinity
    try repeated(pairs) { pair in
      announce("recording overhead, \(pair + 1) of \(pairs)")
      let path = folder.appendingPathComponent("overhead\(pair).take").path
      let first = Stopwatch()
      try call.run()
      plain = min(plain, first.elapsed.processor)
      let second = Stopwatch()
      try call.run([BenchCall.Recording(path: path)])
      recorded = min(recorded, second.elapsed.processor)
      try? FileManager.default.removeItem(atPath: path)
    }
    try table.add("recording, processor time", recorded, floor: plain, "s", .atMost, 1.05)
  }
}

// MARK: - BenchPageCommand

/// Measures a long call's page.
struct BenchPageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page",
    abstract: "Measure how long the page of a long call takes to make, and how large it is.",
    discussion: """
      Holds a call of 640x360 video at 30 frames per second and audio both ways in virtual time, \
      and draws it. With --take the call is kept, and drawn from there the next time.

      Example:
        retake-bench page --take long.take
      """)

  @Option(
    help: "How long the call is, in whole virtual seconds. Default: \(Self.usualSeconds).",
    transform: Taking.wholeSeconds(2...7200))
  var seconds = Self.usualSeconds

  private static let usualSeconds = 600

  @Option(
    help: "The take to draw; it is made when it is not there.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String?

  @Flag(help: "Print JSON for programs.")
  var json = false

  /// Goals in seconds and megabytes, for a call of ten minutes.
  private static let makingGoal = 2.0
  private static let sizeGoal = 3.0
  private static let readingGoal = 2.0
  private static let rounds = 3

  func run() throws {
    let temporary = try BenchFolder()
    defer { temporary.remove() }
    let path = take ?? temporary.url.appendingPathComponent("call.take").path
    var table = try BenchTable(
      seconds: seconds, show: json ? nil : { try Output.line($0) })
    do {
      if !FileManager.default.fileExists(atPath: path) {
        announce("a call of \(seconds) s, both ways")
        try BenchCall(senders: [0, 1], seconds: seconds).run([BenchCall.Recording(path: path)])
      }
      try measure(path, &table)
    } catch let error as TapeError {
      throw CommandFailure(error)
    }
    try table.end()
  }

  private func measure(_ path: String, _ table: inout BenchTable) throws {
    var options = TakePage.Options()
    options.keepsMedia = false
    var making = Double.infinity
    var reading = Double.infinity
    var size = 0
    var packets = 0
    for round in 1...Self.rounds {
      announce("its page, \(round) of \(Self.rounds)")
      let watch = Stopwatch()
      size = try TakePage(path: path, options: options).html.utf8.count
      making = min(making, watch.elapsed.wall)
      var content = PageContent(path: path)
      let second = Stopwatch()
      _ = try content.read()
      reading = min(reading, second.elapsed.wall)
      packets = content.packetCount
    }
    try table.add(
      "making the page of \(packets) packets", making, floor: Self.makingGoal, "s", .atMost, 1)
    try table.add(
      "its file without media", Double(size) / 1e6, floor: Self.sizeGoal, "MB", .atMost, 1)
    try table.add(
      "reading them for an open page", reading, floor: Self.readingGoal, "s", .atMost, 1)
  }

  private func announce(_ text: String) {
    if isatty(STDERR_FILENO) != 0 { printError("bench: \(text)") }
  }
}

// MARK: - BenchFolderCommand

/// Measures queries on a folder with takes.
struct BenchFolderCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "folder",
    abstract: "Measure how long a folder of takes needs to be asked, the first time and later.",
    discussion: """
      Holds calls of 640x360 video at 30 frames per second and audio both ways in virtual time, \
      some of them over a lossy path, and copies them to as many takes as are wanted. Each \
      question is asked by a process of its own. The goals are those of 1,000 takes of a second \
      (queries) and of 100 takes of a minute (findings) on two cores.

      Examples:
        retake-bench folder --takes 1000 --seconds 1
        retake-bench folder --takes 100 --seconds 60
      """)

  @Option(
    help: "How many takes the folder has. Default: \(Self.usualTakes).",
    transform: Taking.whole(4...100_000))
  var takes = Self.usualTakes

  @Option(
    help: "How long the calls are, in whole virtual seconds. Default: \(Self.usualSeconds).",
    transform: Taking.wholeSeconds(1...3600))
  var seconds = Self.usualSeconds

  private static let usualTakes = 1_000
  private static let usualSeconds = 1

  @Flag(help: "Print JSON for programs.")
  var json = false

  /// The number of distinct calls; further takes are copies of them.
  private static let calls = 8
  /// The maximum length in seconds of a take that is copied; longer takes are hard-linked instead.
  private static let longestCopied = 5
  /// Goals in seconds: for a query that reads all takes, for one that reads only their catalogue,
  /// and for findings.
  private static let (firstGoal, laterGoal, findingsGoal) = (10.0, 1.0, 60.0)
  /// The maximum ratio of the memory used for a folder with four times as many takes.
  private static let memoryGoal = 1.25

  func run() throws {
    let temporary = try BenchFolder()
    defer { temporary.remove() }
    var table = try BenchTable(seconds: seconds, show: json ? nil : { try Output.line($0) })
    let part = try fill(temporary.url.appendingPathComponent("part"), takes / 4)
    let whole = try fill(temporary.url.appendingPathComponent("whole"), takes)
    try measure(part, whole, &table)
    try table.end()
  }

  /// Creates a folder with a number of takes.
  private func fill(_ folder: URL, _ count: Int) throws -> String {
    let files = FileManager.default
    try files.createDirectory(at: folder, withIntermediateDirectories: true)
    for number in 0..<count {
      let path = folder.appendingPathComponent("call-\(number).take").path
      let source = folder.appendingPathComponent("call-\(number % Self.calls).take").path
      if number < Self.calls {
        announce("a call of \(seconds) s, \(number + 1) of \(Self.calls)")
        _ = try reading { () throws(TapeError) in
          try BenchCall(
            senders: [0, 1], seconds: seconds, lossPerMille: UInt64(number % 4) * 20
          ).run([BenchCall.Recording(path: path)])
        }
      } else if seconds <= Self.longestCopied {
        try files.copyItem(atPath: source, toPath: path)
      } else {
        try files.linkItem(atPath: source, toPath: path)
      }
    }
    return folder.path
  }

  private func measure(_ part: String, _ whole: String, _ table: inout BenchTable) throws {
    let program = BenchCommand.retake
    let count = "\(takes) takes"
    let catalogued = "SELECT id, count(DISTINCT take) FROM finding GROUP BY id"
    func forget() { FileBytes.remove(whole + "/.retake.catalogue") }
    announce("findings of \(takes / 4) takes")
    _ = try Child.seconds(program, ["findings", part])
    let memory = Child.largestMemory
    announce("findings of \(count)")
    let findings = try Child.seconds(program, ["findings", whole])
    try table.add(
      "findings of \(count)", findings, floor: Self.findingsGoal, "s", .atMost, 1)
    try table.add(
      "memory of that, of a quarter of the takes", Child.largestMemory, floor: memory, "MB",
      .atMost, Self.memoryGoal)
    forget()
    announce("a query over \(count)")
    let first = try Child.seconds(program, ["sql", whole, catalogued])
    try table.add("a query, the first time", first, floor: Self.firstGoal, "s", .atMost, 1)
    let later = try Child.seconds(program, ["sql", whole, catalogued])
    try table.add("a query from the catalogue", later, floor: Self.laterGoal, "s", .atMost, 1)
    let packets = [
      "sql", whole, "SELECT protocol, count(*) FROM packet GROUP BY protocol", "--csv",
    ]
    let each = try Child.seconds(program, packets)
    try table.add("a query on each take", each, floor: Self.firstGoal, "s", .atMost, 1)
    let summary = try Child.seconds(program, ["summary", whole, "--json"])
    try table.add("summaries from the catalogue", summary, floor: Self.laterGoal, "s", .atMost, 1)
  }

  private func announce(_ text: String) {
    if isatty(STDERR_FILENO) != 0 { printError("bench: \(text)") }
  }
}
