import DequeModule
import Dispatch
import Synchronization

/// A queue of few elements from one thread to another: who gives waits for room, who takes waits
/// for an element.
final class BoundedQueue<Element: Sendable>: Sendable {
  private struct State {
    var waiting = Deque<Element>()
    var isCancelled = false
  }

  private let state = Mutex(State())
  private let filled = DispatchSemaphore(value: 0)
  // It begins with 0 and is raised, because one that ends below its beginning is a fatal error.
  private let free = DispatchSemaphore(value: 0)

  /// - Parameter depth: how many elements may wait.
  init(depth: Int) {
    for _ in 0..<depth { free.signal() }
  }

  /// Waits for room and hands an element over; false, and not handed over, when nobody wants more.
  func put(_ element: Element) -> Bool {
    guard waitForRoom() else { return false }
    add(element)
    return true
  }

  /// Waits for the room of an element that is made only then; false when nobody wants more.
  func waitForRoom() -> Bool {
    free.wait()
    return !state.withLock { $0.isCancelled }
  }

  /// Hands the element over that room was waited for.
  func add(_ element: Element) {
    state.withLock { $0.waiting.append(element) }
    filled.signal()
  }

  /// Ends what is given: after what waits comes nothing.
  func finish() {
    filled.signal()
  }

  /// Waits for the next element; nil at the end.
  func take() -> Element? {
    filled.wait()
    let next = state.withLock { $0.waiting.popFirst() }
    if next != nil {
      free.signal()
    } else {
      // The end stays the end.
      filled.signal()
    }
    return next
  }

  /// Wants nothing more: whoever waits for room goes on without it.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    free.signal()
  }
}
