/// Writes encoded frames into a WebM file (Matroska, RFC 9559) as they arrive, so that memory does
/// not grow with the call's length.
///
/// Like `WebMWriter`, it does not use libwebm: a single track needs little code, and libwebm has no
/// C interface.
package struct WebMFile {
  private struct Cluster {
    var begin: Int64
    var blocks: [UInt8] = []
    var beginsWithKey: Bool
  }

  private let file: MediaFile
  private let isVideo: Bool
  private let information: [UInt8]
  private let tracks: [UInt8]
  private var cluster: Cluster?
  /// The times of clusters where players can start, with their positions in the segment.
  private var points: [(time: Int64, position: Int)] = []
  /// The segment's size in bytes.
  private var size = 0
  private var last: Int64 = -1
  /// The number of frames added.
  package private(set) var frameCount = 0

  /// The longest cluster, in milliseconds: a block stores its time as a signed 16-bit offset from
  /// its cluster's time.
  private static let longestCluster: Int64 = 30_000
  private static let usualCluster: Int64 = 5_000
  /// The largest cluster, in bytes: a cluster stays in memory until it is complete.
  private static let largestCluster = 8 << 20

  /// Starts a file.
  ///
  /// - Parameters:
  ///   - preSkip: how many Opus samples at 48 kHz a player skips at the start.
  ///   - configuration: what a video codec needs before its first frame.
  package init(
    _ file: MediaFile, _ content: WebMWriter.Content, preSkip: Int = 0, configuration: [UInt8] = []
  ) throws(MediaFileError) {
    self.file = file
    if case .video = content { isVideo = true } else { isVideo = false }
    // The duration comes last, so that its position is known.
    information = EBML.element(
      [0x15, 0x49, 0xa9, 0x66],
      EBML.element([0x2a, 0xd7, 0xb1], EBML.number(1_000_000))
        + EBML.element([0x4d, 0x80], Array("retake".utf8))
        + EBML.element([0x57, 0x41], Array("retake".utf8))
        + EBML.element([0x44, 0x89], EBML.real(0)))
    tracks = EBML.element(
      [0x16, 0x54, 0xae, 0x6b],
      WebMWriter.entry(content, preSkip: preSkip, configuration: configuration))
    try file.write(WebMWriter.head + EBML.head([0x18, 0x53, 0x80, 0x67], length: 0))
    try put(index(cues: 0) + information + tracks)
  }

  private var segmentOffset: Int { WebMWriter.head.count + 12 }

  /// Returns the positions of the segment's parts (`SeekHead`) in a fixed number of bytes.
  private func index(cues: Int) -> [UInt8] {
    func index(_ length: Int) -> [UInt8] {
      let places: [([UInt8], Int)] = [
        ([0x15, 0x49, 0xa9, 0x66], length),
        ([0x16, 0x54, 0xae, 0x6b], length + information.count),
        ([0x1c, 0x53, 0xbb, 0x6b], cues),
      ]
      let entries = places.flatMap { name, position in
        EBML.element(
          [0x4d, 0xbb],
          EBML.element([0x53, 0xab], name)
            + EBML.element([0x53, 0xac], EBML.wide(UInt64(max(position, 0)))))
      }
      return EBML.element([0x11, 0x4d, 0x9b, 0x74], entries)
    }
    return index(index(0).count)
  }

  private mutating func put(_ bytes: [UInt8]) throws(MediaFileError) {
    try file.write(bytes)
    size += bytes.count
  }

  /// Adds the next frame.
  ///
  /// - Parameter milliseconds: the time since the start of the file; a frame that is not later than
  ///   the previous frame is written 1 ms after it.
  package mutating func add(
    _ frame: [UInt8], at milliseconds: Int64, isKey: Bool
  ) throws(MediaFileError) {
    let at = max(milliseconds, last + 1)
    last = at
    if let open = cluster {
      let age = at - open.begin
      let isDue =
        isKey && age >= (isVideo ? 500 : Self.usualCluster) || age >= Self.longestCluster
        || open.blocks.count >= Self.largestCluster
      if isDue { try close() }
    }
    var open = cluster ?? Cluster(begin: at, beginsWithKey: isKey)
    let time = UInt16(truncatingIfNeeded: at - open.begin)
    open.blocks += EBML.shortHead([0xa3], length: frame.count + 4)
    open.blocks += [0x81, UInt8(time >> 8), UInt8(truncatingIfNeeded: time), isKey ? 0x80 : 0]
    open.blocks += frame
    cluster = open
    frameCount += 1
  }

  private mutating func close() throws(MediaFileError) {
    guard let open = cluster else { return }
    cluster = nil
    if open.beginsWithKey { points.append((open.begin, size)) }
    let time = EBML.element([0xe7], EBML.number(UInt64(max(open.begin, 0))))
    try put(EBML.head([0x1f, 0x43, 0xb6, 0x75], length: time.count + open.blocks.count) + time)
    try put(open.blocks)
  }

  /// Completes the file with the index for seeking and the duration.
  ///
  /// - Parameter milliseconds: how long the last frame lasts.
  package mutating func finish(lastFrame milliseconds: Int64) throws(MediaFileError) {
    try close()
    let cues = size
    let list = points.flatMap { point in
      EBML.element(
        [0xbb],
        EBML.element([0xb3], EBML.number(UInt64(max(point.time, 0))))
          + EBML.element(
            [0xb7],
            EBML.element([0xf7], [1])
              + EBML.element([0xf1], EBML.wide(UInt64(max(point.position, 0))))))
    }
    try put(EBML.element([0x1c, 0x53, 0xbb, 0x6b], list))
    try file.write(
      EBML.head([0x18, 0x53, 0x80, 0x67], length: size), at: WebMWriter.head.count)
    try file.write(index(cues: cues), at: segmentOffset)
    let duration = segmentOffset + index(cues: cues).count + information.count - 8
    try file.write(EBML.real(Double(max(last, 0) + max(milliseconds, 0))), at: duration)
  }
}

/// The data that an AV1 decoder needs before the first frame (AV1 Codec ISO Media File Format
/// Binding, section 2.3), and the conversion of frames to the file format.
package enum AV1File {
  /// Returns `av1C` for a temporal unit with a sequence header; empty if there is none, or if it
  /// uses features that WebRTC never sends.
  package static func configuration(_ unit: [UInt8]) -> [UInt8] {
    guard let header = sequenceHeader(unit) else { return [] }
    let body = header.dropFirst(header.count > 1 && header[header.startIndex + 1] < 0x80 ? 2 : 3)
    guard body.count >= 4 else { return [] }
    var bits = Bits(bytes: Array(body))
    let profile = bits.read(3)
    _ = bits.read(1)
    var (level, tier) = (UInt32(0), UInt32(0))
    if bits.read(1) == 1 {
      level = bits.read(5)
    } else {
      // No encoder for calls writes timing information or decoder operating points.
      guard profile == 0, bits.read(1) == 0 else { return [] }
      _ = bits.read(1)
      _ = bits.read(5)
      _ = bits.read(12)
      level = bits.read(5)
      if level > 7 { tier = bits.read(1) }
    }
    guard profile == 0 else { return [] }
    // 8 bits, colour, both chroma planes halved.
    return [0x81, UInt8(profile << 5 | level), UInt8(tier << 7) | 0x0c, 0] + header
  }

  /// Returns a temporal unit without its delimiter, as Matroska requires.
  package static func withoutDelimiter(_ unit: [UInt8]) -> [UInt8] {
    unit.starts(with: [0x12, 0x00]) ? Array(unit.dropFirst(2)) : unit
  }

  private static func sequenceHeader(_ unit: [UInt8]) -> [UInt8]? {
    var place = 0
    while place < unit.count {
      let head = unit[place]
      var next = place + (head & 4 == 0 ? 1 : 2)
      guard head & 2 != 0 else { return nil }
      var length = 0
      for shift in stride(from: 0, to: 35, by: 7) {
        guard next < unit.count else { return nil }
        length |= Int(unit[next] & 0x7f) << shift
        next += 1
        if unit[next - 1] < 0x80 { break }
      }
      guard length <= unit.count - next else { return nil }
      if head >> 3 & 15 == 1 { return Array(unit[place..<(next + length)]) }
      place = next + length
    }
    return nil
  }

  /// Reads bits, starting with the highest bit of each byte; returns zeros after the end.
  private struct Bits {
    let bytes: [UInt8]
    var place = 0

    mutating func read(_ count: Int) -> UInt32 {
      var value: UInt32 = 0
      for _ in 0..<count {
        let byte = place / 8 < bytes.count ? bytes[place / 8] : 0
        value = value << 1 | UInt32(byte >> UInt8(7 - place % 8) & 1)
        place += 1
      }
      return value
    }
  }
}
