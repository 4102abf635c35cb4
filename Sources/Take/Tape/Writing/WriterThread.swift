import Dispatch
import FoundationEssentials
import Synchronization

/// One of the threads that write takes: as many as there are processors, however many takes are
/// written at once.
final class WriterThread: Sendable {
  private struct State {
    var writers: [TapeWriter] = []
    /// Those that cannot wait until all have their turn.
    var asking: [TapeWriter] = []
    var isRunning = false
  }

  private let state = Mutex(State())
  private let signal = DispatchSemaphore(value: 0)

  /// How long a transaction stays open for more steps.
  private static let interval = DispatchTimeInterval.milliseconds(100)

  private static let all = (0..<max(1, ProcessInfo.processInfo.activeProcessorCount)).map { _ in
    WriterThread()
  }
  private static let turn = Atomic<Int>(0)

  /// The thread for one more take: each in turn.
  static func next() -> WriterThread {
    let turn = turn.add(1, ordering: .relaxed).oldValue
    return all[Int(UInt(bitPattern: turn) % UInt(all.count))]
  }

  /// Writes a take from now on, until it is finished.
  func add(_ writer: TapeWriter) {
    let starts = state.withLock { state in
      state.writers.append(writer)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard starts else {
      signal.signal()
      return
    }
    startWorker(named: "takes") { [self] in run() }
  }

  /// Writes a take soon, before the interval is over.
  func wake(for writer: TapeWriter) {
    state.withLock { $0.asking.append(writer) }
    signal.signal()
  }

  private func run() {
    var due = DispatchTime.now()
    while true {
      if state.withLock({ $0.writers.isEmpty }) {
        signal.wait()
      } else {
        _ = signal.wait(timeout: due)
      }
      let isDue = due <= .now()
      if isDue { due = .now() + WriterThread.interval }
      let writers = state.withLock { state in
        let asking = state.asking
        state.asking = []
        return isDue ? state.writers : asking
      }
      let finished = writers.filter { !$0.writeQueued() }
      guard !finished.isEmpty else { continue }
      state.withLock { state in
        state.writers.removeAll { writer in finished.contains { $0 === writer } }
      }
    }
  }
}
