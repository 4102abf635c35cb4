import DequeModule

extension Deque {
  /// Gives the space back when nothing waits any more: a queue that was long for a moment does not
  /// keep it for ever.
  mutating func releaseSpaceWhenEmpty() { if isEmpty { self = Deque() } }
}
