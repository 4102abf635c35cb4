package import Media
package import Peer
package import Wire

/// What the peers of a recording send: files and devices, and an echo or a test pattern for what
/// they do not carry.
package struct SendPlan: Sendable {
  /// What is sent of what no file and no device carries.
  package enum Filling: Hashable, Sendable {
    /// What is received.
    case echo
    /// A tone and a test pattern.
    case pattern

    /// The test pattern of a kind.
    static func generated(_ kind: MediaKind) -> MediaSource {
      switch kind {
      case .audio: .tone(hertz: 440, pauseSeconds: 0)
      case .video: .pattern(width: 640, height: 360, framesPerSecond: 30)
      }
    }
  }

  /// nil: the pattern, or nothing beside devices.
  private let filling: Filling?
  private let files: [MediaKind: String]
  /// The devices that are sent and played.
  package let devices: DevicePlan
  /// The pace of a file of H.264, when it was given.
  package let framesPerSecond: Double?
  /// The file of H.264, when there is one.
  package let clip: H264Clip?
  /// What is said over the own data channel; nil for an echo.
  package let messages: Conversation?
  /// The layers that own offers name, the largest first; none: one stream is sent.
  package let layers: [RTPEncoding]

  package init(
    _ filling: Filling?, files: [MediaKind: String] = [:], devices: DevicePlan = .none,
    framesPerSecond: Double? = nil, clip: H264Clip? = nil, messages: Conversation? = nil,
    layers: [RTPEncoding] = []
  ) {
    self.filling = filling
    self.files = files
    self.devices = devices
    self.framesPerSecond = framesPerSecond
    self.clip = clip
    self.messages = messages
    self.layers = layers
  }

  /// What a track of a kind sends: the file or the device that carries it, or what was given for
  /// the rest; nil for nothing: who sends only a microphone sends no test pattern beside it.
  package func source(for kind: MediaKind) -> MediaSource? {
    if files[kind] != nil || device(for: kind) != nil { return .application }
    if filling == nil, !devices.sends.isEmpty { return nil }
    return filling == .echo ? .echo : Filling.generated(kind)
  }

  /// The device that carries a kind.
  package func device(for kind: MediaKind) -> SendDevice? { devices.sends.carrying(kind) }

  /// The file that feeds a kind.
  package func file(for kind: MediaKind) -> String? { files[kind] }
}
