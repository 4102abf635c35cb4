import Dispatch
import Foundation
import Synchronization
import Tape

/// Runs a check on a thread of its own: digesting video frames and making rows takes time that the
/// codecs would otherwise wait for.
final class CheckLine: Sendable {
  private let check: StepCheck
  private let recycle: @Sendable (consuming TapeChunk) -> Void
  private let queue = BoundedQueue<ExecutedChunk>(depth: CheckLine.depth)
  private let hasFinding = Mutex(false)
  private let done = DispatchSemaphore(value: 0)

  /// How many chunks may wait: their decoded video frames are held until they are compared.
  private static let depth = 8

  /// - Parameter recycle: gets each chunk once it is compared.
  init(_ check: StepCheck, recycle: @escaping @Sendable (consuming TapeChunk) -> Void) {
    self.check = check
    self.recycle = recycle
    let thread = Thread { [self] in run() }
    thread.name = "take check"
    thread.start()
  }

  private func run() {
    while let chunk = compareNext() { recycle(chunk) }
    done.signal()
  }

  /// Compares the next chunk and gives it away; nil at the end.
  private func compareNext() -> TapeChunk? {
    guard let next = queue.take() else { return nil }
    check.compare(next)
    if check.isDone { hasFinding.withLock { $0 = true } }
    return next.chunk
  }

  /// Hands a chunk over; false when a difference was found in an earlier one.
  func put(_ chunk: ExecutedChunk) -> Bool {
    queue.put(chunk) && !hasFinding.withLock { $0 }
  }

  /// Waits until everything that was handed over is compared; called once.
  func finish() {
    queue.finish()
    done.wait()
  }
}
