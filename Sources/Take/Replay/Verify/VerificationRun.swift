import Dispatch
import FoundationEssentials
import Queries
import Synchronization
package import Tape

/// Runs many takes as tests, on all cores.
package struct VerificationRun: Sendable {
  /// The results, ordered by path.
  package private(set) var results: [TakeVerification] = []
  /// The total duration.
  package private(set) var elapsedSeconds = 0.0

  package var failures: [TakeVerification] { results.filter { !$0.isPassed } }

  /// Takes that passed but could be replayed only in part.
  package var inPart: [TakeVerification] { results.filter { $0.isPassed && !$0.isWhole } }

  /// Called with each result, in any order.
  package typealias Progress = @Sendable (_ done: Int, _ latest: TakeVerification) -> Void

  /// Runs takes on `jobs` threads.
  package init(
    takes: [String], mode: Pin.Mode? = nil, isStrict: Bool = false, jobs: Int,
    progress: @escaping Progress = { _, _ in }
  ) {
    let clock = ContinuousClock()
    let begin = clock.now
    let board = Board(count: takes.count)
    // Starting with long takes would require their lengths; in path order, threads may idle at the
    // end.
    let count = max(1, min(jobs, takes.count))
    let done = DispatchSemaphore(value: 0)
    // Dedicated threads: under load, a pool may start its second thread late or never.
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

  /// Returns the takes named by paths: files, and all `.take` files below folders, without
  /// duplicates.
  package static func takes(in paths: [String]) throws(TapeError) -> [String] {
    try TakeList(paths).entries.map(\.path)
  }

  /// Holds the next take, and the results so far.
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

    /// Stores a result; returns the number of results.
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

/// A take's expected outcome, stored beside it: `call.pin.json` for `call.take`.
///
/// `retake pin` creates it from a good run; users edit tolerances and remove checks that do not
/// matter.
package struct Pin: Hashable, Sendable, Codable {
  /// The method of comparing a take.
  package enum Mode: String, Hashable, Sendable, Codable, CaseIterable {
    /// Every byte, deadline and random draw must match.
    case exact
    /// The session's outcome must match within tolerances.
    case meaning
  }

  package var mode: Mode
  /// Free text, such as why the take is kept.
  package var note: String
  package var checks: [Measure]

  package init(mode: Mode, note: String = "", measures: Measures) {
    self.mode = mode
    self.note = note
    checks = measures.all
  }

  package static func path(ofTake path: String) -> String {
    (path.hasSuffix(".take") ? String(path.dropLast(5)) : path) + ".pin.json"
  }

  /// Reads a take's pin; returns nil if it has none.
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

  /// The size limit of a pin in bytes, which is far larger than any pin.
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

  /// Writes a take's pin, one check per line.
  package func write(forTake take: String) throws(TapeError) {
    let path = Pin.path(ofTake: take)
    do throws(WholeFile.Failure) {
      // A pin is not secret, unlike a take.
      try WholeFile.write(text.utf8, to: path, .replaced, mode: 0o644)
    } catch {
      throw TapeError(
        path: path, place: "", reason: "it cannot be written: \(SystemCode(error.code))",
        kind: .failed)
    }
  }

  /// The pin as JSON that can be edited line by line.
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

  /// Returns the checks that the given measures do not meet.
  package func misses(of measures: Measures) -> [Miss] {
    checks.compactMap { check in
      let found = measures[check.name]
      return check.isMet(by: found) ? nil : Miss(check: check, found: found)
    }
  }
}

/// A failed check.
package struct Miss: Hashable, Sendable, Codable, CustomStringConvertible {
  package var check: Measure
  /// The measured value; nil if there is none.
  package var found: MeasuredValue?

  /// One line, as in `peer 1: lost in, %: 0 ± 1 was pinned, 3 was measured`.
  package var description: String {
    let tolerance = check.tolerance.map { $0 == 0 ? "" : " ± \(MeasuredValue.number($0))" } ?? ""
    return "\(check.name): \(check.value)\(tolerance) was pinned, "
      + "\(found?.description ?? "nothing") was measured"
  }
}

extension Measure {
  /// Returns whether a measured value is within the tolerance.
  func isMet(by found: MeasuredValue?) -> Bool {
    switch (value, found) {
    case (.number(let wanted), .number(let found)?):
      // Sums of decimal fractions are inexact by about 1e-16.
      return (wanted - found).magnitude <= (tolerance ?? 0) + 1e-9
    case (.number(let wanted), nil): return wanted.magnitude <= tolerance ?? 0
    case (.words(let wanted), .words(let found)?): return wanted == found
    default: return false
    }
  }
}
