package import Wire

/// A source mixed into a block of audio (CSRC, RFC 3550 section 5.1).
package struct Contributor: Hashable, Sendable {
  package var source: UInt32
  /// The level as in RFC 6465, 0 loudest to 127 silent; nil if the mixer reported none.
  package var level: UInt8?

  package init(source: UInt32, level: UInt8?) {
    self.source = source
    self.level = level
  }
}

/// One block of audio or one video frame from an encoder, before packetization.
package struct EncodedFrame: Hashable, Sendable {
  package var kind: MediaKind
  package var codec: CodecName
  /// The capture time in the codec's clock, counted from 0; the stream adds a random offset.
  package var mediaTime: UInt32
  package var bytes: [UInt8]
  /// Whether a decoder can start with the frame.
  package var isKey: Bool
  /// The video frame's size in pixels; 0 for audio.
  package var width: UInt16 = 0
  package var height: UInt16 = 0
  /// The audio level as in RFC 6464, 0 loudest to 127 silent; nil for video.
  package var audioLevel: UInt8?
  /// Whether the block is speech (RFC 6464 V bit, and the marker after silence, RFC 7587 section
  /// 4.2).
  package var isVoice = false
  /// The largest absolute sample; `energy` is the loudest channel's sum of squares.
  package var peak: UInt16 = 0
  package var energy: UInt64 = 0
  /// A video frame's temporal layer; nil if the stream has no layers.
  package var temporal: TemporalLayer?
  /// The sources that were mixed; empty if the audio was captured locally.
  package var contributors: [Contributor] = []

  package init(
    kind: MediaKind, codec: CodecName, mediaTime: UInt32, bytes: [UInt8], isKey: Bool,
    width: UInt16 = 0, height: UInt16 = 0, audioLevel: UInt8? = nil, isVoice: Bool = false
  ) {
    self.kind = kind
    self.codec = codec
    self.mediaTime = mediaTime
    self.bytes = bytes
    self.isKey = isKey
    self.width = width
    self.height = height
    self.audioLevel = audioLevel
    self.isVoice = isVoice
  }
}

/// A frame from the network: one audio packet's payload, or an assembled video frame.
package struct ReceivedFrame: Hashable, Sendable {
  // Members are ordered by size to avoid padding: frames are moved often, and moving up to 128
  // bytes needs no call to memcpy.
  package var mid: String
  package var codec: CodecName
  /// The simulcast layer; nil if the packets name none.
  package var rid: String?
  /// The extended sequence numbers of the frame's first and last packet.
  package var firstSequence: Int64
  package var lastSequence: Int64
  /// The RTP timestamp extended across wrap-arounds.
  package var extendedTime: Int64
  /// When the kernel received the frame's first and last packets.
  package var firstArrival: Instant
  package var lastArrival: Instant
  package var bytes: [UInt8]
  /// The sources that a mixer combined (CSRC list).
  package var contributors: [Contributor] = []
  package var ssrc: UInt32
  /// The RTP timestamp on the wire.
  package var rtpTime: UInt32
  package var kind: MediaKind
  package var payloadType: UInt8
  package var isKey: Bool
  /// The RFC 6464 level and voice bit, if the packet had them.
  package var audioLevel: UInt8?
  package var isVoice: Bool
  /// Whether at least one packet was lost and recovered by retransmission or FEC.
  package var isRepaired = false

  package init(
    mid: String, ssrc: UInt32, kind: MediaKind, codec: CodecName, payloadType: UInt8,
    firstSequence: Int64, lastSequence: Int64, rtpTime: UInt32, extendedTime: Int64,
    firstArrival: Instant, lastArrival: Instant, bytes: [UInt8], isKey: Bool,
    audioLevel: UInt8? = nil, isVoice: Bool = false
  ) {
    self.mid = mid
    self.ssrc = ssrc
    self.kind = kind
    self.codec = codec
    self.payloadType = payloadType
    self.firstSequence = firstSequence
    self.lastSequence = lastSequence
    self.rtpTime = rtpTime
    self.extendedTime = extendedTime
    self.firstArrival = firstArrival
    self.lastArrival = lastArrival
    self.bytes = bytes
    self.isKey = isKey
    self.audioLevel = audioLevel
    self.isVoice = isVoice
  }
}

/// A video frame's temporal layer; frames in upper layers can be dropped.
package struct TemporalLayer: Hashable, Sendable {
  /// The layer's number; 0 is the base layer.
  package var id: UInt8
  /// Whether the frame refers only to the base layer, in which case a receiver may switch up here.
  package var isSync: Bool
  /// Whether other frames refer to this one.
  package var isReference: Bool

  package init(id: UInt8, isSync: Bool, isReference: Bool) {
    self.id = id
    self.isSync = isSync
    self.isReference = isReference
  }
}
