import DequeModule
import Dispatch
import Synchronization

/// A queue of few elements from one thread to another: who gives waits for room, who takes waits
/// for an element.
///
/// Waking a thread costs more than what some elements cost, so whoever waits for room sleeps until
/// half of the queue is free.
final class BoundedQueue<Element: Sendable>: Sendable {
  private struct State {
    var waiting = Deque<Element>()
    var isCancelled = false
    var isFinished = false
    /// Who sleeps, or is about to, and has to be woken once.
    var giverSleeps = false
    var takerSleeps = false

    mutating func wakeGiver() -> Bool {
      defer { giverSleeps = false }
      return giverSleeps
    }

    mutating func wakeTaker() -> Bool {
      defer { takerSleeps = false }
      return takerSleeps
    }
  }

  private let depth: Int
  private let state = Mutex(State())
  private let filled = DispatchSemaphore(value: 0)
  private let free = DispatchSemaphore(value: 0)

  /// - Parameter depth: how many elements may wait.
  init(depth: Int) { self.depth = depth }

  /// Waits for room and hands an element over; false, and not handed over, when nobody wants more.
  func put(_ element: Element) -> Bool {
    guard waitForRoom() else { return false }
    add(element)
    return true
  }

  /// Waits for the room of an element that is made only then; false when nobody wants more.
  func waitForRoom() -> Bool {
    while true {
      let hasRoom = state.withLock { state -> Bool? in
        if state.isCancelled { return false }
        if state.waiting.count < depth { return true }
        state.giverSleeps = true
        return nil
      }
      if let hasRoom { return hasRoom }
      free.wait()
    }
  }

  /// Hands the element over that room was waited for.
  func add(_ element: Element) {
    let wakes = state.withLock { state in
      state.waiting.append(element)
      return state.wakeTaker()
    }
    if wakes { filled.signal() }
  }

  /// Ends what is given: after what waits comes nothing.
  func finish() {
    let wakes = state.withLock { state in
      state.isFinished = true
      return state.wakeTaker()
    }
    if wakes { filled.signal() }
  }

  /// Waits for the next element; nil at the end.
  func dequeue() -> Element? {
    while true {
      let (next, isOver, wakes) = state.withLock { state in
        guard let next = state.waiting.popFirst() else {
          state.takerSleeps = !state.isFinished
          return (nil as Element?, state.isFinished, false)
        }
        let wakes = state.waiting.count <= depth / 2 && state.wakeGiver()
        return (next, false, wakes)
      }
      if wakes { free.signal() }
      if next != nil || isOver { return next }
      filled.wait()
    }
  }

  /// Wants nothing more: whoever waits for room continues without it.
  func cancel() {
    let wakes = state.withLock { state in
      state.isCancelled = true
      return state.wakeGiver()
    }
    if wakes { free.signal() }
  }
}
