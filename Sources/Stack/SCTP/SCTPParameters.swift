package import Wire

/// The state of the transport (W3C RTCSctpTransportState).
public enum SCTPState: String, Hashable, Sendable {
  /// The handshake is not finished.
  case connecting
  /// Messages can flow.
  case connected
  /// The association has ended.
  case closed
}

/// The parameters of an association: those from signaling and DTLS, and its local limits.
package struct SCTPParameters: Hashable, Sendable {
  /// Whether this side is the DTLS client, whose channels have even streams (RFC 8832 section 6).
  package var isClient: Bool
  /// The local `a=sctp-port`.
  package var localPort: UInt16
  /// The peer's `a=sctp-port`.
  package var remotePort: UInt16
  /// The peer's `a=max-message-size` in bytes; 0 for any size (RFC 8841 section 6).
  package var remoteMaximumMessageSize: UInt64
  /// The local `a=max-message-size` in bytes; a larger message ends the association.
  package var localMaximumMessageSize: Int
  /// How many bytes may wait for the rest of their message or for earlier messages: more than the
  /// largest message, and no more than the socket can buffer at once.
  package var receiveWindow: Int
  /// The largest packet in bytes: 1,200 less the DTLS record (RFC 8831 section 5).
  package var maximumPacketSize: Int
  /// Whether messages may interleave if the peer supports it (RFC 8260).
  package var offersInterleaving: Bool
  /// Whether packets are sent without a checksum if the peer supports it (RFC 9653).
  package var offersZeroChecksum: Bool

  /// The default size limit for received messages: 1 MiB.
  package static let maximumMessageSize = 1 << 20

  /// Creates the parameters; all but the role have defaults.
  package init(
    isClient: Bool, localPort: UInt16 = 5000, remotePort: UInt16 = 5000,
    remoteMaximumMessageSize: UInt64 = 65536,
    localMaximumMessageSize: Int = SCTPParameters.maximumMessageSize,
    receiveWindow: Int = 2 << 20, maximumPacketSize: Int = 1160, offersInterleaving: Bool = true,
    offersZeroChecksum: Bool = true
  ) {
    self.isClient = isClient
    self.localPort = localPort
    self.remotePort = remotePort
    self.remoteMaximumMessageSize = remoteMaximumMessageSize
    self.localMaximumMessageSize = max(1, localMaximumMessageSize)
    self.receiveWindow = min(max(1500, receiveWindow), 1 << 30)
    self.maximumPacketSize = min(max(256, maximumPacketSize & ~3), 65532)
    self.offersInterleaving = offersInterleaving
    self.offersZeroChecksum = offersZeroChecksum
  }
}

/// The fixed times and limits of an association.
enum SCTPLimits {
  /// The retransmission timeout before a round trip was measured.
  static let initialTimeout = Interval.milliseconds(500)
  /// More than the usual delay of peers' acknowledgements, 200 ms.
  static let minimumTimeout = Interval.milliseconds(400)
  /// Short, so that a recovered path is used soon; ICE consent is responsible for liveness.
  static let maximumTimeout = Interval.seconds(5)
  /// How long an acknowledgement may wait for a second packet (RFC 9260 section 6.2).
  static let acknowledgementDelay = Interval.milliseconds(100)
  static let heartbeatInterval = Interval.seconds(30)
  static let cookieLife = Interval.seconds(60)
  /// The maximum number of retransmissions of INIT or COOKIE ECHO (Max.Init.Retransmits).
  static let initiationRetries = 20
  /// The number of consecutive timeouts without any sign of the peer after which the association
  /// fails.
  static let associationRetries = 20
  /// The maximum number of packets stored before the start.
  static let earlyPackets = 16
  /// The maximum number of unsent bytes on one channel.
  static let channelBuffer: UInt64 = 16 << 20
  /// Chunks that may wait for an acknowledgement; gap reports only cover 65,535.
  static let chunksInFlight = 32768
  /// The maximum number of fragments waiting for their message.
  static let fragmentsHeld = 16384
  /// The maximum number of gaps; data that would add another one is dropped.
  static let gaps = 1024
  /// Channels that a peer may have open.
  static let channels = 4096
  static let streams: UInt16 = 65535
}

// MARK: - SCTPAction

/// A chunk without data: its type, its flags and its body.
struct ControlChunk: Hashable {
  var type: ChunkType
  var flags: UInt8 = 0
  var body: [UInt8] = []

  /// An ERROR chunk with one cause (RFC 9260 section 3.3.10).
  static func error(_ cause: ErrorCause, _ details: [UInt8]) -> ControlChunk {
    causes(.error, cause, details)
  }

  /// An ABORT chunk with one cause (RFC 9260 section 3.3.7).
  static func abort(_ cause: ErrorCause, _ details: [UInt8] = []) -> ControlChunk {
    causes(.abort, cause, details)
  }

  /// An ERROR chunk that reports an unknown chunk, complete if it fits (RFC 9260 section 3.3.10.6).
  static func unrecognized(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, capacity: Int
  ) -> ControlChunk {
    var chunk = ByteWriter()
    chunk.uint8(type.rawValue)
    chunk.uint8(flags)
    chunk.uint16(UInt16(truncatingIfNeeded: body.byteCount + 4))
    chunk.append(body.extracting(0..<min(body.byteCount, (capacity - 12) & ~3)))
    return error(.unrecognizedChunk, chunk.bytes)
  }

  private static func causes(
    _ type: ChunkType, _ cause: ErrorCause, _ details: [UInt8]
  ) -> ControlChunk {
    var body = ByteWriter()
    body.parameter(cause.rawValue, details)
    return ControlChunk(type: type, body: body.bytes)
  }
}

/// Why this side ends an association with an ABORT.
struct SCTPFailure: Hashable {
  var cause: ErrorCause
  /// The reason as text, for the application and, if the cause can carry text, for the peer.
  var reason: String
  /// The contents of the cause besides text.
  var details: [UInt8] = []
}

/// An action that one part of an association requests of the others; lists are performed in order.
enum SCTPAction: Hashable {
  /// A chunk for the packet under way.
  case append(ControlChunk)
  /// A separate packet, which always has its checksum (RFC 9653 section 5.2).
  case packet([ControlChunk], tag: UInt32)
  /// The packet under way is sent before the following.
  case emit
  /// The timer expires after the retransmission timeout.
  case arm(SCTPTimer)
  case cancel(SCTPTimer)
  /// The retransmission timeout doubles (RFC 9260 section 6.3.3, rule E2).
  case backOff
  /// A useless message.
  case drop
  /// Data can flow.
  case establish
  case fail(SCTPFailure)
  case end(String?)
}

/// The counters of an association, and the state of its path (W3C RTCSctpTransportStats and more).
package struct SCTPStatistics: Hashable, Sendable {
  package var packetsSent: UInt64 = 0
  package var packetsReceived: UInt64 = 0
  /// Useless packets and chunks: malformed, of another association, out of place.
  package var dropped: UInt64 = 0
  /// DATA chunks sent for the first time.
  package var chunksSent: UInt64 = 0
  /// DATA chunks sent again.
  package var chunksRetransmitted: UInt64 = 0
  /// DATA chunks received, without duplicates.
  package var chunksReceived: UInt64 = 0
  /// Duplicate DATA chunks received.
  package var duplicates: UInt64 = 0
  /// How often the retransmission timer ran out.
  package var timeouts: UInt64 = 0
  /// How often losses were seen in acknowledgements.
  package var fastRecoveries: UInt64 = 0
  /// The smoothed round-trip time; nil before a measurement.
  package var smoothedRoundTripTime: Interval?
  package var retransmissionTimeout = SCTPLimits.initialTimeout
  /// The congestion window in bytes.
  package var congestionWindow = 0
  /// The receive window that the peer last advertised, in bytes.
  package var receiverWindow = 0
  /// The largest packet in bytes.
  package var maximumPacketSize = 0
  /// Chunks that the peer has not acknowledged.
  package var unacknowledgedChunks = 0
  /// Bytes of chunks in flight, with chunk headers.
  package var bytesInFlight = 0
}
