package import Wire

/// The VP8 payload descriptor (RFC 7741 section 4.2).
package struct VP8Descriptor: Hashable, Sendable {
  /// Whether no other frame refers to this one.
  package var isNonReference = false
  package var beginsPartition = false
  /// The index of the packet's partition (PID).
  package var partition: UInt8 = 0
  package var pictureID: PictureID?
  /// TL0PICIDX: counts base layer frames.
  package var baseLayerIndex: UInt8?
  package var temporalLayer: UInt8?
  /// Whether the frame depends only on the base layer.
  package var isLayerSync = false
  /// KEYIDX: counts key frames, 5 bits.
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

  /// The descriptor's length on the wire, in bytes.
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

/// A VP8 frame's first bytes (RFC 6386 section 9.1).
package struct VP8FrameHeader: Hashable, Sendable {
  package var isKey: Bool
  /// The size in pixels; 0 unless the frame is a key frame.
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

// MARK: - VP9Descriptor

/// The VP9 payload descriptor (RFC 9628 section 4.2).
package struct VP9Descriptor: Hashable, Sendable {
  /// The packet's position among the layers of its frame.
  package struct Layer: Hashable, Sendable {
    /// The temporal layer, 0 to 7.
    package var temporal: UInt8
    /// Whether a receiver may switch up to higher temporal layers here.
    package var isSwitchingPoint = false
    /// The spatial layer, 0 to 7.
    package var spatial: UInt8
    /// Whether the layer is predicted from the next lower layer in the same frame.
    package var isInterLayerPredicted = false

    package init(temporal: UInt8, spatial: UInt8) {
      self.temporal = temporal
      self.spatial = spatial
    }
  }

  /// Whether the frame depends on earlier frames.
  package var isInterPredicted = false
  /// Whether packets name the frames they depend on instead of following a fixed pattern.
  package var isFlexible = false
  /// Whether the packet starts a layer frame.
  package var beginsFrame = false
  /// Whether the packet ends a layer frame.
  package var endsFrame = false
  /// Whether higher spatial layers do not depend on this one.
  package var isNotReferenced = false
  package var pictureID: PictureID?
  package var layer: Layer?
  /// TL0PICIDX; only in non-flexible mode.
  package var baseLayerIndex: UInt8?
  /// The distances back to the frames that this one depends on: at most three, 7 bits each.
  package var references: [UInt8] = []
  /// The layers and the frame pattern; present in packets that start a key frame.
  package var structure: VP9ScalabilityStructure?

  package init() {}

  /// Whether the packet starts a picture, that is, whether it is the first packet of the lowest
  /// spatial layer.
  package var beginsVideoFrame: Bool { beginsFrame && (layer?.spatial ?? 0) == 0 }

  /// Parses a descriptor; the VP9 data follows.
  package init(parsing reader: inout ByteReader) throws(ReadError) {
    let first = try reader.uint8()
    isInterPredicted = first & 0x40 != 0
    isFlexible = first & 0x10 != 0
    beginsFrame = first & 0x08 != 0
    endsFrame = first & 0x04 != 0
    isNotReferenced = first & 0x01 != 0
    if first & 0x80 != 0 { pictureID = try PictureID(parsing: &reader) }
    if first & 0x20 != 0 {
      let indices = try reader.uint8()
      var layer = Layer(temporal: indices >> 5, spatial: indices >> 1 & 7)
      layer.isSwitchingPoint = indices & 0x10 != 0
      layer.isInterLayerPredicted = indices & 0x01 != 0
      self.layer = layer
      if !isFlexible { baseLayerIndex = try reader.uint8() }
    }
    if isFlexible, isInterPredicted {
      var isLast = false
      while !isLast {
        guard references.count < 3 else { throw .malformed }
        let reference = try reader.uint8()
        references.append(reference >> 1)
        isLast = reference & 1 == 0
      }
    }
    if first & 0x02 != 0 { structure = try VP9ScalabilityStructure(parsing: &reader) }
  }

  /// The descriptor's length on the wire, in bytes.
  package var length: Int {
    1 + (pictureID?.length ?? 0) + (layer == nil ? 0 : isFlexible ? 1 : 2)
      + (isFlexible && isInterPredicted ? max(1, references.count) : 0) + (structure?.length ?? 0)
  }

  package func write(into writer: inout ByteWriter) {
    let predicted: UInt8 = (isInterPredicted ? 0x40 : 0) | (isFlexible ? 0x10 : 0)
    let frame: UInt8 = (beginsFrame ? 0x08 : 0) | (endsFrame ? 0x04 : 0)
    let fields: UInt8 =
      (pictureID == nil ? 0 : 0x80) | (layer == nil ? 0 : 0x20) | (structure == nil ? 0 : 0x02)
    writer.uint8(predicted | frame | fields | (isNotReferenced ? 0x01 : 0))
    pictureID?.write(into: &writer)
    if let layer {
      writer.uint8(
        layer.temporal << 5 | (layer.isSwitchingPoint ? 0x10 : 0) | (layer.spatial & 7) << 1
          | (layer.isInterLayerPredicted ? 1 : 0))
      if !isFlexible { writer.uint8(baseLayerIndex ?? 0) }
    }
    if isFlexible, isInterPredicted {
      let references = references.isEmpty ? [1] : references
      for (index, reference) in references.enumerated() {
        writer.uint8(reference << 1 | (index < references.count - 1 ? 1 : 0))
      }
    }
    structure?.write(into: &writer)
  }
}

/// A stream's spatial layers and frame pattern (RFC 9628 section 4.2.1).
package struct VP9ScalabilityStructure: Hashable, Sendable {
  /// A frame in the pattern.
  package struct GroupPicture: Hashable, Sendable {
    package var temporal: UInt8
    package var isSwitchingPoint: Bool
    /// The distances back to the pictures that this one depends on: at most three.
    package var references: [UInt8]

    package init(temporal: UInt8, isSwitchingPoint: Bool, references: [UInt8]) {
      self.temporal = temporal
      self.isSwitchingPoint = isSwitchingPoint
      self.references = references
    }
  }

  /// The number of spatial layers, 1 to 8.
  package var layerCount: Int
  /// Each layer's size, if present.
  package var sizes: [(width: UInt16, height: UInt16)] = []
  /// The pattern's frames, at most 255; nil if there is no pattern.
  package var group: [GroupPicture]?

  package init(layerCount: Int) { self.layerCount = layerCount }

  init(parsing reader: inout ByteReader) throws(ReadError) {
    let first = try reader.uint8()
    layerCount = Int(first >> 5) + 1
    if first & 0x10 != 0 {
      for _ in 0..<layerCount { sizes.append((try reader.uint16(), try reader.uint16())) }
    }
    guard first & 0x08 != 0 else { return }
    var videoFrames: [GroupPicture] = []
    for _ in 0..<(try reader.uint8()) {
      let videoFrame = try reader.uint8()
      var references: [UInt8] = []
      for _ in 0..<(videoFrame >> 2 & 3) { references.append(try reader.uint8()) }
      videoFrames.append(
        GroupPicture(
          temporal: videoFrame >> 5, isSwitchingPoint: videoFrame & 0x10 != 0,
          references: references))
    }
    group = videoFrames
  }

  var length: Int {
    1 + (sizes.isEmpty ? 0 : 4 * layerCount)
      + (group.map { $0.reduce(1) { $0 + 1 + $1.references.count } } ?? 0)
  }

  func write(into writer: inout ByteWriter) {
    writer.uint8(
      UInt8(truncatingIfNeeded: layerCount - 1) << 5 | (sizes.isEmpty ? 0 : 0x10)
        | (group == nil ? 0 : 0x08))
    for size in sizes.prefix(layerCount) {
      writer.uint16(size.width)
      writer.uint16(size.height)
    }
    guard let group else { return }
    writer.uint8(UInt8(truncatingIfNeeded: group.count))
    for videoFrame in group {
      writer.uint8(
        videoFrame.temporal << 5 | (videoFrame.isSwitchingPoint ? 0x10 : 0)
          | UInt8(truncatingIfNeeded: videoFrame.references.count & 3) << 2)
      for reference in videoFrame.references.prefix(3) { writer.uint8(reference) }
    }
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.layerCount == right.layerCount && left.group == right.group
      && left.sizes.elementsEqual(right.sizes, by: ==)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(layerCount)
    hasher.combine(group)
  }
}

// MARK: - VP9FrameHeader

/// A VP9 frame's first bytes (VP9 bitstream specification section 6.2).
package struct VP9FrameHeader: Hashable, Sendable {
  /// Whether a decoder can start here.
  package var isKey = false
  /// Whether nothing is coded and an earlier frame is shown again (show_existing_frame).
  package var showsExisting = false
  /// The size in pixels; 0 if it is inherited from an earlier frame.
  package var width = 0
  package var height = 0

  /// Parses the header up to the size.
  package init(parsing bytes: RawSpan) throws(ReadError) {
    var reader = BitReader(bytes)
    guard try reader.bits(2) == 2 else { throw .malformed }
    let profile = (try reader.bits(1)) | (try reader.bits(1)) << 1
    if profile == 3, try reader.flag() { throw .malformed }
    showsExisting = try reader.flag()
    if showsExisting { return }
    isKey = try !reader.flag()
    let isShown = try reader.flag()
    let isErrorResilient = try reader.flag()
    if isKey {
      try reader.readSyncCode()
      try reader.skipColour(profile: profile)
      (width, height) = try reader.size()
      return
    }
    let isIntra = isShown ? false : try reader.flag()
    if !isErrorResilient { try reader.skip(2) }  // reset_frame_context
    if isIntra {
      try reader.readSyncCode()
      if profile > 0 { try reader.skipColour(profile: profile) }
      try reader.skip(8)  // refresh_frame_flags
      (width, height) = try reader.size()
      return
    }
    try reader.skip(8 + 3 * 4)  // refresh_frame_flags and the reference frames
    for _ in 0..<3 where try reader.flag() { return }
    (width, height) = try reader.size()
  }
}

extension BitReader {
  fileprivate mutating func readSyncCode() throws(ReadError) {
    guard try bits(24) == 0x49_8342 else { throw .malformed }
  }

  /// Skips depth, colour space, range and sampling (section 6.2.2).
  fileprivate mutating func skipColour(profile: UInt32) throws(ReadError) {
    if profile >= 2 { try skip(1) }
    let isRGB = try bits(3) == 7
    if isRGB {
      // Only 4:4:4 profiles allow RGB.
      guard profile & 1 == 1 else { throw .malformed }
      try skip(1)
    } else {
      try skip(profile & 1 == 1 ? 4 : 1)
    }
  }

  fileprivate mutating func size() throws(ReadError) -> (width: Int, height: Int) {
    (Int(try bits(16)) + 1, Int(try bits(16)) + 1)
  }
}
