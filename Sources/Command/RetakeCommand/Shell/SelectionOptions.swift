import ArgumentParser
import FoundationEssentials
import Queries
import Replay
package import Tape
import Wire

/// The option that selects a peer by its number or label.
struct PeerOption: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp("Only this peer, by its number or label.", valueName: "peer"),
    completion: .custom { words, _, _ in Completions.peers(in: words) },
    transform: Taking.text(1...1_000))
  var peer: String?

  /// Returns the selected peers' numbers, nil for all; refuses an unknown peer with a suggestion.
  func numbers(in take: String) throws -> Set<Int64>? {
    guard let peer else { return nil }
    let known = try reading { () throws(TapeError) in try TakePeers.all(in: take) }
    let found = known.filter { String($0.number) == peer || $0.label == peer }
    guard found.isEmpty else { return Set(found.map(\.number)) }
    let near = Nearest.words(to: peer, among: known.map(\.label).filter { !$0.isEmpty })
    let list = known.map { $0.label.isEmpty ? "\($0.number)" : "\($0.number) (\($0.label))" }
    throw CommandFailure(
      .usage,
      "\(take): --peer \(CommandReading.shown(peer)): there is no such peer; "
        + (near.isEmpty
          ? "the take has \(list.prefix(20).joined(separator: ", "))"
          : "did you mean \(near.joined(separator: " or "))?"))
  }
}

extension PeerOption {
  /// Returns the selected peer's number, nil for all; refuses a label that several peers have.
  func number(in take: String) throws -> Int64? {
    guard let peer, let numbers = try numbers(in: take) else { return nil }
    guard numbers.count > 1 else { return numbers.first }
    let list = numbers.sorted().map { String($0) }.joined(separator: ", ")
    throw CommandFailure(
      .usage,
      "\(take): --peer \(CommandReading.shown(peer)): \(numbers.count) peers have this name; give "
        + "one of the numbers \(list)")
  }
}

/// The options that select a time span.
struct SpanOptions: ParsableArguments, Sendable {
  @Option(
    help: "Only entries at or after this time (12.5, 80ms) or step (step:120).",
    transform: Taking.place)
  var from: StepCondition?

  @Option(help: "Only entries at or before this time or step.", transform: Taking.place)
  var to: StepCondition?

  var isEmpty: Bool { from == nil && to == nil }

  func validate() throws {
    guard let from, let to else { return }
    let isReversed =
      if let from = from.instant, let to = to.instant {
        from > to
      } else if let from = from.stepNumber, let to = to.stepNumber {
        from > to
      } else {
        false
      }
    if isReversed { throw ValidationError("--from \(from) is later than --to \(to).") }
  }

  /// Sets a selection's bounds from `--from` and `--to`.
  func limit(_ selection: inout TakeSelection, in take: String) throws {
    if let from { selection.fromNanoseconds = try nanoseconds(from, "--from", take) }
    if let to { selection.toNanoseconds = try nanoseconds(to, "--to", take) }
    if let from, from.instant != nil, let end = try end(of: take),
      selection.fromNanoseconds > end.nanoseconds
    {
      throw CommandFailure(
        .unmet, "\(take): --from \(from): it ends before that, at \(decimal(end.seconds, 3)) s")
    }
    guard selection.fromNanoseconds > selection.toNanoseconds, let from, let to else { return }
    throw CommandFailure(.usage, "\(take): --from \(from) is later than --to \(to)")
  }

  private func end(of take: String) throws -> Instant? {
    try reading { () throws(TapeError) in try StepTimes.end(of: take) }
  }

  private func nanoseconds(_ place: StepCondition, _ option: String, _ take: String) throws
    -> Int64
  {
    guard let step = place.stepNumber else { return place.instant?.nanoseconds ?? 0 }
    let found = try reading { () throws(TapeError) in try StepTimes.find(step, in: take) }
    guard let at = found.at else {
      throw CommandFailure(
        .usage, "\(take): \(option) \(place): there is no such step; the take has \(found.count)")
    }
    return at.nanoseconds
  }
}

/// Selects a part of a take.
struct SelectionOptions: ParsableArguments, Sendable {
  @OptionGroup var peers: PeerOption
  @OptionGroup var span: SpanOptions

  var isEmpty: Bool { peers.peer == nil && span.isEmpty }

  /// Returns the selected part of a take; throws if the take has no such peer or span.
  func selection(in take: String) throws -> TakeSelection {
    var selection = TakeSelection()
    selection.peers = try peers.numbers(in: take)
    try span.limit(&selection, in: take)
    return selection
  }
}

/// Parses a timeline lane's name.
enum LaneName {
  static func read(_ word: String) throws -> String {
    guard Timeline.lanes.contains(word) else {
      throw Taking.Refusal("there is no such lane\(Nearest.hint(word, among: Timeline.lanes))")
    }
    return word
  }
}

// MARK: - TakeOptions

/// A command's take, and the output options.
struct TakeOptions: ParsableArguments {
  @Argument(help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  @Flag(help: "Print JSON for programs.")
  var json = false
}

/// A command's takes, and the output options.
struct TakesOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "One or more takes, or folders of takes; each take is reported.", valueName: "take"),
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var takes: [String]

  @Flag(help: "Print JSON for programs.")
  var json = false

  /// The take, if there is only one.
  var take: String { takes.first ?? "" }

  var areMany: Bool { takes.count > 1 || FileBytes.kind(of: take) == .folder }
}

/// Prints messages about takes without an end, which are still being recorded or may be incomplete.
///
/// Unreadable files are reported elsewhere.
func reportEndings(of takes: String...) {
  for take in takes {
    switch try? TakeEnding.of(take) {
    case .complete?, .cutShort?, nil: continue
    case let ending?: printError("retake: \(take): \(ending.words ?? "")")
    }
  }
}

/// Runs work on a take, converting errors to command failures.
package func reading<Value>(_ body: () throws(TapeError) -> Value) throws -> Value {
  do throws(TapeError) {
    return try body()
  } catch {
    throw CommandFailure(error)
  }
}

extension CommandFailure {
  /// Creates the failure for a take that cannot be read, with the status for the kind of error.
  package init(_ error: TapeError) {
    let status: ExitStatus =
      switch error.kind {
      case .missing: .noSuchFile
      case .failed: .inputOutput
      case .invalid: .invalidTake
      }
    // File names may contain line breaks.
    self.init(status, CommandReading.oneLine(error.description))
  }
}
