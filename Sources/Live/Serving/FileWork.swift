import Synchronization
import Tape

/// Work that waits for files and other processes, on threads of its own: tasks share few threads,
/// and an actor that waited would keep everybody else waiting.
final class FileWork: Sendable {
  private struct State {
    var waiting: [@Sendable () -> Void] = []
    var threads = 0
  }

  private let state = Mutex(State())
  private let count: Int
  /// The limit on work that is under way or waits; more is refused.
  private let limit: Int

  /// - Parameters:
  ///   - count: how much is done at once.
  ///   - waitingMaximum: how much there may be of it in all.
  init(_ count: Int, waitingMaximum: Int = 256) {
    self.count = count
    limit = waitingMaximum
  }

  /// Does it, when its turn comes; nil when too much waits already.
  func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
    await withCheckedContinuation { continuation in
      let isAdded = add { continuation.resume(returning: work()) }
      if !isAdded { continuation.resume(returning: nil) }
    }
  }

  private func add(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (isAdded, needsThread) = state.withLock { state in
      guard state.waiting.count + state.threads < limit else { return (false, false) }
      state.waiting.append(work)
      guard state.threads < count else { return (true, false) }
      state.threads += 1
      return (true, true)
    }
    if needsThread { startWorker(named: "files") { [self] in doAll() } }
    return isAdded
  }

  /// Does what waits until nothing does.
  private func doAll() {
    while true {
      let next = state.withLock { state -> (@Sendable () -> Void)? in
        guard !state.waiting.isEmpty else {
          state.threads -= 1
          return nil
        }
        return state.waiting.removeFirst()
      }
      guard let next else { return }
      next()
    }
  }
}
