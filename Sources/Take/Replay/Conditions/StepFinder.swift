package import Tape
import Wire

/// Finds the steps whose rows satisfy a condition.
///
/// It reads the tables without running the stack, which is fast even for a take of an hour.
package final class StepFinder {
  let path: String
  let connection: SQLiteConnection
  /// The take's format, which determines its columns.
  private let format: Int64
  private var memory = RowMemory()

  /// Opens a take and reads the rows that other rows refer to by number.
  package init(path: String) throws(TapeError) {
    self.path = path
    connection = try TakeFile.open(path)
    format = try TakeHeader.read(from: connection, path: path).format
    for table in [Table.peer, .path, .format] {
      try scan(
        table, "SELECT row, 0, 0, \(columns(of: table).joined(separator: ", ")) FROM \(table.name)"
      ) { rows, _ in
        memory.learn(rows, 0..<1)
        return false
      }
    }
  }

  /// Returns the first step after `step` whose rows satisfy a condition; nil if there is none or
  /// the condition is not about rows.
  package func first(_ condition: StepCondition, after step: Int) throws(TapeError) -> Int? {
    try find(condition, "row >= \(Int64(step + 1) << 16)", "ASC") { $0.min() }
  }

  /// Returns the last step before `step` whose rows satisfy a condition; nil if there is none or
  /// the condition is not about rows.
  package func last(_ condition: StepCondition, before step: Int) throws(TapeError) -> Int? {
    try find(condition, "row < \(Int64(step) << 16)", "DESC") { $0.max() }
  }

  private func find(
    _ condition: StepCondition, _ range: String, _ order: String, among: ([Int]) -> Int?
  ) throws(TapeError) -> Int? {
    guard case .rows(let tables) = condition.subject else { return nil }
    var found: [Int] = []
    for table in tables where table.since <= format {
      try scan(table, query(table, condition, range, order)) { rows, head in
        let facts = RowFacts(
          rows: rows, row: 0, peer: head.peer, isInput: head.isInput, memory: memory)
        guard condition.matches(facts) else { return false }
        found.append(head.step)
        return true
      }
    }
    return among(found)
  }

  /// Returns the columns that a table has in the take's format.
  private func columns(of table: Table) -> [String] { table.columnNames(format: format) }

  private struct Head {
    var step: Int
    var peer: UInt32
    /// Whether the row is a received datagram.
    var isInput: Bool
  }

  /// Calls the body for each row of a query until the body returns true.
  private func scan(
    _ table: Table, _ sql: String, _ body: (RowList, Head) -> Bool
  ) throws(TapeError) {
    do throws(SQLiteError) {
      let statement = try connection.prepare(sql)
      while try statement.step() {
        let (row, peer, isInput) = statement.values(Int64.self, UInt32.self, Bool.self)
        // The first three columns are the row, the peer and whether the row is an input.
        let values = columns(of: table).indices.map { statement.value(3 + $0) ?? .null }
        var rows = RowList()
        rows.append(table, values)
        let head = Head(step: Int(row >> 16), peer: peer, isInput: isInput)
        if body(rows, head) { return }
      }
    } catch {
      throw TapeError(path: path, place: table.name, error)
    }
  }

  private func query(_ table: Table, _ condition: StepCondition, _ range: String, _ order: String)
    -> String
  {
    let end = "ORDER BY store.row \(order)"
    switch table {
    case .packet:
      let bytes = "(SELECT bytes FROM packet WHERE packet.row = store.row)"
      return """
        SELECT store.row, path.peer, path.direction = 'in', \(list(table, bytes: bytes))
        FROM packet_store AS store CROSS JOIN path USING (path)
        WHERE store.\(range) \(narrowed(condition)) \(end)
        """
    case .frame:
      return """
        SELECT store.row, format.peer, 0, \(list(table, bytes: "NULL"))
        FROM frame_store AS store CROSS JOIN format USING (format)
        WHERE store.\(range) \(end)
        """
    default:
      let peer = table.column("peer") == nil ? "0" : "peer"
      return """
        SELECT row, \(peer), 0, \(columns(of: table).joined(separator: ", "))
        FROM \(table.storageName) AS store WHERE \(range) \(end)
        """
    }
  }

  /// Returns the columns of a table for a SELECT, with an expression in place of `bytes`.
  private func list(_ table: Table, bytes: String) -> String {
    columns(of: table).map { $0 == "bytes" ? bytes : "store.\($0)" }.joined(separator: ", ")
  }

  /// Returns SQL terms that exclude most datagrams before their bytes are read.
  private func narrowed(_ condition: StepCondition) -> String {
    var terms = ""
    for word in condition.words {
      switch word {
      case "in", "out": terms += " AND path.direction = '\(word)'"
      case "rtp": terms += " AND store.marker_type IS NOT NULL"
      case "rtcp": terms += " AND store.marker_type IS NULL AND store.ssrc IS NOT NULL"
      case "stun", "dtls": terms += " AND store.ssrc IS NULL"
      default: break
      }
    }
    for test in condition.tests where test.field == "ssrc" && test.comparison == "=" {
      guard let ssrc = UInt32(test.value) else { continue }
      terms += " AND store.ssrc = \(Int32(bitPattern: ssrc))"
    }
    return terms
  }
}

// MARK: - Stats

extension StepFinder {
  /// Returns the ranges of steps within which a condition about a counter may become true; nil if
  /// the samples cannot show them.
  ///
  /// If one sample is below the threshold and the next one above, the counter reached it between
  /// them. If the stream ended with the counter below the threshold, the counter may still have
  /// reached it after the last sample.
  package func spans(of condition: StepCondition, stepCount: Int) throws(TapeError)
    -> [ClosedRange<Int>]?
  {
    guard let growth = condition.growth, let types = condition.statsTypes else { return nil }
    var samples = Samples(growth)
    do throws(SQLiteError) {
      let steps = try connection.prepare(
        "SELECT DISTINCT peer, row >> 16 AS step FROM stat ORDER BY step")
      while try steps.step() {
        let (peer, step) = steps.values(Int64.self, Int.self)
        samples.steps[peer, default: []].append(step)
      }
      let names = types.sorted().map { "'\($0)'" }.joined(separator: ", ")
      let columns = ["kind", "ssrc", "mid"].map { "members ->> '$.\($0)'" }
      let rows = try connection.prepare(
        """
        SELECT peer, id, row >> 16, type, members ->> '$.\(growth.member)',
          \(columns.joined(separator: ", "))
        FROM stat WHERE type IN (\(names)) ORDER BY row
        """)
      while try rows.step() {
        let (peer, id, step, type, member, kind, ssrc, mid) = rows.values(
          Int64.self, String.self, Int.self, String.self, String?.self, String?.self,
          String?.self, String?.self)
        let values = [
          "peer": String(peer), "id": id, "type": type, "kind": kind, "ssrc": ssrc, "mid": mid,
        ]
        let isWanted = growth.others.allSatisfy { test in
          values[test.field].flatMap { $0 }.map(test.holds) ?? false
        }
        guard isWanted, let value = member.flatMap({ Double($0) }) else { continue }
        samples.record("\(peer) \(id)", peer: peer, step: step, value)
      }
    } catch {
      throw TapeError(path: path, place: "stat", error)
    }
    return samples.spans(stepCount: stepCount)
  }

  /// The samples of the objects that a condition is about.
  private struct Samples {
    /// The steps in which each peer's stats were sampled.
    var steps: [Int64: [Int]] = [:]
    private var objects: [String: Object] = [:]
    private var spans: [ClosedRange<Int>] = []
    private let growth: StepCondition.Growth

    private struct Object {
      var peer: Int64
      var last = 0
      var value = -Double.infinity
    }

    init(_ growth: StepCondition.Growth) { self.growth = growth }

    mutating func record(_ name: String, peer: Int64, step: Int, _ value: Double) {
      var object = objects[name] ?? Object(peer: peer)
      // A counter may fall for a moment, so a value near the threshold counts as below and above
      // it.
      if object.value <= growth.threshold + growth.slack,
        value >= growth.threshold - growth.slack
      {
        spans.append((sample(of: peer, before: step) ?? 0) + 1...step)
      }
      object.last = step
      object.value = value
      objects[name] = object
    }

    /// Returns the step of a peer's last sample before a step; nil if there is none.
    private func sample(of peer: Int64, before step: Int) -> Int? {
      guard let steps = steps[peer] else { return nil }
      var (low, high) = (0, steps.count)
      while low < high {
        let middle = (low + high) / 2
        if steps[middle] < step { low = middle + 1 } else { high = middle }
      }
      return low > 0 ? steps[low - 1] : nil
    }

    /// Returns all ranges in order, merging ranges that overlap or touch.
    func spans(stepCount: Int) -> [ClosedRange<Int>] {
      var spans = spans
      for object in objects.values where object.value <= growth.threshold + growth.slack {
        let next = steps[object.peer]?.first { $0 > object.last } ?? stepCount
        spans.append(min(object.last + 1, next)...next)
      }
      // An object without a sample may have existed before the first sample or after the last.
      for steps in steps.values {
        spans.append(1...(steps.first ?? stepCount))
        spans.append(min((steps.last ?? 0) + 1, stepCount)...stepCount)
      }
      var merged: [ClosedRange<Int>] = []
      for span in spans.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        if let last = merged.last, span.lowerBound <= last.upperBound + 1 {
          let end = max(last.upperBound, span.upperBound)
          merged[merged.count - 1] = last.lowerBound...end
        } else {
          merged.append(span)
        }
      }
      return merged
    }
  }
}
