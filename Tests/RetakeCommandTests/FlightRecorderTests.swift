import CallRecording
import Foundation
import Lab
import Media
import Observer
import Peer
import Queries
import Replay
import SCTP
import Synchronization
import Tape
import Testing
import Wire

@testable import Importing

/// Tests a flight recorder's ring of packets, and the takes written from it.
struct FlightRecorderTests {
  /// A call of two peers in virtual time whose steps go into a ring.
  private final class Flight {
    let folder: Folder
    let plan: RingPlan
    let recorder: FlightRecorder
    let call: VirtualCall
    let notices: Notices

    final class Notices: Sendable {
      let all = Mutex<[String]>([])
    }

    init(_ adjust: (inout RingPlan.Settings) -> Void) throws {
      folder = try Folder()
      notices = Notices()
      var settings = RingPlan.Settings()
      settings.isSynchronous = true
      settings.length = .seconds(10)
      settings.retainsPictures = false
      adjust(&settings)
      plan = RingPlan(settings) { [notices] sentence in notices.all.withLock { $0.append(sentence) }
      }
      recorder = plan.recorder(take: folder.file("call.take"))
      let ring = PeerRing(recorder)
      ring.begin(WallClock(unixNanosecondsAtZero: labEpoch))
      for label in ["caller", "callee"] { _ = ring.addPeer(label: label, role: label) }
      call = VirtualCall(seed: 36) { ring.record($0) }
      call.keepsHistory = false
      for peer in 0..<2 {
        call.call(
          peer,
          .addTrack(kind: .audio, streamIDs: ["a"], source: .tone(hertz: 440, pauseSeconds: 0)))
        call.call(
          peer,
          .addTrack(
            kind: .video, streamIDs: ["a"],
            source: .pattern(width: 96, height: 64, framesPerSecond: 5)))
      }
      call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
      #expect(call.negotiate() == nil)
    }

    /// Sets the loss in both directions, per thousand packets.
    func lose(perMille: UInt64) {
      for link in call.network.links.indices {
        call.network.links[link].lossPerMille = perMille
      }
    }

    var takes: [String] { recorder.takes.map(\.capture.take) }
  }

  private func expectIdentical(_ path: String) throws {
    let report = try Replayer(
      path: path, options: Replayer.Options(), codecs: { LibraryCodecs() },
      peer: { PeerMachine(codecs: $0) }
    ).run { _ in }
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }

  private func number(_ path: String, _ sql: String) throws -> Int64 {
    try #require(try TakeFile.openForQueries(path).integer(sql), "\(sql)")
  }

  private let seconds = "SELECT (max(at_ns) - min(at_ns)) / 1000000 FROM packet"

  // MARK: Takes

  @Test func aFailedPeersLastSecondsAreWrittenAndTheRecordingContinues() throws {
    let flight = try Flight { _ in }
    flight.call.run(for: .seconds(12))
    flight.lose(perMille: 1000)
    flight.call.run(for: .seconds(50))
    // Each of the two peers triggers only once, because ICE and the connection fail for the same
    // reason.
    let takes = flight.takes
    #expect(takes.count == 2, "\(flight.notices.all.withLock { $0 })")
    let words = flight.recorder.takes.map(\.words)
    #expect(words.contains { $0.contains("caller is now failed") }, "\(words)")
    #expect(words.contains { $0.contains("callee is now failed") }, "\(words)")
    for take in takes {
      #expect(try number(take, seconds) <= 10_000)
      #expect(try number(take, "SELECT count(*) FROM peer WHERE role = 'observed'") == 2)
      #expect(try number(take, "SELECT count(*) FROM tag WHERE key = 'ring_trigger'") == 1)
      try expectIdentical(take)
    }
    #expect(!FileManager.default.fileExists(atPath: flight.folder.file("call.take")))
    flight.plan.writeAll(.signal("SIGUSR1"))
    #expect(flight.takes.count == 3)
  }

  @Test func aCallThatBeganLongBeforeItsRingIsReadFromItsFirstKeyFrame() throws {
    let flight = try Flight { _ in }
    flight.call.run(for: .seconds(30))
    // Video of another size begins with a key frame.
    for peer in 0..<2 {
      flight.call.call(
        peer,
        .replaceSource(transceiver: 2, .pattern(width: 128, height: 96, framesPerSecond: 5)))
    }
    flight.call.run(for: .seconds(6))
    flight.plan.writeAll(.signal("SIGUSR1"))
    let take = try #require(flight.takes.first)
    let reason = "SELECT count(*) FROM coverage WHERE reason LIKE '%from their first key frames%'"
    #expect(try number(take, reason) == 1)
    #expect((9_000...10_000).contains(try number(take, seconds)))
    // The handshake from half a minute ago is retained, so that media and data channels can be
    // decrypted.
    for what in ["no-keys", "not-opened", "data-not-opened"] {
      #expect(try number(take, "SELECT count(*) FROM coverage WHERE what = '\(what)'") == 0)
    }
    let ends = "SELECT count(*) FROM peer WHERE label IN ('caller', 'callee')"
    #expect(try number(take, ends) == 2)
    let frames = """
      SELECT count(*) FROM frame WHERE kind = 'video' AND at_ns >
        (SELECT min(at_ns) FROM frame WHERE kind = 'video' AND key = 1)
      """
    #expect(try number(take, frames) > 40)
    let key = "SELECT min(at_ns) / 1000000 FROM frame WHERE kind = 'video'"
    #expect((3_000...5_000).contains(try number(take, key)))
    #expect(try number(take, "SELECT count(*) FROM track WHERE codec = 'opus'") > 0)
    try expectIdentical(take)
  }

  @Test func packetsFromTheLastKeyFrameBeforeTheRingOnAreInItsTake() throws {
    let flight = try Flight { $0.retainsPictures = true }
    flight.call.run(for: .seconds(5))
    for peer in 0..<2 {
      flight.call.call(
        peer,
        .replaceSource(transceiver: 2, .pattern(width: 128, height: 96, framesPerSecond: 5)))
    }
    // A test pattern causes no further key frame.
    flight.call.run(for: .seconds(30))
    flight.plan.writeAll(.signal("SIGUSR1"))
    let take = try #require(flight.takes.first)
    #expect(try number(take, seconds) > 25_000)
    let first = "SELECT min(at_ns) / 1000000 FROM frame WHERE kind = 'video' AND key = 1"
    #expect(try number(take, first) < 4_000)
    let last = "SELECT max(at_ns) / 1000000 FROM frame WHERE kind = 'video'"
    #expect(try number(take, last) > 25_000)
    let reason = "'%before that from the last key frame%'"
    #expect(try number(take, "SELECT count(*) FROM coverage WHERE reason LIKE \(reason)") == 1)
    try expectIdentical(take)
  }

  @Test func aFindingIsFoundInTheRingAndNamedByItsTake() throws {
    let flight = try Flight { $0.wishes = [.severity(.high)] }
    flight.call.run(for: .seconds(21))
    #expect(flight.takes.isEmpty, "\(flight.notices.all.withLock { $0 })")
    flight.lose(perMille: 1000)
    flight.call.run(for: .seconds(3))
    flight.lose(perMille: 0)
    flight.call.run(for: .seconds(12))
    let take = try #require(flight.takes.first, "\(flight.notices.all.withLock { $0 })")
    let found = try TakeFindings(path: take).findings.filter { $0.severity >= .high }
    let id = try #require(found.first).id
    #expect(flight.recorder.takes[0].words.contains(id))
    // At most one take per finding within the ring's length, and no unfinished file.
    #expect(flight.takes.count <= 2)
    let names = try FileManager.default.contentsOfDirectory(atPath: flight.folder.path)
    #expect(names.count == flight.takes.count, "\(names)")
  }

  @Test func aConditionIsMetByRowsAndByStatistics() throws {
    for text in ["packet rtcp nack", "stat packetsLost>5"] {
      let condition = try StepCondition(text)
      let flight = try Flight { $0.wishes = [.condition(condition)] }
      flight.call.run(for: .seconds(11))
      #expect(flight.takes.isEmpty, "\(text): \(flight.notices.all.withLock { $0 })")
      flight.lose(perMille: 300)
      flight.call.run(for: .seconds(10))
      #expect(flight.takes.count >= 1, "\(text): \(flight.notices.all.withLock { $0 })")
      #expect(flight.recorder.takes.allSatisfy { $0.words.contains(text) })
    }
  }

  @Test func takesAreLimitedAndOnlyReplacedWhereThatIsWanted() throws {
    for isReplaced in [false, true] {
      let flight = try Flight {
        $0.takesMaximum = 2
        $0.removesOldest = isReplaced
      }
      flight.call.run(for: .seconds(1))
      var all: Set<String> = []
      for _ in 0..<4 {
        flight.plan.writeAll(.signal("SIGUSR1"))
        all.formUnion(flight.takes)
      }
      // Takes written within the same second are numbered.
      #expect(isReplaced ? all.count > 2 : all.count == 2)
      let names = try FileManager.default.contentsOfDirectory(atPath: flight.folder.path)
      #expect(names.count == 2 && Set(names.map(flight.folder.file)) == Set(flight.takes))
      let isSaid = flight.notices.all.withLock { all in all.count { $0.contains("--ring-count") } }
      #expect(isSaid == (isReplaced ? 0 : 1))
    }
  }

  // MARK: Memory

  private func packet(_ number: Int, _ length: Int, at: Int64) -> RingPacket {
    let source = SocketAddress(IPAddress(ipv4: 0x0a00_0001), port: UInt16(5_000 + number % 7))
    let target = SocketAddress(IPAddress(ipv4: 0x0a00_0002), port: 6_000)
    var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
    bytes[0] = 0x80
    return RingPacket(at: at, tuple: FiveTuple(from: source, to: target), bytes: bytes)
  }

  @Test func memoryStaysWithinItsBoundHoweverLongACallIs() {
    let budget = RingBudget(maximum: 4 << 20)
    var ring = PacketRing(length: .seconds(60), budget: budget)
    var most = 0
    // A hundred megabytes at 8 Mbit/s.
    for number in 0..<100_000 {
      ring.append(packet(number, 1_000, at: Int64(number) * 1_000_000))
      most = max(most, budget.usedBytes)
    }
    #expect(most <= budget.maximum && most > budget.maximum / 2)
    let content = ring.content
    // The packets that remain are the newest ones, complete and in order.
    #expect(content.count > 3_500 && content.end == 99_999_000_000)
    #expect(content.passed == UInt64(100_000 - content.count) && content.crowdedOut > 90_000)
    var next = 100_000 - content.count
    content.visit { packet in
      #expect(packet.at == Int64(next) * 1_000_000 && packet.bytes.count == 1_000)
      #expect(packet.bytes[1] == UInt8(truncatingIfNeeded: next))
      next += 1
    }
    #expect(next == 100_000)
  }

  @Test func ringsShareTheirMemoryAndReturnIt() {
    let budget = RingBudget(maximum: 1 << 20)
    do {
      var one = PacketRing(length: .seconds(60), budget: budget)
      var other = PacketRing(length: .seconds(60), budget: budget)
      for number in 0..<4_000 {
        one.append(packet(number, 500, at: Int64(number) * 1_000_000))
        other.append(packet(number, 500, at: Int64(number) * 1_000_000))
        #expect(budget.usedBytes <= budget.maximum)
      }
      #expect(!one.content.isEmpty && !other.content.isEmpty)
      // Packets that are too old are removed, too.
      one.trim(to: 100_000_000_000)
      #expect(one.content.isEmpty)
    }
    #expect(budget.usedBytes == 0)
  }

  @Test func packetsAreDroppedWhenTheirTimeIsOver() {
    var ring = PacketRing(length: .seconds(2), budget: RingBudget(maximum: 8 << 20))
    for number in 0..<1_000 { ring.append(packet(number, 100, at: Int64(number) * 10_000_000)) }
    let content = ring.content
    #expect((200...201).contains(content.count) && content.crowdedOut == 0)
    #expect(content.begin >= content.end - 2_000_000_000)
  }

  @Test func packetsStayForAPictureOnlyWhileHalfOfTheMemoryIsFree() {
    for (memory, isKept) in [(8 << 20, true), (1 << 19, false)] {
      var ring = PacketRing(length: .seconds(2), budget: RingBudget(maximum: memory))
      let stream = RingStream(owner: 1, ssrc: 1)
      let key: Int64 = 3_000_000_000
      for number in 0..<1_000 {
        let at = Int64(number) * 10_000_000
        ring.append(packet(number, 1_000, at: at))
        ring.recordFrame(of: stream, isKey: at == key, at: at)
      }
      let (whole, last) = (
        RingContent(ring.snapshot(), hasPictures: true), RingContent(ring.snapshot())
      )
      #expect(last.begin >= last.end - 2_000_000_000 && last.picturelessCount == 1)
      #expect(isKept ? whole.begin == key : whole.begin >= last.begin)
      #expect(whole.picturelessCount == (isKept ? 0 : 1))
      #expect(whole.crowdedOut == 0)
      // A later key frame ends the retention once it is the last one before the ring.
      let next: Int64 = 11_000_000_000
      for number in 1_000..<1_400 {
        let at = Int64(number) * 10_000_000
        ring.append(packet(number, 1_000, at: at))
        ring.recordFrame(of: stream, isKey: at == next, at: at)
      }
      #expect(RingContent(ring.snapshot(), hasPictures: true).begin >= next)
    }
  }

  @Test func onlyPacketsNeededForDecryptionOutliveTheRing() {
    func retained(_ packets: [[UInt8]]) -> [Int] {
      var head = RingHead()
      for (number, bytes) in packets.enumerated() {
        var datagram = packet(0, 1, at: Int64(number))
        datagram.bytes = bytes
        guard RingHead.isWanted(bytes, at: 0) else { continue }
        let before = head.byteCount
        let freed = head.retain(datagram)
        // The retained bytes are counted exactly.
        #expect(head.byteCount == before + bytes.count - freed)
      }
      return head.packets.map { Int($0.packet.at) }
    }
    func check(_ type: UInt8, _ transaction: UInt8) -> [UInt8] {
      [type, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: transaction, count: 12)
    }
    func record(_ type: UInt8, _ count: Int = 100) -> [UInt8] {
      [type, 0xfe, 0xfd] + [UInt8](repeating: 0, count: count)
    }
    // Only the last request and the last response of the pair are retained.
    #expect(retained([check(0, 1), check(1, 1), check(0, 2), check(0, 3)]) == [1, 3])
    // DTLS handshake records, but neither application data nor media.
    #expect(
      retained([record(22), record(23), record(20), record(22), [0x80, 111, 0, 1], [0xff, 0]])
        == [0, 2, 3])
    // Handshake records inside TURN channel data are kept as well.
    let channel: [UInt8] = [0x40, 1, 0, 103] + record(22)
    #expect(retained([channel, [0x40, 1, 0, 4, 0x80, 111, 0, 1]]) == [0])
    // The total size is limited.
    let many = retained((0..<100).map { _ in record(22, 1_000) })
    #expect(many.count == 49 && many.last == 99)
  }
}
