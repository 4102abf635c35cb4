package import Wire

/// The payload descriptor of VP8 (RFC 7741 section 4.2).
package struct VP8Descriptor: Hashable, Sendable {
  /// Whether no other frame refers to this one.
  package var isNonReference = false
  /// Whether the packet begins a partition.
  package var beginsPartition = false
  /// The partition that the packet starts or continues.
  package var partition: UInt8 = 0
  package var pictureID: PictureID?
  /// TL0PICIDX: the running number of base layer frames.
  package var baseLayerIndex: UInt8?
  package var temporalLayer: UInt8?
  /// Whether the frame depends only on the base layer.
  package var isLayerSync = false
  /// KEYIDX: the running number of key frames, 5 bits.
  package var keyIndex: UInt8?

  package init(beginsPartition: Bool, pictureID: PictureID?) {
    self.beginsPartition = beginsPartition
    self.pictureID = pictureID
  }

  package var beginsFrame: Bool { beginsPartition && partition == 0 }

  /// Parses a descriptor; the VP8 data follows.
  package init(parsing reader: inout ByteReader) throws(ReadError) {
    let first = try reader.uint8()
    isNonReference = first & 0x20 != 0
    beginsPartition = first & 0x10 != 0
    partition = first & 0x07
    guard first & 0x80 != 0 else { return }
    let fields = try reader.uint8()
    if fields & 0x80 != 0 { pictureID = try PictureID(parsing: &reader) }
    if fields & 0x40 != 0 { baseLayerIndex = try reader.uint8() }
    if fields & 0x30 != 0 {
      let layer = try reader.uint8()
      if fields & 0x20 != 0 {
        temporalLayer = layer >> 6
        isLayerSync = layer & 0x20 != 0
      }
      if fields & 0x10 != 0 { keyIndex = layer & 0x1f }
    }
  }

  /// The length in bytes.
  package var length: Int {
    let fields =
      (pictureID?.length ?? 0) + (baseLayerIndex == nil ? 0 : 1)
      + (temporalLayer == nil && keyIndex == nil ? 0 : 1)
    return fields == 0 ? 1 : 2 + fields
  }

  package func write(into writer: inout ByteWriter) {
    let first: UInt8 =
      (isNonReference ? 0x20 : 0) | (beginsPartition ? 0x10 : 0) | partition & 0x07
    guard length > 1 else {
      writer.uint8(first)
      return
    }
    writer.uint8(first | 0x80)
    writer.uint8(
      (pictureID == nil ? 0 : 0x80) | (baseLayerIndex == nil ? 0 : 0x40)
        | (temporalLayer == nil ? 0 : 0x20) | (keyIndex == nil ? 0 : 0x10))
    pictureID?.write(into: &writer)
    if let baseLayerIndex { writer.uint8(baseLayerIndex) }
    if temporalLayer != nil || keyIndex != nil {
      writer.uint8((temporalLayer ?? 0) << 6 | (isLayerSync ? 0x20 : 0) | (keyIndex ?? 0) & 0x1f)
    }
  }
}

/// The first bytes of a VP8 frame (RFC 6386 section 9.1).
package struct VP8FrameHeader: Hashable, Sendable {
  package var isKey: Bool
  /// The size in pixels; 0 unless it is a key frame.
  package var width: UInt16 = 0
  package var height: UInt16 = 0

  /// Parses the header; the size stays 0 if the bytes end before it.
  package init(parsing bytes: RawSpan) throws(ReadError) {
    var reader = ByteReader(bytes)
    isKey = try reader.uint8() & 1 == 0
    guard isKey, bytes.byteCount >= 10 else { return }
    try reader.skip(2)
    guard try reader.uint24() == 0x9d012a else { throw .malformed }
    width = try reader.uint16().byteSwapped & 0x3fff
    height = try reader.uint16().byteSwapped & 0x3fff
  }
}
