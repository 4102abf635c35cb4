import DequeModule
import Dispatch
import Foundation
import Synchronization

/// Runs a check on a thread of its own: digesting video frames and making rows takes time that the
/// codecs would otherwise wait for.
final class CheckLine: Sendable {
  private struct State {
    var waiting = Deque<ExecutedChunk>()
    var hasFinding = false
  }

  private let check: StepCheck
  private let state = Mutex(State())
  private let filled = DispatchSemaphore(value: 0)
  // It begins with 0 and is raised, because one that ends below its beginning is a fatal error.
  private let free = DispatchSemaphore(value: 0)
  private let done = DispatchSemaphore(value: 0)

  /// How many chunks may wait: their decoded video frames are held until they are compared.
  private static let depth = 8

  init(_ check: StepCheck) {
    for _ in 0..<CheckLine.depth { free.signal() }
    self.check = check
    let thread = Thread { [self] in run() }
    thread.name = "take check"
    thread.start()
  }

  private func run() {
    while true {
      filled.wait()
      let next = state.withLock { $0.waiting.popFirst() }
      guard let next else { break }
      check.compare(next)
      if check.isDone { state.withLock { $0.hasFinding = true } }
      free.signal()
    }
    done.signal()
  }

  /// Hands a chunk over; false when a difference was found in an earlier one.
  func put(_ chunk: sending ExecutedChunk) -> Bool {
    free.wait()
    let goesOn = state.withLock { state in
      state.waiting.append(chunk)
      return !state.hasFinding
    }
    filled.signal()
    return goesOn
  }

  /// Waits until everything that was handed over is compared; called once.
  func finish() {
    filled.signal()
    done.wait()
  }
}
