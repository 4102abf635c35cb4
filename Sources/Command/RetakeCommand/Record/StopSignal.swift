import FoundationEssentials
import Glibc
import Synchronization

/// Waits for Ctrl-C or a polite kill; a second one ends the process at once.
final class StopSignal: Sendable {
  private struct State {
    var isRequested = false
    var waiting: [AsyncStream<Never>.Continuation] = []
  }

  private let state = Mutex(State())

  /// - Parameter numbers: the signals that ask for a stop; they do from here on.
  init(_ numbers: [Int32] = [SIGINT, SIGTERM]) {
    SignalWatch.on(numbers) { number in
      signal(number, SIG_DFL)
      self.request()
    }
  }

  /// Whether a stop was asked for.
  var isRequested: Bool { state.withLock { $0.isRequested } }

  /// Returns when a stop is asked for, a time has passed, or something else ended.
  ///
  /// - Parameters:
  ///   - seconds: the time limit; nil for none.
  ///   - ended: returns when there is nothing left to wait for; nil when there always is.
  func wait(
    seconds: Double?, orUntil ended: (@Sendable () async -> Void)? = nil
  ) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.wait() }
      if let seconds {
        group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
      }
      if let ended { group.addTask { await ended() } }
      _ = await group.next()
      group.cancelAll()
    }
  }

  /// Does the work that brings a call about; a stop cancels it.
  ///
  /// - Returns: what came of it; nil when a stop was asked for before it was done.
  /// - Throws: what the work throws.
  func interrupting<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value
  ) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await work() }
      group.addTask {
        await self.wait()
        return nil
      }
      let value = try await group.next() ?? nil
      group.cancelAll()
      return value
    }
  }

  private func request() {
    let waiting = state.withLock { state in
      state.isRequested = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.finish() }
  }

  /// Returns when a stop is asked for or was already, or when the task is cancelled.
  private func wait() async {
    // A stream of its own: cancelling a task that reads a stream ends it for all who read it.
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    let isRequested = state.withLock { state in
      if !state.isRequested { state.waiting.append(continuation) }
      return state.isRequested
    }
    guard !isRequested else { return }
    for await _ in stream {}
  }
}
