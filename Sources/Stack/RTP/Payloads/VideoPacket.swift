import Wire

/// What a packet of a stream of video frames brings to its frame, whatever the codec.
package struct VideoPacket: Hashable, Sendable {
  /// What a packet says about the beginning of a frame.
  package enum Beginning: Hashable, Sendable {
    /// It continues with a frame.
    case no
    /// It may be the first: it is when the packet before it ended a frame.
    case possible
    /// It is the first, unless the packet before it belongs to the same frame.
    case certain
  }

  /// The bytes that it adds to the frame.
  package enum Content: Hashable, Sendable {
    /// A part of the payload.
    case slice(Range<Int>)
    /// What was made of the payload.
    case bytes([UInt8])
  }

  package var beginning = Beginning.no
  /// Whether a decoder can begin with the frame, as far as this packet shows it.
  package var isKey = false
  /// What the frame depends on, where the payload format tells.
  package enum Dependency: Hashable, Sendable {
    /// The temporal layer, and the running number of frames of the lowest; a synchronising frame
    /// depends on that layer alone (RFC 7741 section 4.2, RFC 9628 section 4.2).
    case layer(temporal: UInt8, base: UInt8, isSync: Bool)
    /// How many video frames back those lie that it depends on (RFC 9628 section 4.2).
    case pictures([UInt8])
  }

  /// The running number of the video frame, where the payload format has one.
  package var pictureID: PictureID?
  package var dependency: Dependency?
  package var content: Content

  /// Reads a payload; nil when it is broken, empty, or of a codec that is not for video frames.
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

  /// The frames of a video frame's layers are one frame here: libvpx decodes them one after the
  /// other.
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
    // Who forwards a stream may leave out lower layers that nothing depends on.
    beginning = descriptor.beginsVideoFrame ? .certain : .possible
    guard descriptor.beginsVideoFrame, !descriptor.isInterPredicted else { return }
    isKey = (try? VP9FrameHeader(parsing: reader.rest()))?.isKey ?? false
  }

  init?(h264 payload: RawSpan) {
    guard let read = H264Payload(payload) else { return nil }
    content = .bytes(read.bytes)
    isKey = read.isKey
    guard let first = read.firstUnit else { return }
    // Nothing tells the first packet of a frame but these units, which stand before all others.
    let isFirst = first == .sequenceParameters || first == .accessUnitDelimiter
    beginning = isFirst ? .certain : .possible
  }
}
