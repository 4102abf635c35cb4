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
  ///   - pictureID: the running number of the picture, 15 bits.
  ///   - limit: the most bytes of a payload.
  ///   - fragments: whether units of H.264 may be cut (packetization mode 1).
  package static func all(
    of frame: EncodedFrame, pictureID: UInt16, limit: Int, fragments: Bool = true
  ) -> [PayloadShare] {
    switch frame.codec {
    case .h264: return h264(frame, limit: limit, fragments: fragments)
    case .vp8:
      return split(frame, limit) { isFirst, _ in .vp8(pictureID: pictureID, isFirst: isFirst) }
    case .vp9:
      return split(frame, limit) { isFirst, isLast in
        .vp9(pictureID: pictureID, isKey: frame.isKey, isFirst: isFirst, isLast: isLast)
      }
    default: return [PayloadShare(prefix: .none, range: 0..<frame.bytes.count)]
    }
  }

  private static func split(
    _ frame: EncodedFrame, _ limit: Int, _ prefix: (Bool, Bool) -> PayloadPrefix
  ) -> [PayloadShare] {
    let split = PayloadSplit(
      length: frame.bytes.count, limit: limit - prefix(true, true).length)
    return (0..<split.count).map { index in
      PayloadShare(prefix: prefix(index == 0, index == split.count - 1), range: split[index])
    }
  }
}

/// What a payload format writes before a share of a frame.
package enum PayloadPrefix: Hashable, Sendable {
  case none
  case vp8(pictureID: UInt16, isFirst: Bool)
  /// In flexible mode, where every picture names the one before it: patterns need not be told.
  case vp9(pictureID: UInt16, isKey: Bool, isFirst: Bool, isLast: Bool)

  /// Of a part of a unit of H.264 (RFC 6184 section 5.8).
  case h264Fragment(unitHeader: UInt8, isFirst: Bool, isLast: Bool)

  /// The length of what stands before a part of a unit.
  static let fragmentLength = 2

  /// How many bytes it has.
  package var length: Int {
    switch self {
    case .none: 0
    case .vp8: 4
    case .vp9(_, let isKey, _, _): isKey ? 3 : 4
    case .h264Fragment: PayloadPrefix.fragmentLength
    }
  }

  /// Writes it.
  package func write(into writer: inout ByteWriter) {
    switch self {
    case .none: break
    case .vp8(let pictureID, let isFirst):
      VP8Descriptor(beginsPartition: isFirst, pictureID: PictureID(pictureID)).write(into: &writer)
    case .vp9(let pictureID, let isKey, let isFirst, let isLast):
      var descriptor = VP9Descriptor()
      descriptor.pictureID = PictureID(pictureID)
      descriptor.isFlexible = true
      descriptor.isInterPredicted = !isKey
      descriptor.beginsFrame = isFirst
      descriptor.endsFrame = isLast
      if !isKey { descriptor.references = [1] }
      descriptor.write(into: &writer)
    case .h264Fragment(let header, let isFirst, let isLast):
      writer.uint8(header & 0xe0 | H264UnitType.fragment.rawValue)
      writer.uint8((isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | header & 0x1f)
    }
  }
}
