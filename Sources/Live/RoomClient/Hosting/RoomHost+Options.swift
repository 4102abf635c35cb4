package import Peer
import Room

extension RoomHost {
  /// The configuration of a room host.
  package struct Options: Sendable {
    /// The base configuration of connections.
    package var connection = PeerConfiguration()
    /// The key and secret for tokens, as `key:secret`; nil to let everybody in without a token.
    package var secret: String?
    /// How long a disconnected participant may take to return, in seconds.
    package var graceSeconds = 15.0
    /// The limit on bytes per second that a participant can make the room send to each of the
    /// others.
    package var speechBytesPerSecond = SpeechAllowance.usualBytesPerSecond
    /// The most participants of all rooms at once.
    package var guestsMaximum = 50
    /// The most entries in total, including participants who left: each leaves rows in the take.
    package var entriesMaximum = 10_000
    /// The limits on recorded descriptions and candidates in bytes, per participant and in total.
    package var guestSignalingBytes = 16 << 20
    package var signalingBytes = 256 << 20
    /// How long a WebSocket may take for the join message, in seconds.
    package var joinSeconds = 10.0

    package init() {}
  }
}

extension RoomRequest {
  /// Whether the request reaches a connection, whose inputs are recorded.
  var isRecorded: Bool {
    switch self {
    case .offer, .answer, .candidate, .restart, .stop: true
    default: false
    }
  }
}
