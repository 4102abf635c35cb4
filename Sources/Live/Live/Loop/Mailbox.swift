import CSockets
import Synchronization
package import Tape

/// Messages from any thread to the loop's thread, in order (a locked queue and an eventfd).
package final class Mailbox<Message: Sendable>: Sendable {
  private struct State {
    var messages: [Message] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  /// Readable while messages wait.
  package let descriptor: Int32

  package init() throws(SystemError) {
    descriptor = try checked("create a wake-up", csockets_wake_create())
  }

  private init(closed descriptor: Int32) {
    self.descriptor = descriptor
    state.withLock { $0.isClosed = true }
  }

  /// A mailbox that refuses all messages.
  package static var closed: Mailbox { Mailbox(closed: -1) }

  deinit { if descriptor >= 0 { _ = csockets_close(descriptor) } }

  /// Adds a message; false if the mailbox is closed.
  package func post(_ message: Message) -> Bool {
    let (isTaken, wakes) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      state.messages.append(message)
      return (true, state.messages.count == 1)
    }
    // Only the first message has to wake the reader, which removes all of them.
    if wakes { _ = csockets_wake_signal(descriptor) }
    return isTaken
  }

  /// Removes and returns all messages.
  package func removeAll() -> [Message] {
    _ = csockets_wake_clear(descriptor)
    return state.withLock { state in
      var taken: [Message] = []
      swap(&taken, &state.messages)
      return taken
    }
  }

  /// Refuses further messages and returns the waiting ones.
  package func close() -> [Message] {
    state.withLock { state in
      state.isClosed = true
      var taken: [Message] = []
      swap(&taken, &state.messages)
      return taken
    }
  }
}
