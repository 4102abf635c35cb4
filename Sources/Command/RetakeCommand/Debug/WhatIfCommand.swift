import ArgumentParser
import Debug
import FoundationEssentials
import Live
import Media
import Peer
import Replay
import Tape
import Wire

/// Runs a recorded session again with changes.
struct WhatIfCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "whatif",
    abstract: "Run a take with other packets or settings and compare the results.",
    discussion: """
      The stack runs on the recorded inputs twice, once unchanged and once with the change, and \
      the two runs' states, frames, freezes, concealment and bit rates are compared, not their \
      bytes. It is an open loop: the remote peer's packets are the recorded ones, whatever this \
      end does.

      A selector is a condition on received packets, as for --until, with from=1.2s, to=1.5s, \
      every=3 and probability=10% to choose among them.

      Examples:
        retake whatif call.take --jitter-buffer 400
        retake whatif call.take --drop 'packet rtp ssrc=301774210 probability=5%'
        retake whatif call.take --delay '80ms packet rtp from=2s to=3s' --peer 1
        retake whatif call.take --set videoBitrateMaximum=300000
        retake whatif call.take --build ../other/.build/release/retake
      """)

  @OptionGroup var options: TakeOptions

  @Option(
    help: ArgumentHelp("Leave these packets out.", valueName: "selector"),
    transform: Taking.edit { try PacketEdit(.drop, $0) })
  var drop: [String] = []

  @Option(
    help: ArgumentHelp("Delay these packets.", valueName: "80ms selector"),
    transform: Taking.edit { try PacketEdit(delay: $0) })
  var delay: [String] = []

  @Option(
    help: ArgumentHelp("Deliver these packets twice.", valueName: "selector"),
    transform: Taking.edit { try PacketEdit(.duplicate, $0) })
  var duplicate: [String] = []

  @Option(
    help: ArgumentHelp("Change the last byte of these packets.", valueName: "selector"),
    transform: Taking.edit { try PacketEdit(.corrupt, $0) })
  var corrupt: [String] = []

  @Option(
    help: "The minimum target of all jitter buffers, in milliseconds.",
    transform: Taking.milliseconds(0...10_000))
  var jitterBuffer: Double?

  @Option(
    name: .customLong("set"),
    help: ArgumentHelp(
      "Change a setting of the peers' configuration.", valueName: "name=value"),
    completion: .custom { _, _, _ in ConfigurationChange.names.map { $0 + "=" } },
    transform: ConfigurationChange.read)
  var settings: [ConfigurationChange] = []

  @Option(
    help: "Run the take with another retake executable and compare its stack with this one.",
    completion: .file(), transform: Taking.path)
  var build: String?

  @Flag(help: .hidden)
  var outcomes = false

  @Option(
    help: "Change only this peer, by its number.",
    completion: .custom { words, _, _ in Completions.peerNumbers(in: words) },
    transform: Taking.peer)
  var peer: UInt32?

  @Option(
    help: "The random seed for probability=. Default: \(Self.usualSeed).",
    transform: Taking.whole(0...UInt64.max))
  var seed = Self.usualSeed

  private static let usualSeed: UInt64 = 1

  @OptionGroup var pager: PagerOptions

  func validate() throws {
    let isChanged =
      !(drop + delay + duplicate + corrupt).isEmpty || jitterBuffer != nil || !settings.isEmpty
      || build != nil
    guard isChanged || outcomes else {
      throw ValidationError(
        "whatif needs a change: --drop, --delay, --duplicate, --corrupt, --jitter-buffer, --set "
          + "or --build.")
    }
    guard ConfigurationChange.apply(configurationChanges, to: PeerConfiguration()) != nil else {
      throw ValidationError("These settings contradict each other: leave out one --set.")
    }
  }

  func run() throws {
    reportEndings(of: options.take)
    var changes = FreeRun.Changes()
    changes.edits = try edits()
    changes.peer = peer
    changes.seed = seed
    try checkPeer()
    let configured = configurationChanges
    let watches = watchesCalls
    changes.watchesCalls = watches
    changes.configure = { $0 = ConfigurationChange.apply(configured, to: $0) ?? $0 }
    if outcomes {
      // With `--outcomes`, another build runs this program and reads the outcomes.
      let run = try run(changes, "what if")
      return try Output.json(
        CanonicalJSON.text(OtherBuild.Answer(outcomes: run.outcomes, counts: run.counts)))
    }
    var unchanged = FreeRun.Changes()
    unchanged.watchesCalls = watches
    let recorded = try run(unchanged, "as recorded")
    guard !recorded.outcomes.isEmpty else {
      let others = recorded.others.isEmpty ? "it is empty" : recorded.others.joined(separator: ", ")
      throw CommandFailure(
        .unmet,
        "\(options.take): whatif runs an endpoint's stack, and the take has no endpoint: "
          + "\(others); calls between others support only --jitter-buffer and --build")
    }
    let changed =
      try build.map { path in
        try Progress("what if").follow(telling: { path }) {
          try OtherBuild(path: path).run(options.take, arguments)
        }
      }
      ?? answer(changes, "what if")
    var words = zip(changes.edits, changed.counts).map { "\($0): \(counted($1, "packet"))" }
    if let jitterBuffer { words.append("jitter buffers of at least \(Int(jitterBuffer)) ms") }
    words += settings.map(\.description)
    if let build { words.append("the stack of \(build)") }
    if let peer { words = words.map { "\($0), peer \(peer) only" } }
    let report = WhatIfReport(
      path: options.take, changes: words, recorded: recorded.outcomes, changed: changed.outcomes,
      others: recorded.others)
    try options.json
      ? Output.json(report.json, in: JSONForm()) : pager.show(report.text(pager.look) + "\n")
    if let index = changed.counts.firstIndex(of: 0), changes.edits.indices.contains(index) {
      throw CommandFailure(
        .unmet, "\(options.take): no packet in it matches \"\(changes.edits[index].condition)\"")
    }
  }

  /// Throws if the take has no peer with the number that `--peer` names.
  private func checkPeer() throws {
    guard let peer else { return }
    let known = try reading { () throws(TapeError) in
      try DatagramHistory(path: options.take).peers
    }
    guard !known.contains(where: { $0.number == Int64(peer) }) else { return }
    let names = known.map { "\($0.number) \($0.label)" }.joined(separator: ", ")
    throw CommandFailure(.usage, "\(options.take): it has no peer \(peer), only \(names)")
  }

  private func edits() throws -> [PacketEdit] {
    do throws(ConditionError) {
      var edits: [PacketEdit] = []
      for text in drop { edits.append(try PacketEdit(.drop, text)) }
      for text in delay { edits.append(try PacketEdit(delay: text)) }
      for text in duplicate { edits.append(try PacketEdit(.duplicate, text)) }
      for text in corrupt { edits.append(try PacketEdit(.corrupt, text)) }
      return edits
    } catch {
      throw CommandFailure(.usage, error.description)
    }
  }

  private var configurationChanges: [ConfigurationChange] {
    let buffer = jitterBuffer.map {
      ConfigurationChange(name: "jitterBufferMinimum", value: String(Int($0)))
    }
    return (buffer.map { [$0] } ?? []) + settings
  }

  /// Whether the changes can apply to observed calls.
  ///
  /// An observed call's packets are fixed, and only the jitter buffer's setting affects how they
  /// are received.
  private var watchesCalls: Bool {
    (drop + delay + duplicate + corrupt).isEmpty
      && configurationChanges.allSatisfy { $0.name == "jitterBufferMinimum" }
  }

  /// The requested changes as arguments for another build.
  private var arguments: [String] {
    var list: [String] = []
    func add(_ name: String, _ values: [String]) {
      for value in values { list += [name, value] }
    }
    add("--drop", drop)
    add("--delay", delay)
    add("--duplicate", duplicate)
    add("--corrupt", corrupt)
    add("--set", settings.map(\.description))
    if let jitterBuffer { add("--jitter-buffer", [String(Int(jitterBuffer))]) }
    if let peer { add("--peer", [String(peer)]) }
    add("--seed", [String(seed)])
    return list
  }

  private func answer(_ changes: FreeRun.Changes, _ what: String) throws
    -> (outcomes: [PeerOutcome], counts: [Int])
  {
    let run = try run(changes, what)
    return (run.outcomes, run.counts)
  }

  private func run(_ changes: FreeRun.Changes, _ what: String) throws
    -> (outcomes: [PeerOutcome], counts: [Int], others: [String])
  {
    let progress = Progress(what)
    defer { progress.clear() }
    return try reading { () throws(TapeError) in
      let run = try FreeRun(path: options.take, changes: changes, codecs: { LibraryCodecs() })
      let end = try run.lastTime() ?? .zero
      let outcomes = try run.run { at in
        progress.show("\(what): \(decimal(at.seconds, 1)) of \(decimal(end.seconds, 1)) s")
      }
      return (outcomes, run.changed, run.others)
    }
  }
}

// MARK: - ConfigurationChange

/// A new value for a peer setting: `--set videoBitrateMaximum=300000`.
struct ConfigurationChange: Hashable, Sendable, CustomStringConvertible {
  var name: String
  var value: String

  var description: String { "\(name)=\(value)" }

  /// Parses `name=value`; the error states the expected form.
  static func read(_ word: String) throws -> ConfigurationChange {
    let parts = word.split(separator: "=", maxSplits: 1).map { String($0) }
    guard parts.count == 2, word.utf8.count <= Taking.textLimit, !word.utf8.contains(0) else {
      throw Taking.Refusal(
        "a setting is NAME=VALUE of 3 to \(Taking.textLimit) bytes, as in "
          + "videoBitrateMaximum=300000")
    }
    let change = ConfigurationChange(name: parts[0], value: parts[1])
    guard names.contains(change.name) else {
      throw Taking.Refusal(
        "there is no setting \(CommandReading.shown(change.name))"
          + Nearest.hint(change.name, among: names))
    }
    guard apply([change], to: PeerConfiguration()) != nil else {
      throw Taking.Refusal(
        "\(CommandReading.shown(change.value)) is not a value of the setting \(change.name)")
    }
    return change
  }

  static var names: [String] {
    Mirror(reflecting: PeerConfiguration()).children.compactMap(\.label)
  }

  /// Returns a configuration with changes applied by name; nil if a value does not fit.
  static func apply(
    _ changes: [ConfigurationChange], to configuration: PeerConfiguration
  ) -> PeerConfiguration? {
    guard let data = try? JSONEncoder().encode(configuration),
      var members = try? JSONValue(parsing: String(decoding: data, as: UTF8.self)).members
    else { return nil }
    for change in changes {
      members.removeAll { $0.name == change.name }
      let value = (try? JSONValue(parsing: change.value)) ?? .text(change.value)
      members.append(JSONValue.Member(change.name, value))
    }
    return try? JSONDecoder().decode(
      PeerConfiguration.self, from: Data(JSONValue.object(members).json.utf8))
  }
}

// MARK: - OtherBuild

/// Another build of this program, which runs on the same take so that the two stacks can be
/// compared.
struct OtherBuild {
  /// The other build's reply.
  struct Answer: Codable {
    var outcomes: [PeerOutcome]
    var counts: [Int]
  }

  let path: String

  /// Runs the other build's `whatif` with the same changes.
  func run(_ take: String, _ changes: [String]) throws -> (outcomes: [PeerOutcome], counts: [Int]) {
    guard FileManager.default.fileExists(atPath: path) else {
      throw CommandFailure(.noSuchFile, "\(path): there is no such executable")
    }
    guard FileBytes.kind(of: path) != .folder, FileManager.default.isExecutableFile(atPath: path)
    else {
      throw CommandFailure(
        .usage,
        "\(path): it is not an executable; give the retake of another build, as in "
          + ".build/release/retake")
    }
    let output: ChildPipe
    let process: ChildProcess
    do throws(SystemError) {
      output = try ChildPipe()
      process = try ChildProcess(
        path, ["whatif", take, "--outcomes"] + changes, input: .inherited,
        output: .pipe(output.writing))
      output.closeWriting()
    } catch {
      throw CommandFailure(.noSuchFile, "\(path): it cannot be started: \(error.description)")
    }
    let text = output.readAll(atMost: 64 << 20)
    process.end()
    guard process.waitUntilExit().status == 0,
      let answer = CanonicalJSON.value(Answer.self, from: text)
    else {
      throw CommandFailure(
        .inputOutput,
        "\(path): it did not report the outcomes of \(take); give a retake that supports whatif "
          + "--outcomes")
    }
    return (answer.outcomes, answer.counts)
  }
}
