import Media
import Peer
import Testing
import Wire

@testable import Tape

/// Captured video frames are compressed losslessly.
struct ContentCodingTests {
  private func noise(_ width: Int, _ height: Int) -> [UInt8] {
    (0..<I420Buffer.byteCount(width: width, height: height)).map {
      UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 11)
    }
  }

  @Test(arguments: [(1, 1), (2, 1), (1, 7), (17, 9), (64, 48), (333, 5)])
  func anySizeIsRestored(width: Int, height: Int) throws {
    for samples in [
      noise(width, height), TestPattern(width: width, height: height).videoFrame(3).samples,
    ] {
      let coded = try #require(
        ContentCoding.encoded(samples, width: width, height: height))
      #expect(ContentCoding.jpegLS.decoded(coded) == samples)
    }
  }

  @Test func otherBytesThanVideoFramesAreNotEncoded() {
    #expect(ContentCoding.encoded([1, 2, 3], width: 640, height: 480) == nil)
    #expect(ContentCoding.encoded([], width: 0, height: 0) == nil)
    #expect(ContentCoding.encoded([], width: .max, height: .max) == nil)
  }

  @Test func damagedBytesNeverTrap() throws {
    let samples = TestPattern(width: 48, height: 32).videoFrame(1).samples
    let coded = try #require(ContentCoding.encoded(samples, width: 48, height: 32))
    var isFound = 0
    for index in 0..<coded.count {
      var bad = coded
      bad[index] ^= UInt8(truncatingIfNeeded: 1 << (index % 8))
      if ContentCoding.jpegLS.decoded(bad) != samples { isFound += 1 }
      _ = ContentCoding.jpegLS.decoded(Array(coded[..<index]))
    }
    #expect(isFound > coded.count / 2)
    // Sizes that would need gigabytes are rejected before memory is allocated.
    let huge = [UInt8](repeating: 0xff, count: 8) + coded[8...]
    #expect(ContentCoding.jpegLS.decoded(huge) == nil)
  }

  private static let scene = CameraScene(width: 160, height: 120)

  private func frames(_ count: Int) -> [StepRecord] {
    let genesis = SampleSteps.call(packets: 0, payload: 10).prefix(1)
    return genesis
      + (0..<count).map { number in
        StepRecord(
          peer: 1, at: .zero + .milliseconds(Int64(1_000 + 33 * number)),
          input: .captured(
            transceiver: 1,
            .frame(Self.scene.videoFrame(Int64(number)), timestamp: Int64(number) * 33_000_000)),
          outputs: [], deadline: nil, entropyDrawn: 0)
      }
  }

  private func captured(_ path: String) throws -> [(videoFrame: I420Buffer, timestamp: Int64)] {
    try steps(of: path).compactMap { step in
      guard case .captured(_, .frame(let videoFrame, let timestamp))? = step.input as? PeerInput
      else { return nil }
      return (videoFrame, timestamp)
    }
  }

  @Test func videoFramesOfACameraTakeAThirdOfTheirSize() throws {
    let folder = try TakeFolder()
    let path = try folder.record(frames(3))
    let connection = try TakeFile.open(path)
    #expect(
      try connection.integer("SELECT count(*) FROM content WHERE coding = 'jpeg-ls'") == 3)
    let stored = try connection.integer("SELECT sum(length(bytes)) FROM content") ?? 0
    let byteCount = 3 * I420Buffer.byteCount(width: 160, height: 120)
    // Video of 640x480 at 30 frames per second is 13.8 MB/s; compressed, it is less than 5 MB/s.
    #expect(Double(stored) < Double(byteCount) * 5 / 13.824, "\(stored) of \(byteCount)")
    let found = try captured(path)
    #expect(found.map(\.timestamp) == (0..<3).map { $0 * 33_000_000 })
    for (number, frame) in found.enumerated() {
      #expect(frame.videoFrame.samples == Self.scene.videoFrame(Int64(number)).samples)
    }
  }

  @Test func aBusyWriterStoresThemUncompressed() throws {
    let folder = try TakeFolder()
    let path = try folder.record(frames(3)) { $0.queueLimit = 300_000_000 }
    let other = folder.file("hurried.take")
    let store = try TapeStore(path: other, options: TapeWriter.Options())
    store.isHurried = true
    try store.write(frames(3)[...])
    try store.end()
    let connection = try TakeFile.open(other)
    #expect(try connection.integer("SELECT count(*) FROM content WHERE coding IS NULL") == 3)
    #expect(
      try captured(other).map(\.videoFrame.samples) == captured(path).map(\.videoFrame.samples))
  }

  @Test func aTakeOfThePreviousFormatStoresThemUncompressed() throws {
    let folder = try TakeFolder()
    let path = try folder.record(frames(2))
    let reader = try TapeReader(path: path)
    var header = reader.header
    header.format = 4
    let old = folder.file("old.take")
    let copy = try TakeCopy(path: old, header: header)
    while let chunk = try reader.next() {
      for step in chunk.steps {
        var rows = RowList()
        for row in step.rows {
          let table = chunk.rows.table(row)
          let count = table.columnNames(format: 4).count
          rows.append(table, Array(chunk.rows.row(row).prefix(count)))
        }
        try copy.append(step.head, rows, 0..<rows.count)
      }
    }
    try copy.finish()
    let connection = try TakeFile.openForQueries(old)
    #expect(try connection.integer("SELECT count(*) FROM content WHERE coding IS NULL") == 2)
    let videoFrames = try steps(of: old).compactMap { step -> I420Buffer? in
      guard case .captured(_, .videoFrame(let videoFrame))? = step.input as? PeerInput else {
        return nil
      }
      return videoFrame
    }
    #expect(videoFrames.map(\.samples) == (0..<2).map { Self.scene.videoFrame($0).samples })
  }

  @Test(arguments: [
    "UPDATE content SET bytes = substr(bytes, 1, 400) WHERE content = 2",
    "UPDATE content SET bytes = zeroblob(5000) WHERE content = 2",
    "UPDATE content SET coding = 'other' WHERE content = 2",
    "UPDATE content SET coding = NULL WHERE content = 2",
  ])
  func damagedVideoFramesAreReportedInOneSentence(sql: String) throws {
    let folder = try TakeFolder()
    let path = try folder.record(frames(3))
    try folder.alter(path, sql)
    let reader = try TapeReader(path: path)
    let error = try #require(
      #expect(throws: TapeError.self) {
        while try reader.chunk(steps: 1) != nil {}
      })
    #expect(error.place == "step 3" && error.reason.contains("the file was altered"), "\(error)")
  }
}
