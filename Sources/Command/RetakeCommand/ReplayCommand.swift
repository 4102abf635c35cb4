import ArgumentParser
import CProcess
import Debug
import FoundationEssentials
import Media
import Peer
import Queries
import Replay
import Tape
import Wire

struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Re-drive the whole stack from a take and compare everything it does.",
    discussion: """
      Prints "identical", or the first difference; a file that was altered is told apart from a \
      stack that behaves differently. The exit status is 0 when identical, 1 when not.

      Examples:
        retake replay call.take
        retake replay call.take --skip-codecs
        retake replay old.take --substitute
        retake replay call.take --until 12.3s
        retake replay call.take --until 'state ice-connection failed'
        retake replay call.take --until 'packet rtcp pli' --json
        retake replay call.take --until step:1234 --lldb
          (lldb) breakpoint set --file PeerMachine.swift --line 26
          (gdb) break PeerMachine.swift:26
      """)

  @OptionGroup var options: TakeOptions

  @Flag(help: "Replace the codecs by recorded frames; everything but decoded media is compared.")
  var skipCodecs = false

  @Flag(
    help: """
      Use the recorded output of another OpenSSL, libsrtp2 or codec, and compare everything else; \
      if all libraries are the same, substitute them all.
      """)
  var substitute = false

  @Option(
    help: """
      Stop before a step (step:123) or at a time (12.5s), or after the step that meets a condition \
      ('state ice-connection failed', 'packet rtcp pli'), and print the state of the stack.
      """,
    transform: Taking.condition)
  var until: StepCondition?

  @Flag(help: "Open the place in lldb, or in gdb if that does not start.")
  var lldb = false

  @Flag(help: .hidden)
  var stopHere = false

  func run() throws {
    var replayOptions = Replayer.Options()
    replayOptions.skipsCodecs = skipCodecs
    replayOptions.until = until.map { .condition($0) }
    if lldb {
      let kept = (skipCodecs ? ["--skip-codecs"] : []) + (substitute ? ["--substitute"] : [])
      try NativeDebugger(take: options.take, options: kept).open(
        before: until?.description ?? "step:1")
    }
    if stopHere { return try walk(to: until) }
    let substitution = try chosenSubstitution()
    replayOptions.skipsCodecs = skipCodecs || substitution.skipsCodecs
    replayOptions.security = substitution.security
    var states: [ActorState] = []
    var report = try reading { () throws(TapeError) in
      replayOptions.toolchain = try Toolchain.current(for: options.take)
      let replayer = try Replayer(
        path: options.take, options: replayOptions, codecs: { LibraryCodecs() },
        peer: { PeerMachine(codecs: $0) })
      warn(try TapeReader(path: options.take).otherRevisions())
      warn(replayer.toolchainDifferences)
      let end = try replayer.lastTime() ?? .zero
      let progress = Progress("replaying")
      defer { progress.clear() }
      let report = try replayer.run { at in
        progress.show("replaying: \(decimal(at.seconds, 1)) of \(decimal(end.seconds, 1)) s")
      }
      if report.stoppedEarly { states = replayer.states }
      return report
    }
    if case .diverged(let divergence) = report.verdict {
      report.verdict = .diverged(try looked(into: divergence, replayOptions))
    }
    try Output.verdict {
      try options.json
        ? Output.json(SecretText.hidden(in: json(report, states)), in: .replay)
        : Output.line(SecretText.hidden(in: text(report, states)))
    }
    guard case .identical = report.verdict else { throw CommandFailure(.difference, "") }
    guard let condition = until, !report.stoppedEarly else { return }
    guard condition.stopsBefore else {
      throw CommandFailure(.unmet, "\(options.take): nothing in it matches \"\(condition)\"")
    }
    let end = Instant(nanoseconds: report.durationNanoseconds)
    let isBeyond =
      condition.instant.map { $0 > end } ?? condition.stepNumber.map { $0 > report.steps + 1 }
    if isBeyond == true {
      throw CommandFailure(
        .unmet,
        "\(options.take): --until \(condition): it ends before that, at step \(report.steps), at "
          + "\(decimal(end.seconds, 3)) s; all of it was replayed")
    }
  }

  // MARK: State of the stack

  private func text(
    _ report: ReplayReport, _ states: [ActorState]
  ) -> String {
    let parts = states.map { state in
      SnapshotTree("\(state.name) \(state.label)", of: state.snapshot).lines
        .joined(separator: "\n")
    }
    return ([painted(report)] + parts).joined(separator: "\n\n")
  }

  /// Returns the report, with its first line coloured by the verdict if colours are supported.
  private func painted(_ report: ReplayReport) -> String {
    let text = report.description
    let first = text.prefix { $0 != "\n" }
    var ink = Ink.good
    if case .identical = report.verdict {} else { ink = .bad }
    return Terminal.standard.paint(String(first), ink) + text.dropFirst(first.count)
  }

  private func json(
    _ report: ReplayReport, _ states: [ActorState]
  ) -> String {
    guard !states.isEmpty else { return report.json }
    let parts = states.map { state in
      (String(state.actor), JSONText?.some(JSONText(SnapshotTree("", of: state.snapshot).json)))
    }
    return report.json.dropLast(2) + ",\n  \"states\" : \(JSONText.object(parts).text)\n}"
  }

  /// Repeats the replay up to a divergence on one thread, and inspects the machine there.
  private func looked(into divergence: Divergence, _ replayOptions: Replayer.Options) throws
    -> Divergence
  {
    try reading { () throws(TapeError) in
      let walk = try TapeWalk(
        path: options.take, skipsCodecs: replayOptions.skipsCodecs,
        security: replayOptions.security, codecs: { LibraryCodecs() })
      while walk.number < divergence.step, try walk.advance() != nil {}
      guard var found = walk.divergence, found.step == divergence.step else { return divergence }
      found.shows = divergence.shows
      return found
    }
  }

  /// Replays to the end on one thread, and calls the function at which a debugger breaks once the
  /// condition is met.
  private func walk(to condition: StepCondition?) throws {
    let substitution = try chosenSubstitution()
    try reading { () throws(TapeError) in
      let walk = try TapeWalk(
        path: options.take, skipsCodecs: skipCodecs || substitution.skipsCodecs,
        security: substitution.security, codecs: { LibraryCodecs() })
      var hasStopped = false
      while let next = try walk.next() {
        if !hasStopped, condition?.isReached(before: next) ?? true {
          hasStopped = true
          cprocess_stop_here()
        }
        _ = try walk.advance()
        if !hasStopped, let condition, !condition.stopsBefore, walk.meets(condition) {
          hasStopped = true
          cprocess_stop_here()
        }
      }
    }
  }

  /// Warns before the replay if another revision of the stack recorded the take.
  private func warn(_ others: [OtherRevision]) {
    guard !others.isEmpty, !options.json else { return }
    printErrors(
      """
      retake: \(options.take): made by \(others.map(\.text).joined(separator: ", by ")): its \
      outputs may differ
        a Retake of that revision replays it exactly; retake pin has it compared by meaning, and \
      retake upgrade recreates it
      """)
  }

  /// Warns before the replay about library differences that may explain a divergence.
  private func warn(_ differences: [ToolchainDifference]) {
    guard !differences.isEmpty, !options.json else { return }
    // A different CPU alone usually changes nothing; if it does, the report says so.
    if differences.map(\.part) == ["cpu"], !skipCodecs, !substitute { return }
    printError("retake: \(options.take): made with another toolchain, bytes may differ:")
    for difference in differences { printError("  \(difference.summary)") }
    if !substitute { printError("  --substitute uses their recorded output") }
  }

  /// Returns the substitutions of recorded output for libraries' output; none without
  /// `--substitute`.
  private func chosenSubstitution() throws -> Substitution {
    guard substitute else { return Substitution() }
    return try reading { () throws(TapeError) in
      try Substitution(
        asked: options.take, try TapeReader(path: options.take).header,
        by: try Toolchain.current(for: options.take))
    }
  }
}

extension Instant {
  /// The time since the start of the take, in seconds.
  var seconds: Double { Double(nanoseconds) / 1e9 }
}
