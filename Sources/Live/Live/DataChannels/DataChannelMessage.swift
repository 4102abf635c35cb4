import DequeModule
import Peer
import Synchronization

/// A message of a data channel.
public enum DataChannelMessage: Hashable, Sendable {
  /// Text; invalid UTF-8 was replaced.
  case text(String)
  /// Bytes.
  case binary([UInt8])

  /// Creates a message from the stack's.
  init(_ message: DataMessage) {
    self =
      message.isBinary
      ? .binary(message.bytes) : .text(String(decoding: message.bytes, as: UTF8.self))
  }

  /// The size in bytes; for text, in UTF-8.
  public var count: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// The messages of a data channel in order of arrival.
public struct DataChannelMessages: AsyncSequence, Sendable {
  /// The messages.
  public typealias Element = DataChannelMessage

  let inbox: MessageInbox

  /// Removes messages one at a time.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let inbox: MessageInbox

    /// The next message; nil once the channel is closed and all messages were read, or on
    /// cancellation.
    public func next() async -> DataChannelMessage? { await inbox.next() }
  }

  /// Creates an iterator that removes messages.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inbox: inbox) }
}

/// Messages waiting for their reader, limited by size.
final class MessageInbox: Sendable {
  private typealias Reader = CheckedContinuation<DataChannelMessage?, Never>

  private struct State {
    var messages = Deque<DataChannelMessage>()
    var bytes = 0
    var readers = Deque<(id: Int, continuation: Reader)>()
    var lastReader = 0
    /// Readers whose tasks were cancelled before they waited.
    var cancelled: Set<Int> = []
    var isFinished = false

    /// Removes and returns the oldest message.
    mutating func next() -> DataChannelMessage? {
      guard let message = messages.popFirst() else { return nil }
      bytes -= message.count + MessageInbox.overhead
      return message
    }
  }

  /// The limit in bytes, and the overhead of a message in it.
  private static let maximum = 64 << 20
  private static let overhead = 64

  private let state = Mutex(State())

  /// Adds a message; false if the limit is exceeded.
  func put(_ message: DataChannelMessage, size: Int) -> Bool {
    let (isTaken, reader) = state.withLock { state -> (Bool, Reader?) in
      guard !state.isFinished else { return (true, nil) }
      if let reader = state.readers.popFirst() { return (true, reader.continuation) }
      guard state.bytes + size <= MessageInbox.maximum || state.messages.isEmpty else {
        return (false, nil)
      }
      state.bytes += message.count + MessageInbox.overhead
      state.messages.append(message)
      return (true, nil)
    }
    reader?.resume(returning: message)
    return isTaken
  }

  /// Ends the messages; waiting ones can still be read.
  func finish() {
    let readers = state.withLock { state in
      state.isFinished = true
      defer { state.readers = [] }
      return state.readers
    }
    for reader in readers { reader.continuation.resume(returning: nil) }
  }

  /// The next message; nil after the last one, or when the reader's task is cancelled.
  func next() async -> DataChannelMessage? {
    let id = state.withLock { state in
      state.lastReader += 1
      return state.lastReader
    }
    let next = await withTaskCancellationHandler {
      await withCheckedContinuation { (continuation: Reader) in
        let (isOver, message) = state.withLock { state -> (Bool, DataChannelMessage?) in
          if let message = state.next() { return (true, message) }
          if state.isFinished || state.cancelled.contains(id) { return (true, nil) }
          state.readers.append((id, continuation))
          return (false, nil)
        }
        if isOver { continuation.resume(returning: message) }
      }
    } onCancel: {
      let reader = state.withLock { state in
        state.cancelled.insert(id)
        let index = state.readers.firstIndex { $0.id == id }
        return index.map { state.readers.remove(at: $0) }
      }
      reader?.continuation.resume(returning: nil)
    }
    state.withLock { _ = $0.cancelled.remove(id) }
    return next
  }
}
