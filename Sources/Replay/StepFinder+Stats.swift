package import Tape

extension StepFinder {
  /// The steps among which a condition about growing stats comes true, in order; nil when samples
  /// of a take cannot tell.
  ///
  /// A take has a sample of the stats now and then. A counter that had not reached a threshold in
  /// one of them and has in the next reached it in between; where a stream ended it may have done
  /// so after the last sample.
  package func spans(of condition: StepCondition, stepCount: Int) throws(TapeError)
    -> [ClosedRange<Int>]?
  {
    guard let growth = condition.growth, let types = condition.statsTypes else { return nil }
    let member = growth.threshold.field
    var samples = Samples()
    do throws(SQLiteError) {
      var steps = try connection.prepare(
        "SELECT DISTINCT peer, row >> 16 AS step FROM stat ORDER BY step")
      while try steps.step() {
        samples.steps[steps.integer(0), default: []].append(Int(steps.integer(1)))
      }
      let names = types.sorted().map { "'\($0)'" }.joined(separator: ", ")
      let columns = ["kind", "ssrc", "mid"].map { "members ->> '$.\($0)'" }
      var rows = try connection.prepare(
        """
        SELECT peer, id, row >> 16, type, members ->> '$.\(member)',
          \(columns.joined(separator: ", "))
        FROM stat WHERE type IN (\(names)) ORDER BY row
        """)
      while try rows.step() {
        let values = [
          "peer": String(rows.integer(0)), "id": rows.text(1), "type": rows.text(3),
          "kind": rows.text(5), "ssrc": rows.text(6), "mid": rows.text(7),
        ]
        let isWanted = growth.others.allSatisfy { test in
          values[test.field].flatMap { $0 }.map(test.holds) ?? false
        }
        guard isWanted, let value = rows.text(4) else { continue }
        samples.note(
          "\(rows.integer(0)) \(rows.text(1) ?? "")", peer: rows.integer(0),
          step: Int(rows.integer(2)), holds: growth.threshold.holds(value))
      }
    } catch {
      throw TapeError(path: path, place: "stat", error)
    }
    return samples.spans(stepCount: stepCount)
  }

  /// What the samples say of the objects that a condition is about.
  private struct Samples {
    /// The steps at which each peer's stats were taken.
    var steps: [Int64: [Int]] = [:]
    private var objects: [String: Object] = [:]

    private struct Object {
      var peer: Int64
      var last = 0
      var reached: Int?
    }

    mutating func note(_ name: String, peer: Int64, step: Int, holds: Bool) {
      var object = objects[name] ?? Object(peer: peer)
      if holds, object.reached == nil { object.reached = step }
      object.last = step
      objects[name] = object
    }

    /// The spans in order, those that overlap as one.
    func spans(stepCount: Int) -> [ClosedRange<Int>] {
      var spans = objects.values.map { object in
        let steps = steps[object.peer] ?? []
        if let reached = object.reached {
          return (steps.last { $0 < reached } ?? 0) + 1...reached
        }
        let next = steps.first { $0 > object.last } ?? stepCount
        return min(object.last + 1, next)...next
      }
      // An object that no sample saw may have lived before the first or after the last of them.
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
