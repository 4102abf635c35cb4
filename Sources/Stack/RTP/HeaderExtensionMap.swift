/// The URI of an RTP header extension (RFC 8285).
package struct HeaderExtensionURI: RawRepresentable, Hashable, Sendable {
  package var rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// The media section a packet belongs to (RFC 9143 section 15).
  package static let mid = HeaderExtensionURI(rawValue: "urn:ietf:params:rtp-hdrext:sdes:mid")
  /// The encoding a packet belongs to (RFC 8852 section 3.1).
  package static let streamID = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id")
  /// The encoding that a retransmission repairs (RFC 8852 section 3.2).
  package static let repairedStreamID = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id")
  /// The level of the audio in a packet (RFC 6464).
  package static let audioLevel = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:ssrc-audio-level")
  /// The levels of the mixed sources, in the order of the CSRC list (RFC 6465).
  package static let mixerLevels = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:csrc-audio-level")
  /// When the packet left its sender, as a 6.18 fixed point number of seconds.
  package static let absoluteSendTime = HeaderExtensionURI(
    rawValue: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time")
  /// The transport-wide sequence number (draft-holmer-rmcat-transport-wide-cc-extensions-01).
  package static let transportSequence = HeaderExtensionURI(
    rawValue: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01")
  /// The same with a request for feedback, in a second version.
  package static let laterTransportSequence = HeaderExtensionURI(
    rawValue: "http://www.webrtc.org/experiments/rtp-hdrext/transport-wide-cc-02")
  /// How much later than its sampling a packet left (RFC 5450).
  package static let transmissionOffset = HeaderExtensionURI(
    rawValue: "urn:ietf:params:rtp-hdrext:toffset")
  /// When a frame was encoded, packetised, sent and forwarded.
  package static let videoTiming = HeaderExtensionURI(
    rawValue: "http://www.webrtc.org/experiments/rtp-hdrext/video-timing")
}

/// The identifiers of the known header extensions on a transport; 0 if not negotiated.
package struct HeaderExtensionMap: Hashable, Sendable {
  package var mid: UInt8 = 0
  package var streamID: UInt8 = 0
  package var repairedStreamID: UInt8 = 0
  package var audioLevel: UInt8 = 0
  package var mixerLevels: UInt8 = 0
  package var absoluteSendTime: UInt8 = 0
  package var transportSequence: UInt8 = 0
  // Of these, only where they lie is of use: their values change on the way.
  package var transmissionOffset: UInt8 = 0
  package var laterTransportSequence: UInt8 = 0
  package var videoTiming: UInt8 = 0

  /// Creates a map without any extension.
  package init() {}

  /// Adds a negotiated extension.
  ///
  /// The first identifier of a URI wins.
  package mutating func add(uri: String, id: UInt8) {
    func set(_ field: inout UInt8) { if field == 0 { field = id } }
    switch HeaderExtensionURI(rawValue: uri) {
    case .mid: set(&mid)
    case .streamID: set(&streamID)
    case .repairedStreamID: set(&repairedStreamID)
    case .audioLevel: set(&audioLevel)
    case .mixerLevels: set(&mixerLevels)
    case .absoluteSendTime: set(&absoluteSendTime)
    case .transportSequence: set(&transportSequence)
    case .transmissionOffset: set(&transmissionOffset)
    case .laterTransportSequence: set(&laterTransportSequence)
    case .videoTiming: set(&videoTiming)
    default: break
    }
  }

  /// Whether no extension is in it whose values are read.
  package var isEmpty: Bool {
    var read = self
    (read.transmissionOffset, read.laterTransportSequence, read.videoTiming) = (0, 0, 0)
    return read == HeaderExtensionMap()
  }
}
