import Synchronization

/// How many bytes of requests and answers all connections of a server hold together.
final class HTTPMemory: Sendable {
  private let used = Mutex(0)
  private let maximum: Int

  /// What any connection may have for an answer: many times more than a refusal has.
  private static let smallBytes = 64 << 10

  init(maximum: Int) { self.maximum = maximum }

  /// Counts bytes; false when there is no room for them, so that they are not to be kept.
  ///
  /// - Parameter isAnswer: whether small ones pass always, and large ones when they are alone.
  func reserve(_ count: Int, isAnswer: Bool = false) -> Bool {
    used.withLock { used in
      let isFree = isAnswer && (count <= HTTPMemory.smallBytes || used <= HTTPMemory.smallBytes)
      guard isFree || used + count <= maximum else { return false }
      used += count
      return true
    }
  }

  /// Counts them no longer.
  func release(_ count: Int) { used.withLock { $0 -= count } }
}
