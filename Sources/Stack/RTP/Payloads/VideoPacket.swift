import Wire

/// A packet's contribution to its frame, whatever the codec.
package struct VideoPacket: Hashable, Sendable {
  /// What a packet shows about the start of a frame.
  package enum Beginning: Hashable, Sendable {
    /// It continues a frame.
    case no
    /// It is the first if the previous packet ended a frame.
    case possible
    /// It is the first, unless the previous packet belongs to the same frame.
    case certain
  }

  /// The bytes that it adds to the frame.
  package enum Content: Hashable, Sendable {
    /// A range of the payload.
    case slice(Range<Int>)
    /// Bytes converted from the payload.
    case bytes([UInt8])
  }

  package var beginning = Beginning.no
  /// Whether this packet shows that a decoder can start with the frame.
  package var isKey = false
  /// What the frame depends on, if the payload descriptor says so.
  package enum Dependency: Hashable, Sendable {
    /// The temporal layer and TL0PICIDX; a sync frame depends on the base layer alone (RFC 7741
    /// section 4.2, RFC 9628 section 4.2).
    case layer(temporal: UInt8, base: UInt8, isSync: Bool)
    /// The frames it depends on, as distances back (RFC 9628 section 4.2).
    case pictures([UInt8])
  }

  /// The picture ID, if the payload format has one.
  package var pictureID: PictureID?
  package var dependency: Dependency?
  package var content: Content

  /// Parses a payload; nil if it is malformed, empty, or not of a video codec.
  package init?(_ payload: RawSpan, codec: CodecName) {
    guard let read = codec.payloadFormat?.read(payload) else { return nil }
    self = read
  }

  init(_ content: Content) { self.content = content }

  init?(vp8 payload: RawSpan) {
    var reader = ByteReader(payload)
    guard let descriptor = try? VP8Descriptor(parsing: &reader), !reader.isAtEnd else { return nil }
    content = .slice(reader.offset..<payload.byteCount)
    pictureID = descriptor.pictureID
    if let temporal = descriptor.temporalLayer, let base = descriptor.baseLayerIndex {
      dependency = .layer(temporal: temporal, base: base, isSync: descriptor.isLayerSync)
    }
    guard descriptor.beginsFrame else { return }
    beginning = .certain
    isKey = payload.byte(at: reader.offset) & 1 == 0
  }

  /// All layers of a frame are one frame here, because libvpx decodes them one after the other.
  init?(vp9 payload: RawSpan) {
    var reader = ByteReader(payload)
    guard let descriptor = try? VP9Descriptor(parsing: &reader), !reader.isAtEnd else { return nil }
    content = .slice(reader.offset..<payload.byteCount)
    pictureID = descriptor.pictureID
    if descriptor.isFlexible, descriptor.isInterPredicted {
      dependency = .pictures(descriptor.references)
    } else if let layer = descriptor.layer, let base = descriptor.baseLayerIndex {
      dependency = .layer(
        temporal: layer.temporal, base: base, isSync: layer.isSwitchingPoint)
    }
    guard descriptor.beginsFrame else { return }
    // An SFU may drop lower layers that nothing depends on.
    beginning = descriptor.beginsVideoFrame ? .certain : .possible
    guard descriptor.beginsVideoFrame, !descriptor.isInterPredicted else { return }
    isKey = (try? VP9FrameHeader(parsing: reader.rest()))?.isKey ?? false
  }

  init?(h264 payload: RawSpan) {
    guard let read = H264Payload(payload) else { return nil }
    content = .bytes(read.bytes)
    isKey = read.isKey
    guard let first = read.firstUnit else { return }
    // Only these units, which come before all others, mark the first packet of a frame.
    let isFirst = first == .sequenceParameters || first == .accessUnitDelimiter
    beginning = isFirst ? .certain : .possible
  }
}
