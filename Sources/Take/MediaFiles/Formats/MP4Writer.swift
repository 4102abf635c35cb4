import RTP

/// Writes encoded H.264 video frames into a fragmented MP4 file (ISO/IEC 14496-12 and -15), one
/// fragment from each key frame to the next.
package struct MP4Writer {
  /// An encoded frame: NAL units, each preceded by its length.
  private struct Sample {
    var at: Int64
    var bytes: [UInt8]
    var isKey: Bool
  }

  private var width: Int
  private var height: Int
  private var samples: [Sample] = []
  private var parameters: (sequence: [UInt8], picture: [UInt8])?

  /// - Parameters:
  ///   - width: the width to use if the sequence parameter set states none.
  ///   - height: the height to use in that case.
  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Adds the next video frame, a byte stream with start codes (H.264 annex B).
  ///
  /// - Parameter milliseconds: the time since the start of the file; a video frame that is not
  ///   later than the previous frame is written 1 ms after it.
  package mutating func add(_ videoFrame: [UInt8], at milliseconds: Int64, isKey: Bool) {
    let at = max(milliseconds, (samples.last?.at ?? -1) + 1)
    var bytes: [UInt8] = []
    for unit in Self.units(of: videoFrame) {
      let kind = (unit.first ?? 0) & 31
      if parameters == nil || parameters?.picture.isEmpty == true {
        if kind == 7 { begin(Array(unit)) }
        if kind == 8 { parameters?.picture = Array(unit) }
      }
      bytes += Self.number(UInt32(clamping: unit.count)) + unit
    }
    samples.append(Sample(at: at, bytes: bytes, isKey: isKey))
  }

  private mutating func begin(_ sequence: [UInt8]) {
    parameters = (sequence, [])
    guard let set = try? H264SequenceParameters(parsing: sequence.span.bytes), set.width > 0 else {
      return
    }
    (width, height) = (set.width, set.height)
  }

  /// Returns the NAL units between start codes.
  private static func units(of stream: [UInt8]) -> [ArraySlice<UInt8>] {
    var found: [ArraySlice<UInt8>] = []
    var begin: Int?
    var zeros = 0
    for (index, byte) in stream.enumerated() {
      if byte == 1, zeros >= 2 {
        if let begin, begin < index - zeros { found.append(stream[begin..<(index - zeros)]) }
        begin = index + 1
      }
      zeros = byte == 0 ? zeros + 1 : 0
    }
    if let begin, begin < stream.count { found.append(stream[begin...]) }
    return found
  }

  /// Returns the complete file; nil if there are no parameter sets, which a decoder needs.
  package func file() -> [UInt8]? {
    guard let parameters, parameters.sequence.count >= 4, !parameters.picture.isEmpty else {
      return nil
    }
    let kind = Array("iso5".utf8) + Self.number(512) + Array("iso5iso6mp41".utf8)
    var file = Self.box("ftyp", kind)
    file += movie(parameters)
    for (number, range) in fragments.enumerated() { file += fragment(number + 1, range) }
    return file
  }

  private var fragments: [Range<Int>] {
    var ranges: [Range<Int>] = []
    for index in samples.indices {
      if let last = ranges.last, !samples[index].isKey || last.isEmpty {
        ranges[ranges.count - 1] = last.lowerBound..<(index + 1)
      } else {
        ranges.append(index..<(index + 1))
      }
    }
    return ranges
  }

  // MARK: Boxes

  private func movie(_ parameters: (sequence: [UInt8], picture: [UInt8])) -> [UInt8] {
    let duration = UInt32(clamping: (samples.last?.at ?? 0) + 40)
    let header =
      Self.full(0, 0)
      + Self.number(0) + Self.number(0) + Self.number(1000) + Self.number(duration)
      + Self.number(0x0001_0000) + [1, 0, 0, 0] + Self.zeros(8) + Self.matrix + Self.zeros(24)
      + Self.number(2)
    let extends = Self.box(
      "mvex",
      Self.box("mehd", Self.full(0, 0) + Self.number(duration))
        + Self.box(
          "trex",
          Self.full(0, 0) + Self.number(1) + Self.number(1) + Self.zeros(12)))
    return Self.box("moov", Self.box("mvhd", header) + track(duration, parameters) + extends)
  }

  private func track(_ duration: UInt32, _ parameters: (sequence: [UInt8], picture: [UInt8]))
    -> [UInt8]
  {
    let header =
      Self.full(0, 7)
      + Self.number(0) + Self.number(0) + Self.number(1) + Self.zeros(4) + Self.number(duration)
      + Self.zeros(16) + Self.matrix
      + Self.number(UInt32(clamping: width) << 16) + Self.number(UInt32(clamping: height) << 16)
    let media =
      Self.full(0, 0)
      + Self.number(0) + Self.number(0) + Self.number(1000) + Self.number(duration)
      + [0x55, 0xc4, 0, 0]
    let handler = Self.full(0, 0) + Self.zeros(4) + Array("vide".utf8) + Self.zeros(13)
    let reference = Self.box(
      "dref", Self.full(0, 0) + Self.number(1) + Self.box("url ", Self.full(0, 1)))
    let empty = Self.full(0, 0) + Self.number(0)
    let table = Self.box(
      "stbl",
      Self.box("stsd", Self.full(0, 0) + Self.number(1) + entry(parameters))
        + Self.box("stts", empty) + Self.box("stsc", empty)
        + Self.box("stsz", Self.full(0, 0) + Self.zeros(8)) + Self.box("stco", empty))
    let information = Self.box(
      "minf",
      Self.box("vmhd", Self.full(0, 1) + Self.zeros(8)) + Self.box("dinf", reference) + table)
    return Self.box(
      "trak",
      Self.box("tkhd", header)
        + Self.box(
          "mdia", Self.box("mdhd", media) + Self.box("hdlr", handler) + information))
  }

  /// Returns the sample entry, which is of type `avc3` so that the samples may contain further
  /// parameter sets, for example when the size changes.
  private func entry(_ parameters: (sequence: [UInt8], picture: [UInt8])) -> [UInt8] {
    let (sequence, picture) = parameters
    let configuration: [UInt8] =
      [1, sequence[1], sequence[2], sequence[3], 0xff, 0xe1] + Self.short(sequence.count)
      + sequence + [1] + Self.short(picture.count) + picture
    return Self.box(
      "avc3",
      Self.zeros(6) + Self.short(1) + Self.zeros(16) + Self.short(width) + Self.short(height)
        + Self.number(0x0048_0000) + Self.number(0x0048_0000) + Self.zeros(4) + Self.short(1)
        + Self.zeros(32) + Self.short(24) + [0xff, 0xff] + Self.box("avcC", configuration))
  }

  private func fragment(_ number: Int, _ range: Range<Int>) -> [UInt8] {
    var entries: [UInt8] = []
    for index in range {
      let next = index + 1 < samples.count ? samples[index + 1].at : samples[index].at + 40
      entries += Self.number(UInt32(clamping: next - samples[index].at))
      entries += Self.number(UInt32(clamping: samples[index].bytes.count))
      entries += Self.number(samples[index].isKey ? 0x0200_0000 : 0x0101_0000)
    }
    func boxes(offset: UInt32) -> [UInt8] {
      let run =
        Self.full(0, 0x701) + Self.number(UInt32(clamping: range.count))
        + Self.number(offset) + entries
      return Self.box(
        "moof",
        Self.box("mfhd", Self.full(0, 0) + Self.number(UInt32(clamping: number)))
          + Self.box(
            "traf",
            Self.box("tfhd", Self.full(0, 0x02_0000) + Self.number(1))
              + Self.box(
                "tfdt",
                Self.full(1, 0)
                  + Self.long(UInt64(max(samples[range.lowerBound].at, 0))))
              + Self.box("trun", run)))
    }
    // The samples begin after the next box's header.
    let length = boxes(offset: 0).count
    let data = range.flatMap { samples[$0].bytes }
    return boxes(offset: UInt32(clamping: length + 8)) + Self.box("mdat", data)
  }

  private static func box(_ kind: String, _ body: [UInt8]) -> [UInt8] {
    number(UInt32(clamping: body.count + 8)) + kind.utf8 + body
  }

  private static func full(_ version: UInt8, _ flags: UInt32) -> [UInt8] {
    [version] + number(flags).dropFirst()
  }

  private static let matrix =
    number(0x0001_0000) + zeros(12) + number(0x0001_0000) + zeros(12) + number(0x4000_0000)

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  private static func short(_ value: Int) -> [UInt8] {
    let value = UInt16(clamping: value)
    return [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)]
  }

  private static func number(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  private static func long(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }
}
