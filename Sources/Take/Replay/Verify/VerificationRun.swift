import Dispatch
import FoundationEssentials
import Queries
import Synchronization
package import Tape

/// Many takes as tests, on all cores.
package struct VerificationRun: Sendable {
  /// In the order of their paths.
  package private(set) var results: [TakeVerification] = []
  /// How long all of it took.
  package private(set) var elapsedSeconds = 0.0

  package var failures: [TakeVerification] { results.filter { !$0.isPassed } }

  /// What passed as far as it could be replayed here.
  package var inPart: [TakeVerification] { results.filter { $0.isPassed && !$0.isWhole } }

  /// Results as they come in, in any order.
  package typealias Progress = @Sendable (_ done: Int, _ latest: TakeVerification) -> Void

  /// Runs takes; each of `jobs` threads runs one at a time.
  package init(
    takes: [String], mode: Pin.Mode? = nil, isStrict: Bool = false, jobs: Int,
    progress: @escaping Progress = { _, _ in }
  ) {
    let clock = ContinuousClock()
    let begin = clock.now
    let board = Board(count: takes.count)
    // Long takes first would need their lengths; in the order of paths the last ones may wait.
    let count = max(1, min(jobs, takes.count))
    let done = DispatchSemaphore(value: 0)
    // Threads of their own: a pool gives a second one late, or not at all, on a machine with load.
    for _ in 0..<count {
      startWorker(named: "verify") {
        while let index = board.next() {
          let result = TakeVerification.run(path: takes[index], mode: mode, isStrict: isStrict)
          progress(board.finish(index, result), result)
        }
        done.signal()
      }
    }
    for _ in 0..<count { done.wait() }
    results = board.results
    let elapsed = (clock.now - begin).components
    elapsedSeconds = Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
  }

  /// The takes that paths name: files, and all `.take` files below folders, each once.
  package static func takes(in paths: [String]) throws(TapeError) -> [String] {
    try TakeList(paths).entries.map(\.path)
  }

  /// Which take is next, and what came of those that are done.
  private final class Board: Sendable {
    private struct State {
      var next = 0
      var done = 0
      var results: [TakeVerification?]
    }

    private let state: Mutex<State>

    init(count: Int) { state = Mutex(State(results: Array(repeating: nil, count: count))) }

    func next() -> Int? {
      state.withLock { state in
        guard state.next < state.results.count else { return nil }
        defer { state.next += 1 }
        return state.next
      }
    }

    /// Keeps a result and says how many there are.
    func finish(_ index: Int, _ result: TakeVerification) -> Int {
      state.withLock { state in
        state.results[index] = result
        state.done += 1
        return state.done
      }
    }

    var results: [TakeVerification] { state.withLock { $0.results.compactMap { $0 } } }
  }
}

// MARK: - Pin

/// What a take has to come to, written down beside it: `call.pin.json` for `call.take`.
///
/// `retake pin` makes it from a good run; a person reads it, changes tolerances and takes out what
/// does not matter.
package struct Pin: Hashable, Sendable, Codable {
  /// How a take is compared.
  package enum Mode: String, Hashable, Sendable, Codable, CaseIterable {
    /// Every byte, deadline and random draw.
    case exact
    /// The outcome of the session, within tolerances.
    case meaning
  }

  package var mode: Mode
  /// Free text: what the take is kept for.
  package var note: String
  package var checks: [Measure]

  package init(mode: Mode, note: String = "", measures: Measures) {
    self.mode = mode
    self.note = note
    checks = measures.all
  }

  /// Where the pin of a take stands.
  package static func path(ofTake path: String) -> String {
    (path.hasSuffix(".take") ? String(path.dropLast(5)) : path) + ".pin.json"
  }

  /// The pin of a take; nil when it has none.
  package static func read(forTake take: String) throws(TapeError) -> Pin? {
    let path = path(ofTake: take)
    guard let bytes = try? FileBytes.read(path, atMost: pinBytes).get() else { return nil }
    do {
      return try JSONDecoder().decode(Pin.self, from: Data(bytes))
    } catch {
      throw TapeError(
        path: path, place: Pin.place(of: error),
        reason: "it is not a pin; correct it, or make a new one with retake pin")
    }
  }

  /// Far more than the checks of any take are.
  private static let pinBytes = 16 << 20

  private static func place(of error: any Error) -> String {
    let path: [any CodingKey]
    switch error as? DecodingError {
    case .keyNotFound(let key, let context)?: path = context.codingPath + [key]
    case .typeMismatch(_, let context)?, .valueNotFound(_, let context)?,
      .dataCorrupted(let context)?:
      path = context.codingPath
    default: path = []
    }
    return path.map { $0.intValue.map { "\($0 + 1)" } ?? $0.stringValue }.joined(separator: " ")
  }

  /// Writes the pin of a take, one check on a line.
  package func write(forTake take: String) throws(TapeError) {
    let path = Pin.path(ofTake: take)
    do throws(WholeFile.Failure) {
      // It is read by everybody who reads the tests.
      try WholeFile.write(text.utf8, to: path, .replaced, mode: 0o644)
    } catch {
      throw TapeError(
        path: path, place: "", reason: "it cannot be written: \(SystemCode(error.code))",
        kind: .failed)
    }
  }

  /// The pin as JSON that people can edit line by line.
  package var text: String {
    let lines = checks.map { "    " + CanonicalJSON.text($0) }.joined(separator: ",\n")
    return """
      {
        "mode": \(CanonicalJSON.text(mode)),
        "note": \(CanonicalJSON.text(note)),
        "checks": [
      \(lines)
        ]
      }

      """
  }

  /// The checks that measures do not meet, with what was found instead.
  package func misses(of measures: Measures) -> [Miss] {
    checks.compactMap { check in
      let found = measures[check.name]
      return check.isMet(by: found) ? nil : Miss(check: check, found: found)
    }
  }
}

/// A check that was not met.
package struct Miss: Hashable, Sendable, Codable, CustomStringConvertible {
  package var check: Measure
  /// What was measured instead; nil when there was nothing to measure.
  package var found: MeasuredValue?

  /// `peer 1: lost in, %: 0 ± 1 was pinned, 3 was measured`.
  package var description: String {
    let tolerance = check.tolerance.map { $0 == 0 ? "" : " ± \(MeasuredValue.number($0))" } ?? ""
    return "\(check.name): \(check.value)\(tolerance) was pinned, "
      + "\(found?.description ?? "nothing") was measured"
  }
}

extension Measure {
  /// Whether a measured value means the same.
  func isMet(by found: MeasuredValue?) -> Bool {
    switch (value, found) {
    case (.number(let wanted), .number(let found)?):
      // Sums of decimal fractions are off by parts of 1e-16.
      return (wanted - found).magnitude <= (tolerance ?? 0) + 1e-9
    case (.number(let wanted), nil): return wanted.magnitude <= tolerance ?? 0
    case (.words(let wanted), .words(let found)?): return wanted == found
    default: return false
    }
  }
}
