import ArgumentParser
import Debug
import Foundation
import Media
import Peer
import Replay
import Tape
import Wire

/// Runs a recorded session under other circumstances.
struct WhatIfCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "whatif",
    abstract: "Run a take with other packets or settings and compare what comes out.",
    discussion: """
      The stack runs freely from the recorded inputs, once as recorded and once changed; compared \
      are states, frames, freezes, concealment and bit rates, not bytes. It is an open loop: the \
      other side's packets are those of the recording, whatever this side does.

      A selector is a condition about packets that came in, as for --until, with from=1.2s, \
      to=1.5s, every=3 and share=10% to choose among them.

      Examples:
        retake whatif call.take --jitter-buffer 400
        retake whatif call.take --drop 'packet rtp ssrc=301774210 share=5%'
        retake whatif call.take --delay '80ms packet rtp from=2s to=3s' --peer 1
        retake whatif call.take --set videoBitrateMaximum=300000
        retake whatif call.take --build ../other/.build/release/retake
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: ArgumentHelp("Leave these packets out.", valueName: "selector"))
  var drop: [String] = []

  @Option(help: ArgumentHelp("Let these packets come later.", valueName: "80ms selector"))
  var delay: [String] = []

  @Option(help: ArgumentHelp("Let these packets come twice.", valueName: "selector"))
  var duplicate: [String] = []

  @Option(help: ArgumentHelp("Change the last byte of these packets.", valueName: "selector"))
  var corrupt: [String] = []

  @Option(help: "Let all playouts delay by at least so many milliseconds.")
  var jitterBuffer: UInt32?

  @Option(
    name: .customLong("set"),
    help: ArgumentHelp(
      "Change a setting of the peers' configuration.", valueName: "name=value"))
  var settings: [String] = []

  @Option(help: "Let another retake executable run it: its stack against this one.")
  var build: String?

  @Flag(help: .hidden)
  var outcomes = false

  @Option(help: "Change only this peer, by its number.")
  var peer: UInt32?

  @Option(help: "The seed of what share= chooses.")
  var seed: UInt64 = 1

  func run() throws {
    var changes = FreeRun.Changes()
    changes.edits = try edits()
    changes.peer = peer
    changes.seed = seed
    try checkPeer()
    let configured = try configuration()
    changes.configure = { $0 = configured($0) }
    if outcomes {
      // What another build asks for.
      let run = try run(changes, "what if")
      return print(
        CanonicalJSON.text(OtherBuild.Answer(outcomes: run.outcomes, counts: run.counts)))
    }
    guard !changes.edits.isEmpty || jitterBuffer != nil || !settings.isEmpty || build != nil else {
      throw CommandFailure(
        .usage,
        "whatif needs a change: --drop, --delay, --duplicate, --corrupt, --jitter-buffer, --set "
          + "or --build")
    }
    let recorded = try run(FreeRun.Changes(), "as recorded")
    let changed =
      try build.map { try OtherBuild(path: $0).run(options.take, arguments) }
      ?? answer(changes, "what if")
    var words = zip(changes.edits, changed.counts).map { "\($0): \($1) packets" }
    if let jitterBuffer { words.append("jitter buffers of at least \(jitterBuffer) ms") }
    words += settings
    if let build { words.append("the stack of \(build)") }
    if let peer { words = words.map { "\($0), peer \(peer) only" } }
    let report = WhatIfReport(
      path: options.take, changes: words, recorded: recorded.outcomes, changed: changed.outcomes,
      others: recorded.others)
    print(options.json ? report.json : report.text)
  }

  /// Refuses a peer that the take does not have.
  private func checkPeer() throws {
    guard let peer else { return }
    let known = try reading { () throws(TapeError) in
      try DatagramHistory(path: options.take).peers
    }
    guard !known.contains(where: { $0.number == Int64(peer) }) else { return }
    let names = known.map { "\($0.number) \($0.label)" }.joined(separator: ", ")
    throw CommandFailure(.usage, "\(options.take): it has no peer \(peer); there is \(names)")
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

  /// What the settings make of a configuration; they are checked on the default one first.
  private func configuration() throws -> @Sendable (PeerConfiguration) -> PeerConfiguration {
    var values: [(name: String, value: String)] = []
    if let jitterBuffer { values.append(("jitterBufferMinimum", String(jitterBuffer))) }
    for setting in settings {
      let parts = setting.split(separator: "=", maxSplits: 1).map { String($0) }
      guard parts.count == 2 else {
        throw CommandFailure(.usage, "--set takes name=value, not \"\(setting)\"")
      }
      values.append((parts[0], parts[1]))
    }
    let chosen = values
    for setting in chosen where Self.apply([setting], to: PeerConfiguration()) == nil {
      let names = Mirror(reflecting: PeerConfiguration()).children.compactMap(\.label)
      throw CommandFailure(
        .usage,
        names.contains(setting.name)
          ? "\(setting.value) is no value of the setting \(setting.name)"
          : "there is no setting \(setting.name); there are \(names.joined(separator: ", "))")
    }
    return { Self.apply(chosen, to: $0) ?? $0 }
  }

  /// Replaces members of a configuration by their names; nil when one does not exist or fit.
  private static func apply(
    _ values: [(name: String, value: String)], to configuration: PeerConfiguration
  ) -> PeerConfiguration? {
    let known = Mirror(reflecting: configuration).children.compactMap(\.label)
    guard let data = try? JSONEncoder().encode(configuration),
      var object = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
    else { return nil }
    for (name, value) in values {
      guard known.contains(name) else { return nil }
      object[name] =
        (try? JSONSerialization.jsonObject(with: Data(value.utf8), options: .fragmentsAllowed))
        ?? value
    }
    guard let changed = try? JSONSerialization.data(withJSONObject: object) else { return nil }
    return try? JSONDecoder().decode(PeerConfiguration.self, from: changed)
  }

  /// The same changes as another build is told them.
  private var arguments: [String] {
    var list: [String] = []
    for (name, values) in [
      ("--drop", drop), ("--delay", delay), ("--duplicate", duplicate), ("--corrupt", corrupt),
      ("--set", settings), ("--jitter-buffer", jitterBuffer.map { ["\($0)"] } ?? []),
      ("--peer", peer.map { ["\($0)"] } ?? []), ("--seed", ["\(seed)"]),
    ] {
      list += values.flatMap { [name, $0] }
    }
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
        progress.show(String(format: "\(what): %.1f of %.1f s", at.seconds, end.seconds))
      }
      return (outcomes, run.changed, run.others)
    }
  }
}
