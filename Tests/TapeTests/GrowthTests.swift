import Foundation
import Testing

@testable import Queries
@testable import Tape

/// The work of views and rules grows linearly with a call's length: for twice the rows, SQLite's
/// virtual machine executes twice the operations.
struct GrowthTests {
  /// Fills an empty take's tables with a call of the given size.
  private func take(_ folder: TakeFolder, _ count: Int) throws -> String {
    let path = try folder.record([], as: "\(count).take")
    let numbers =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
    let stamp = "i << 16, 1, i * 20000000"
    try folder.alter(
      path,
      """
      PRAGMA synchronous = OFF;
      BEGIN;
      INSERT INTO peer VALUES (1, 1, 0, 'a', '', x'', 0, '{}', 1);
      INSERT INTO path VALUES (1, 2, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
      INSERT INTO path VALUES (2, 3, 1, 'out', '192.0.2.1:1', '192.0.2.2:2');
      INSERT INTO track VALUES (4, 1, 0, 1, '0', 'video', 'in', 7, 'vp8', 96, 90000, 0);
      INSERT INTO format VALUES (1, 5, 1, 1, 'video', 'in', 'vp8', 7, 'decoded', 1, 0, 64, 48, NULL,
        NULL);
      INSERT INTO format VALUES (2, 6, 1, 2, 'audio', 'in', 'opus', 8, 'concealed', 1, 0, NULL,
        NULL, 1, 960);
      INSERT INTO actor_store VALUES (7, 2, 0, 3, 'room', '{}', x'');
      INSERT INTO wire VALUES (0, zeroblob(8152));
      INSERT INTO tape VALUES (1, 1, 0, x'', x'');
      \(numbers) INSERT INTO packet_store
        SELECT i << 16, i * 20000000, 1 + i % 2, 7, 96, i & 32767, i * 3000, NULL, 10, 0, NULL
        FROM n;
      \(numbers) INSERT INTO frame_store
        SELECT (i << 16) + 1, i * 20000000, 1 + i % 2, i * 3000, 10, 5, NULL, 9, 9, NULL, NULL
        FROM n;
      \(numbers) INSERT INTO rtcp SELECT \(stamp), 'out', 'pli', 7, '{}' FROM n;
      \(numbers) INSERT INTO state
        SELECT \(stamp), iif(i % 2, 'connection', 'ice-connection'),
          'x', iif(i % 4 < 2, 'connected', 'disconnected') FROM n;
      \(numbers) INSERT INTO candidate_pair
        SELECT \(stamp), i % 3, '192.0.2.1:1', 'host', '192.0.2.2:2', 'host', '192.0.2.1:1',
          'succeeded', 1, i / 3 % 2, 1, i, i, i, i, i, NULL, i FROM n;
      \(numbers) INSERT INTO stat
        SELECT (i << 16) + 2, 1, i * 20000000, i, 's' || i % 9, 'inbound-rtp', i,
          '{"ssrc":7,"kind":"video","mid":"0"}' FROM n;
      \(numbers) INSERT INTO event
        SELECT (i << 16) + 3, 1, i * 20000000, iif(i % 2, 'speaker', 'mutedspeech'),
          '{"track":1,"direction":"in","phase":"began"}' FROM n;
      \(numbers) INSERT INTO level
        SELECT (i << 16) + 4, 1, i * 20000000, 2, 'in', i % 3, 4800, 9, 9, 40, 1 FROM n;
      \(numbers) INSERT INTO speech
        SELECT (i << 16) + 5, 1, i * 20000000, 2, 'in', NULL, 'ended', i * 20000000,
          i * 20000000 + 1000, 1, -30 FROM n;
      \(numbers) INSERT INTO call_request
        SELECT (i << 16) + 6, 1, i * 20000000, i, 'getStats', '{}' FROM n;
      \(numbers) INSERT INTO call_reply SELECT (i << 16) + 7, 1, i * 20000000, i, '{}', NULL FROM n;
      \(numbers) INSERT INTO message_store
        SELECT (i << 16) + 8, 1, i * 20000000, 'in', 0, NULL, 1, 3, NULL, x'010203' FROM n;
      \(numbers) INSERT INTO presence
        SELECT (i << 16) + 9, 2, i * 20000000, i % 50, 'p' || i % 50, '', 0, i / 50 % 2 FROM n;
      \(numbers) INSERT INTO carriage
        SELECT (i << 16) + 10, 1, i * 20000000, 2, i % 50, 1, 'video', 'in', 1, '', i % 2 FROM n;
      COMMIT;
      """)
    return path
  }

  /// Returns how many thousands of operations SQLite executes for a query.
  private func work(_ query: String, _ connection: borrowing SQLiteConnection) throws -> Int {
    final class Count { var asked = 0 }
    let count = Count()
    let watch = SQLiteWatch {
      count.asked += 1
      return count.asked < 200_000
    }
    connection.setWatch(watch)
    let rows = try connection.prepare(query)
    while try rows.step() {}
    connection.setWatch(nil)
    return withExtendedLifetime(watch) { count.asked }
  }

  @Test func viewsAndRulesGrowWithTheTakeAndNotFaster() throws {
    let folder = try TakeFolder()
    let short = try TakeFile.openForQueries(try take(folder, 1_500))
    let long = try TakeFile.openForQueries(try take(folder, 6_000))
    let queries =
      TakeSchema.views.map { ($0.name, "SELECT * FROM \($0.name)") }
      + FindingRule.all.filter { $0.detector == nil }.map { ($0.id, $0.sql) }
    for (name, query) in queries {
      guard let few = try? work(query, short), let many = try? work(query, long) else {
        Issue.record("\(name): it takes too long")
        continue
      }
      // Sorting adds a logarithmic factor, and constant work weighs more in the short take.
      #expect(many <= 6 * max(few, 20), "\(name): \(few) and \(many) of four times the rows")
    }
  }
}
