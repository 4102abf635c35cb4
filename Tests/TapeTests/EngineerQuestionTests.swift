import Foundation
import Lab
import Media
import Peer
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Tests the queries in `QueryExample`, which answer questions of an engineer who knows only the
/// schema.
///
/// Each query must return the facts that are known from how the call was made. The tests compute
/// these facts without the views.
struct EngineerQuestionTests {
  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"

  /// A call between two ends in which all of the caller's packets are lost for 400 ms, and once for
  /// 30 ms.
  private struct Call {
    let folder: TakeFolder
    let path: String

    init() throws {
      folder = try TakeFolder()
      let call = try FaultyCall(folder, seed: 5)
      call.run(1_500)
      call.run(30, losing: [0])
      call.run(1_000)
      call.run(400, losing: [0])
      call.run(2_000)
      try call.finish()
      path = call.path
    }
  }

  private func answer(_ words: String, _ path: String) throws -> [[Value]] {
    let example = try #require(QueryExample.all.first { $0.question.contains(words) }, "\(words)")
    return try rows(example.sql, path)
  }

  private func texts(_ sql: String, _ path: String) throws -> [[String]] {
    let connection = try TakeFile.openForQueries(path)
    let statement = try connection.prepare(sql)
    var rows: [[String]] = []
    while try statement.step() {
      rows.append((0..<statement.columnCount).map { statement.text($0) ?? "" })
    }
    return rows
  }

  private func rows(_ sql: String, _ path: String) throws -> [[Value]] {
    let connection = try TakeFile.openForQueries(path)
    let statement = try connection.prepare(sql)
    var rows: [[Value]] = []
    while try statement.step() {
      rows.append((0..<statement.columnCount).map { statement.value($0) ?? .null })
    }
    return rows
  }

  private func number(_ value: Value) -> Double? {
    switch value {
    case .integer(let number): Double(number)
    case .real(let number): number
    default: nil
    }
  }

  private func text(_ value: Value) -> String? {
    if case .text(let text) = value { text } else { nil }
  }

  private struct Packet: Hashable {
    var ssrc: Int64
    var sequence: Int64
  }

  /// Returns one end's sent packets, in order, and those that the other end received.
  private func packets(_ path: String) throws -> (sent: [Packet], came: Set<Packet>) {
    let connection = try TakeFile.openForQueries(path)
    let rows = try connection.prepare(
      """
      SELECT peer, direction, ssrc, sequence FROM packet
      WHERE protocol = 'rtp' AND (peer = 1 AND direction = 'out' OR peer = 2 AND direction = 'in')
      ORDER BY row
      """)
    var sent: [Packet] = []
    var came: Set<Packet> = []
    while try rows.step() {
      let packet = Packet(ssrc: rows.integer(2), sequence: rows.integer(3))
      if rows.integer(0) == 1 { sent.append(packet) } else { came.insert(packet) }
    }
    return (sent, came)
  }

  /// Returns the lost packets of each stream, between its first and last received ones.
  private func lost(_ path: String) throws -> [Packet] {
    let (sent, came) = try packets(path)
    return Dictionary(grouping: sent, by: \.ssrc).values.flatMap { stream -> [Packet] in
      guard let first = stream.firstIndex(where: { came.contains($0) }),
        let last = stream.lastIndex(where: { came.contains($0) })
      else { return [] }
      return stream[first...last].filter { !came.contains($0) }
    }
  }

  @Test func lostPacketsAndTheirRepairs() throws {
    let call = try Call()
    let truth = Set(try lost(call.path))
    let found = try answer("Which packets were lost", call.path).filter { $0[0] == .integer(2) }
    let packets = found.compactMap { row -> Packet? in
      guard case .integer(let ssrc) = row[1], case .integer(let sequence) = row[2] else {
        return nil
      }
      return Packet(ssrc: ssrc, sequence: sequence)
    }
    #expect(truth.count > 20)
    #expect(Set(packets) == truth && packets.count == truth.count)
    // Some packets were requested and retransmitted, which needs a round trip of at least 20 ms.
    let repaired = found.compactMap { number($0[5]) }
    #expect(repaired.count > 3 && (repaired.min() ?? 0) > 15, "\(repaired)")
    #expect(found.allSatisfy { $0[5] == .null || number($0[4]) ?? 0 > 0 })

    let repairs = try answer("Which packet repaired which", call.path)
    #expect(repairs.count >= repaired.count)
    let (sent, _) = try self.packets(call.path)
    for row in repairs where row[0] == .integer(2) && row[5] != .null {
      guard case .integer(let ssrc) = row[4], case .integer(let sequence) = row[5] else {
        continue
      }
      #expect(sent.contains(Packet(ssrc: ssrc, sequence: sequence)))
    }
  }

  @Test func theWorstBurstAndThePausesOfTheNetwork() throws {
    let call = try Call()
    let (sent, came) = try packets(call.path)
    var longest = 0
    for stream in Dictionary(grouping: sent, by: \.ssrc).values {
      guard let last = stream.lastIndex(where: { came.contains($0) }) else { continue }
      var run = 0
      for packet in stream[...last].drop(while: { !came.contains($0) }) {
        run = came.contains(packet) ? 0 : run + 1
        longest = max(longest, run)
      }
    }
    let worst = try #require(try answer("worst burst", call.path).first)
    #expect(worst[0] == .integer(2) && worst[2] == .integer(Int64(longest)) && longest > 10)
    // 400 ms were lost, and the packets before and after are a little further apart.
    #expect((380...700).contains(number(worst[4]) ?? 0), "\(worst)")

    let pauses = try answer("When did a stream pause", call.path).filter { $0[0] == .integer(2) }
    #expect(
      pauses.contains { (380...700).contains(number($0[3]) ?? 0) && $0[4] == .text("network") })
  }

  @Test func theFrameThatFrozeThePicture() throws {
    let call = try Call()
    let found = try answer("froze the picture", call.path).filter { $0[0] == .integer(2) }
    let freeze = try #require(found.first, "no freeze")
    #expect((380...900).contains(number(freeze[1]) ?? 0), "\(freeze)")
    // The frame could not be shown before its last packet arrived.
    #expect((number(freeze[3]) ?? .infinity) <= (number(freeze[1]) ?? 0) + 0.001)
    let frame = try rows(
      "SELECT peer, direction, kind FROM frame WHERE row = "
        + "\(number(freeze[2]).map { Int64($0) } ?? 0)",
      call.path)
    #expect(frame == [[.integer(2), .text("in"), .text("video")]])
  }

  @Test func bitRateBySecondAndLayer() throws {
    let call = try Call()
    let found = try answer("bit rate does each layer", call.path)
    let truth = try rows(
      """
      SELECT peer, at_ns / 1000000000, mid, packet.ssrc, sum(size) * 8 FROM packet
      JOIN (SELECT DISTINCT peer, mid, ssrc FROM track WHERE kind = 'video' AND direction = 'out')
        USING (peer, ssrc)
      WHERE direction = 'out' AND protocol = 'rtp' GROUP BY 1, 2, 4 ORDER BY 1, 4, 2
      """, call.path)
    #expect(found == truth && found.count >= 8, "\(found)")
  }

  @Test func fromTheOfferToTheFirstPicture() throws {
    let call = try Call()
    let found = try answer("from the offer", call.path)
    let truth = try rows(
      """
      SELECT peer, (SELECT min(at_ns) FROM frame WHERE frame.peer = call.peer AND kind = 'video'
        AND direction = 'in' AND outcome = 'decoded') / 1e6 - min(at_ns) / 1e6
      FROM call WHERE name IN ('createOffer', 'setLocalDescription', 'localDescription',
        'setRemoteDescription')
        AND coalesce(arguments ->> '$._0.type', reply ->> '$.type') = 'offer' GROUP BY peer
      """, call.path)
    #expect(found.count == 2 && truth.count == 2)
    for (row, right) in zip(found, truth) {
      #expect(row[0] == right[0])
      #expect(abs((number(row[1]) ?? 0) - (number(right[1]) ?? 1)) < 0.001)
      #expect((40...1_000).contains(number(row[1]) ?? 0))
    }
  }

  @Test func pairsPeopleAndStreams() throws {
    let call = try Call()
    let pairs = try answer("Which pair carried", call.path)
    #expect(
      pairs.count == 2 && pairs.allSatisfy { $0[2] == .text("host") && $0[4] == .text("host") })

    // Both peers send a tone from start to end.
    let over = try answer("Who spoke over whom", call.path)
    #expect(over.count == 1 && (number(over[0][2]) ?? 0) > 4, "\(over)")

    let people = try answer("Who took part", call.path)
    #expect(people.compactMap { text($0[1]) } == ["caller", "callee"])
    #expect(people.allSatisfy { (number($0[2]) ?? 0) > 4 && (number($0[4]) ?? 0) > 10_000 })

    let truth = try lost(call.path).count
    let streams = try answer("How much of what was sent arrived", call.path)
    let missing = streams.filter { $0[0] == .text("callee") && $0[1] == .text("in") }
      .compactMap { number($0[5]) }.reduce(0, +)
    #expect(Int(missing) == truth)
    #expect(Set(streams.compactMap { text($0[3]) }).isSuperset(of: ["opus", "vp8", "rtx"]))
  }

  @Test func roundTripsAndTheJitterBuffer() throws {
    let path = Self.captures + "virtual-loss.take"
    let trips = try answer("round-trip time of media", path)
    // The delay is 40 ms in each direction, plus or minus 10 ms.
    #expect(trips.count > 2 && trips.allSatisfy { (50...110).contains(number($0[2]) ?? 0) })
    let waits = try answer("jitter buffer", path)
    #expect(waits.count == 12)
    // The query's values are per interval: weighted, they add up to the cumulative sum.
    let samples = try rows(
      """
      SELECT sum(members ->> '$.jitterBufferDelay'), max(at_ns) FROM stat
      WHERE type = 'inbound-rtp' AND peer = 1 AND at_ns = 3000000000
      """, path)
    let told = try rows(
      """
      WITH told AS (SELECT inbound_rtp.peer, inbound_rtp.id, jitter_buffer_ms AS ms,
        (members ->> '$.jitterBufferEmittedCount') - lag(members ->> '$.jitterBufferEmittedCount',
          1, 0) OVER (PARTITION BY stat.peer, stat.id ORDER BY stat.row) AS emitted
        FROM inbound_rtp JOIN stat ON stat.step = inbound_rtp.step AND stat.id = inbound_rtp.id)
      SELECT sum(ms * emitted) / 1e3 FROM told WHERE peer = 1
      """, path)
    let (sum, parts) = (number(samples[0][0]) ?? 0, number(told[0][0]) ?? -1)
    #expect(sum > 0 && abs(sum - parts) < 1e-6 * sum)
  }

  @Test func framesOnTheirWayAndTheirPackets() throws {
    let call = try Call()
    let ways = try answer("from the encoder to the screen", call.path)
    #expect(ways.count == 4)
    // The packets are in transit for 10 ms, and then wait in the receiver's buffers.
    #expect(
      ways.allSatisfy { (number($0[4]) ?? 0) > 10 && number($0[4]) ?? 0 <= number($0[5]) ?? 0 })
    let largest = try answer("carried the largest frame", call.path)
    let frame = try rows(
      "SELECT max(size) FROM frame WHERE kind = 'video' AND direction = 'out'", call.path)
    // The packets' sizes also include the headers and the SRTP tags.
    let sizes = largest.filter { $0[12] == .integer(0) }.compactMap { number($0[10]) }
    #expect(sizes.reduce(0, +) > number(frame[0][0]) ?? .infinity)
    #expect(Set(largest.map { $0[8] }).count == 1)
    let last = largest.filter { $0[12] == .integer(0) }.max {
      number($0[9]) ?? 0 < number($1[9]) ?? 0
    }
    #expect(last?[11] == .integer(1))
  }

  @Test func feedbackReportsAndRequests() throws {
    let call = try Call()
    let truth = Set(try lost(call.path))
    let reported = try answer("feedback report as lost", call.path).filter { $0[0] == .integer(1) }
    #expect(reported.count > 10)
    for row in reported {
      guard case .integer(let ssrc) = row[1], case .integer(let sequence) = row[2] else {
        Issue.record("a packet without a number")
        continue
      }
      #expect(truth.contains(Packet(ssrc: ssrc, sequence: sequence)))
    }
    let blocks = try answer("remote peer report", call.path).filter { $0[0] == .integer(1) }
    let video = try rows(
      "SELECT ssrc FROM track WHERE peer = 1 AND kind = 'audio' AND direction = 'out'", call.path)
    let last = blocks.last { $0[2] == video[0][0] }
    let audio = truth.filter { .integer($0.ssrc) == video[0][0] }.count
    // The last report does not include losses after it.
    #expect((1...audio).contains(Int(number(last?[4] ?? .null) ?? 0)))
    let requests = try answer("request for a key frame", call.path)
    #expect(requests.allSatisfy { $0[3] == .null || (number($0[3]) ?? -1) >= 0 })
  }

  @Test func descriptionsLineByLine() throws {
    let path = Self.captures + "chromium-negotiates.take"
    let offers = try rows(
      """
      SELECT sdp FROM description WHERE direction = 'out' AND type = 'offer' ORDER BY row LIMIT 2
      """, path
    ).compactMap { text($0[0]) }
    try #require(offers.count == 2)
    func lines(_ sdp: String) -> Set<String> {
      var section = 0
      return Set(
        sdp.split(whereSeparator: \.isNewline).map { line in
          if line.hasPrefix("m=") { section += 1 }
          return "\(section) \(line)"
        })
    }
    let found = try answer("second offer", path)
    let told = Set(found.map { "\(Int(number($0[1]) ?? -1)) \(text($0[2]) ?? "")" })
    #expect(told == lines(offers[1]).subtracting(lines(offers[0])) && !told.isEmpty)
    let codecs = try answer("Which codecs were offered", path)
    #expect(codecs.contains { $0[4] == .text("111 opus/48000/2") && $0[3] == .text("0") })
    #expect(Set(codecs.compactMap { text($0[2]) }) == ["offer", "answer"])
  }

  /// Every question has an answer in takes of each kind, even if it is empty.
  @Test(arguments: [
    "janus-room", "observed-aiortc", "observed-firefox", "observed-clear-vp8", "aiortc-peer-offers",
    "formats/format-2", "formats/format-5",
  ])
  func everyQuestionCanBePutToEveryTake(_ name: String) throws {
    for example in QueryExample.all {
      #expect(throws: Never.self, "\(example.question)") {
        _ = try rows(example.sql, "\(Self.captures)\(name).take")
      }
    }
  }

  // MARK: Keys

  /// Each JSON key that occurs in a capture is documented.
  @Test func keysOfJSONAreExplained() throws {
    let queries = [
      ("take.toolchain", "SELECT '' AS type, toolchain AS json FROM take"),
      ("peer.configuration", "SELECT '' AS type, configuration AS json FROM peer"),
      (
        "actor.configuration",
        "SELECT kind AS type, configuration AS json FROM actor WHERE kind <> 'endpoint'"
      ),
      ("rtcp.fields", "SELECT type, fields AS json FROM rtcp"),
      ("call.arguments", "SELECT name AS type, arguments AS json FROM call"),
      ("call.reply", "SELECT name AS type, reply AS json FROM call WHERE reply IS NOT NULL"),
      ("event.detail", "SELECT type, detail AS json FROM event"),
    ]
    let folder = try FileManager.default.contentsOfDirectory(atPath: Self.captures)
    var seen = 0
    for name in folder.filter({ $0.hasSuffix(".take") }).sorted() {
      for (column, sql) in queries {
        let found = try rows(
          """
          SELECT DISTINCT held.type, json_tree.key FROM (\(sql)) AS held, json_tree(held.json)
          WHERE typeof(json_tree.key) = 'text'
          """, Self.captures + name)
        for row in found {
          let (type, key) = (text(row[0]) ?? "", text(row[1]) ?? "")
          #expect(
            JSONKey.isKnown(key, of: column, type: type), "\(name): \(column) of \(type): \(key)")
          seen += 1
        }
      }
    }
    #expect(seen > 500)
  }

  /// Every table and view documents what a row of it is.
  @Test func tablesAndViewsAreExplained() {
    let schema = QuerySchema()
    #expect(schema.tables.count > 60)
    for table in schema.tables { #expect(!table.comment.isEmpty, "\(table.name)") }
    let life = schema.tables.first { $0.name == "packet_life" }
    #expect(life?.columns.first { $0.name == "repair_row" }?.comment.hasPrefix("its first") == true)
    let store = schema.tables.first { $0.name == "state" }
    #expect(store?.columns.first { $0.name == "to_state" }?.type == "TEXT")
    #expect(schema.completions(of: "SELECT * FROM packet_l") == ["packet_life"])
  }

  /// Retransmissions have their originals' timestamps, so their spacing says nothing about a path.
  ///
  /// An observer gives them a track, which other takes do not.
  @Test(
    arguments: ["observed-aiortc", "observed-clear-vp8", "observed-firefox", "relayed-chromium"])
  func jitterIsThatOfMediaAndRetransmissionsAreCounted(_ name: String) throws {
    let path = "\(Self.captures)\(name).take"
    let jitter = try rows("SELECT max(jitter_ms) FROM jitter", path)
    #expect(try #require(number(jitter[0][0])) < 1_000)
    let counts = try rows(
      """
      SELECT (SELECT total(packets) FROM retransmission JOIN peer USING (peer)
          WHERE role = 'observed'),
        (SELECT total(1) FROM rtp JOIN peer USING (peer) WHERE role = 'observed' AND EXISTS (
          SELECT 1 FROM track WHERE track.peer = rtp.peer AND track.direction = rtp.direction
            AND track.ssrc = rtp.ssrc AND codec = 'rtx'))
      """, path)
    #expect(counts[0][0] == counts[0][1])
  }

  /// The legs of a relay have the tracks of their ends, and only retransmissions count as such.
  @Test func legsOfARelayHaveTracks() throws {
    let path = "\(Self.captures)relayed-janus.take"
    let media = try texts(
      """
      SELECT role, direction, kind, codec, count(*) FROM media_stream JOIN peer USING (peer)
      WHERE codec <> 'rtx' GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3
      """, path)
    #expect(
      media.filter { $0[0] == "relay" }.map { Array($0.dropFirst()) }
        == media.filter { $0[0] == "observed" }.map { Array($0.dropFirst()) })
    #expect(media.count == 8, "\(media)")
    let repairs = try texts("SELECT DISTINCT payload_type FROM repair ORDER BY 1", path)
    let types = try texts("SELECT DISTINCT payload_type FROM track WHERE codec <> 'rtx'", path)
    for type in types { #expect(!repairs.contains(type), "\(type)") }
    // The legs add no rows.
    let lives = try texts(
      "SELECT count(*), count(DISTINCT sent_row) FROM packet_life WHERE sent_row IS NOT NULL", path)
    #expect(lives[0][0] == lives[0][1])
    let people = try texts("SELECT name FROM person ORDER BY 1", path)
    #expect(people.map { $0[0] } == ["far end 1", "far end 2", "near end 1", "near end 2"])
    // The summary has each stream once, and the leg's connection is with its end.
    let summary = try TakeSummary(path: path, findings: TakeFindings(path: path))
    #expect(summary.media.count == 4)
    let near = summary.connections.first { $0.name == "near 1" }
    #expect(near?.other == "near end 1")
  }

  /// `packet_life` also has the packets that were lost before the observer, and the retransmission
  /// that replaced each.
  @Test func packetsLostBeforeTheObserverHaveLives() throws {
    let folder = try TakeFolder()
    let path = try folder.copy("observed-aiortc")
    let lost = try texts("SELECT count(*) FROM lost_packet WHERE direction = 'in'", path)
    let known = try texts(
      "SELECT count(*) FROM packet_life WHERE lost = 1 AND to_peer IS NOT NULL", path)
    #expect(lost == known)
    let repaired = try texts(
      """
      SELECT count(*) FROM packet_life JOIN repair ON repair."row" = repaired_row
        AND repair.peer = to_peer
      WHERE repair.direction <> 'in' OR original_sequence <> packet_life.sequence
      """, path)
    #expect(repaired == [["0"]])
  }

  /// Concealed audio has its runs, and changed descriptions have their lines.
  @Test func concealmentAndChangedLinesAreRows() throws {
    let lossy = "\(Self.captures)virtual-heavy-loss.take"
    let runs = try texts(
      """
      SELECT sum(blocks), (SELECT count(*) FROM frame WHERE outcome = 'concealed'),
        max(missing_ms) > 0, min(missing_ms), min(to_ns - from_ns) > 0 FROM concealment
      """, lossy)
    #expect(runs[0][0] == runs[0][1])
    #expect(runs[0][2...] == ["1", "0", "1"])
    let path = "\(Self.captures)chromium-negotiates.take"
    let changes = try texts("SELECT change, count(*) FROM sdp_change GROUP BY 1 ORDER BY 1", path)
    #expect(changes.map { $0[0] } == ["added", "removed"], "\(changes)")
    // A line that was added is in its description, and a line that was removed is not.
    let wrong = try texts(
      """
      SELECT count(*) FROM sdp_change AS changed
      WHERE (change = 'added') <> EXISTS (
        SELECT 1 FROM sdp_line WHERE sdp_line."row" = changed."row"
          AND sdp_line.peer = changed.peer AND sdp_line.section = changed.section
          AND sdp_line.text = changed.text)
      """, path)
    #expect(wrong == [["0"]])
  }
}
