import Foundation
import Media
import Peer
import RTP
import SDP
import Testing
import Wire

@testable import Tape

struct RoundTripTests {
  @Test func everyKindOfStepIsReadAsItWasRecorded() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let recorded = SampleSteps.all
    let read = try steps(of: path, at: 3)
    #expect(read.count == recorded.count)
    for (before, after) in zip(recorded, read) {
      #expect(after.head.actor == before.actor)
      #expect(after.head.at == before.at)
      #expect(after.head.deadline == before.deadline)
      #expect(after.head.entropyDrawn == before.entropyDrawn)
      #expect(after.head.kind == before.input.stepKind)
      #expect(
        isEqual(try #require(after.peerInput), try #require(before.peerInput)),
        "\(before.input) came back as \(after.input)")
    }
  }

  @Test func theRowsOfAStepAreMadeAgainFromItsInput() throws {
    let folder = try TakeFolder()
    let reader = try TapeReader(path: try folder.record(SampleSteps.all))
    var transcript = Transcript(keepsMedia: true)
    for (actor, words) in [(1, ("caller", "offerer")), (2, ("callee", "answerer"))] {
      var said = ActorWords()
      (said.label, said.role, said.peer) = (words.0, words.1, UInt32(actor))
      transcript.adopt(said, of: UInt32(actor))
    }
    var steps = SampleSteps.all[...]
    while let chunk = try reader.next() {
      for step in chunk.steps {
        let next = steps.popFirst()
        let before = try #require(next)
        transcript.begin(actor: step.head.actor, at: step.head.at)
        step.input.write(to: &transcript)
        #expect(transcript.rows.count == step.inputRowCount)
        before.outputs.write(to: &transcript)
        let made = (0..<transcript.rows.count).map { Array(transcript.rows.row($0)) }
        let read = step.rows.map { Array(chunk.rows.row($0)) }
        #expect(made == read)
      }
    }
    #expect(steps.isEmpty)
  }

  @Test func equalContentsAreKeptOnce() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let connection = try TakeFile.open(path)
    #expect(try connection.integer("SELECT count(*) FROM content") == 2)
    #expect(try connection.integer("SELECT count(*) FROM capture") == 6)
  }

  @Test func theHeaderDescribesTheRecording() throws {
    let folder = try TakeFolder()
    let reader = try TapeReader(path: try folder.record(SampleSteps.all) { $0.keepsMedia = false })
    #expect(reader.header.label == "test")
    #expect(reader.header.startText == "2026-01-01T00:00:00.123456789Z")
    #expect(reader.header.toolchain.openssl == "3.0")
    #expect(!reader.header.keepsMedia)
    #expect(reader.ending?.steps == SampleSteps.all.count)
    #expect(try reader.lastTime() == SampleSteps.all.last?.at)
  }

  @Test func aTakeIsReadableByItsOwnerOnly() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a.take"])
  }

  @Test func aTakeIsNeverOverwritten() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    #expect(throws: TapeError.self) {
      _ = try TapeWriter(path: path, options: TapeWriter.Options())
    }
  }

  @Test func aTakeWithoutStepsIsATake() throws {
    let folder = try TakeFolder()
    let path = try folder.record([])
    #expect(try steps(of: path).isEmpty)
    #expect(try TapeAudit.run(path: path).alteration == nil)
  }

  @Test func framesKeepNoBytesWithoutTheMediaCopy() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all) { $0.keepsMedia = false }
    let connection = try TakeFile.open(path)
    #expect(try connection.integer("SELECT count(*) FROM frame") ?? 0 > 0)
    #expect(try connection.integer("SELECT count(bytes) FROM frame") == 0)
    #expect(try connection.integer("SELECT count(digest) FROM frame") ?? 0 > 0)
  }

  @Test func withoutTheMediaCopyOnlySentMessagesKeepTheirBytes() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.all) { $0.keepsMedia = false }
    let connection = try TakeFile.open(path)
    func count(_ what: String) throws -> Int64? {
      try connection.integer("SELECT count(*) FROM message WHERE \(what)")
    }
    #expect(try count("direction = 'in'") ?? 0 > 0)
    #expect(try count("direction = 'in' AND (bytes IS NOT NULL OR digest IS NULL)") == 0)
    #expect(try count("direction = 'out'") == 2)
    #expect(try count("direction = 'out' AND bytes IS NOT NULL AND digest IS NULL") == 2)
    // The rest replays, because the bytes of sent messages are inputs.
    let sent = try steps(of: path).compactMap { step -> DataMessage? in
      if case .send(_, let message) = step.peerInput { return message }
      return nil
    }
    #expect(sent.map(\.bytes) == [Array("é\u{0}".utf8), []])
  }

  @Test func finishingTwiceReturnsTheSameResult() throws {
    let folder = try TakeFolder()
    let writer = try TapeWriter(path: folder.file("a.take"), options: TapeWriter.Options())
    for step in SampleSteps.all { writer.record(step) }
    let summary = try writer.finish()
    #expect(try writer.finish() == summary)
    #expect(summary.steps == SampleSteps.all.count)
    #expect(summary.bytes > 0)
    writer.record(SampleSteps.all[0])
    #expect(try writer.finish() == summary)
  }
}

/// Returns whether two inputs are equal, comparing video frames by content.
func isEqual(_ left: PeerInput, _ right: PeerInput) -> Bool {
  switch (left, right) {
  case (.genesis(let left), .genesis(let right)): left == right
  case (.interfaces(let left, let leftTypes), .interfaces(let right, let rightTypes)):
    left == right && leftTypes == rightTypes
  case (.datagram(let left, let leftArrival), .datagram(let right, let rightArrival)):
    left == right && leftArrival == rightArrival
  case (.deadline, .deadline): true
  case (.relayed(let a), .relayed(let b)):
    (a.kind, a.transport) == (b.kind, b.transport) && a.bytes == b.bytes
  case (.call(let leftID, let left), .call(let rightID, let right)):
    left == right && leftID == rightID
  case (.captured(let leftID, let left), .captured(let rightID, let right)):
    leftID == rightID && isEqual(left, right)
  case (.send(let leftID, let left), .send(let rightID, let right)):
    left == right && leftID == rightID
  case (.answer(.socketBound(let leftID, let left)), .answer(.socketBound(let rightID, let right))):
    left == right && leftID == rightID
  case (
    .answer(.socketFailed(let leftID, let left)), .answer(.socketFailed(let rightID, let right))
  ):
    left == right && leftID == rightID
  case (.answer(.streamAccepted(let a, let b)), .answer(.streamAccepted(let c, let d))):
    a == c && b == d
  case (
    .answer(.nameResolved(let leftID, let left)), .answer(.nameResolved(let rightID, let right))
  ):
    left == right && leftID == rightID
  case (.sendFailed(let left), .sendFailed(let right)): left == right
  case (.signaling(let left), .signaling(let right)): left == right
  default: false
  }
}

private func isEqual(_ left: CapturedMedia, _ right: CapturedMedia) -> Bool {
  switch (left, right) {
  case (.audio(let left), .audio(let right)): left == right
  case (.videoFrame(let left), .videoFrame(let right)):
    left.width == right.width && left.height == right.height && left.samples == right.samples
  case (.encoded(let name, let left), .encoded(let other, let right)):
    name == other && left == right
  default: false
  }
}
