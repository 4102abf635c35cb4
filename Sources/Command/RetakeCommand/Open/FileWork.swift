import Foundation

/// Work that waits for files and other processes, on threads of its own: tasks share few threads,
/// and an actor that waited would keep everybody else waiting.
struct FileWork: Sendable {
  private let queue: OperationQueue
  /// The limit on queued work; more is refused.
  private let waitingMaximum: Int

  /// - Parameters:
  ///   - count: how much is done at once.
  ///   - waitingMaximum: how much waits for that.
  init(_ count: Int, waitingMaximum: Int = 256) {
    queue = OperationQueue()
    queue.maxConcurrentOperationCount = count
    self.waitingMaximum = waitingMaximum
  }

  /// Does it, when its turn comes; nil when too much waits already.
  func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
    guard queue.operationCount < waitingMaximum else { return nil }
    return await withCheckedContinuation { continuation in
      queue.addOperation { continuation.resume(returning: work()) }
    }
  }
}
