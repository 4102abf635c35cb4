import Foundation
import Testing
import Wire

@testable import Tape

struct BadFileTests {
  private func error(_ path: String) throws -> TapeError {
    try #require(
      #expect(throws: TapeError.self) {
        let reader = try TapeReader(path: path)
        while try reader.next() != nil {}
      })
  }

  @Test func aMissingFileIsDistinguished() throws {
    let folder = try TakeFolder()
    let error = try error(folder.file("none.take"))
    #expect(error.kind == .missing)
    #expect(error.description.contains("none.take: there is no such file"))
  }

  @Test(arguments: [
    ("", "empty"), ("v=0\r\n", "not a SQLite file"),
    (String(repeating: "x", count: 100_000), "not a SQLite file"),
  ])
  func otherFilesThanDatabasesAreRefused(_ content: String, _ words: String) throws {
    let folder = try TakeFolder()
    let path = folder.file("a.take")
    try Data(content.utf8).write(to: URL(fileURLWithPath: path))
    #expect(try error(path).reason.contains(words))
  }

  @Test func aFolderIsRefused() throws {
    let folder = try TakeFolder()
    #expect(try error(folder.path).reason == "it is not a file")
  }

  @Test func aDatabaseOfAnotherProgramIsRefused() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    try folder.alter(path, "PRAGMA application_id = 7")
    #expect(try error(path).reason.contains("another program"))
  }

  @Test func aTakeWhoseRecorderEndedBeforeItBeganIsReported() throws {
    let folder = try TakeFolder()
    let path = folder.file("a.take")
    try Data().write(to: URL(fileURLWithPath: path))
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    try connection.execute("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL")
    #expect(try error(path).reason.contains("stopped before it began"))
  }

  @Test func aNewerFormatIsRefusedByItsNumber() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    try folder.alter(path, "PRAGMA user_version = \(TakeHeader.currentFormat + 1)")
    let wanted = "format \(TakeHeader.currentFormat + 1), made by a newer Retake"
    #expect(try error(path).reason.contains(wanted))
  }

  @Test func anOlderFormatIsRefusedByItsNumber() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    try folder.alter(path, "PRAGMA user_version = 1")
    #expect(try error(path).reason.contains("format 1, made by an older Retake"))
  }

  @Test func aTakeWithoutATableIsRefused() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    try folder.alter(path, "DROP TABLE rtcp")
    #expect(try error(path).reason.contains("the table rtcp is missing"))
  }

  @Test func aTakeThatWasCutOffIsRefused() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 2_000, payload: 500))
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let cut = folder.file("b.take")
    for share in [0.01, 0.1, 0.5, 0.9, 0.999] {
      try whole.prefix(Int(Double(whole.count) * share)).write(to: URL(fileURLWithPath: cut))
      #expect(try error(cut).description.hasPrefix(cut), "\(share)")
    }
  }

  @Test func damagedFilesNeverTrapTheReader() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let entropy = Entropy(seed: [1]).stream("damage")
    let damaged = folder.file("b.take")
    var noticed = 0
    for _ in 0..<400 {
      var bytes = [UInt8](whole)
      for _ in 0..<1 + entropy.integer(below: 40) {
        let offset = Int(entropy.integer(below: UInt64(bytes.count)))
        bytes[offset] = entropy.byte()
      }
      try Data(bytes).write(to: URL(fileURLWithPath: damaged))
      do {
        let reader = try TapeReader(path: damaged)
        while try reader.next() != nil {}
      } catch {
        noticed += 1
      }
    }
    // Damage in unused space and in pages that no step needs stays unnoticed, as it should.
    #expect(noticed > 40)
  }

  @Test func damagedHeadsAreReadWholeOrRefused() {
    var body = TapeBody(start: 0)
    for (index, step) in SampleSteps.all.enumerated() {
      body.append(
        StepHead(
          number: index + 1, kind: step.input.stepKind, actor: step.actor, at: step.at,
          deadline: step.deadline, entropyDrawn: step.entropyDrawn, rowCount: index))
    }
    let entropy = Entropy(seed: [2]).stream("damage")
    var refused = 0
    for _ in 0..<30_000 {
      var bytes = body.bytes
      for _ in 0..<1 + entropy.integer(below: 6) {
        bytes[Int(entropy.integer(below: UInt64(bytes.count)))] = entropy.byte()
      }
      bytes.removeLast(Int(entropy.integer(below: 3)))
      let heads = try? TapeBody.heads(bytes.span.bytes, first: 1, count: body.count, start: .max)
      guard let heads else {
        refused += 1
        continue
      }
      if heads.map(\.number) != Array(1...body.count) {
        Issue.record("the steps \(heads.map(\.number)) were read")
      }
    }
    #expect(refused > 0 && refused < 30_000)
  }

  @Test func anyBytesMakeAPacketRow() {
    let entropy = Entropy(seed: [3]).stream("damage")
    var read = 0
    for _ in 0..<40_000 {
      var bytes = SampleSteps.rtp(sequence: 5)
      for _ in 0..<1 + entropy.integer(below: 6) {
        bytes[Int(entropy.integer(below: UInt64(bytes.count)))] = entropy.byte()
      }
      bytes.removeLast(Int(entropy.integer(below: UInt64(bytes.count))))
      let fields = RTPFields(bytes.span.bytes, transportSequenceID: 5)
      read += fields.isRTP ? 1 : 0
      if fields.isRTP, fields.ssrc == nil || bytes.count < 12 {
        Issue.record("\(bytes.count) bytes became RTP of \(fields.ssrc ?? 0)")
      }
      if !fields.isRTP, fields.transportSequence != nil || fields.sequence != 0 {
        Issue.record("what is no RTP has its fields")
      }
    }
    #expect(read > 1_000 && read < 40_000)
  }

  @Test func headsAreReadAsTheyWereWritten() throws {
    var body = TapeBody(start: 5)
    var heads: [StepHead] = []
    for (index, step) in SampleSteps.all.enumerated() {
      var head = StepHead(
        number: index + 10, kind: step.input.stepKind, actor: step.actor, at: step.at,
        deadline: step.deadline, entropyDrawn: step.entropyDrawn, rowCount: index * 300)
      head.check = UInt32(index) * 0x0101_0101
      body.append(head)
      heads.append(head)
    }
    let read = try TapeBody.heads(body.bytes.span.bytes, first: 10, count: heads.count, start: 5)
    #expect(read == heads)
    #expect(throws: ReadError.self) {
      try TapeBody.heads(body.bytes.span.bytes, first: 10, count: heads.count - 1, start: 5)
    }
  }
}
