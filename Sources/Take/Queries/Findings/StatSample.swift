import Tape
import Wire

/// A stats sample of a stream, source or playout, with the members that rules examine.
package struct StatSample: Sendable {
  /// The numeric members, in the order of the query's columns.
  package enum Member: String, CaseIterable, Sendable {
    case targetBitrate, framesEncoded, framesSent, qpSum, frameWidth, frameHeight
    case framesPerSecond, totalEncodeTime, hugeFramesSent, active, bytesSent, packetsSent
    case packetsReceived, packetsLost, bytesReceived, jitterBufferDelay, jitterBufferEmittedCount
    case totalSamplesReceived, insertedSamplesForDeceleration, removedSamplesForAcceleration
    case jitterBufferFlushes, estimatedPlayoutTimestamp, framesReceived, framesDecoded
    case framesDropped, totalDecodeTime, totalCorruptionProbability, corruptionMeasurements
    case synthesizedSamplesDuration, pliCount

    fileprivate static let places = Dictionary(
      uniqueKeysWithValues: allCases.enumerated().map { ($1, $0) })
    fileprivate var place: Int { Self.places[self] ?? 0 }
  }

  package var peer: Int64
  package var at: Int64
  /// The number of the getStats call that returned the sample.
  package var call: Int64
  package var type: String
  package var ssrc: Int64?
  package var kind: String
  package var mid: String
  package var rid: String
  package var reason: String
  package var decoder: String
  /// The values in the order of `Member`; NaN for members that the sample lacks.
  fileprivate var values: [Double]

  package subscript(member: Member) -> Double? {
    let value = values[member.place]
    return value.isNaN ? nil : value
  }

  /// Returns a member's increase since an earlier sample; nil if it fell or is missing.
  package func growth(_ member: Member, since other: StatSample) -> Double? {
    guard let now = self[member], let before = other[member], now >= before else { return nil }
    return now - before
  }

  package func seconds(since other: StatSample) -> Double { Double(at &- other.at) / 1e9 }
}

/// A value that applies between two consecutive samples, such as a rate.
struct StatPoint {
  var from: Int64
  var to: Int64
  var value: Double
}

/// A period in which a value stayed above its threshold.
struct StatRun {
  var from: Int64
  var to: Int64
  /// The highest value, and the mean weighted by time.
  var peak: Double
  var mean: Double
}

extension StatRun {
  /// Returns the periods that begin with a value of at least `on` and end with a value below `off`.
  ///
  /// Periods shorter than `nanoseconds` are left out. More than five seconds without a sample end a
  /// period, because the values during that time are unknown.
  static func runs(
    _ points: [StatPoint], on: Double, off: Double, least nanoseconds: Int64
  ) -> [StatRun] {
    var runs: [StatRun] = []
    var open: (run: StatRun, sum: Double)?
    func close() {
      guard var (run, sum) = open else { return }
      let length = run.to &- run.from
      run.mean = length > 0 ? sum / Double(length) : run.peak
      sum = 0
      if length >= nanoseconds { runs.append(run) }
      open = nil
    }
    for point in points {
      let length = Double(point.to &- point.from)
      guard length > 0, length <= 5e9 else {
        close()
        continue
      }
      if let (run, sum) = open {
        if point.value >= off, point.from &- run.to <= 100_000_000 {
          var run = run
          (run.to, run.peak) = (point.to, max(run.peak, point.value))
          open = (run, sum + point.value * length)
          continue
        }
        close()
      }
      if point.value >= on {
        open = (
          StatRun(from: point.from, to: point.to, peak: point.value, mean: 0),
          point.value * length
        )
      }
    }
    close()
    return runs
  }
}

extension PerceptionFacts {
  mutating func readSamples(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let members = StatSample.Member.allCases.map { ", members ->> '$.\($0.rawValue)'" }.joined()
    let rows = try connection.prepare(
      """
      SELECT peer, at_ns, call, type, members ->> '$.ssrc', members ->> '$.kind',
        members ->> '$.mid', members ->> '$.rid', members ->> '$.qualityLimitationReason',
        members ->> '$.decoderImplementation', id\(members)
      FROM stat WHERE type IN ('inbound-rtp', 'outbound-rtp', 'media-source', 'media-playout')
      ORDER BY row LIMIT 200000
      """)
    while try rows.step() {
      var values: [Double] = []
      for column in 11..<11 +| StatSample.Member.allCases.count {
        values.append(rows.isNull(column) ? .nan : rows.real(column))
      }
      samples.append(
        StatSample(
          peer: rows.integer(0), at: rows.integer(1), call: rows.integer(2),
          type: rows.text(3) ?? "", ssrc: rows.isNull(4) ? nil : rows.integer(4) & 0xffff_ffff,
          kind: rows.text(5) ?? "", mid: rows.text(6) ?? rows.text(10) ?? "",
          rid: rows.text(7) ?? "", reason: rows.text(8) ?? "", decoder: rows.text(9) ?? "",
          values: values))
    }
  }

  /// Returns the samples of each object in time order.
  ///
  /// - Parameters:
  ///   - type: the type of the objects.
  ///   - kind: the kind of media; empty for all kinds.
  func series(_ type: String, _ kind: String = "") -> [[StatSample]] {
    struct Thing: Hashable {
      var peer: Int64
      var ssrc: Int64?
      var mid: String
    }
    var places: [Thing: Int] = [:]
    var series: [[StatSample]] = []
    for sample in samples where sample.type == type && (kind.isEmpty || sample.kind == kind) {
      let thing = Thing(
        peer: sample.peer, ssrc: sample.ssrc, mid: sample.ssrc == nil ? sample.mid : "")
      if let place = places[thing] {
        series[place].append(sample)
      } else {
        places[thing] = series.count
        series.append([sample])
      }
    }
    return series
  }
}

extension [StatSample] {
  /// Computes a value from each pair of consecutive samples; pairs for which it is nil are left
  /// out.
  func points(_ value: (_ before: StatSample, _ after: StatSample) -> Double?) -> [StatPoint] {
    zip(self, dropFirst()).compactMap { before, after in
      value(before, after).map { StatPoint(from: before.at, to: after.at, value: $0) }
    }
  }
}
