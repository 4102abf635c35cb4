package import Wire

/// The first bytes of a VP9 frame (VP9 bitstream specification section 6.2).
package struct VP9FrameHeader: Hashable, Sendable {
  /// Whether a decoder can start here.
  package var isKey = false
  /// show_existing_frame: nothing is coded, an earlier frame is shown again.
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

  /// Section 6.2.2: depth, colour space, range and sampling.
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
