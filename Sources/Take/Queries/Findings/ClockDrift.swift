import Wire

/// By how much the media clock of a stream goes faster or slower than time at the recorder.
///
/// The delay of the fastest packet of each second has neither the jitter of the path nor what one
/// packet waited. A clock that drifts moves it by the same amount every second. What moves it
/// otherwise is left out: a way that became longer, and samples that a process without its
/// processor never captured, come at once, and what is before them does not compare with what is
/// after. A queue that fills and empties, and a machine under load, move it differently in each
/// third of the time.
struct ClockDrift: Sendable {
  /// Microseconds a second, which are parts of a million; above zero where media comes too slowly.
  private(set) var partsPerMillion: Double
  /// In milliseconds, over the seconds that compare.
  private(set) var total: Double
  /// How far nine in ten of the seconds are from the line at most, in milliseconds.
  private(set) var off: Double
  /// The first and the last second.
  private(set) var first: Int64
  private(set) var last: Int64

  /// A second, and the least delay in it, in microseconds.
  private struct Point {
    var second: Double
    var delay: Double
  }

  /// A step from one second to the next that differs from the usual one by more is none of a clock.
  private static let leastStep = 1500.0
  /// Fewer seconds in a row say nothing.
  private static let leastRow = 5
  /// More points are joined, since all are compared with each other.
  private static let most = 240

  /// - Parameters:
  ///   - seconds: of one stream, in order.
  ///   - starved: seconds in which the process that recorded had no processor.
  ///   - least: how many seconds have to compare.
  /// - Returns: nil where there is no drift that each third of the stream bears out, or more than
  ///   a fifth of the seconds do not compare.
  init?(_ seconds: [StreamTiming.Second], starved: Set<Int64> = [], least: Int) {
    let usable = seconds.filter { $0.packets >= 5 && !starved.contains($0.second) }
    let rows = Self.rows(usable)
    let covered = rows.reduce(0) { $0 + $1[$1.count - 1].second - $1[0].second }
    guard covered >= Double(max(1, least - 1)), covered * 5 >= Double(usable.count - 1) * 4,
      let begin = rows.first?.first, let end = rows.last?.last
    else { return nil }
    let points = Self.thinned(rows)
    guard let slope = Self.slope(points) else { return nil }
    let third = (end.second - begin.second) / 3
    for place in 0..<3 {
      let from = begin.second + Double(place) * third
      let part = points.map { $0.filter { $0.second >= from && $0.second <= from + third } }
      guard let own = Self.slope(part), own * slope > 0, abs(own) >= abs(slope) / 2,
        abs(own) <= 2 * abs(slope)
      else { return nil }
    }
    guard Self.isSteady(rows, slope) else { return nil }
    partsPerMillion = slope
    total = abs(slope) * covered / 1000
    off = Self.distance(rows, slope) / 1000
    (first, last) = (Int64(saturating: begin.second), Int64(saturating: end.second))
  }

  /// Seconds that follow each other, cut where their delays do not compare.
  private static func rows(_ seconds: [StreamTiming.Second]) -> [[Point]] {
    var runs: [[StreamTiming.Second]] = []
    for second in seconds {
      if let before = runs.last?.last, before.part == second.part,
        second.second -| before.second <= 2
      {
        runs[runs.count - 1].append(second)
      } else {
        runs.append([second])
      }
    }
    let points = runs.map { run in
      run.map { Point(second: Double($0.second), delay: Double($0.least)) }
    }
    return points.flatMap(cut).filter { $0.count >= leastRow }
  }

  /// Parts a run where the delay went elsewhere at once, and stayed there.
  private static func cut(_ run: [Point]) -> [[Point]] {
    guard run.count >= leastRow else { return [] }
    // One second alone that is off is no change of the level.
    let levels = run.indices.map { place in
      middle(of: run[max(0, place - 1)...min(run.count - 1, place + 1)].map(\.delay))
    }
    let steps = run.indices.dropFirst().map { place in
      (levels[place] - levels[place - 1]) / max(1, run[place].second - run[place - 1].second)
    }
    let usual = middle(of: steps)
    let bound = max(leastStep, 6 * middle(of: steps.map { abs($0 - usual) }))
    var rows: [[Point]] = [[run[0]]]
    for place in run.indices.dropFirst() {
      if abs(steps[place - 1] - usual) > bound { rows.append([]) }
      rows[rows.count - 1].append(run[place])
    }
    return rows
  }

  /// The same rows with fewer points: the fastest packet of several seconds stands for them.
  private static func thinned(_ rows: [[Point]]) -> [[Point]] {
    let count = rows.reduce(0) { $0 + $1.count }
    let width = max(1, (count + most - 1) / most)
    guard width > 1 else { return rows }
    return rows.map { row in
      stride(from: 0, to: row.count, by: width).compactMap { place in
        row[place..<min(row.count, place + width)].min { $0.delay < $1.delay }
      }
    }
  }

  /// The middle of the slopes between all points of a row and all later ones of it (Theil and Sen):
  /// up to a quarter of the points may be anywhere.
  private static func slope(_ rows: [[Point]]) -> Double? {
    var slopes: [Double] = []
    for row in rows {
      for place in row.indices {
        for other in row.indices.dropFirst(place + 1) where row[other].second > row[place].second {
          slopes.append(
            (row[other].delay - row[place].delay) / (row[other].second - row[place].second))
        }
      }
    }
    return slopes.count >= 6 ? middle(of: slopes) : nil
  }

  /// Whether four in five seconds moved the delay by about as much as the slope says.
  ///
  /// Samples that were dropped now and then make stairs, which have a slope as well.
  private static func isSteady(_ rows: [[Point]], _ slope: Double) -> Bool {
    let bound = max(1000, abs(slope) / 2)
    var (steady, all) = (0, 0)
    for row in rows {
      for (before, next) in zip(row, row.dropFirst()) {
        let step = (next.delay - before.delay) / max(1, next.second - before.second)
        all += 1
        if abs(step - slope) <= bound { steady += 1 }
      }
    }
    return steady * 5 >= all * 4
  }

  /// How far nine in ten of the points are from the lines at most, in microseconds.
  private static func distance(_ rows: [[Point]], _ slope: Double) -> Double {
    var distances: [Double] = []
    for row in rows {
      let rests = row.map { $0.delay - slope * ($0.second - row[0].second) }
      let level = middle(of: rests)
      distances += rests.map { abs($0 - level) }
    }
    distances.sort()
    return distances.isEmpty ? 0 : distances[min(distances.count - 1, distances.count * 9 / 10)]
  }

  private static func middle(of values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }
}
