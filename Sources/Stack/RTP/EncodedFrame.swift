package import Wire

/// A source that was mixed into a block of audio (CSRC, RFC 3550 section 5.1).
package struct Contributor: Hashable, Sendable {
  package var source: UInt32
  /// Its level as RFC 6465 carries it: 0 loudest to 127 silent; nil when the mixer told none.
  package var level: UInt8?

  package init(source: UInt32, level: UInt8?) {
    self.source = source
    self.level = level
  }
}

/// What an encoder made of one block of audio or one video frame, before packets.
package struct EncodedFrame: Hashable, Sendable {
  package var kind: MediaKind
  package var codec: CodecName
  /// The capture time in the codec's clock, counted from 0; the stream adds its random offset.
  package var mediaTime: UInt32
  /// The encoded bytes.
  package var bytes: [UInt8]
  /// Whether a decoder can begin here.
  package var isKey: Bool
  /// The video frame's size; 0 for audio.
  package var width: UInt16 = 0
  package var height: UInt16 = 0
  /// The level of the audio as RFC 6464 carries it: 0 loudest to 127 silent; nil for video frames.
  package var audioLevel: UInt8?
  /// Whether the block is speech (RFC 6464 V bit, and the marker after silence, RFC 7587 section
  /// 4.2).
  package var isVoice = false
  /// The largest absolute sample, and the sum of the squares of the loudest channel's samples.
  package var peak: UInt16 = 0
  package var energy: UInt64 = 0
  /// The temporal layer of a video frame, if there are several.
  package var temporal: TemporalLayer?
  /// The sources that the audio was mixed from; empty for a local one.
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

/// A frame as received from the network: one audio packet's payload, or an assembled video frame.
package struct ReceivedFrame: Hashable, Sendable {
  // The widest come first, so that no room is lost between them: frames are moved a lot, and up to
  // 128 bytes that needs no call.
  package var mid: String
  package var codec: CodecName
  /// The layer of a simulcast that it belongs to, where the packets of its stream name one.
  package var rid: String?
  /// The extended sequence number of the first and the last packet of the frame.
  package var firstSequence: Int64
  package var lastSequence: Int64
  /// The RTP timestamp extended across wrap-arounds.
  package var extendedTime: Int64
  /// The kernel's receive time of the first and of the last packet to arrive.
  package var firstArrival: Instant
  package var lastArrival: Instant
  package var bytes: [UInt8]
  /// The sources that a mixer put together, as the packet lists them.
  package var contributors: [Contributor] = []
  package var ssrc: UInt32
  /// The RTP timestamp as on the wire.
  package var rtpTime: UInt32
  package var kind: MediaKind
  /// The payload type the packets had.
  package var payloadType: UInt8
  package var isKey: Bool
  /// The RFC 6464 level and voice bit, where the packet carried them.
  package var audioLevel: UInt8?
  package var isVoice: Bool
  /// Whether a packet of it was lost and came again, or was made again.
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
