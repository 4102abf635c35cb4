import DequeModule
import Peer
import Synchronization

/// A message of a data channel.
public enum DataChannelMessage: Hashable, Sendable {
  /// Text; what is not UTF-8 came with replacement characters.
  case text(String)
  /// Bytes.
  case binary([UInt8])

  /// A message as the stack hands it out.
  init(_ message: DataMessage) {
    self =
      message.isBinary
      ? .binary(message.bytes) : .text(String(decoding: message.bytes, as: UTF8.self))
  }

  /// The size in bytes; of text, in UTF-8.
  public var count: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// The messages of a data channel in the order in which they came.
public struct DataChannelMessages: AsyncSequence, Sendable {
  /// The messages.
  public typealias Element = DataChannelMessage

  let inbox: MessageInbox

  /// Takes messages out, one at a time.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let inbox: MessageInbox

    /// The next message; nil when the channel is closed and nothing is left, or on cancellation.
    public func next() async -> DataChannelMessage? { await inbox.next() }
  }

  /// Starts to take messages out.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inbox: inbox) }
}

/// Messages that wait for their reader, limited by their bytes.
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

    /// The oldest message.
    mutating func next() -> DataChannelMessage? {
      guard let message = messages.popFirst() else { return nil }
      bytes -= message.count + MessageInbox.overhead
      return message
    }
  }

  /// What may wait, in bytes, and what a message counts beside its own.
  private static let maximum = 64 << 20
  private static let overhead = 64

  private let state = Mutex(State())

  /// Adds a message; returns false when too much waits already.
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

  /// No more messages come; what waits can still be read.
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
