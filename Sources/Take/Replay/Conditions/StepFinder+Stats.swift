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

  /// What the samples say of the objects that a condition is about.
  private struct Samples {
    /// The steps at which each peer's stats were taken.
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
      // A value equal to the threshold may be on either side of it.
      if object.value <= growth.threshold + growth.slack,
        value >= growth.threshold - growth.slack
      {
        spans.append((sample(of: peer, before: step) ?? 0) + 1...step)
      }
      object.last = step
      object.value = value
      objects[name] = object
    }

    /// The last sample of a peer before a step.
    private func sample(of peer: Int64, before step: Int) -> Int? {
      guard let steps = steps[peer] else { return nil }
      var (low, high) = (0, steps.count)
      while low < high {
        let middle = (low + high) / 2
        if steps[middle] < step { low = middle + 1 } else { high = middle }
      }
      return low > 0 ? steps[low - 1] : nil
    }

    /// The spans in order, those that overlap as one.
    func spans(stepCount: Int) -> [ClosedRange<Int>] {
      var spans = spans
      for object in objects.values where object.value <= growth.threshold + growth.slack {
        let next = steps[object.peer]?.first { $0 > object.last } ?? stepCount
        spans.append(min(object.last + 1, next)...next)
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
