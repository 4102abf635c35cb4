public import SCTP

/// A message of a data channel.
package struct DataMessage: Hashable, Sendable {
  /// The number of the channel in its peer.
  package var channel: UInt32
  /// Whether it is binary rather than text.
  package var isBinary: Bool
  /// The bytes, or the text in UTF-8.
  package var bytes: [UInt8]

  package init(channel: UInt32, isBinary: Bool, bytes: [UInt8]) {
    self.channel = channel
    self.isBinary = isBinary
    self.bytes = bytes
  }
}

/// The state of a data channel when it was created or changed state.
package struct DataChannelRecord: Hashable, Sendable {
  /// The channel's number in its peer; counted from 0, never reused.
  package var channel: UInt32
  /// Whether the peer created the channel.
  package var isRemote: Bool
  /// The options of its creation; `id` is set once the association is established.
  package var options: DataChannelInit
  package var state: DataChannelState
  /// The counters so far.
  package var counters: DataChannelCounters

  package init(
    channel: UInt32, isRemote: Bool, options: DataChannelInit, state: DataChannelState,
    counters: DataChannelCounters
  ) {
    self.channel = channel
    self.isRemote = isRemote
    self.options = options
    self.state = state
    self.counters = counters
  }
}

/// A snapshot of a data channel for applications (W3C RTCDataChannel attributes).
public struct DataChannelInfo: Hashable, Sendable, Codable {
  /// The channel's number in its peer; counted from 0, never reused.
  public var number: UInt32
  /// Whether the peer created the channel.
  public var isRemote: Bool
  /// The options of its creation; `id` is the stream, once the association has started.
  public var options: DataChannelInit
  /// W3C readyState.
  public var readyState: DataChannelState
  /// Bytes passed to `send` that were not sent yet.
  public var bufferedAmount: UInt64
  /// The largest message that the peer accepts, in bytes; nil for any size, or before negotiation.
  public var maxMessageSize: UInt64?

  /// Creates a snapshot.
  public init(
    number: UInt32, isRemote: Bool, options: DataChannelInit, readyState: DataChannelState,
    bufferedAmount: UInt64, maxMessageSize: UInt64?
  ) {
    self.number = number
    self.isRemote = isRemote
    self.options = options
    self.readyState = readyState
    self.bufferedAmount = bufferedAmount
    self.maxMessageSize = maxMessageSize
  }
}
