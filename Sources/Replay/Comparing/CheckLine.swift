import Dispatch
import Foundation
import Synchronization

/// Runs a check on a thread of its own: digesting video frames and making rows takes time that the
/// codecs would otherwise wait for.
final class CheckLine: Sendable {
  private let check: StepCheck
  private let queue = BoundedQueue<ExecutedChunk>(depth: CheckLine.depth)
  private let hasFinding = Mutex(false)
  private let done = DispatchSemaphore(value: 0)

  /// How many chunks may wait: their decoded video frames are held until they are compared.
  private static let depth = 8

  init(_ check: StepCheck) {
    self.check = check
    let thread = Thread { [self] in run() }
    thread.name = "take check"
    thread.start()
  }

  private func run() {
    while let next = queue.take() {
      check.compare(next)
      if check.isDone { hasFinding.withLock { $0 = true } }
    }
    done.signal()
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
