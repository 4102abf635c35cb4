import Synchronization

/// Notices for users that do not belong in a take, such as running out of file descriptors.
package enum LoopNotices {
  private static let listener = Mutex<(@Sendable (String) -> Void)?>(nil)

  /// Sets the listener for notices, each a sentence; without one, notices are dropped.
  package static func onNotice(_ listener: @escaping @Sendable (String) -> Void) {
    self.listener.withLock { $0 = listener }
  }

  /// Whether there is a listener; otherwise notices need not be composed.
  static var areRead: Bool { listener.withLock { $0 != nil } }

  static func post(_ sentence: String) { listener.withLock { $0 }?(sentence) }
}
