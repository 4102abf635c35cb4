package import Wire

/// One packet's share of a frame: what the payload format writes before it, and which bytes of the
/// frame it has.
package struct PayloadShare: Hashable, Sendable {
  package var prefix: PayloadPrefix
  package var range: Range<Int>

  package init(prefix: PayloadPrefix, range: Range<Int>) {
    self.prefix = prefix
    self.range = range
  }

  /// Cuts a frame into shares; none when it cannot be sent in packets of this size.
  ///
  /// - Parameters:
  ///   - pictureID: the running number of the video frame, 15 bits.
  ///   - baseIndex: the running number of video frames of the temporal base layer.
  ///   - limit: the most bytes of a payload.
  ///   - fragments: whether units of H.264 may be cut (packetization mode 1).
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

/// What a payload format writes before a share of a frame.
package struct PayloadPrefix: Hashable, Sendable {
  /// How many bytes it has.
  package private(set) var length = 0
  /// The bytes where they are few, which saves every packet an allocation; the first is the lowest.
  private var few: UInt64 = 0
  /// The bytes where they are more.
  private var many: [UInt8] = []

  private static let fewMaximum = 8

  /// Takes bytes as they are.
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

  /// Writes it.
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

  /// In flexible mode, where every video frame names the one before it: patterns need not be told.
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

  /// Of a part of a unit of H.264 (RFC 6184 section 5.8).
  static func h264Fragment(unitHeader: UInt8, isFirst: Bool, isLast: Bool) -> PayloadPrefix {
    PayloadPrefix([
      unitHeader & 0xe0 | H264UnitType.fragment.rawValue,
      (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | unitHeader & 0x1f,
    ])
  }

  /// The length of what stands before a part of a unit.
  static let fragmentLength = 2
}
