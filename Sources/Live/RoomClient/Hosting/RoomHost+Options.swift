package import Peer
import Room

extension RoomHost {
  /// How rooms are hosted.
  package struct Options: Sendable {
    /// What connections behave like.
    package var connection = PeerConfiguration()
    /// Who may get tokens, as `key:secret`; nil lets everybody in without one.
    package var secret: String?
    /// How long a participant whose way was lost may take to come back, in seconds.
    package var graceSeconds = 15.0
    /// How many bytes a participant may make the room send to each of the others per second.
    package var speechBytesPerSecond = SpeechAllowance.usualBytesPerSecond
    /// How many participants all rooms may have at once.
    package var guestsMaximum = 50
    /// How many may have entered in all, those that have left among them: each leaves rows in the
    /// take.
    package var entriesMaximum = 10_000
    /// How many bytes of descriptions and candidates one participant may send, and all together:
    /// the take keeps them.
    package var guestSignalingBytes = 16 << 20
    package var signalingBytes = 256 << 20
    /// How long a WebSocket may take to say who it is, in seconds.
    package var joinSeconds = 10.0

    package init() {}
  }
}

extension RoomRequest {
  /// Whether a connection hears of it, whose inputs the take keeps.
  var isRecorded: Bool {
    switch self {
    case .offer, .answer, .candidate, .restart, .stop: true
    default: false
    }
  }
}
