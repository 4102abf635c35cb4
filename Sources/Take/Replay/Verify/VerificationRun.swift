import Dispatch
import FoundationEssentials
import Queries
import Synchronization
package import Tape

/// Runs many takes as tests, several at a time.
package struct VerificationRun: Sendable {
  /// The results, in the order of the takes.
  package private(set) var results: [TakeVerification] = []
  /// The wall-clock duration of the run, in seconds.
  package private(set) var elapsedSeconds = 0.0

  package var failures: [TakeVerification] { results.filter { !$0.isPassed } }

  /// The takes that passed although only a part of them could be replayed.
  package var inPart: [TakeVerification] { results.filter { $0.isPassed && !$0.isWhole } }

  /// Receives the number of finished takes and the latest result; takes may finish in any order.
  package typealias Progress = @Sendable (_ done: Int, _ latest: TakeVerification) -> Void

  /// Verifies takes on `jobs` threads.
  package init(
    takes: [String], mode: Pin.Mode? = nil, isStrict: Bool = false, jobs: Int,
    progress: @escaping Progress = { _, _ in }
  ) {
    let clock = ContinuousClock()
    let begin = clock.now
    let board = Board(count: takes.count)
    // Takes run in path order, so some threads may be idle at the end. Running the longest takes
    // first would avoid that, but would require reading all lengths in advance.
    let count = max(1, min(jobs, takes.count))
    let done = DispatchSemaphore(value: 0)
    // New threads are used, because a pool under load may start its second thread late or never.
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

  /// Returns the takes at some paths, without duplicates: the files, and all `.take` files in the
  /// folders and their subfolders.
  package static func takes(in paths: [String]) throws(TapeError) -> [String] {
    try TakeList(paths).entries.map(\.path)
  }

  /// Assigns takes to the threads and collects the results.
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

    /// Stores a take's result; returns the number of finished takes.
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

/// The expected results of a take's session, stored beside the take: `call.pin.json` for
/// `call.take`.
///
/// `retake pin` creates it from a good run. Users then adjust tolerances and remove checks that do
/// not matter.
package struct Pin: Hashable, Sendable, Codable {
  /// How a replay of the take is compared.
  package enum Mode: String, Hashable, Sendable, Codable, CaseIterable {
    /// Every byte, deadline and random draw must be as recorded.
    case exact
    /// The measures of the session must be within tolerances.
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

  /// Reads the pin of a take; nil if it has none.
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

  /// The maximum size of a pin in bytes, which exceeds every real pin.
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

  /// Writes the pin beside its take.
  package func write(forTake take: String) throws(TapeError) {
    let path = Pin.path(ofTake: take)
    do throws(WholeFile.Failure) {
      // Unlike a take, a pin contains no secrets, so other users may read it.
      try WholeFile.write(text.utf8, to: path, .replaced, mode: 0o644)
    } catch {
      throw TapeError(
        path: path, place: "", reason: "it cannot be written: \(SystemCode(error.code))",
        kind: .failed)
    }
  }

  /// The pin as JSON with one check per line, so that it is easy to edit.
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

  /// Returns the checks that a session's measures do not pass.
  package func misses(of measures: Measures) -> [Miss] {
    checks.compactMap { check in
      let found = measures[check.name]
      return check.isMet(by: found) ? nil : Miss(check: check, found: found)
    }
  }
}

/// A check that was not passed.
package struct Miss: Hashable, Sendable, Codable, CustomStringConvertible {
  package var check: Measure
  /// The measured value; nil if the session has no such measure.
  package var found: MeasuredValue?

  /// The failure on one line, as in `peer 1: lost in, %: 0 ± 1 was pinned, 3 was measured`.
  package var description: String {
    let tolerance = check.tolerance.map { $0 == 0 ? "" : " ± \(MeasuredValue.number($0))" } ?? ""
    return "\(check.name): \(check.value)\(tolerance) was pinned, "
      + "\(found?.description ?? "nothing") was measured"
  }
}

extension Measure {
  /// Returns whether a measured value passes; a missing number counts as 0.
  func isMet(by found: MeasuredValue?) -> Bool {
    switch (value, found) {
    case (.number(let wanted), .number(let found)?):
      // A sum of decimal fractions is off by about 1e-16, so a little more is allowed.
      return (wanted - found).magnitude <= (tolerance ?? 0) + 1e-9
    case (.number(let wanted), nil): return wanted.magnitude <= tolerance ?? 0
    case (.words(let wanted), .words(let found)?): return wanted == found
    default: return false
    }
  }
}
