import Synchronization

/// The total bytes of requests and responses on a server's connections.
final class HTTPMemory: Sendable {
  private let used = Mutex(0)
  private let maximum: Int

  /// The minimum for any response: many times the size of a refusal.
  private static let smallBytes = 64 << 10

  init(maximum: Int) { self.maximum = maximum }

  /// Reserves bytes; false if there is no room for them.
  /// - Parameter isAnswer: whether small ones always pass, and large ones if they are alone.
  func reserve(_ count: Int, isAnswer: Bool = false) -> Bool {
    used.withLock { used in
      let isFree = isAnswer && (count <= HTTPMemory.smallBytes || used <= HTTPMemory.smallBytes)
      guard isFree || used + count <= maximum else { return false }
      used += count
      return true
    }
  }

  /// Releases reserved bytes.
  func release(_ count: Int) { used.withLock { $0 -= count } }
}
