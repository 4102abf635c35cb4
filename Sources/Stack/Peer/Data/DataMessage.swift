public import SCTP

/// A message of a data channel, as it is sent or as received.
package struct DataMessage: Hashable, Sendable {
  /// The number of the channel in its peer.
  package var channel: UInt32
  /// Bytes; else text.
  package var isBinary: Bool
  /// The bytes, or the text in UTF-8.
  package var bytes: [UInt8]

  package init(channel: UInt32, isBinary: Bool, bytes: [UInt8]) {
    self.channel = channel
    self.isBinary = isBinary
    self.bytes = bytes
  }
}

/// A data channel at an instant: made, or in another state than before.
package struct DataChannelRecord: Hashable, Sendable {
  /// Names the channel in its peer; counted from 0, never used again.
  package var channel: UInt32
  /// Whether the other side made the channel.
  package var isRemote: Bool
  /// What it was made with; `id` is known once the association is.
  package var options: DataChannelInit
  package var state: DataChannelState
  /// What it carried so far.
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

/// A data channel as applications see it (W3C RTCDataChannel attributes).
public struct DataChannelInfo: Hashable, Sendable, Codable {
  /// Names the channel in its peer; counted from 0, never used again.
  public var number: UInt32
  /// Whether the other side made the channel.
  public var isRemote: Bool
  /// What it was made with; `id` is the stream, once the association has begun.
  public var options: DataChannelInit
  /// W3C readyState.
  public var readyState: DataChannelState
  /// The bytes given to `send` that were not sent yet.
  public var bufferedAmount: UInt64
  /// The largest message that the peer takes, in bytes; nil for any, or when nothing is agreed.
  public var maxMessageSize: UInt64?

  /// Creates the snapshot of a channel.
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
