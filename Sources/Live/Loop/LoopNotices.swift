import Synchronization

/// What a loop has to say to people that belongs into no take, such as that descriptors are short.
package enum LoopNotices {
  private static let listener = Mutex<(@Sendable (String) -> Void)?>(nil)

  /// Hands each sentence to somebody from here on; without it, they are lost.
  package static func hear(_ listener: @escaping @Sendable (String) -> Void) {
    self.listener.withLock { $0 = listener }
  }

  static func say(_ sentence: String) { listener.withLock { $0 }?(sentence) }
}
