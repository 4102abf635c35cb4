import MediaFiles
import Testing

@Suite struct WebMWriterTests {
  /// Parses consecutive elements into identifiers and bodies, with lengths of eight bytes.
  private func elements(_ bytes: ArraySlice<UInt8>) -> [(name: [UInt8], body: ArraySlice<UInt8>)] {
    var found: [(name: [UInt8], body: ArraySlice<UInt8>)] = []
    var rest = bytes
    while let first = rest.first {
      let width = first.leadingZeroBitCount + 1
      let name = Array(rest.prefix(width))
      rest = rest.dropFirst(width)
      guard rest.first == 1 else { break }
      let length = rest.dropFirst().prefix(7).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(8)
      found.append((name, rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    return found
  }

  @Test func aPlayerFindsEachKeyFrameByTheIndex() throws {
    var writer = WebMWriter(.video(codec: "V_VP8", width: 64, height: 48))
    for number in 0..<90 {
      let at: Int64 = Int64(number) * 100
      writer.add([UInt8(number), 1, 2], at: at, isKey: number % 30 == 0)
    }
    let file = writer.file()
    let top = elements(file[...])
    #expect(top.map(\.name) == [[0x1a, 0x45, 0xdf, 0xa3], [0x18, 0x53, 0x80, 0x67]])
    let segment = top[1].body
    let parts = elements(segment)
    #expect(parts.map(\.name[0]) == [0x15, 0x16, 0x1c, 0x1f, 0x1f, 0x1f])
    let points = elements(parts[2].body)
    #expect(points.count == 3)
    for (index, point) in points.enumerated() {
      let place = elements(elements(point.body)[1].body)[1].body
      let position = place.reduce(0) { $0 << 8 | Int($1) }
      #expect(segment.dropFirst(position).starts(with: [0x1f, 0x43, 0xb6, 0x75]), "\(index)")
    }
    let blocks = parts[3...].flatMap { elements($0.body) }.filter { $0.name == [0xa3] }
    #expect(blocks.count == 90)
    #expect(blocks[0].body.elementsEqual([0x81, 0, 0, 0x80, 0, 1, 2]))
    #expect(blocks[1].body.elementsEqual([0x81, 0, 100, 0, 1, 1, 2]))
  }

  @Test func timesNeverGoBack() {
    var writer = WebMWriter(.opus(channels: 2))
    for at in [0, 20, 20, 10, 60_000, 200_000] as [Int64] { writer.add([1], at: at, isKey: true) }
    let segment = elements(writer.file()[...])[1].body
    let clusters = elements(segment).filter { $0.name[0] == 0x1f }
    #expect(clusters.count == 3)
    let times = elements(clusters[0].body).filter { $0.name == [0xa3] }.map { Array($0.body)[2] }
    #expect(times == [0, 20, 21, 22])
  }

  @Test func aFileWithoutFramesIsOne() {
    #expect(elements(WebMWriter(.opus(channels: 1)).file()[...]).count == 2)
    #expect(WebMWriter.videoCodec("h264") == nil && WebMWriter.videoCodec("vp9") == "V_VP9")
  }
}

@Suite struct MP4WriterTests {
  private func boxes(_ bytes: ArraySlice<UInt8>) -> [(kind: String, body: ArraySlice<UInt8>)] {
    var found: [(kind: String, body: ArraySlice<UInt8>)] = []
    var rest = bytes
    while rest.count >= 8 {
      let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      let kind = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
      found.append((kind, rest.prefix(length).dropFirst(8)))
      rest = rest.dropFirst(length)
    }
    return found
  }

  private let key: [UInt8] = [
    0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1f, 9, 0, 0, 0, 1, 0x68, 0xce, 0x3c, 0, 0, 1, 0x65, 7, 7,
  ]

  @Test func eachKeyFrameBeginsAFragment() throws {
    var writer = MP4Writer(width: 64, height: 48)
    for number in 0..<6 as Range<Int64> {
      let isKey = number % 3 == 0
      writer.add(isKey ? key : [0, 0, 0, 1, 0x41, 9], at: number * 40, isKey: isKey)
    }
    let file = try #require(writer.file())
    let top = boxes(file[...])
    #expect(top.map(\.kind) == ["ftyp", "moov", "moof", "mdat", "moof", "mdat"])
    // Start codes are replaced by lengths.
    let unit: [UInt8] = [0, 0, 0, 5, 0x67, 0x42, 0xc0, 0x1f, 9, 0, 0, 0, 3, 0x68, 0xce, 0x3c]
    #expect(top[3].body.starts(with: unit))
    #expect(top[3].body.suffix(6).elementsEqual([0, 0, 0, 2, 0x41, 9]))
    #expect(boxes(top[1].body).map(\.kind) == ["mvhd", "trak", "mvex"])
  }

  @Test func theSizeIsThatOfTheParameterSet() throws {
    // 320x240, as libx264 writes it. Undecoded video has no size, and players reject 0.
    let sequence: [UInt8] = [
      0x67, 0x42, 0xc0, 0x1f, 0xd9, 0x01, 0x41, 0xfa, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 3, 0xc8,
      0xf1, 0x83, 0x24, 0x80,
    ]
    var writer = MP4Writer(width: 0, height: 0)
    writer.add([0, 0, 0, 1] + sequence + key.dropFirst(9), at: 0, isKey: true)
    let file = try #require(writer.file())
    let entry = try #require(file.firstRange(of: Array("avc3".utf8))).upperBound + 24
    #expect(file[entry..<(entry + 4)].elementsEqual([1, 64, 0, 240]))
    let header = try #require(file.firstRange(of: Array("tkhd".utf8))).upperBound + 76
    #expect(file[header..<(header + 8)].elementsEqual([1, 64, 0, 0, 0, 240, 0, 0]))
  }

  @Test func withoutParameterSetsThereIsNoFile() {
    var writer = MP4Writer(width: 64, height: 48)
    writer.add([0, 0, 1, 0x65, 7], at: 0, isKey: true)
    writer.add([], at: 40, isKey: false)
    writer.add([0, 0, 1], at: 80, isKey: false)
    #expect(writer.file() == nil)
  }
}
