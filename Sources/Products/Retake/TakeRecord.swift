public import Tape
public import Wire

/// A row of a take with a property for each column that it reads.
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
/// A Boolean is also read from a column of directions: true for `in`.
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
  /// All rows of the table `state`.
  public static let query = "SELECT * FROM state ORDER BY row"
  /// The step of the transition.
  public var step: Int
  /// The number of the peer.
  public var peer: UInt32
  /// When.
  public var at: Instant
  /// `signaling`, `ice-connection`, `ice-gathering`, `connection`, `dtls`, `sctp`, ...
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
  /// All rows of the table `packet`.
  public static let query = "SELECT * FROM packet ORDER BY row"
  /// The step that received or sent it.
  public var step: Int
  /// The number of the peer.
  public var peer: UInt32
  /// When the kernel received it, or when it was sent.
  public var at: Instant
  /// Whether it was received; otherwise it was sent.
  public var isInbound: Bool
  /// The local address and port.
  public var local: String
  /// The address and port of the other end.
  public var remote: String
  /// `stun`, `turn`, `dtls`, `rtp`, `rtcp`, `other` (RFC 7983, RFC 5761).
  public var classification: String
  /// The SSRC of RTP, or of the sender of RTCP.
  public var ssrc: UInt32?
  /// The payload type of RTP.
  public var payloadType: UInt8?
  /// The sequence number of RTP.
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
  /// All rows of the table `frame`.
  public static let query = "SELECT * FROM frame ORDER BY row"
  /// The step that sent it or removed it from the jitter buffer.
  public var step: Int
  /// The number of the peer.
  public var peer: UInt32
  /// When.
  public var at: Instant
  /// The number of the transceiver.
  public var track: UInt32
  /// `audio` or `video`.
  public var kind: String
  /// Whether it was received; otherwise it was sent.
  public var isInbound: Bool
  /// `opus`, `vp8`, `vp9`, `h264`, ...
  public var codec: String
  /// The SSRC of its packets.
  public var ssrc: UInt32
  /// The RTP timestamp.
  public var rtpTime: UInt32
  /// Whether it is a keyframe.
  public var isKey: Bool
  /// Pixels; nil for audio.
  public var width: Int?
  /// Pixels; nil for audio.
  public var height: Int?
  /// Bytes before packetization.
  public var size: Int
  /// The frame unencrypted; nil when the take has no media.
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
  /// All rows of the table `message`.
  public static let query = "SELECT * FROM message ORDER BY row"
  /// The step that received or sent it.
  public var step: Int
  /// The number of the peer.
  public var peer: UInt32
  /// When.
  public var at: Instant
  /// The number of the channel in its peer.
  public var channel: UInt32
  /// Whether it was received; otherwise it was sent.
  public var isInbound: Bool
  /// Whether it is binary; otherwise it is text.
  public var isBinary: Bool
  /// Bytes.
  public var size: Int
  /// The content; nil when the take has no media.
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

/// A message of the signaling channel.
public struct SignalingRecord: TakeRecord, Decodable, Hashable, Sendable {
  /// All rows of the table `signaling`.
  public static let query = "SELECT * FROM signaling ORDER BY row"
  /// The step that recorded it.
  public var step: Int
  /// The number of the peer.
  public var peer: UInt32
  /// When.
  public var at: Instant
  /// Whether it was received; otherwise it was sent.
  public var isInbound: Bool
  /// `http`, `whip`, `whep`, ...
  public var transport: String
  /// `offer`, `answer`, `candidate`, ...
  public var type: String
  /// The message as on the channel.
  public var message: String

  private enum CodingKeys: String, CodingKey {
    case step, peer
    case at = "at_ns"
    case isInbound = "direction"
    case transport, type, message
  }
}
