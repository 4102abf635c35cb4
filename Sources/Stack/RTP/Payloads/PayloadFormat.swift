package import Wire

/// The rules by which a codec's frames are split into packets and reassembled.
package struct PayloadFormat: Sendable {
  /// A frame to packetize, with the values that payload descriptors need.
  package struct Frame: Hashable, Sendable {
    package var frame: EncodedFrame
    /// The picture ID, 15 bits.
    package var pictureID: UInt16
    /// The TL0PICIDX: the number of the last base layer frame.
    package var baseIndex: UInt8
    /// The largest payload in bytes.
    package var limit: Int
    /// Whether H.264 units may be fragmented (packetization mode 1).
    package var fragments: Bool

    package init(
      _ frame: EncodedFrame, pictureID: UInt16, baseIndex: UInt8 = 0, limit: Int,
      fragments: Bool = true
    ) {
      self.frame = frame
      self.pictureID = pictureID
      self.baseIndex = baseIndex
      self.limit = limit
      self.fragments = fragments
    }
  }

  /// Reassembles a frame from its packets, in order.
  package typealias Join = @Sendable (_ packets: [ArraySlice<UInt8>]) -> [UInt8]

  /// Packetizes a frame; empty if it cannot be sent in packets of this size.
  package var split: @Sendable (Frame) -> [PayloadShare]
  /// Parses a video payload; nil if it is malformed, empty, or audio.
  package var read: @Sendable (RawSpan) -> VideoPacket?
  /// Joins packets; nil if a frame is the plain concatenation of its packets.
  package var join: Join?

  package init(
    split: @escaping @Sendable (Frame) -> [PayloadShare],
    read: @escaping @Sendable (RawSpan) -> VideoPacket?, join: Join? = nil
  ) {
    self.split = split
    self.read = read
    self.join = join
  }

  /// One audio frame per packet (RFC 7587 section 4.2).
  static let whole = PayloadFormat(
    split: { [PayloadShare(prefix: .none, range: 0..<$0.frame.bytes.count)] }, read: { _ in nil })

  /// VP8 (RFC 7741).
  static let vp8 = PayloadFormat(
    split: { frame in
      frame.split { isFirst, _ in
        .vp8(
          pictureID: frame.pictureID, isFirst: isFirst,
          temporal: frame.frame.temporal.map { ($0, frame.baseIndex) })
      }
    },
    read: { VideoPacket(vp8: $0) })

  /// VP9 (RFC 9628), in flexible mode.
  static let vp9 = PayloadFormat(
    split: { frame in
      frame.split { isFirst, isLast in
        .vp9(
          pictureID: frame.pictureID, isKey: frame.frame.isKey, isFirst: isFirst, isLast: isLast)
      }
    },
    read: { VideoPacket(vp9: $0) })

  /// H.264 (RFC 6184).
  static let h264 = PayloadFormat(
    split: { PayloadShare.h264($0.frame, limit: $0.limit, fragments: $0.fragments) },
    read: { VideoPacket(h264: $0) })
}

extension PayloadFormat.Frame {
  /// Splits the frame into nearly equal parts, each with its prefix.
  fileprivate func split(_ prefix: (_ isFirst: Bool, _ isLast: Bool) -> PayloadPrefix)
    -> [PayloadShare]
  {
    let split = PayloadSplit(length: frame.bytes.count, limit: limit - prefix(true, true).length)
    return (0..<split.count).map { index in
      PayloadShare(prefix: prefix(index == 0, index == split.count - 1), range: split[index])
    }
  }
}

// MARK: - PayloadShare

/// One packet's share of a frame: a payload descriptor and a range of the frame's bytes.
package struct PayloadShare: Hashable, Sendable {
  package var prefix: PayloadPrefix
  package var range: Range<Int>

  package init(prefix: PayloadPrefix, range: Range<Int>) {
    self.prefix = prefix
    self.range = range
  }

  /// Packetizes a frame; empty if it cannot be sent in packets of this size.
  /// - Parameters:
  ///   - pictureID: 15 bits.
  ///   - baseIndex: the TL0PICIDX.
  ///   - limit: the largest payload in bytes.
  ///   - fragments: whether H.264 units may be fragmented (packetization mode 1).
  package static func all(
    of frame: EncodedFrame, pictureID: UInt16, baseIndex: UInt8 = 0, limit: Int,
    fragments: Bool = true
  ) -> [PayloadShare] {
    let format = frame.codec.payloadFormat ?? .whole
    return format.split(
      PayloadFormat.Frame(
        frame, pictureID: pictureID, baseIndex: baseIndex, limit: limit, fragments: fragments))
  }
}

/// The bytes that a payload format puts before a share of a frame.
package struct PayloadPrefix: Hashable, Sendable {
  /// The prefix's length in bytes; 0 if the payload is only the share itself.
  package private(set) var length = 0
  /// Up to eight bytes in one word, first byte lowest, to save an allocation per packet.
  private var few: UInt64 = 0
  /// The bytes if there are more than eight.
  private var many: [UInt8] = []

  private static let fewMaximum = 8

  package init(_ bytes: [UInt8]) {
    length = bytes.count
    guard length <= PayloadPrefix.fewMaximum else {
      many = bytes
      return
    }
    for byte in bytes.reversed() { few = few << 8 | UInt64(byte) }
  }

  private init(_ write: (inout ByteWriter) -> Void) {
    var writer = ByteWriter(capacity: PayloadPrefix.fewMaximum)
    write(&writer)
    self.init(writer.bytes)
  }

  package func write(into writer: inout ByteWriter) {
    guard many.isEmpty else { return writer.append(many) }
    var rest = few
    for _ in 0..<length {
      writer.uint8(UInt8(truncatingIfNeeded: rest))
      rest >>= 8
    }
  }

  package static let none = PayloadPrefix([])

  static func vp8(
    pictureID: UInt16, isFirst: Bool, temporal: (layer: TemporalLayer, baseIndex: UInt8)?
  ) -> PayloadPrefix {
    var descriptor = VP8Descriptor(beginsPartition: isFirst, pictureID: PictureID(pictureID))
    if let temporal {
      descriptor.isNonReference = !temporal.layer.isReference
      descriptor.baseLayerIndex = temporal.baseIndex
      descriptor.temporalLayer = temporal.layer.id
      descriptor.isLayerSync = temporal.layer.isSync
    }
    return PayloadPrefix { descriptor.write(into: &$0) }
  }

  /// Returns a VP9 descriptor in flexible mode: every frame but a key frame names the previous
  /// frame, so no pattern has to be signaled.
  static func vp9(pictureID: UInt16, isKey: Bool, isFirst: Bool, isLast: Bool) -> PayloadPrefix {
    var descriptor = VP9Descriptor()
    descriptor.pictureID = PictureID(pictureID)
    descriptor.isFlexible = true
    descriptor.isInterPredicted = !isKey
    descriptor.beginsFrame = isFirst
    descriptor.endsFrame = isLast
    if !isKey { descriptor.references = [1] }
    return PayloadPrefix { descriptor.write(into: &$0) }
  }

  /// Returns an FU-A fragment's header (RFC 6184 section 5.8).
  static func h264Fragment(unitHeader: UInt8, isFirst: Bool, isLast: Bool) -> PayloadPrefix {
    PayloadPrefix([
      unitHeader & 0xe0 | H264UnitType.fragment.rawValue,
      (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | unitHeader & 0x1f,
    ])
  }

  static let fragmentLength = 2
}

/// Splits a frame's bytes into packets of nearly equal size.
///
/// With equal sizes, no small last packet overtakes the others.
package struct PayloadSplit: Hashable, Sendable {
  /// The length of the frame in bytes.
  package let length: Int
  /// The number of packets; 0 for an empty frame.
  package let count: Int

  /// Splits `length` bytes into the fewest parts of at most `limit` bytes.
  package init(length: Int, limit: Int) {
    self.length = max(0, length)
    let limit = max(1, limit)
    count = self.length / limit + (self.length % limit == 0 ? 0 : 1)
  }

  package subscript(part: Int) -> Range<Int> {
    let small = count == 0 ? 0 : length / count
    let larger = length - small * count
    let start = part * small + min(part, larger)
    return start..<start + small + (part < larger ? 1 : 0)
  }
}

// MARK: - VideoPacket

/// What a packet contributes to its frame, whatever the codec.
package struct VideoPacket: Hashable, Sendable {
  /// Whether a packet is the first of its frame.
  package enum Beginning: Hashable, Sendable {
    /// The packet continues a frame.
    case no
    /// The packet is the first if the previous one ended a frame.
    case possible
    /// The packet begins a frame even if the previous packet is missing.
    ///
    /// Several packets in a row may be marked so; then only the first of them begins the frame.
    case certain
  }

  /// The bytes a packet adds to its frame.
  package enum Content: Hashable, Sendable {
    /// This range of the payload, unchanged.
    case slice(Range<Int>)
    /// Bytes converted from the payload.
    case bytes([UInt8])
  }

  package var beginning = Beginning.no
  /// Whether this packet shows that a decoder can start with its frame.
  package var isKey = false
  /// The frames on which the packet's frame depends, according to the payload descriptor.
  package enum Dependency: Hashable, Sendable {
    /// Temporal layer and TL0PICIDX; a sync frame depends only on the base layer (RFC 7741
    /// section 4.2, RFC 9628 section 4.2).
    case layer(temporal: UInt8, base: UInt8, isSync: Bool)
    /// The distances back to these frames (RFC 9628 section 4.2).
    case pictures([UInt8])
  }

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

  /// Parses a VP9 payload, or fails if it is malformed; all layers of a picture form one frame,
  /// because libvpx decodes them in turn.
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
    // A picture may lack its lower layers: an SFU may drop layers that no other layer depends on.
    beginning = descriptor.beginsVideoFrame ? .certain : .possible
    guard descriptor.beginsVideoFrame, !descriptor.isInterPredicted else { return }
    isKey = (try? VP9FrameHeader(parsing: reader.rest()))?.isKey ?? false
  }

  init?(h264 payload: RawSpan) {
    guard let read = H264Payload(payload) else { return nil }
    content = .bytes(read.bytes)
    isKey = read.isKey
    guard let first = read.firstUnit else { return }
    // These units precede all others in a frame, so they prove that the packet is the first one.
    let isFirst = first == .sequenceParameters || first == .accessUnitDelimiter
    beginning = isFirst ? .certain : .possible
  }
}

/// A picture ID, which has the same form in VP8 and VP9 (RFC 7741 section 4.2, RFC 9628
/// section 4.2).
package struct PictureID: Hashable, Sendable {
  package var number: UInt16
  /// Whether the number has 15 bits instead of 7.
  package var isLong: Bool

  package init(_ number: UInt16, isLong: Bool = true) {
    self.number = number
    self.isLong = isLong
  }

  /// The length on the wire, in bytes.
  package var length: Int { isLong ? 2 : 1 }

  /// Returns whether the frame directly follows `other`, across wrap-arounds.
  package func follows(_ other: PictureID) -> Bool {
    let mask: UInt16 = isLong ? 0x7fff : 0x7f
    return number & mask == (other.number &+ 1) & mask
  }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    let high = try reader.uint8()
    isLong = high & 0x80 != 0
    number = UInt16(high & 0x7f)
    if isLong { number = number << 8 | UInt16(try reader.uint8()) }
  }

  func write(into writer: inout ByteWriter) {
    if isLong {
      writer.uint16(number | 0x8000)
    } else {
      writer.uint8(UInt8(truncatingIfNeeded: number) & 0x7f)
    }
  }
}
