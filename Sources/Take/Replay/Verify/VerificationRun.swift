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
