import Foundation
import Lab
import Media
import Peer
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Views that are computed in one pass have the rows of their SQL, in takes of every kind.
struct ComputedViewTests {
  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"

  /// The rows of a query as texts, sorted; numbers to nine digits.
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

  /// What only keys tell: the SQL knows less there.
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
    "observed-clear-vp8", "observed-firefox", "janus-room", "formats/format-2",
    "formats/format-3", "formats/format-4", "formats/format-5",
  ])
  func theRowsAreThoseOfTheSQL(_ name: String) throws {
    try compare("\(Self.captures)\(name).take")
  }

  /// Numbers that begin anew by many and by few, packets that come late, twice and not at all: both
  /// cut the streams at the same packets.
  @Test(arguments: 0..<6) func theRowsAreThoseOfTheSQLWhereNumbersBeginAnew(_ seed: UInt64) throws {
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

  /// One row of a computed view can be asked for by each of its columns of whole numbers.
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

  /// A recorder may go on while its take is asked.
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

  // MARK: Under encryption

  /// What both ends recorded says which packet a retransmission repeats: it is of the same frame.
  @Test(arguments: ["virtual-loss", "virtual-heavy-loss"])
  func retransmissionsNameWhatTheyRepeat(_ name: String) throws {
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
    // A packet that came by a retransmission is not missing any more.
    #expect(
      try connection.integer(
        """
        SELECT count(*) FROM lost_packet WHERE repaired_ns IS NOT NULL AND repair_ms < 0
        """) == 0)
  }

  /// Feedback tells of each packet that was sent whether it arrived, as the other end's rows do.
  @Test func feedbackTellsWhatArrived() throws {
    let connection = try TakeFile.openForQueries(Self.captures + "virtual-heavy-loss.take")
    let told = try connection.integer("SELECT count(*) FROM arrival WHERE direction = 'in'") ?? 0
    #expect(told > 100)
    let (arrived, count) = (
      "SELECT sum(json_extract(fields, '$.received')) FROM rtcp WHERE type = 'transport-cc'",
      "SELECT sum(arrived) FROM arrival"
    )
    #expect(try connection.integer(arrived) == connection.integer(count))
    // What it tells to have arrived, the other end has.
    #expect(
      try connection.integer(
        """
        SELECT count(*) FROM arrival
        WHERE direction = 'in' AND arrived = 1 AND NOT EXISTS (
          SELECT 1 FROM rtp WHERE rtp.direction = 'in' AND rtp.peer <> arrival.peer
            AND rtp.ssrc = arrival.ssrc AND rtp.sequence = arrival.sequence)
        """) == 0)
    // Its times are as far apart as those that the other end measured, to a quarter of 1 ms.
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
