public import Tape
public import Wire

/// A row of a take with a property for each column that it reads.
///
/// Conform your own type to read other tables and views:
///
///     struct Freeze: TakeRecord {
///       static let query = "SELECT * FROM freeze"
///       var milliseconds: Double
///       init(_ row: TakeRow) throws(TakeError) { milliseconds = try row.value("gap_ms") }
///     }
public protocol TakeRecord {
  /// The query that returns the rows, in order.
  static var query: String { get }
  /// Reads the properties.
  init(_ row: TakeRow) throws(TakeError)
}

/// A transition of a state machine: signaling, ICE, DTLS, SCTP, connection.
public struct StateChange: TakeRecord, Hashable, Sendable {
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

  /// Reads a row.
  public init(_ row: TakeRow) throws(TakeError) {
    step = try row.value("step")
    peer = try row.value("peer")
    at = try row.value("at_ns")
    machine = try row.value("machine")
    from = try row.value("from_state")
    to = try row.value("to_state")
  }
}

/// A datagram as it was on the wire.
public struct PacketRecord: TakeRecord, Hashable, Sendable {
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

  /// Reads a row.
  public init(_ row: TakeRow) throws(TakeError) {
    step = try row.value("step")
    peer = try row.value("peer")
    at = try row.value("at_ns")
    isInbound = try row.value("direction", as: String.self) == "in"
    local = try row.value("local")
    remote = try row.value("remote")
    classification = try row.value("protocol")
    ssrc = try row.value("ssrc")
    payloadType = try row.value("payload_type")
    sequence = try row.value("sequence")
    rtpTime = try row.value("rtp_time")
    bytes = try row.value("bytes")
  }
}

/// An encoded frame: a video frame, or the payload of an audio packet.
public struct FrameRecord: TakeRecord, Hashable, Sendable {
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

  /// Reads a row.
  public init(_ row: TakeRow) throws(TakeError) {
    step = try row.value("step")
    peer = try row.value("peer")
    at = try row.value("at_ns")
    track = try row.value("track")
    kind = try row.value("kind")
    isInbound = try row.value("direction", as: String.self) == "in"
    codec = try row.value("codec")
    ssrc = try row.value("ssrc")
    rtpTime = try row.value("rtp_time")
    isKey = try row.value("key")
    width = try row.value("width")
    height = try row.value("height")
    size = try row.value("size")
    bytes = try row.value("bytes")
  }
}

/// A message on a data channel.
public struct MessageRecord: TakeRecord, Hashable, Sendable {
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

  /// Reads a row.
  public init(_ row: TakeRow) throws(TakeError) {
    step = try row.value("step")
    peer = try row.value("peer")
    at = try row.value("at_ns")
    channel = try row.value("channel")
    isInbound = try row.value("direction", as: String.self) == "in"
    isBinary = try row.value("binary")
    size = try row.value("size")
    bytes = try row.value("bytes")
  }
}

/// A message of the signaling channel.
public struct SignalingRecord: TakeRecord, Hashable, Sendable {
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

  /// Reads a row.
  public init(_ row: TakeRow) throws(TakeError) {
    step = try row.value("step")
    peer = try row.value("peer")
    at = try row.value("at_ns")
    isInbound = try row.value("direction", as: String.self) == "in"
    transport = try row.value("transport")
    type = try row.value("type")
    message = try row.value("message")
  }
}
