import RTP
import Wire

/// What a section negotiated for a sent stream; immutable until the next negotiation.
struct SendAgreement {
  /// The largest packet after protection, chosen to fit all common paths.
  private static let largestPacket = 1200
  /// The most that SRTP adds: the AES-GCM tag (RFC 7714) is longer than that of RFC 3711.
  private static let protectionOverhead = 16

  let codec: FlowSection.Codec
  let events: FlowSection.Codec?
  let rtxSSRC: UInt32?
  /// The layer's name as packets carry it.
  let ridBytes: [UInt8]?
  let map: HeaderExtensionMap
  /// Whether packets carry transport-wide sequence numbers.
  let isTransportWide: Bool
  /// The room for a frame's bytes in one packet.
  let payloadLimit: Int

  init(
    _ source: FlowSection.Sending.Source, _ codec: FlowSection.Codec, section: SectionState
  ) {
    var map = section.extensions
    self.codec = codec
    events = section.section.sending?.events
    rtxSSRC = source.rtxSSRC
    ridBytes = source.rid.map { Array($0.utf8) }
    isTransportWide = map.transportSequence != 0 && codec.feedback.contains("transport-cc")
    if !isTransportWide { map.transportSequence = 0 }
    var widest = OutgoingHeader(payloadType: 0, sequence: 0, timestamp: 0, ssrc: 0)
    widest.mid = section.midBytes
    widest.streamID = ridBytes
    widest.audioLevel = 0
    widest.absoluteSendTime = 0
    widest.transportSequence = 0
    payloadLimit =
      Self.largestPacket - Self.protectionOverhead - widest.length(map: map) - RTX.overhead
    self.map = map
  }

  /// Whether frames of a codec can be sent: those of the negotiated one, and its telephone events.
  func carries(_ name: CodecName) -> Bool {
    name == codec.name || !name.carriesMedia && events != nil
  }

  /// Whether lost packets are retransmitted.
  var repairs: Bool { codec.feedback.contains("nack") }

  /// The SSRC and payload type for retransmitting a part; nil if there is no RTX stream.
  func rtx(of part: PayloadPart) -> (ssrc: UInt32, payloadType: UInt8)? {
    guard let rtxSSRC, let payloadType = part.rtxPayloadType else { return nil }
    return (rtxSSRC, payloadType)
  }
}
