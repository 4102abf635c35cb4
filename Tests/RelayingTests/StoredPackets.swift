import Foundation
import Tape
import Testing

/// The decrypted packets in a relay's take, and the bytes of its file.
struct StoredPackets {
  let path: String
  /// The distinct packets that the legs received from each other.
  let packets: Set<[UInt8]>
  /// The number of packets, including duplicates.
  let count: Int

  init(_ path: String) throws {
    self.path = path
    let take = try TakeFile.openForQueries(path)
    let rows = try take.prepare("SELECT bytes FROM relayed")
    var all: [[UInt8]] = []
    while try rows.step() { all.append(rows.bytes(0)) }
    count = all.count
    packets = Set(all)
  }

  /// Checks that the file has each packet's bytes at one place, whoever received or saw them.
  func checkAreStoredOnce() throws {
    let take = try TakeFile.openForQueries(path)
    let seen = try take.integer(
      "SELECT count(*) FROM packet_store JOIN path USING (path) WHERE path.peer = 0")
    #expect(count > 100 && seen ?? 0 > 100)
    // The last packets may not reach the other leg, if the call ends while a fault holds them.
    let alone = try take.prepare(
      """
      SELECT packet.bytes FROM packet JOIN packet_store ON packet_store.row = packet.row
        JOIN path ON path.path = packet_store.path
      WHERE path.peer = 0
        AND packet_store.position NOT IN (SELECT position FROM relayed_store)
      """)
    while try alone.step() { #expect(!packets.contains(alone.bytes(0))) }
    let file = try Data(contentsOf: URL(filePath: path))
    // Some packets begin on one page of the file and end on another, so they are not found. Short
    // packets may be parts of others.
    let long = packets.filter { $0.count > 100 }
    var found = 0
    for packet in long {
      guard let first = file.range(of: Data(packet)) else { continue }
      found += 1
      let again = file.range(of: Data(packet), in: first.lowerBound + 1..<file.count)
      #expect(again == nil, "\(packet.count) bytes are in the file twice")
    }
    #expect(found > long.count / 2)
    let wire = try take.integer("SELECT sum(length(bytes)) FROM wire")
    let own = try take.integer(
      """
      SELECT (SELECT sum(size) FROM packet_store JOIN path USING (path) WHERE path.peer > 0)
        + (SELECT sum(size) FROM (
          SELECT position, size FROM relayed_store
          UNION SELECT position, size FROM packet_store JOIN path USING (path) WHERE path.peer = 0))
      """)
    #expect(wire == own)
  }

  /// Removes all transactions after a step, as if the recorder had been killed after them; returns
  /// the number of remaining steps.
  static func cut(_ path: String, atStep step: Int64) throws -> Int64 {
    let file = try SQLiteConnection(path: path, mode: .readWrite)
    let kept = try #require(
      try file.integer("SELECT max(first_step + steps - 1) FROM tape WHERE first_step <= \(step)"))
    try file.execute("DELETE FROM ending; DELETE FROM tape WHERE first_step > \(kept)")
    for table in Table.allCases {
      try file.execute("DELETE FROM \(table.storageName) WHERE row >> 16 > \(kept)")
    }
    for (stream, stores) in [
      ("wire", ["packet_store", "relayed_store"]), ("media", ["frame_store"]),
    ] {
      let ends = stores.map { "SELECT max(position + size) AS place FROM \($0)" }
      let end = try file.integer(
        "SELECT max(place) FROM (\(ends.joined(separator: " UNION ALL ")))")
      let rest = (end ?? 0) % 8152
      try file.execute(
        """
        DELETE FROM \(stream) WHERE piece > \((end ?? 0) / 8152 - (rest == 0 ? 1 : 0));
        UPDATE \(stream) SET bytes = CAST(substr(bytes, 1, \(rest)) AS BLOB)
        WHERE \(rest) > 0 AND piece = \((end ?? 0) / 8152)
        """)
    }
    return kept
  }
}
