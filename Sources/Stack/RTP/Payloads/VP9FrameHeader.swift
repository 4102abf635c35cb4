package import Wire

/// What the first bytes of a VP9 frame say about it (VP9 bitstream specification section 6.2).
package struct VP9FrameHeader: Hashable, Sendable {
  /// Whether a decoder can begin here.
  package var isKey = false
  /// Whether nothing is coded, but an earlier video frame is to be shown again.
  package var showsExisting = false
  /// The video frame's size in pixels; 0 if it is that of an earlier video frame.
  package var width = 0
  package var height = 0

  /// Reads the header at the front of a frame up to the size.
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
    if !isErrorResilient { try reader.skip(2) }  // what becomes of the contexts
    if isIntra {
      try reader.readSyncCode()
      if profile > 0 { try reader.skipColour(profile: profile) }
      try reader.skip(8)  // the references that it replaces
      (width, height) = try reader.size()
      return
    }
    try reader.skip(8 + 3 * 4)  // the references that it replaces, and those that it uses
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
      // Only profiles with all chroma samples know RGB.
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
