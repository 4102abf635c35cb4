package import Wire

/// The state of an SCTP transport (W3C RTCSctpTransportState).
public enum SCTPState: String, Hashable, Sendable {
  /// The handshake is not finished.
  case connecting
  /// Messages can flow.
  case connected
  /// The association has ended.
  case closed
}

/// An association's parameters from signaling and DTLS, and its local limits.
package struct SCTPParameters: Hashable, Sendable {
  /// Whether the local peer is the DTLS client, whose channels use even streams (RFC 8832
  /// section 6).
  package var isClient: Bool
  /// The local `a=sctp-port`.
  package var localPort: UInt16
  /// The peer's `a=sctp-port`.
  package var remotePort: UInt16
  /// The peer's `a=max-message-size` in bytes; 0 for no limit (RFC 8841 section 6).
  package var remoteMaximumMessageSize: UInt64
  /// The local `a=max-message-size` in bytes; a larger message ends the association.
  package var localMaximumMessageSize: Int
  /// The maximum number of bytes that wait for the rest of their message or for earlier messages.
  ///
  /// The window is larger than the largest message, but still fits into the socket's buffer.
  package var receiveWindow: Int
  /// The largest packet in bytes: 1,200 minus the DTLS record (RFC 8831 section 5).
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
  /// The retransmission timeout before the first round-trip measurement.
  static let initialTimeout = Interval.milliseconds(500)
  /// The shortest retransmission timeout, which is above the usual acknowledgement delay of 200 ms.
  static let minimumTimeout = Interval.milliseconds(400)
  /// The longest retransmission timeout; it is short, so that a recovered path is used soon, and
  /// because ICE consent already checks liveness.
  static let maximumTimeout = Interval.seconds(5)
  /// The time that an acknowledgement may wait for a second packet (RFC 9260 section 6.2).
  static let acknowledgementDelay = Interval.milliseconds(100)
  static let heartbeatInterval = Interval.seconds(30)
  static let cookieLife = Interval.seconds(60)
  /// The maximum number of retransmissions of INIT or COOKIE ECHO (Max.Init.Retransmits).
  static let initiationRetries = 20
  /// Consecutive timeouts without any sign of the peer before the association fails.
  static let associationRetries = 20
  /// The maximum number of packets stored before the start.
  static let earlyPackets = 16
  /// The maximum number of unsent bytes on a channel.
  static let channelBuffer: UInt64 = 16 << 20
  /// The maximum number of unacknowledged chunks; gap reports cover only 65,535.
  static let chunksInFlight = 32768
  /// The maximum number of fragments that wait for the rest of their message or for an earlier one.
  static let fragmentsHeld = 16384
  /// The maximum number of gaps; data that would add another is dropped.
  static let gaps = 1024
  /// The maximum number of channels; announcements by the peer beyond it are refused.
  static let channels = 4096
  static let streams: UInt16 = 65535
}

// MARK: - SCTPAction

/// A chunk without user data: type, flags and body.
struct ControlChunk: Hashable {
  var type: ChunkType
  var flags: UInt8 = 0
  var body: [UInt8] = []

  /// Creates an ERROR chunk with one cause (RFC 9260 section 3.3.10).
  static func error(_ cause: ErrorCause, _ details: [UInt8]) -> ControlChunk {
    causes(.error, cause, details)
  }

  /// Creates an ABORT chunk with one cause (RFC 9260 section 3.3.7).
  static func abort(_ cause: ErrorCause, _ details: [UInt8] = []) -> ControlChunk {
    causes(.abort, cause, details)
  }

  /// Creates an ERROR chunk that reports an unknown chunk, complete if it fits (RFC 9260
  /// section 3.3.10.6).
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

/// The reason for ending an association with an ABORT.
struct SCTPFailure: Hashable {
  var cause: ErrorCause
  /// The reason as text, for the application and, if the cause allows text, for the peer.
  var reason: String
  /// The cause's contents other than text.
  var details: [UInt8] = []
}

/// An action that one part of an association requests from the others; performed in order.
enum SCTPAction: Hashable {
  /// Add a chunk to the packet being built.
  case append(ControlChunk)
  /// Send these chunks in a separate packet, always with a checksum (RFC 9653 section 5.2).
  case packet([ControlChunk], tag: UInt32)
  /// Send the packet being built before performing the next action.
  case emit
  /// Start a timer for the retransmission timeout.
  case arm(SCTPTimer)
  case cancel(SCTPTimer)
  /// Double the retransmission timeout (RFC 9260 section 6.3.3, rule E2).
  case backOff
  /// Count a dropped chunk.
  case drop
  /// Start data transfer.
  case establish
  case fail(SCTPFailure)
  case end(String?)
}

/// An association's counters and the state of its path (W3C RTCSctpTransportStats and more).
package struct SCTPStatistics: Hashable, Sendable {
  package var packetsSent: UInt64 = 0
  package var packetsReceived: UInt64 = 0
  /// Packets and chunks dropped because they are malformed, misplaced, or belong to another
  /// association.
  package var dropped: UInt64 = 0
  /// DATA chunks sent for the first time.
  package var chunksSent: UInt64 = 0
  /// DATA chunks sent again.
  package var chunksRetransmitted: UInt64 = 0
  /// DATA chunks received, without duplicates.
  package var chunksReceived: UInt64 = 0
  /// Duplicate DATA chunks received.
  package var duplicates: UInt64 = 0
  /// The number of times that the retransmission timer expired.
  package var timeouts: UInt64 = 0
  /// The number of times that acknowledgements reported losses.
  package var fastRecoveries: UInt64 = 0
  /// Smoothed round-trip time; nil before the first measurement.
  package var smoothedRoundTripTime: Interval?
  package var retransmissionTimeout = SCTPLimits.initialTimeout
  /// The number of bytes that congestion control permits in flight.
  package var congestionWindow = 0
  /// The peer's last advertised receive window, in bytes.
  package var receiverWindow = 0
  /// The largest packet in bytes.
  package var maximumPacketSize = 0
  /// Chunks that the peer has not acknowledged.
  package var unacknowledgedChunks = 0
  /// Bytes of chunks in flight, including chunk headers.
  package var bytesInFlight = 0
}
