public import Tape
public import Wire

/// A row in a take, with a property for each column it reads.
///
/// Conform your own type to read other tables and views:
///
///     struct Freeze: TakeRecord, Decodable {
///       static let query = "SELECT peer, gap_ms FROM freeze"
///       var peer: UInt32
///       var milliseconds: Double
///
///       private enum CodingKeys: String, CodingKey {
///         case peer
///         case milliseconds = "gap_ms"
///       }
///     }
///
/// A Boolean can also be read from a direction column: true for `in`.
public protocol TakeRecord {
  /// The query that returns the rows, in order.
  static var query: String { get }
  /// Reads the properties.
  init(_ row: TakeRow) throws(TakeError)
}

extension TakeRecord where Self: Decodable {
  /// Reads each property from the column that its coding key names.
  public init(_ row: TakeRow) throws(TakeError) { self = try RowDecoder.record(of: row) }
}

/// A transition of a state machine: signaling, ICE, DTLS, SCTP, connection.
public struct StateChange: TakeRecord, Decodable, Hashable, Sendable {
  /// Selects all rows in the table `state`.
  public static let query = "SELECT * FROM state ORDER BY row"
  /// The number of the transition's step.
  public var step: Int
  /// The peer's number.
  public var peer: UInt32
  /// The transition's time since the take began.
  public var at: Instant
  /// The state machine: `signaling`, `ice-connection`, `ice-gathering`, `connection`, `dtls`,
  /// `sctp`, ...
  public var machine: String
  /// The previous state.
  public var from: String
  /// The new state.
  public var to: String

  private enum CodingKeys: String, CodingKey {
    case step, peer
    case at = "at_ns"
    case machine
    case from = "from_state"
    case to = "to_state"
  }
}

/// A datagram as it was on the wire.
public struct PacketRecord: TakeRecord, Decodable, Hashable, Sendable {
  /// Selects all rows in the table `packet`.
  public static let query = "SELECT * FROM packet ORDER BY row"
  /// The number of the step that received or sent the datagram.
  public var step: Int
  /// The peer's number.
  public var peer: UInt32
  /// When the kernel received the datagram, or when it was sent.
  public var at: Instant
  /// Whether the datagram was received rather than sent.
  public var isInbound: Bool
  /// The local address and port.
  public var local: String
  /// The remote address and port.
  public var remote: String
  /// The protocol: `stun`, `turn`, `dtls`, `rtp`, `rtcp`, `other` (RFC 7983, RFC 5761).
  public var classification: String
  /// The SSRC in RTP, or the sender's SSRC in RTCP.
  public var ssrc: UInt32?
  /// The RTP payload type.
  public var payloadType: UInt8?
  /// The RTP sequence number.
  public var sequence: UInt16?
  /// The RTP timestamp.
  public var rtpTime: UInt32?
  /// The UDP payload.
  public var bytes: [UInt8]

  private enum CodingKeys: String, CodingKey {
    case step, peer
    case at = "at_ns"
    case isInbound = "direction"
    case local, remote
    case classification = "protocol"
    case ssrc
    case payloadType = "payload_type"
    case sequence
    case rtpTime = "rtp_time"
    case bytes
  }
}

/// An encoded frame: a video frame, or the payload of an audio packet.
public struct FrameRecord: TakeRecord, Decodable, Hashable, Sendable {
  /// Selects all rows in the table `frame`.
  public static let query = "SELECT * FROM frame ORDER BY row"
  /// The number of the step that sent the frame or released it from the jitter buffer.
  public var step: Int
  /// The peer's number.
  public var peer: UInt32
  /// The step's time since the take began.
  public var at: Instant
  /// The transceiver's number.
  public var track: UInt32
  /// `audio` or `video`.
  public var kind: String
  /// Whether the frame was received rather than sent.
  public var isInbound: Bool
  /// The codec: `opus`, `vp8`, `vp9`, `h264`, ...
  public var codec: String
  /// The SSRC in the frame's packets.
  public var ssrc: UInt32
  /// The RTP timestamp.
  public var rtpTime: UInt32
  /// Whether decoding can start at the frame.
  public var isKey: Bool
  /// The width in pixels; nil for audio.
  public var width: Int?
  /// The height in pixels; nil for audio.
  public var height: Int?
  /// The size in bytes before packetization.
  public var size: Int
  /// The unencrypted frame; nil if the take has no media.
  public var bytes: [UInt8]?

  private enum CodingKeys: String, CodingKey {
    case step, peer
    case at = "at_ns"
    case track, kind
    case isInbound = "direction"
    case codec, ssrc
    case rtpTime = "rtp_time"
    case isKey = "key"
    case width, height, size, bytes
  }
}

/// A message on a data channel.
public struct MessageRecord: TakeRecord, Decodable, Hashable, Sendable {
  /// Selects all rows in the table `message`.
  public static let query = "SELECT * FROM message ORDER BY row"
  /// The number of the step that received or sent the message.
  public var step: Int
  /// The peer's number.
  public var peer: UInt32
  /// The step's time since the take began.
  public var at: Instant
  /// The channel's number, unique within its peer.
  public var channel: UInt32
  /// Whether the message was received rather than sent.
  public var isInbound: Bool
  /// Whether the message is binary rather than text.
  public var isBinary: Bool
  /// The size in bytes.
  public var size: Int
  /// The content; nil if the take has no media.
  public var bytes: [UInt8]?

  private enum CodingKeys: String, CodingKey {
    case step, peer
    case at = "at_ns"
    case channel
    case isInbound = "direction"
    case isBinary = "binary"
    case size, bytes
  }
}

/// A message on the signaling channel.
public struct SignalingRecord: TakeRecord, Decodable, Hashable, Sendable {
  /// Selects all rows in the table `signaling`.
  public static let query = "SELECT * FROM signaling ORDER BY row"
  /// The number of the step that recorded the message.
  public var step: Int
  /// The peer's number.
  public var peer: UInt32
  /// The step's time since the take began.
  public var at: Instant
  /// Whether the message was received rather than sent.
  public var isInbound: Bool
  /// The transport: `http`, `whip`, `whep`, ...
  public var transport: String
  /// The message's type: `offer`, `answer`, `candidate`, ...
  public var type: String
  /// The message's text as sent on the channel.
  public var message: String

  private enum CodingKeys: String, CodingKey {
    case step, peer
    case at = "at_ns"
    case isInbound = "direction"
    case transport, type, message
  }
}
