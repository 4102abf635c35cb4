import Dispatch
import FoundationEssentials
import Synchronization
import Tape

/// Runs a check on a thread of its own where codecs run: digesting video frames takes time that
/// they would otherwise wait for.
///
/// Where none run, rows are made and compared right where the outputs are still in the processor's
/// caches, and their memory is free for the next ones at once.
final class CheckLine: Sendable {
  private let check: StepCheck
  private let recycle: @Sendable (consuming TapeChunk) -> Void
  /// What waits for the thread; nil without one.
  private let queue: BoundedQueue<ExecutedChunk>?
  private let hasFinding = Mutex(false)
  private let done = DispatchSemaphore(value: 0)

  /// How many chunks may wait: their decoded video frames are held until they are compared.
  private static let depth = 8

  /// - Parameters:
  ///   - isThread: whether it compares on a thread of its own.
  ///   - recycle: gets each chunk once it is compared.
  init(
    _ check: StepCheck, isThread: Bool,
    recycle: @escaping @Sendable (consuming TapeChunk) -> Void
  ) {
    self.check = check
    self.recycle = recycle
    queue = isThread ? BoundedQueue(depth: CheckLine.depth) : nil
    guard let queue else { return }
    startWorker(named: "take check") { [self] in run(queue) }
  }

  private func run(_ queue: BoundedQueue<ExecutedChunk>) {
    while let chunk = compareNext(queue) { recycle(chunk) }
    done.signal()
  }

  /// Compares the next chunk and gives it away; nil at the end.
  private func compareNext(_ queue: BoundedQueue<ExecutedChunk>) -> TapeChunk? {
    guard let next = queue.dequeue() else { return nil }
    check.compare(next)
    if check.isDone { hasFinding.withLock { $0 = true } }
    return next.chunk
  }

  /// Hands a chunk over; false when a difference was found in an earlier one, or in this one.
  func put(_ executed: consuming ExecutedChunk) -> Bool {
    guard let queue else {
      check.compare(executed)
      let chunk = executed.chunk
      // The chunk alone has its memory then, which is needed to use it again.
      _ = consume executed
      recycle(chunk)
      return !check.isDone
    }
    return queue.put(executed) && !hasFinding.withLock { $0 }
  }

  /// Waits until everything that was handed over is compared; called once.
  func finish() {
    guard let queue else { return }
    queue.finish()
    done.wait()
  }
}
