import RTP
import Wire

/// What a section agreed on for a stream that is sent; it does not change until it agrees anew.
struct SendAgreement {
  /// The largest packet after protection, so that it passes all usual paths.
  private static let largestPacket = 1200
  /// What SRTP adds at most: the tag of AES-GCM (RFC 7714) is longer than that of RFC 3711.
  private static let protectionOverhead = 16

  let codec: FlowSection.Codec
  let events: FlowSection.Codec?
  let rtxSSRC: UInt32?
  /// The name of the layer of a simulcast, as packets carry it.
  let ridBytes: [UInt8]?
  let map: HeaderExtensionMap
  /// Whether the packets carry transport-wide sequence numbers.
  let isTransportWide: Bool
  /// How many bytes of a frame a packet has room for.
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

  /// Whether frames of a codec can be sent: those of the one agreed on, and events beside it.
  func carries(_ name: CodecName) -> Bool {
    name == codec.name || !name.carriesMedia && events != nil
  }

  /// Whether packets that got lost are sent again.
  var repairs: Bool { codec.feedback.contains("nack") }

  /// Where retransmissions of a part go; nil when they have no stream of their own.
  func rtx(of part: PayloadPart) -> (ssrc: UInt32, payloadType: UInt8)? {
    guard let rtxSSRC, let payloadType = part.rtxPayloadType else { return nil }
    return (rtxSSRC, payloadType)
  }
}
