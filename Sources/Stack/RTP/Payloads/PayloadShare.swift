package import Wire

/// One packet's share of a frame: the payload descriptor and a range of the frame's bytes.
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
  ///   - fragments: whether units of H.264 may be fragmented (packetization mode 1).
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
  /// The length in bytes.
  package private(set) var length = 0
  /// Up to eight bytes in one word, the first in the low byte, to save an allocation per packet.
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

  /// Flexible mode: every frame names the one before it, so no pattern has to be signaled.
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

  /// The header of an FU-A fragment (RFC 6184 section 5.8).
  static func h264Fragment(unitHeader: UInt8, isFirst: Bool, isLast: Bool) -> PayloadPrefix {
    PayloadPrefix([
      unitHeader & 0xe0 | H264UnitType.fragment.rawValue,
      (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | unitHeader & 0x1f,
    ])
  }

  static let fragmentLength = 2
}
