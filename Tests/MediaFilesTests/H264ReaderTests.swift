import Media
import RTP
import Testing
import Wire

@testable import MediaFiles

/// Writes bits, for parameter sets and slices that no encoder would make.
struct BitWriter {
  private(set) var bytes: [UInt8] = []
  private var free = 0

  mutating func bits(_ value: UInt32, _ count: Int) {
    for place in (0..<count).reversed() {
      if free == 0 {
        bytes.append(0)
        free = 8
      }
      free -= 1
      if value >> UInt32(place) & 1 == 1 { bytes[bytes.count - 1] |= 1 << UInt8(free) }
    }
  }

  /// Appends unsigned Exp-Golomb numbers.
  mutating func numbers(_ values: UInt32...) {
    for value in values {
      let length = 32 - (value + 1).leadingZeroBitCount
      bits(0, length - 1)
      bits(value + 1, length)
    }
  }
}

/// NAL units for test streams.
enum H264Units {
  static let start: [UInt8] = [0, 0, 0, 1]
  static let delimiter: [UInt8] = [9, 0x10]
  static let videoFrame: [UInt8] = [0x68, 0xce, 0x3c, 0x80]

  /// Returns a sequence parameter set with a size in macroblocks, and optional timing.
  static func sequence(
    _ profileLevelID: UInt32 = 0x42c01e, columns: UInt32 = 4, rows: UInt32 = 3,
    timing: (ticks: UInt32, perSecond: UInt32)? = nil, isInterlaced: Bool = false,
    number: UInt32 = 0
  ) -> [UInt8] {
    var writer = BitWriter()
    writer.bits(0x67, 8)
    writer.bits(profileLevelID, 24)
    writer.numbers(number)
    if profileLevelID >> 16 == 100 {
      writer.numbers(1, 0, 0)
      writer.bits(0, 1)
      // One scaling matrix that ends early.
      writer.bits(0b11, 2)
      writer.numbers(16)
      writer.bits(0, 7)
    }
    writer.numbers(0, 2, 1)
    writer.bits(0, 1)
    writer.numbers(columns - 1, rows - 1)
    writer.bits(isInterlaced ? 0b00 : 0b1, isInterlaced ? 2 : 1)
    writer.bits(1, 1)
    // Two chroma rows are cropped at the bottom.
    writer.bits(1, 1)
    writer.numbers(0, 0, 0, 2)
    writer.bits(timing == nil ? 0 : 1, 1)
    if let timing {
      writer.bits(0b0000_1, 5)
      writer.bits(timing.ticks, 32)
      writer.bits(timing.perSecond, 32)
      writer.bits(1, 1)
    }
    writer.bits(1, 1)
    return escaped(writer.bytes)
  }

  /// Returns a slice that begins at the macroblock `first`; 0 starts a video frame.
  static func slice(
    isKey: Bool = false, first: UInt32 = 0, type: UInt32 = 0, tag: UInt8 = 0xab
  ) -> [UInt8] {
    var writer = BitWriter()
    writer.bits(isKey ? 0x65 : 0x41, 8)
    writer.numbers(first, isKey ? 2 : type)
    return writer.bytes + [0x80, tag, 0x80]
  }

  static func stream(_ units: [UInt8]...) -> [UInt8] { units.flatMap { start + $0 } }

  private static func escaped(_ unit: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    var zeros = 0
    for byte in unit {
      if zeros >= 2, byte < 4 {
        bytes.append(3)
        zeros = 0
      }
      bytes.append(byte)
      zeros = byte == 0 ? zeros + 1 : 0
    }
    return bytes
  }
}

struct H264ReaderTests {
  private typealias Units = H264Units

  /// Returns all video frames of a stream that is read in pieces.
  private func videoFrames(_ stream: [UInt8], pieces: Int = 1 << 20) throws(H264Error)
    -> [H264AccessUnit]
  {
    var reader = H264Reader()
    var found: [H264AccessUnit] = []
    var rest = stream[...]
    while !rest.isEmpty {
      reader.append(Array(rest.prefix(pieces)).span.bytes)
      rest = rest.dropFirst(pieces)
      while let videoFrame = try reader.next() { found.append(videoFrame) }
    }
    reader.finish()
    while let videoFrame = try reader.next() { found.append(videoFrame) }
    return found
  }

  @Test(arguments: [1, 2, 3, 7, 1000])
  func videoFramesAreCutWhereTheyBegin(pieces: Int) throws {
    let sets = [Units.sequence(), Units.videoFrame]
    let key = Units.slice(isKey: true)
    let stream =
      // A delta frame before the first parameter sets, which the reader skips.
      Units.stream(Units.slice(tag: 9), Units.delimiter, sets[0], sets[1], key)
      // A second slice, then frames with and without other units before them.
      + Units.stream(Units.slice(isKey: true, first: 5, tag: 1), Units.slice(tag: 2))
      + Units.stream([6, 5, 1, 0x80], Units.slice(tag: 3), Units.slice(first: 6, tag: 4))
      + [0, 0, 1] + Units.delimiter + [0, 0, 1] + Units.slice(tag: 5)
      // The next key frame comes long after its parameter sets.
      + [0, 0] + Units.stream(Units.slice(isKey: true, tag: 6), [12, 0xff, 0x80], [10]) + [0, 0]
    let found = try videoFrames(stream, pieces: pieces)
    #expect(found.map(\.isKey) == [true, false, false, false, true])
    #expect(
      found.map(\.bytes) == [
        Units.stream(sets[0], sets[1], key, Units.slice(isKey: true, first: 5, tag: 1)),
        Units.stream(Units.slice(tag: 2)),
        Units.stream([6, 5, 1, 0x80], Units.slice(tag: 3), Units.slice(first: 6, tag: 4)),
        Units.stream(Units.slice(tag: 5)),
        Units.stream(sets[0], sets[1], Units.slice(isKey: true, tag: 6)),
      ])
  }

  @Test func aChangedParameterSetIsSentWithTheNextVideoFrame() throws {
    let other = Units.sequence(columns: 8)
    let found = try videoFrames(
      Units.stream(Units.sequence(), Units.videoFrame, Units.slice(isKey: true))
        + Units.stream(Units.sequence(), Units.slice(tag: 1), other, Units.slice(isKey: true)))
    #expect(found.count == 3)
    #expect(found[1].bytes == Units.stream(Units.slice(tag: 1)))
    #expect(found[2].bytes == Units.stream(other, Units.videoFrame, Units.slice(isKey: true)))
  }

  @Test(arguments: [0x42c01e, 0x64001f] as [UInt32], [false, true])
  func parametersStateSizeAndRate(profile: UInt32, hasTiming: Bool) throws {
    let unit = Units.sequence(
      profile, columns: 20, rows: 12, timing: hasTiming ? (1001, 60_000) : nil, number: 3)
    let read = try H264SequenceParameters(parsing: unit.span.bytes)
    #expect(read.width == 320 && read.height == 188 && !read.isInterlaced && read.number == 3)
    #expect(read.profileLevelIDText == (profile == 0x42c01e ? "42c01e" : "64001f"))
    #expect(read.timing == (hasTiming ? .init(ticksPerSecond: 60_000, ticksPerField: 1001) : nil))
    // Every truncation is rejected without harm.
    for length in 0..<unit.count - (hasTiming ? 1 : 2) {
      #expect(throws: ReadError.self) {
        try H264SequenceParameters(parsing: Array(unit.prefix(length)).span.bytes)
      }
    }
  }

  @Test func unsendableFilesAreReportedInOneSentence() {
    let front = Units.stream(Units.sequence(), Units.videoFrame, Units.slice(isKey: true))
    let cases: [([UInt8], H264Error)] = [
      ([], .noByteStream), (Array("ftypisom".utf8), .noByteStream), ([0, 0, 0], .noByteStream),
      (front + Units.stream(Units.slice(type: 1)), .bidirectional),
      (front + Units.stream(Units.slice(type: 6)), .bidirectional),
      (front + Units.stream(Units.slice(type: 11)), .malformedUnit(3)),
      (front + Units.stream([0x67, 0x42]), .malformedUnit(3)),
      (front + Units.stream([0x68]), .malformedUnit(3)),
      (front + Units.stream([0xe5, 0x88]), .malformedUnit(3)),
      (front + Units.stream([0x65]), .malformedUnit(3)),
      (Units.stream(Units.sequence(isInterlaced: true)), .interlaced),
      (front + Units.start + [UInt8](repeating: 0x41, count: 17 << 20), .tooLarge(3)),
    ]
    for (stream, expected) in cases {
      var told: H264Error?
      do throws(H264Error) { _ = try videoFrames(stream) } catch { told = error }
      #expect(told == expected)
      #expect(!expected.description.contains("\n"))
    }
    let many = (0..<5000).flatMap { _ in Units.stream([6, 1, 0x80]) }
    #expect(throws: H264Error.tooLarge(4099)) { try videoFrames(front + many) }
  }

  @Test func anyBytesEndInVideoFramesOrAnError() {
    let stream = entropy(7)
    let front = Units.stream(
      Units.sequence(0x64001f, timing: (1, 50)), Units.videoFrame, Units.slice(isKey: true),
      Units.slice(), Units.slice(first: 2), Units.delimiter, Units.slice(isKey: true))
    for _ in 0..<3000 {
      var bytes = front
      for _ in 0...stream.integer(below: 4) {
        let place = Int(stream.integer(below: UInt64(bytes.count)))
        switch stream.integer(below: 3) {
        case 0: bytes[place] = stream.byte()
        case 1: bytes.remove(at: place)
        default: bytes.insert(stream.byte(), at: place)
        }
      }
      let found = (try? videoFrames(bytes, pieces: 1 + Int(stream.integer(below: 40)))) ?? []
      #expect(found.allSatisfy { $0.bytes.starts(with: Units.start) })
      #expect(found.first?.isKey ?? true)
    }
  }

  private func entropy(_ seed: UInt8) -> EntropyStream { Entropy(seed: [seed]).stream("h264") }

  // MARK: Sending

  @Test func encodedVideoIsPassedOnFromAKeyFrameOn() throws {
    var capture = StreamCapture(of: .h264, at: .zero + .seconds(1))
    func take(_ stream: [UInt8], _ milliseconds: Int64) -> EncodedFrame? {
      let verdict = capture.accept(stream, at: .zero + .milliseconds(milliseconds))
      guard case .send(let frame) = verdict else {
        #expect(verdict == .useless)
        return nil
      }
      return frame
    }
    #expect(take(Units.stream(Units.slice()), 1000) == nil)
    #expect(take([], 1010) == nil)
    let key = Units.stream(Units.sequence(), Units.videoFrame, Units.slice(isKey: true))
    let first = try #require(take(key, 1100))
    #expect(first.isKey && first.mediaTime == 9000 && first.bytes == key && first.codec == .h264)
    #expect(first.width == 64 && first.height == 44)
    let second = try #require(take(Units.stream(Units.slice()), 1140))
    #expect(!second.isKey && second.mediaTime == 12_600 && second.width == 64)
    #expect(take(Units.stream(Units.delimiter), 1150) == nil)
    #expect(capture.counters.frames == 5 && capture.counters.framesSkipped == 3)
    #expect(capture.counters.framesPerSecond(atMediaTime: 13_000) == 5)
  }
}
