import RTP
package import Wire

/// A supported header extension, with the identifier that local offers prefer.
package struct ExtensionCapability: Hashable, Sendable {
  package var uri: String
  package var id: UInt8
  package var kinds: [MediaKind]
  /// Whether local offers list it; otherwise it is only accepted.
  package var isOffered: Bool

  /// Whether it identifies simulcast layers (RFC 8852); offered only with simulcast.
  var namesLayers: Bool {
    let extensions = [HeaderExtensionURI.streamID, .repairedStreamID]
    return extensions.contains { $0.rawValue == uri }
  }

  /// All extensions, in the order of local offers.
  package static let all = [
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:ssrc-audio-level", id: 1, kinds: [.audio],
      isOffered: true),
    ExtensionCapability(
      uri: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time", id: 2,
      kinds: [.audio, .video], isOffered: true),
    ExtensionCapability(
      uri: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01", id: 3,
      kinds: [.audio, .video], isOffered: true),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:sdes:mid", id: 4, kinds: [.audio, .video],
      isOffered: true),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:csrc-audio-level", id: 5, kinds: [.audio],
      isOffered: true),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id", id: 10, kinds: [.video],
      isOffered: false),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id", id: 11, kinds: [.video],
      isOffered: false),
  ]
}
