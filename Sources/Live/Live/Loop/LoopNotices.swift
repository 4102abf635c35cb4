import Synchronization

/// Notices for people that belong in no take, such as that file descriptors are short.
package enum LoopNotices {
  private static let listener = Mutex<(@Sendable (String) -> Void)?>(nil)

  /// Sets who gets each notice, a sentence; without one, notices are dropped.
  package static func onNotice(_ listener: @escaping @Sendable (String) -> Void) {
    self.listener.withLock { $0 = listener }
  }

  /// Whether anybody gets notices; without, none need to be made.
  static var areRead: Bool { listener.withLock { $0 != nil } }

  static func post(_ sentence: String) { listener.withLock { $0 }?(sentence) }
}
