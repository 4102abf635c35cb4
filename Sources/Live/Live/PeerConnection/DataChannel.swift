import DequeModule
public import Peer
public import SCTP
import Synchronization

/// A connection's data channel (W3C RTCDataChannel).
///
/// The channel does not keep its connection alive: once the connection is released or closed, the
/// channel closes. Received messages wait in `messages` from the start, so nothing is lost between
/// the channel's announcement and the first read.
public final class DataChannel: Sendable, Hashable {
  private struct State {
    var options: DataChannelInit
    var readyState: DataChannelState
    var bufferedAmountLowThreshold: UInt64 = 0
    var readers = Readers<DataChannelState>()
  }

  /// The channel's number in its connection, counted from 0 over the channels of both peers;
  /// `channel.channel` in the take.
  public let number: UInt32
  /// Whether the peer created the channel.
  public let isRemote: Bool
  /// All received messages in order; ends when the channel is closed.
  ///
  /// Only one reader may use it: two readers would each receive only some of the messages. If an
  /// application leaves more than 64 MiB unread, the channel is closed.
  public let messages: DataChannelMessages

  private let inbox: MessageInbox
  private let port: DataChannelPort?
  private let state: Mutex<State>

  init(_ record: DataChannelRecord, port: DataChannelPort?) {
    number = record.channel
    isRemote = record.isRemote
    inbox = MessageInbox()
    messages = DataChannelMessages(inbox: inbox)
    self.port = port
    state = Mutex(State(options: record.options, readyState: record.state))
  }

  // MARK: Attributes

  /// The options the channel was created with; `id` is the stream's number, nil until one is
  /// assigned.
  public var options: DataChannelInit { state.withLock { $0.options } }
  /// The name that the channel was created with; not necessarily unique (W3C label).
  public var label: String { options.label }
  /// The subprotocol that the channel was created with; empty if there was none (W3C protocol).
  public var `protocol`: String { options.protocol }
  /// Whether messages arrive in the order in which they were sent (W3C ordered).
  public var ordered: Bool { options.ordered }
  /// W3C maxPacketLifeTime in milliseconds; nil for no limit.
  public var maxPacketLifeTime: UInt16? { options.maxPacketLifeTime }
  /// W3C maxRetransmits; nil for no limit.
  public var maxRetransmits: UInt16? { options.maxRetransmits }
  /// Whether both applications created the channel, without an announcement (W3C negotiated).
  public var negotiated: Bool { options.negotiated }
  /// W3C id: the stream's number; nil until one is assigned.
  public var id: UInt16? { options.id }
  /// The state, from connecting to closed (W3C readyState).
  public var readyState: DataChannelState { state.withLock { $0.readyState } }

  /// Bytes passed to `send` and not yet sent (W3C bufferedAmount).
  public var bufferedAmount: UInt64 {
    get async { await info()?.bufferedAmount ?? 0 }
  }

  /// The largest message that the peer accepts, in bytes; nil for any size (W3C maxMessageSize).
  public var maxMessageSize: UInt64? {
    get async { await info()?.maxMessageSize }
  }

  /// W3C bufferedAmountLowThreshold in bytes; 0 by default.
  public var bufferedAmountLowThreshold: UInt64 {
    state.withLock { $0.bufferedAmountLowThreshold }
  }

  /// Sets the amount at or below which `bufferedAmountLow` is reported.
  public func setBufferedAmountLowThreshold(_ threshold: UInt64) async throws(PeerError) {
    try await perform(.setBufferedAmountLowThreshold(channel: number, threshold))
    state.withLock { $0.bufferedAmountLowThreshold = threshold }
  }

  /// The current state, and then the newest state whenever it changes; ends after `closed`.
  public var stateChanges: AsyncStream<DataChannelState> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: DataChannelState.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { state in
      continuation.yield(state.readyState)
      guard state.readyState != .closed else { return continuation.finish() }
      state.readers.add(continuation)
    }
    return stream
  }

  /// Returns once messages can be sent; throws if the channel closes first or opening takes too
  /// long.
  public func waitUntilOpen(timeout: Duration = .seconds(10)) async throws(PeerError) {
    try await wait(for: "opening the data channel", timeout: timeout) { state in
      state == .connecting ? nil : state == .open
    }
  }

  /// Returns once the channel is closed; throws if that takes too long.
  public func waitUntilClosed(timeout: Duration = .seconds(10)) async throws(PeerError) {
    try await wait(for: "closing the data channel", timeout: timeout) { state in
      state == .closed ? true : nil
    }
  }

  // MARK: Messages

  /// Sends a text message (W3C send).
  public func send(_ text: String) async throws(PeerError) {
    try await send(isBinary: false, Array(text.utf8))
  }

  /// Sends a binary message (W3C send).
  public func send(_ bytes: [UInt8]) async throws(PeerError) {
    try await send(isBinary: true, bytes)
  }

  /// Sends a message received from another channel.
  public func send(_ message: DataChannelMessage) async throws(PeerError) {
    switch message {
    case .text(let text): try await send(text)
    case .binary(let bytes): try await send(bytes)
    }
  }

  /// Sends a message, and returns once at most 1 MiB of the channel's data is buffered.
  ///
  /// Awaiting every send paces the sender to the path. Messages keep the order of the calls.
  /// - Throws: `InvalidStateError` unless the channel is open, `TypeError` if the message is larger
  ///   than the peer accepts, `OperationError` if senders that did not wait have filled the buffer
  ///   (16 MiB), or if the channel closed before everything was sent.
  private func send(isBinary: Bool, _ bytes: [UInt8]) async throws(PeerError) {
    let message = DataMessage(channel: number, isBinary: isBinary, bytes: bytes)
    let reply = await reply { key, complete in .send(key, message, complete) }
    if case .failure(let error) = reply { throw error }
  }

  /// Closes the channel after sending queued messages (W3C close); closing again has no effect.
  public func close() async {
    _ = try? await perform(.closeDataChannel(number))
  }

  private func info() async -> DataChannelInfo? {
    guard case .dataChannels(let all) = try? await perform(.dataChannels) else { return nil }
    return all.first { $0.number == number }
  }

  // MARK: Calls as steps

  @discardableResult
  private func perform(_ call: PeerCall) async throws(PeerError) -> PeerReply {
    let reply = await reply { key, complete in .call(key, call, complete) }
    if case .failure(let error) = reply { throw error }
    return reply
  }

  private func reply(
    _ message:
      @Sendable (MediaLoop.PeerKey, @escaping @Sendable (PeerReply) -> Void) ->
      MediaLoop.Message
  ) async -> PeerReply {
    guard let port else { return .failure(.ended) }
    return await withCheckedContinuation { continuation in
      let isTaken = port.mailbox.post(
        message(port.key) { continuation.resume(returning: $0) })
      if !isTaken { continuation.resume(returning: .failure(.ended)) }
    }
  }

  // MARK: Called by the loop

  /// Applies the stack's report about the channel.
  func follow(_ record: DataChannelRecord) {
    change(to: record.state, options: record.options)
  }

  /// Queues a message for the reader; if too much is unread, closes the channel.
  /// - Returns: false if the channel is being closed.
  func receive(_ message: DataMessage) -> Bool {
    if inbox.put(DataChannelMessage(message), size: message.bytes.count) { return true }
    inbox.finish()
    if let port { _ = port.mailbox.post(.call(port.key, .closeDataChannel(number)) { _ in }) }
    return false
  }

  /// Closes the channel because its connection has ended.
  func finish() { change(to: .closed, options: options) }

  private func change(to readyState: DataChannelState, options: DataChannelInit) {
    let isOver = state.withLock { state in
      state.options = options
      guard state.readyState != readyState else { return false }
      state.readyState = readyState
      state.readers.yield(readyState)
      if readyState == .closed { state.readers.finish() }
      return readyState == .closed
    }
    if isOver { inbox.finish() }
  }

  // MARK: Identity

  /// Returns whether both are the same object.
  public static func == (left: DataChannel, right: DataChannel) -> Bool { left === right }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension DataChannel {
  /// Waits until `holds` returns true for the state; nil continues the wait.
  ///
  /// Throws if `holds` returns false or the time limit passes.
  private func wait(
    for what: String, timeout: Duration,
    until holds: @escaping @Sendable (DataChannelState) -> Bool?
  ) async throws(PeerError) {
    let changes = stateChanges
    try await TimeLimit.wait(for: what, within: timeout) {
      for await state in changes {
        guard let isGood = holds(state) else { continue }
        if isGood { return nil }
        break
      }
      return PeerError(name: "InvalidStateError", message: "the data channel was closed")
    }
  }
}

/// The loop and the peer to which channels send their calls.
struct DataChannelPort: Sendable {
  let mailbox: Mailbox<MediaLoop.Message>
  let key: MediaLoop.PeerKey
}

// MARK: - DataChannelMessage

/// A text or binary message on a data channel.
public enum DataChannelMessage: Hashable, Sendable {
  /// Text; invalid UTF-8 was replaced.
  case text(String)
  /// Bytes, unchanged.
  case binary([UInt8])

  /// Converts the stack's message.
  init(_ message: DataMessage) {
    self =
      message.isBinary
      ? .binary(message.bytes) : .text(String(decoding: message.bytes, as: UTF8.self))
  }

  /// The size in bytes; for text, the size of its UTF-8 encoding.
  public var count: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// A data channel's messages in order of arrival.
public struct DataChannelMessages: AsyncSequence, Sendable {
  /// A complete message, put together from its fragments.
  public typealias Element = DataChannelMessage

  let inbox: MessageInbox

  /// Removes messages one at a time.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let inbox: MessageInbox

    /// Returns the next message; nil once the channel is closed and all messages have been read, or
    /// on cancellation.
    public func next() async -> DataChannelMessage? { await inbox.next() }
  }

  /// Creates an iterator that removes messages.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inbox: inbox) }
}

/// Messages waiting to be read, limited by size.
final class MessageInbox: Sendable {
  private typealias Reader = CheckedContinuation<DataChannelMessage?, Never>

  private struct State {
    var messages = Deque<DataChannelMessage>()
    var bytes = 0
    var readers = Deque<(id: Int, continuation: Reader)>()
    var lastReader = 0
    /// Readers whose tasks were cancelled before they began to wait.
    var cancelled: Set<Int> = []
    var isFinished = false

    /// Removes and returns the oldest message.
    mutating func next() -> DataChannelMessage? {
      guard let message = messages.popFirst() else { return nil }
      bytes -= message.count + MessageInbox.overhead
      return message
    }
  }

  /// The inbox's limit in bytes, and the overhead counted for each message besides its content.
  private static let maximum = 64 << 20
  private static let overhead = 64

  private let state = Mutex(State())

  /// Adds a message; returns false if the limit is exceeded.
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

  /// Ends the stream; waiting messages can still be read.
  func finish() {
    let readers = state.withLock { state in
      state.isFinished = true
      defer { state.readers = [] }
      return state.readers
    }
    for reader in readers { reader.continuation.resume(returning: nil) }
  }

  /// Returns the next message; nil after the last one, or when the reader's task is cancelled.
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
