import Foundation
import Retake
import Testing

/// Takes as read by an application that imports only `Retake`.
struct TakeTests {
  private let path = capture("virtual-loss")

  /// Passes a folder to the body and removes it afterwards.
  private func withFolder(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/take-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(folder)
  }

  @Test func openingATakeShowsItsContents() throws {
    let take = try Take.open(path)
    #expect(take.peers.map(\.label) == ["caller", "callee"])
    #expect(take.peers.map(\.number) == [1, 2])
    #expect(take.stepCount == 1330 && take.duration == .seconds(3))
    #expect(take.isComplete && take.keepsMedia && take.format == 3)
    #expect(take.startUnixNanoseconds == 1_767_225_600_000_000_000)
  }

  @Test(arguments: [
    ("/nowhere/call.take", "/nowhere/call.take: there is no such file"),
    (#filePath, "\(#filePath): it is not a take: not a SQLite file"),
  ])
  func otherFilesAreRefusedInOneSentence(_ path: String, _ sentence: String) {
    let error = #expect(throws: TakeError.self) { _ = try Take.open(path) }
    #expect(error?.description == sentence)
  }

  @Test func stepsAreReadInOrderWithTheirRows() throws {
    let take = try Take.open(path)
    let steps = try take.steps().all()
    #expect(steps.map(\.number) == Array(1...take.stepCount))
    #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.at <= $1.at })
    #expect(steps.first?.input.contains { $0.table == "peer" } == true)
    let states = steps.flatMap(\.outputs).filter { $0.table == "state" }
    #expect(states.count == 44)
    #expect(try states.first?.value("peer", as: UInt32.self) == 1)
    // Values stored as signed integers are read as the unsigned numbers on the wire.
    let packets = try take.rows(of: PacketRecord.self).all()
    let sources = Set(packets.compactMap(\.ssrc))
    let stored = steps.flatMap { $0.input + $0.outputs }.filter { $0.table == "packet" }
    #expect(stored.count == packets.count)
    #expect(Set(try stored.compactMap { try $0.value("ssrc", as: UInt32?.self) }) == sources)
  }

  @Test func anAlteredStepIsAnErrorAtItsPlace() async throws {
    try await withFolder { folder in
      let copy = folder + "/call.take"
      try FileManager.default.copyItem(atPath: path, toPath: copy)
      // Flips a byte in the middle of a datagram, like a bad disk.
      var bytes = try Data(contentsOf: URL(fileURLWithPath: copy))
      let packet = try #require(
        try Take.open(path).rows(of: PacketRecord.self).all().first {
          $0.classification == "rtp" && $0.bytes.count > 900
        })
      let range = try #require(bytes.range(of: Data(packet.bytes.prefix(500))))
      bytes[range.lowerBound + 100] ^= 1
      try bytes.write(to: URL(fileURLWithPath: copy))
      let take = try Take.open(copy)
      let steps = try take.steps()
      let error = #expect(throws: TakeError.self) { _ = try steps.all() }
      #expect(error?.place == "step \(packet.step)")
      guard case .altered(packet.step, _) = try await take.replay().outcome else {
        Issue.record("the replay did not find the altered step")
        return
      }
    }
  }

  @Test func queriesReturnTypedValues() throws {
    let take = try Take.open(path)
    let delays = try take.query(
      "SELECT peer, kind, since_connected_ms FROM first_frame ORDER BY peer, kind",
      as: UInt32.self, String.self, Double.self
    ).all()
    #expect(
      delays.map { "\($0.0) \($0.1) \($0.2.rounded())" }
        == ["1 audio 40.0", "1 video 37.0", "2 audio 103.0", "2 video 95.0"])
    let mixed = try take.query("SELECT 1, 2.5, 'a', x'00ff', NULL").all()
    #expect(
      mixed.map(\.values)
        == [[.integer(1), .real(2.5), .text("a"), .bytes([0, 255]), .null]])
    #expect(try take.query("SELECT NULL", as: String?.self).all() == [nil])
    #expect(try take.query("SELECT 1 WHERE 0").all().isEmpty)
  }

  @Test(arguments: [
    ("SELECT label FROM peer", "column label: it has a text, not a whole number from -"),
    ("SELECT 5000000000 AS n", "column n: it has the whole number 5000000000, not a whole"),
    ("SELECT NULL AS n", "column n: it has nothing, not a whole number from -"),
  ])
  func aValueOfAnotherTypeIsReportedWithItsColumn(_ sql: String, _ words: String) throws {
    let rows = try Take.open(path).query(sql, as: Int32.self)
    let error = #expect(throws: TakeError.self) { _ = try rows.next() }
    #expect(
      error?.description.hasPrefix("\(path): \(words)") == true, "\(String(describing: error))")
  }

  @Test(arguments: [
    ("SELEC 1", "syntax error"), ("SELECT colour FROM peer", "no such column: colour"),
    ("DELETE FROM state", "a take is only read, never written"),
    ("SELECT 1; SELECT 2", "more than one statement"),
  ])
  func aQueryThatCannotBeRunIsReportedAtOnce(_ sql: String, _ words: String) throws {
    let take = try Take.open(path)
    let error = #expect(throws: TakeError.self) { _ = try take.query(sql) }
    #expect(error?.place == "sql" && error?.reason.contains(words) == true)
  }

  @Test func rowsHaveTypes() throws {
    let take = try Take.open(path)
    let connected = try take.rows(of: StateChange.self).all().filter {
      $0.machine == "connection" && $0.to == "connected"
    }
    #expect(connected.map(\.peer).sorted() == [1, 2])
    #expect(connected.allSatisfy { $0.from == "connecting" })
    let packets = try take.rows(of: PacketRecord.self).all()
    #expect(packets.count == 1252 && packets.contains { $0.classification == "stun" })
    #expect(packets.first?.bytes.isEmpty == false)
    let frames = try take.rows(of: FrameRecord.self).all()
    let video = frames.filter { $0.kind == "video" && $0.isInbound }
    #expect(video.count == 75 && video.allSatisfy { $0.width == 160 && $0.bytes != nil })
    #expect(try take.rows(of: MessageRecord.self).all().count == 14)
    #expect(
      try take.rows(of: SignalingRecord.self).all().map(\.type) == [
        "offer", "offer", "answer", "answer",
      ])
    let lossy = try Take.open(capture("virtual-heavy-loss"))
    let freezes = try lossy.rows(of: Freeze.self).all().map(\.milliseconds)
    #expect(freezes.count == 3)
    #expect(try lossy.rows(of: DecodedFreeze.self).all().map(\.milliseconds) == freezes)
    let error = #expect(throws: TakeError.self) { try lossy.rows(of: Colour.self).next() }
    #expect(error?.description.contains("column colour: it does not exist; the row has") == true)
  }

  /// A row of a view for which the library has no type.
  private struct Freeze: TakeRecord {
    static let query = "SELECT * FROM freeze"
    var milliseconds: Double
    init(_ row: TakeRow) throws(TakeError) { milliseconds = try row.value("gap_ms") }
  }

  /// The same row, decoded by its coding keys.
  private struct DecodedFreeze: TakeRecord, Decodable {
    static let query = "SELECT * FROM freeze"
    var milliseconds: Double
    private enum CodingKeys: String, CodingKey { case milliseconds = "gap_ms" }
  }

  private struct Colour: TakeRecord, Decodable {
    static let query = "SELECT * FROM freeze"
    var colour: String?
  }

  @Test func aReplayIsIdenticalInEveryMode() async throws {
    let take = try Take.open(path)
    for mode in [ReplayMode.exact, .withoutCodecs, .substitute] {
      let result = try await take.replay(mode)
      #expect(result.isIdentical, "\(result)")
      #expect(result.steps == take.stepCount && result.duration == take.duration)
      #expect(result.description.hasPrefix("\(path): identical: 1330 steps of 2 peers"))
    }
    let half = try await take.replay(until: Instant(nanoseconds: 1_500_000_000))
    #expect(half.isIdentical && half.steps < 1330 && half.duration < .milliseconds(1_501))
  }

  @Test func statsAreThoseOfTheInstant() async throws {
    let take = try Take.open(path)
    var received: [Int64] = []
    for instant in [Instant(nanoseconds: 1_000_000_000), nil] {
      let peers = try await take.stats(at: instant)
      #expect(peers.map(\.label) == ["caller", "callee"])
      let video = try #require(
        peers[1].report.objects.first {
          $0.type == "inbound-rtp"
            && $0.members.contains { $0.name == "kind" && $0.value == .text("video") }
        })
      let member = video.members.first { $0.name == "packetsReceived" }
      guard case .integer(let packets)? = member?.value else {
        Issue.record("\(video.members)")
        return
      }
      received.append(packets)
    }
    // The table `stat` has the same values, which the recorder sampled at that time.
    #expect(received[0] == 23 && received[1] > 80)
  }

  /// In a room, labels are the names that participants choose, of any length.
  @Test func labelsOfAnyLengthMakeNamesOfFiles() async throws {
    let long = String(repeating: "i", count: 250)
    let recording = try Recording(labels: [long + "\u{1b}]0;a\u{7}", long + "/../../b"])
    let take = try Take.open(recording.path)
    let tracks = try await take.exportMedia(into: recording.folder + "/media")
    let names = try FileManager.default.contentsOfDirectory(atPath: recording.folder + "/media")
    #expect(tracks.count >= 2 && Set(names).count == tracks.count)
    let isPlain = names.allSatisfy { name in
      name.utf8.count <= 150
        && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) }
    }
    #expect(isPlain, "\(names)")
    // Names with the same start are distinguished.
    #expect(Set(names.map { $0.dropFirst("peer1-".count).prefix(64) }).count == 2)
  }

  @Test func exportsWriteFilesAndRefuseToOverwrite() async throws {
    let take = try Take.open(path)
    try await withFolder { folder in
      let all = try await take.exportPackets(to: folder + "/all.pcap")
      #expect(all == 1252)
      let one = try await take.exportPackets(to: folder + "/one.pcap", peer: 1)
      #expect(one > 0 && one < all)
      // The magic number of a pcap file with nanosecond timestamps.
      let bytes = try Data(contentsOf: URL(fileURLWithPath: folder + "/all.pcap"))
      #expect(Array(bytes.prefix(4)) == [0x4d, 0x3c, 0xb2, 0xa1])
      let again = await #expect(throws: TakeError.self) {
        try await take.exportPackets(to: folder + "/all.pcap")
      }
      #expect(again?.description.contains("all.pcap exists already") == true)
      let clear = try await take.exportPackets(to: folder + "/clear.pcap", .inTheClear, peer: 1)
      #expect(clear > 100)
      let tracks = try await take.exportMedia(into: folder + "/media")
      #expect(tracks.count == 4 && tracks.allSatisfy { $0.frames > 20 })
      #expect(tracks.allSatisfy { FileManager.default.fileExists(atPath: $0.path) })
      let nobody = await #expect(throws: TakeError.self) {
        try await take.exportPackets(to: folder + "/none.pcap", peer: 7)
      }
      #expect(
        nobody?.description.contains("no peer 7; the take has 1 (caller), 2 (callee)") == true)
      #expect(!FileManager.default.fileExists(atPath: folder + "/none.pcap"))
    }
  }
}
