import Tape
import Wire

/// Values that another stack's statistics contain for a stream.
package struct CountedStream: Sendable {
  package var width: Int32 = 0
  package var height: Int32 = 0
  /// The mean frame rate from the first sample on, or the reported one if frames are not counted or
  /// the time is too short; 0 if neither is known.
  package var framesPerSecond = 0.0
  /// The jitter in the last sample that contains it, in seconds; nil if none does.
  package var jitterSeconds: Double?
  package var freezes: Int64 = 0
  package var frozenSeconds = 0.0
  package var concealedShare: Double?
  /// The stats object's id, which identifies its samples.
  var id = ""
  /// The counter at the first sample; it is subtracted before a rate is computed.
  var bytesBefore: Int64 = 0
  fileprivate var framesBefore: Int64 = 0
}

/// One sample of another stack's counters for a stream; missing counters are nil.
struct CountedSample {
  var peer: Int64
  var at: Int64
  var isInbound: Bool
  var id: String
  var ssrc: Int64
  var kind: String
  var packets: Int64?
  var bytes: Int64?
  var lost: Int64?
  var jitter: Double?
  var width: Int64?
  var height: Int64?
  var frames: Int64?
  var rate: Double?
  var freezes: Int64?
  var frozenSeconds: Double?
  var concealed: Int64?
  var samples: Int64?
}

extension CallFacts {
  /// Reads the streams of connections that have statistics but no packets.
  ///
  /// A counter's increase between two samples is spread evenly over the time between them, as if
  /// the packets had passed at a constant rate.
  mutating func readReported(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let isThere = try connection.integer("SELECT count(*) FROM peer WHERE role = 'reported'") ?? 0
    guard isThere > 0 else { return }
    var latest: [String: (sample: CountedSample, place: Int?)] = [:]
    for sample in try CountedSample.all(connection, part) {
      let name = "\(sample.peer) \(sample.isInbound) \(sample.id)"
      var place = latest[name]?.place
      if place == nil, (sample.packets ?? 0) > 0, streams.count < 2000 {
        place = begin(sample, after: latest[name]?.sample)
      }
      if let place, let before = latest[name]?.sample {
        streams[place].count(sample, since: before, intervalNanoseconds)
      }
      if let place { streams[place].conclude(sample) }
      latest[name] = (sample, place)
      countedSamples.append(sample)
    }
    addWays()
  }

  private mutating func begin(_ sample: CountedSample, after before: CountedSample?) -> Int {
    var stream = Stream(
      peer: sample.peer, direction: sample.isInbound ? .inbound : .outbound, ssrc: sample.ssrc,
      first: before?.at ?? sample.at, last: sample.at)
    stream.kind = sample.kind
    stream.counted = CountedStream()
    stream.counted?.id = sample.id
    // It is unknown when the counters in the first sample began, so rates do not include them.
    stream.counted?.bytesBefore = (before ?? sample).bytes ?? 0
    stream.counted?.framesBefore = (before ?? sample).frames ?? 0
    streams.append(stream)
    return streams.count - 1
  }

  /// Adds the packets of all reported streams to their directions, since some rules examine a
  /// direction as a whole.
  ///
  /// The packets of a direction's streams are interleaved, so they are sorted by time first.
  private mutating func addWays() {
    var passed: [(at: Int64, way: Int, packets: Int32)] = []
    for stream in streams where stream.counted != nil {
      let place =
        ways.firstIndex { $0.peer == stream.peer && $0.direction == stream.direction }
        ?? ways.count
      if place == ways.count { ways.append(Way(peer: stream.peer, direction: stream.direction)) }
      let origin = stream.first / intervalNanoseconds
      for (offset, bucket) in stream.buckets.enumerated() where bucket.packets > 0 {
        let at = (origin +| Int64(offset)) *| intervalNanoseconds
        passed.append((at, place, bucket.packets))
      }
    }
    passed.sort { ($0.at, $0.way) < ($1.at, $1.way) }
    for one in passed {
      ways[one.way].add(one.at, intervalNanoseconds, packets: one.packets)
    }
  }
}

extension CallFacts.Stream {
  /// Adds the increase of the counters since the previous sample.
  fileprivate mutating func count(
    _ sample: CountedSample, since before: CountedSample, _ interval: Int64
  ) {
    // A counter that fell was reset, because a new stats object has the same id.
    let packets = max(0, (sample.packets ?? 0) -| (before.packets ?? 0))
    let bytes = max(0, (sample.bytes ?? 0) -| (before.bytes ?? 0))
    let lost = max(0, (sample.lost ?? 0) -| (before.lost ?? 0))
    guard packets > 0 || lost > 0 else { return }
    let from = max(0, before.at / interval -| first / interval)
    let to = max(from +| 1, sample.at / interval -| first / interval)
    guard to <= Int64(CallFacts.most) *| 10 else { return }
    while buckets.count < Int(to) { buckets.append(CallFacts.Bucket()) }
    let count = to -| from
    for step in 0..<count {
      func share(_ whole: Int64) -> Int32 {
        Int32(clamping: whole *| (step +| 1) / count -| whole *| step / count)
      }
      let place = Int(from +| step)
      buckets[place].packets &+= share(packets)
      buckets[place].bytes &+= share(bytes)
      let missing = share(lost)
      buckets[place].lost &+= missing
      buckets[place].holes &+= min(missing, 1)
      if let jitter = sample.jitter, share(packets) > 0 {
        buckets[place].spaced &+= share(packets)
        buckets[place].jitterMicroseconds &+= Int32(
          saturating: jitter * 1e6 * Double(share(packets)))
      }
    }
    last = max(last, sample.at)
  }

  /// Applies values that are totals over the stream's life, such as the number of packets.
  fileprivate mutating func conclude(_ sample: CountedSample) {
    packets = max(packets, sample.packets ?? 0)
    bytes = max(bytes, sample.bytes ?? 0)
    lost = max(0, sample.lost ?? lost)
    expected = packets +| lost
    guard var counted else { return }
    if let width = sample.width, let height = sample.height {
      (counted.width, counted.height) = (Int32(clamping: width), Int32(clamping: height))
    }
    counted.jitterSeconds = sample.jitter ?? counted.jitterSeconds
    counted.freezes = sample.freezes ?? counted.freezes
    counted.frozenSeconds = sample.frozenSeconds ?? counted.frozenSeconds
    let seconds = Double(last &- first) / 1e9
    if let frames = sample.frames, seconds > 0.5 {
      counted.framesPerSecond = Double(max(0, frames -| counted.framesBefore)) / seconds
    } else if let rate = sample.rate {
      counted.framesPerSecond = rate
    }
    if let concealed = sample.concealed, let all = sample.samples, all > 0 {
      counted.concealedShare = Double(concealed) / Double(all)
    }
    self.counted = counted
  }
}

extension CountedSample {
  /// Returns the samples of reported connections, in the take's order.
  fileprivate static func all(_ connection: borrowing SQLiteConnection, _ part: String)
    throws(SQLiteError) -> [CountedSample]
  {
    func member(_ name: String) -> String { "members ->> '$.\(name)'" }
    let rows = try connection.prepare(
      """
      SELECT stat.peer, stat.at_ns, type = 'inbound-rtp', id, \(member("ssrc")),
        coalesce(\(member("kind")), ''),
        coalesce(\(member("packetsReceived")), \(member("packetsSent"))),
        coalesce(\(member("bytesReceived")), \(member("bytesSent"))),
        \(member("packetsLost")), \(member("jitter")), \(member("frameWidth")),
        \(member("frameHeight")), coalesce(\(member("framesDecoded")), \(member("framesSent"))),
        \(member("freezeCount")), \(member("totalFreezesDuration")),
        \(member("concealedSamples")) - coalesce(\(member("silentConcealedSamples")), 0),
        \(member("totalSamplesReceived")), \(member("framesPerSecond"))
      FROM stat JOIN peer ON peer.peer = stat.peer AND peer.role = 'reported'
      WHERE type IN ('inbound-rtp', 'outbound-rtp')
        AND stat.\(part)
      ORDER BY stat.row LIMIT 1000000
      """)
    var found: [CountedSample] = []
    while try rows.step() {
      func whole(_ column: Int) -> Int64? { rows.isNull(column) ? nil : rows.integer(column) }
      func real(_ column: Int) -> Double? { rows.isNull(column) ? nil : rows.real(column) }
      found.append(
        CountedSample(
          peer: rows.integer(0), at: rows.integer(1), isInbound: rows.integer(2) != 0,
          id: rows.text(3) ?? "", ssrc: rows.integer(4) & 0xffff_ffff, kind: rows.text(5) ?? "",
          packets: whole(6), bytes: whole(7), lost: whole(8), jitter: real(9), width: whole(10),
          height: whole(11), frames: whole(12), rate: real(17), freezes: whole(13),
          frozenSeconds: real(14),
          concealed: whole(15), samples: whole(16)))
    }
    return found
  }
}
