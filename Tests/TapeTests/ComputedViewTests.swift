import Foundation
import Lab
import Media
import Peer
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Views computed in one pass return the same rows as their SQL, in takes of every kind.
struct ComputedViewTests {
  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"

  /// Returns a query's rows as sorted strings, with numbers to nine digits.
  private static func rows(
    _ sql: String, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [String] {
    let statement = try connection.prepare(sql)
    var rows: [String] = []
    while try statement.step() {
      let cells = (0..<statement.columnCount).map { column in
        switch statement.value(column) ?? .null {
        case .null: "-"
        case .integer(let number): "\(number)"
        case .real(let number): "\((number * 1e4).rounded() / 1e4)"
        case .text(let text): text
        case .blob(let bytes): hexadecimal(bytes)
        }
      }
      rows.append(cells.joined(separator: " "))
    }
    return rows.sorted()
  }

  private static func names(_ sql: String, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> [String]
  {
    let statement = try connection.prepare(sql)
    return (0..<statement.columnCount).map { statement.columnName($0) }
  }

  /// Views that need keys: their SQL alone returns fewer rows.
  private static let opened = ["arrival", "repair"]

  private func compare(_ path: String) throws {
    let connection = try TakeFile.openForQueries(path)
    for view in ComputedView.all where !Self.opened.contains(view.name) {
      let query = try #require(TakeSchema.views.first { $0.name == view.name }?.query)
      let (computed, plain) = (
        try Self.rows("SELECT * FROM \(view.name)", connection), try Self.rows(query, connection)
      )
      #expect(computed == plain, "\(path): \(view.name)")
      #expect(
        try Self.names("SELECT * FROM \(view.name)", connection)
          == Self.names(query, connection), "\(view.name)")
    }
    for view in Self.opened {
      let query = try #require(TakeSchema.views.first { $0.name == view }?.query)
      #expect(
        try Self.names("SELECT * FROM \(view)", connection) == Self.names(query, connection))
    }
  }

  @Test(arguments: [
    "virtual-loss", "virtual-heavy-loss", "chromium-negotiates", "observed-aiortc",
    "observed-clear-vp8", "observed-firefox", "janus-room", "chromium-retake-offers-h264",
    "formats/format-2", "formats/format-3", "formats/format-4", "formats/format-5",
  ])
  func theRowsAreThoseOfTheSQL(_ name: String) throws {
    try compare("\(Self.captures)\(name).take")
  }

  /// Tests video that a peer sends back as it received it, without an encoder.
  @Test func aFrameThatIsPassedOnHasItsPackets() throws {
    let connection = try TakeFile.openForQueries(
      Self.captures + "chromium-retake-offers-h264.take")
    let sent = try Self.rows(
      """
      SELECT count(DISTINCT frame_row), count(*) FROM frame_packet
      WHERE direction = 'out' AND kind = 'video'
      """, connection)
    #expect(sent == ["24 53"])
  }

  /// Sequence numbers that restart at near and distant values, with late, repeated and lost
  /// packets: the computed view and its SQL split the streams at the same packets.
  @Test(arguments: 0..<6) func theRowsAreThoseOfTheSQLWhenNumbersRestart(_ seed: UInt64) throws {
    let folder = try TakeFolder()
    let path = try folder.record([], as: "\(seed).take")
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    func below(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % bound
    }
    var (sequence, time, at) = (1000, 5000, 0)
    var packets: [(Int, Int)] = []
    for number in 1...1500 {
      if number % 150 == 0 { sequence -= below(3) == 0 ? below(9000) : below(140) }
      if number % 400 == 0 { time += below(2_000_000_000) - 1_000_000_000 }
      packets.append((sequence & 0xffff, time & 0xffff_ffff))
      if below(60) == 0 { packets.append(packets[max(0, packets.count - 1 - below(120))]) }
      sequence += below(40) == 0 ? 1 + below(8) : 1
      time += below(4) == 0 ? 0 : 3000
    }
    for place in packets.indices.dropLast(5) where below(25) == 0 {
      packets.swapAt(place, place + 1 + below(4))
    }
    let rows = packets.enumerated().map { place, packet in
      at += below(200) == 0 ? 900_000_000 : 10_000_000
      let (sequence, time) = packet
      return "(\((place + 100) << 16), \(at), 1, 7, 96, \(sequence), \(time), NULL, 10, 0, NULL)"
    }
    try folder.alter(
      path,
      """
      INSERT INTO peer VALUES (1, 1, 0, 'a', '', x'', 0, '{}', 1);
      INSERT INTO path VALUES (1, 2, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
      INSERT INTO track VALUES (4, 1, 0, 1, '0', 'video', 'in', 7, 'vp8', 96, 90000, 0);
      INSERT INTO wire VALUES (0, zeroblob(8152));
      INSERT INTO tape VALUES (1, 1, 0, x'', x'');
      INSERT INTO packet_store VALUES \(rows.joined(separator: ", "));
      """)
    try compare(path)
  }

  /// A stream between two peers whose RTP times and numbers wrap and jump far back, with packets
  /// lost, late, duplicated and retransmitted on request, and frames captured, encoded and decoded:
  /// the computed views and their SQL match the same packets across every jump.
  @Test(arguments: 0..<4) func theRowsAreThoseOfTheSQLWhenTimesJump(_ seed: UInt64) throws {
    let folder = try TakeFolder()
    let path = try folder.record([], as: "times-\(seed).take")
    var call = JumpingCall(seed)
    try folder.alter(path, call.statements(frames: 400))
    try compare(path)
  }

  /// A row of a computed view can be looked up by any of its integer columns.
  @Test func rowsAreLookedUpByTheirColumns() throws {
    let connection = try TakeFile.openForQueries(Self.captures + "virtual-loss.take")
    for view in ComputedView.all {
      for column in view.columns where column.kind == .integer {
        let name = column.name
        #expect(
          try connection.integer(
            """
            SELECT count(*) FROM \(view.name) AS whole WHERE \(name) IS NOT NULL AND 0 = (
              SELECT count(*) FROM \(view.name) AS one WHERE one.\(name) = whole.\(name))
            """) == 0, "\(view.name).\(name)")
        let counts = try connection.prepare(
          """
          SELECT count(*), (SELECT count(*) FROM \(view.name) WHERE \(name) = found),
            (SELECT count(*) FROM \(view.name) WHERE +\(name) = found)
          FROM (SELECT max(\(name)) AS found FROM \(view.name)) WHERE found IS NOT NULL
          """)
        while try counts.step() {
          #expect(counts.integer(1) == counts.integer(2), "\(view.name).\(name)")
        }
      }
    }
  }

  /// The recorder may continue while its take is queried.
  @Test func rowsGrowWithTheTake() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 11)
    call.run(500)
    call.recorded.flush()
    let connection = try TakeFile.openForQueries(call.path)
    let before = try connection.integer("SELECT sum(packets) FROM stream") ?? 0
    call.run(500)
    call.recorded.flush()
    let after = try connection.integer("SELECT sum(packets) FROM stream") ?? 0
    #expect(before > 0 && after > before)
    try call.finish()
  }

  // MARK: Encrypted packets

  /// With both ends recorded, a retransmission's original is known, because it belongs to the same
  /// frame.
  @Test(arguments: ["virtual-loss", "virtual-heavy-loss"])
  func retransmissionsNameTheirOriginals(_ name: String) throws {
    let connection = try TakeFile.openForQueries("\(Self.captures)\(name).take")
    let count = try connection.integer("SELECT count(*) FROM repair") ?? 0
    #expect(count > 20)
    #expect(
      try connection.integer(
        """
        SELECT count(*) FROM repair JOIN rtp ON rtp.direction = 'out'
          AND rtp.ssrc = original_ssrc AND rtp.sequence = original_sequence
          AND rtp.rtp_time = repair.rtp_time
        """) == count)
    // A packet restored by a retransmission is no longer missing.
    #expect(
      try connection.integer(
        """
        SELECT count(*) FROM lost_packet WHERE repaired_ns IS NOT NULL AND repair_ms < 0
        """) == 0)
  }

  /// Feedback states for each sent packet whether it arrived, in agreement with the other end's
  /// rows.
  @Test func feedbackReportsWhichPacketsArrived() throws {
    let connection = try TakeFile.openForQueries(Self.captures + "virtual-heavy-loss.take")
    let told = try connection.integer("SELECT count(*) FROM arrival WHERE direction = 'in'") ?? 0
    #expect(told > 100)
    let (arrived, count) = (
      "SELECT sum(json_extract(fields, '$.received')) FROM rtcp WHERE type = 'transport-cc'",
      "SELECT sum(arrived) FROM arrival"
    )
    #expect(try connection.integer(arrived) == connection.integer(count))
    // Packets reported as arrived exist at the other end.
    #expect(
      try connection.integer(
        """
        SELECT count(*) FROM arrival
        WHERE direction = 'in' AND arrived = 1 AND NOT EXISTS (
          SELECT 1 FROM rtp WHERE rtp.direction = 'in' AND rtp.peer <> arrival.peer
            AND rtp.ssrc = arrival.ssrc AND rtp.sequence = arrival.sequence)
        """) == 0)
    // The intervals between reported times equal the intervals measured at the other end, within 1
    // ms.
    #expect(
      try connection.integer(
        """
        SELECT count(*) FROM (
          SELECT arrival_ms - rtp.at_ns / 1e6 AS distance FROM arrival
          JOIN rtp ON rtp.direction = 'in' AND rtp.peer <> arrival.peer
            AND rtp.ssrc = arrival.ssrc AND rtp.sequence = arrival.sequence
          WHERE arrival.direction = 'in' AND arrival.peer = 1 AND arrived = 1
          GROUP BY arrival.packet_row HAVING count(*) = 1)
        HAVING max(distance) - min(distance) > 1
        """) == nil)
  }
}

/// The rows of a call from peer 1 to peer 2 whose times jump.
private struct JumpingCall {
  private var state: UInt64
  private var step = 100
  private var at = 0
  private var rows: [String: [String]] = [:]

  init(_ seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 | 1 }

  private mutating func below(_ bound: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % bound
  }

  private mutating func add(_ table: String, _ values: (Int) -> String) {
    step += 1
    rows[table, default: []].append("(\(values(step << 16)))")
  }

  /// Adds a packet of one end; `path` is 1 at the sender and 2 at the receiver.
  private mutating func addPacket(path: Int, ssrc: Int, type: Int, _ sequence: Int, _ time: Int) {
    let now = at + (path == 1 ? 0 : 20_000_000 + below(30_000_000))
    add("packet_store") { row in
      // Times and sequence numbers are stored as signed integers of the same width.
      let (signed, number) = (Int32(truncatingIfNeeded: time), Int16(truncatingIfNeeded: sequence))
      return "\(row), \(now), \(path), \(ssrc), \(type), \(number), \(signed), NULL, 100, 0, NULL"
    }
  }

  private mutating func addRequest(_ sequence: Int) {
    for (peer, direction) in [(2, "out"), (1, "in")] {
      let now = at
      add("rtcp") { row in
        "\(row), \(peer), \(now), '\(direction)', 'nack', 7, '{\"sequences\":[\(sequence)]}'"
      }
    }
  }

  private mutating func addFrame(_ format: Int, _ time: Int, _ now: Int) {
    add("frame_store") { row in
      let signed = Int32(truncatingIfNeeded: time)
      return "\(row), \(now), \(format), \(signed), 900, 0, NULL, 0, 0, NULL, NULL"
    }
  }

  /// Sends the packets of a frame, and adds them at the receiver.
  private mutating func send(_ numbers: [Int], _ time: Int) {
    var arrived: [Int] = []
    for sequence in numbers {
      addPacket(path: 1, ssrc: 7, type: 96, sequence, time)
      switch below(12) {
      case 0:
        addRequest(sequence & 0xffff)
        addPacket(path: 1, ssrc: 8, type: 97, sequence, time)
        if below(3) > 0 { addPacket(path: 2, ssrc: 8, type: 97, sequence, time) }
      case 1: break
      case 2: arrived += [sequence, sequence]
      default: arrived.append(sequence)
      }
    }
    if below(5) == 0 { arrived.reverse() }
    for sequence in arrived { addPacket(path: 2, ssrc: 7, type: 96, sequence, time) }
  }

  /// Returns the statements that add a call to an empty take.
  mutating func statements(frames: Int) -> String {
    // Sequence number and time both wrap within the first tenth of the frames.
    var (sequence, time) = (65_500, 4_294_967_000)
    for number in 1...frames {
      // The steps are not multiples of a frame's duration, so no two packets share number and time.
      if number % 90 == 0 { time -= below(3) == 0 ? 2_000_000_001 : 300_001 }
      if number % 70 == 0 { sequence -= below(400) }
      let count = 1 + below(4)
      if below(4) > 0 {
        let (now, row) = (at - 5_000_000, (step + 1) << 16)
        rows["capture", default: []].append(
          "(\(row), 1, \(now), 1, 'video', 8, 8, NULL, NULL, NULL)")
      }
      addFrame(1, time - 5_000, at)
      send((0..<count).map { sequence + $0 }, time)
      if below(9) > 0 { addFrame(below(9) > 0 ? 2 : 3, time, at + 90_000_000) }
      sequence += count
      time += below(8) == 0 ? 0 : 3_000
      at += 33_000_000
    }
    let columns = [
      "capture": " (row, peer, at_ns, track, kind, width, height, channels, samples, content)"
    ]
    let inserts = rows.map { table, rows in
      "INSERT INTO \(table)\(columns[table] ?? "") VALUES \(rows.joined(separator: ", "));"
    }
    return """
      INSERT INTO peer VALUES (1, 1, 0, 'a', '', x'', 0, '{}', 1),
        (2, 2, 0, 'b', '', x'', 0, '{}', 2);
      INSERT INTO path VALUES (1, 2, 1, 'out', '192.0.2.1:1', '192.0.2.2:2'),
        (2, 3, 2, 'in', '192.0.2.2:2', '192.0.2.1:1');
      INSERT INTO track VALUES (4, 1, 0, 1, '0', 'video', 'out', 7, 'vp8', 96, 90000, 0),
        (5, 2, 0, 1, '0', 'video', 'in', 7, 'vp8', 96, 90000, 0);
      INSERT INTO format VALUES
        (1, 6, 1, 1, 'video', 'out', 'vp8', 7, 'encoded', 0, 0, 8, 8, NULL, NULL),
        (2, 7, 2, 1, 'video', 'in', 'vp8', 7, 'decoded', 0, 0, 8, 8, NULL, NULL),
        (3, 8, 2, 1, 'video', 'in', 'vp8', 7, 'undecodable', 0, 0, 8, 8, NULL, NULL);
      INSERT INTO wire VALUES (0, zeroblob(8152));
      INSERT INTO tape VALUES (1, 1, 0, x'', x'');
      \(inserts.sorted().joined(separator: "\n"))
      """
  }
}
