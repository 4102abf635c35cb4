/// Names a data channel of one association: a number in the order in which channels were made.
///
/// Both sides' channels are counted; a number is never used again.
package struct DataChannelNumber: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The number, from 0.
  package var rawValue: UInt32

  /// Creates a number.
  package init(_ rawValue: UInt32) { self.rawValue = rawValue }

  package static func < (left: DataChannelNumber, right: DataChannelNumber) -> Bool {
    left.rawValue < right.rawValue
  }

  package var description: String { "\(rawValue)" }
}

/// How much a channel may send beside the others (RFC 8831 section 6.4).
public enum DataChannelPriority: UInt16, Hashable, Sendable, Codable {
  /// Half of the usual share.
  case veryLow = 128
  /// The usual share.
  case low = 256
  /// Twice the usual share.
  case medium = 512
  /// Four times the usual share.
  case high = 1024

  /// The class that a number from the wire stands for (RFC 8832 section 8.2.1 names the four).
  package init(weight: UInt16) {
    switch weight {
    case ...128: self = .veryLow
    case ...256: self = .low
    case ...512: self = .medium
    default: self = .high
    }
  }
}

/// What a data channel is made with (W3C RTCDataChannelInit).
public struct DataChannelInit: Hashable, Sendable, Codable {
  /// The label, any text up to 65,535 bytes of UTF-8.
  public var label: String
  /// The subprotocol, any text up to 65,535 bytes of UTF-8.
  public var `protocol`: String
  /// Whether messages arrive in the order in which they were sent.
  public var ordered: Bool
  /// How many milliseconds a message is tried; nil for no limit.
  public var maxPacketLifeTime: UInt16?
  /// How often a message is sent again; nil for no limit.
  public var maxRetransmits: UInt16?
  /// Whether the application made the channel on both sides, so that nothing is announced.
  public var negotiated: Bool
  /// The stream, which a negotiated channel must name; others may leave it to the association.
  public var id: UInt16?
  /// The share of this channel beside the others.
  public var priority: DataChannelPriority

  /// Creates a description; without arguments a reliable and ordered channel.
  public init(
    label: String = "", protocol: String = "", ordered: Bool = true,
    maxPacketLifeTime: UInt16? = nil, maxRetransmits: UInt16? = nil, negotiated: Bool = false,
    id: UInt16? = nil, priority: DataChannelPriority = .low
  ) {
    self.label = label
    self.protocol = `protocol`
    self.ordered = ordered
    self.maxPacketLifeTime = maxPacketLifeTime
    self.maxRetransmits = maxRetransmits
    self.negotiated = negotiated
    self.id = id
    self.priority = priority
  }
}

/// The life of a data channel (W3C RTCDataChannelState).
public enum DataChannelState: String, Hashable, Sendable, Codable {
  /// The association is not established yet.
  case connecting
  /// Messages can be sent.
  case open
  /// What was sent before is still delivered.
  case closing
  /// The channel is closed.
  case closed
}

/// What a channel carried (W3C RTCDataChannelStats).
package struct DataChannelCounters: Hashable, Sendable {
  /// Messages passed to `send`.
  package var messagesSent: UInt64 = 0
  /// Bytes of these messages.
  package var bytesSent: UInt64 = 0
  /// Messages handed out.
  package var messagesReceived: UInt64 = 0
  /// Bytes of these messages.
  package var bytesReceived: UInt64 = 0
  /// Messages that were abandoned, wholly or in part, because of the channel's limits.
  package var messagesAbandoned: UInt64 = 0

  /// Creates counters at zero.
  package init() {}
}

/// Why a channel cannot be made or a message cannot be sent.
package enum DataChannelRefusal: Hashable, Sendable {
  /// The association has ended (InvalidStateError).
  case closed
  /// There is no such channel, or it is not open (InvalidStateError).
  case notOpen
  /// The message is larger than the peer allows (TypeError).
  case tooLarge(maximum: UInt64)
  /// The message does not fit into the channel's buffer (OperationError).
  case bufferFull
  /// The label or the protocol is too long, or both limits are given (TypeError).
  case malformed
  /// The stream is taken or does not exist, or no stream is free (OperationError).
  case noStream
}
