package import Wire

/// The times of the steps of a take, out of the heads on its tape.
package enum StepTimes {
  /// The time of the last step of a take; nil when it has none.
  package static func end(of path: String) throws(TapeError) -> Instant? {
    let count = try find(1, in: path).count
    return try find(count, in: path).at
  }

  /// How many steps a take has, and when one of them was; nil when it has no such step.
  package static func find(_ step: Int, in path: String) throws(TapeError) -> (
    at: Instant?, count: Int
  ) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      let last = try connection.integer(
        "SELECT first_step + steps - 1 FROM tape ORDER BY first_step DESC LIMIT 1")
      let count = Int(last ?? 0)
      let rows = try connection.prepare(
        """
        SELECT first_step, steps, at_ns, body FROM tape WHERE first_step <= ?1
        ORDER BY first_step DESC LIMIT 1
        """)
      rows.bind(Int64(step), at: 1)
      guard (1...max(1, count)).contains(step), try rows.step() else { return (nil, count) }
      let (first, steps, start) = rows.values(Int.self, Int.self, Int64.self)
      let bytes = rows.bytes(3)
      let heads: [StepHead]
      do throws(ReadError) {
        heads = try TapeBody.heads(bytes.span.bytes, first: first, count: steps, start: start)
      } catch {
        throw SQLiteError(code: .corrupt, message: "the heads of step \(first) and later")
      }
      return (heads.first { $0.number == step }?.at, count)
    } catch {
      throw TapeError(path: path, place: "tape", error)
    }
  }

  /// A step that ran later than its machine asked for.
  package struct Late: Sendable, Hashable {
    package var actor: Int64
    /// When the machine wanted to be called.
    package var due: Int64
    package var at: Int64
  }

  /// The steps that ran later than their machine asked for: its process did not get to it.
  package static func late(
    by bound: Int64, atMost limit: Int, in connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Late] {
    var deadlines: [UInt32: Instant] = [:]
    var late: [Late] = []
    let rows = try connection.prepare(
      "SELECT first_step, steps, at_ns, body FROM tape ORDER BY first_step")
    while late.count < limit, try rows.step() {
      let (first, steps, start) = rows.values(Int.self, Int.self, Int64.self)
      let bytes = rows.bytes(3)
      let heads: [StepHead]
      do throws(ReadError) {
        heads = try TapeBody.heads(bytes.span.bytes, first: first, count: steps, start: start)
      } catch {
        // What is altered says nothing; `verify` names it.
        return late
      }
      for head in heads {
        if let due = deadlines[head.actor], head.at.nanoseconds &- due.nanoseconds >= bound {
          late.append(
            Late(actor: Int64(head.actor), due: due.nanoseconds, at: head.at.nanoseconds))
        }
        deadlines[head.actor] = head.deadline
      }
    }
    return late
  }
}
