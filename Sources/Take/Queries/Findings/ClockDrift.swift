import Wire

/// The drift of a stream's media clock relative to time at the recorder.
///
/// The fastest packet in each second has no jitter and waited for no other packet. A drifting clock
/// changes that packet's delay by the same amount every second. Other changes are excluded. A
/// longer path, or samples that a starved process never captured, change the delay suddenly, so
/// delays before and after cannot be compared. A queue that fills and empties, or a machine under
/// load, changes the delay differently in each third of the time.
struct ClockDrift: Sendable {
  /// The drift in millionths, that is microseconds per second; positive if media arrives too
  /// slowly.
  private(set) var partsPerMillion: Double
  /// The drift in milliseconds over all comparable seconds.
  private(set) var total: Double
  /// The largest distance of a second's delay from the fitted line, in milliseconds, ignoring the
  /// farthest tenth of the seconds.
  private(set) var off: Double
  /// The first and last comparable second, counted from the start of the take.
  private(set) var first: Int64
  private(set) var last: Int64

  /// A second, and the least delay in it, in microseconds.
  private struct Point {
    var second: Double
    var delay: Double
  }

  /// A step in the delay never cuts a run if it differs from the usual step by less than this, in
  /// microseconds.
  private static let leastStep = 1500.0
  /// The minimum number of consecutive seconds that are compared.
  private static let leastRow = 5
  /// The maximum number of points; more are merged, because each is compared with all others.
  private static let most = 240

  /// - Parameters:
  ///   - seconds: one stream's seconds, in order.
  ///   - starved: seconds in which the recording process got no processor time.
  ///   - least: the minimum number of comparable seconds.
  /// - Returns: nil if fewer than `least` seconds or less than four fifths of all seconds are
  ///   comparable, or if one third of the time, or more than a fifth of the steps between seconds,
  ///   contradicts the drift.
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

  /// Returns runs of consecutive seconds, cut where the delays before and after cannot be compared.
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

  /// Splits a run where the delay jumped to another level and stayed there.
  private static func cut(_ run: [Point]) -> [[Point]] {
    guard run.count >= leastRow else { return [] }
    // A single outlying second does not change the level.
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

  /// Returns the rows with about `most` points in all: of each group of adjacent seconds, only the
  /// second with the least delay is kept.
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

  /// Returns the median slope between each point of a row and each later point (Theil-Sen); up to a
  /// quarter of the points may be outliers.
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

  /// Returns whether the delay changes by about the slope in at least four of five seconds.
  ///
  /// If samples are dropped now and then, the delay moves in steps, which have a slope too.
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

  /// Returns the largest distance of a point from its row's line, in microseconds, ignoring the
  /// farthest tenth of the points.
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
