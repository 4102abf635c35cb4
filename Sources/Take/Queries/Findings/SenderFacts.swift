import Tape
import Wire

/// What a sender learns about the path to its receiver.
///
/// Arrival times come from transport-wide feedback, round trips from reports and consent checks.
package struct SenderFacts: Sendable {
  /// The one-way delays of the packets in one second.
  package struct Second: Sendable, Hashable {
    package var second: Int64
    package var samples: Int32
    /// The 20th percentile and the median in microseconds, relative to an unknown constant.
    package var low: Int64
    package var delay: Int64
    /// Only delays in the same part are comparable: another receiver's clock begins a new part.
    package var part: Int32
  }

  /// A round trip, measured by a consent check or by a sender report and the block that refers to
  /// it.
  package struct RoundTrip: Sendable, Hashable {
    /// When the check or the sender report was sent.
    ///
    /// This may be seconds before `at` minus the round trip: if newer sender reports were lost or
    /// wait in a queue, the remote peer keeps reporting on an old one.
    package var sent: Int64
    package var at: Int64
    package var nanoseconds: Int64
  }

  /// Feedback that a peer received (draft-holmer-rmcat-transport-wide-cc-extensions-01).
  fileprivate struct Feedback {
    var row: Int64
    var peer: Int64
    var at: Int64
    /// The transport-wide number of the first packet that the feedback covers, and the number of
    /// covered packets that arrived.
    var base: Int
    var arrived: Int64
    /// The reference time, in units of 64 ms modulo 2^24.
    var reference: Int64
  }

  /// A peer's sent packets up to the row that is being read.
  fileprivate struct Sending {
    /// For each transport-wide number, the time at which it was last sent, and whether the packet
    /// was video.
    var times = [Int64](repeating: .min, count: 65_536)
    var isVideo = [Bool](repeating: false, count: 65_536)
    var reference: Int64?
    /// The reference time, unwrapped beyond 24 bits.
    var unwrapped: Int64 = 0
    var lanes = [Lane(), Lane()]
  }

  /// The delays of audio or of video, which are kept apart because only one of the two may be
  /// delayed.
  fileprivate struct Lane {
    var part: Int32 = 0
    var second = Int64.min
    var delays: [Int64] = []
    var seconds: [Second] = []
    var last: Int64?
  }

  private var feedback: [Feedback] = []
  private var next = 0
  private var sendings: [Int64: Sending] = [:]
  /// Each peer's round trips, in time order.
  package private(set) var roundTrips: [Int64: [RoundTrip]] = [:]

  private static let most = 200_000
  /// Feedback about packets older than this, in nanoseconds, is ignored, because it no longer
  /// describes the path.
  fileprivate static let oldest: Int64 = 10_000_000_000

  init() {}

  /// Returns the seconds of a peer's audio or video; empty without feedback.
  package func seconds(of peer: Int64, isVideo: Bool) -> [Second] {
    sendings[peer]?.lanes[isVideo ? 1 : 0].seconds ?? []
  }

  mutating func prepare(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT row, peer, at_ns, fields ->> '$.base', fields ->> '$.received',
        fields ->> '$.reference'
      FROM rtcp WHERE type = 'transport-cc' AND direction = 'in' ORDER BY row LIMIT \(Self.most)
      """)
    while try rows.step() {
      guard !rows.isNull(3), !rows.isNull(5) else { continue }
      feedback.append(
        Feedback(
          row: rows.integer(0), peer: rows.integer(1), at: rows.integer(2),
          base: Int(rows.integer(3) & 0xffff), arrived: rows.integer(4),
          reference: rows.integer(5) & 0xff_ffff))
    }
  }

  /// Whether packets must be added, because there is feedback about them.
  var isNeeded: Bool { !feedback.isEmpty }

  /// Adds a packet that a peer sent; packets must be added in row order.
  mutating func add(
    _ row: Int64, _ peer: Int64, _ number: Int64, isVideo: Bool, _ at: Int64
  ) {
    apply(upTo: row)
    let place = Int(number & 0xffff)
    sendings[peer, default: Sending()].times[place] = at
    sendings[peer]?.isVideo[place] = isVideo
  }

  private mutating func apply(upTo row: Int64) {
    while next < feedback.count, feedback[next].row < row {
      let one = feedback[next]
      next += 1
      sendings[one.peer, default: Sending()].add(one)
    }
  }

  mutating func finish(_ checks: [DatagramFacts.Check], _ facts: CallFacts) {
    apply(upTo: .max)
    for peer in sendings.keys {
      for lane in 0..<2 { sendings[peer]?.lanes[lane].flush() }
    }
    readRoundTrips(checks, facts)
    feedback = []
  }

  /// Measures round trips of consent checks, and of sender reports by the blocks that refer to them
  /// (RFC 3550 section 6.4.1).
  private mutating func readRoundTrips(_ checks: [DatagramFacts.Check], _ facts: CallFacts) {
    for check in checks {
      guard let answered = check.answered, answered >= check.at else { continue }
      roundTrips[check.peer, default: []].append(
        RoundTrip(sent: check.at, at: answered, nanoseconds: answered &- check.at))
    }
    // The time at which each report was sent, by its peer and NTP time.
    var sent: [Int64: [Int64: Int64]] = [:]
    for report in facts.senderReports where report.direction == .outbound {
      sent[report.peer, default: [:]][report.compactTime] = report.at
    }
    var told: Set<[Int64]> = []
    for report in facts.reports where report.direction == .inbound && report.lastSent != 0 {
      // All blocks in a packet that refer to the same report count once.
      guard told.insert([report.peer, report.at, report.lastSent]).inserted,
        // Conversion to microseconds rounds the fraction.
        let own = (-2...2).lazy.compactMap({ sent[report.peer]?[report.lastSent &+ $0] }).first,
        own <= report.at
      else { continue }
      let length = report.at &- own &- report.sinceLastSent *| 1_000_000_000 / 65_536
      guard length >= 0 else { continue }
      roundTrips[report.peer, default: []].append(
        RoundTrip(sent: own, at: report.at, nanoseconds: length))
    }
    for peer in roundTrips.keys {
      roundTrips[peer]?.sort { ($0.at, $0.nanoseconds) < ($1.at, $1.nanoseconds) }
    }
  }
}

extension SenderFacts.Sending {
  fileprivate mutating func add(_ feedback: SenderFacts.Feedback) {
    if let reference {
      let step = ((feedback.reference &- reference &+ 0x80_0000) & 0xff_ffff) &- 0x80_0000
      unwrapped &+= step
    } else {
      unwrapped = feedback.reference
    }
    reference = feedback.reference
    let sent = times[feedback.base]
    guard feedback.arrived > 0, sent != .min, feedback.at &- sent >= 0,
      feedback.at &- sent < SenderFacts.oldest
    else { return }
    let lane = isVideo[feedback.base] ? 1 : 0
    lanes[lane].add(unwrapped &* 64_000 &- sent / 1000, feedback.at / 1_000_000_000)
  }
}

extension SenderFacts.Lane {
  fileprivate mutating func add(_ delay: Int64, _ second: Int64) {
    // A sudden change means that another receiver with another clock responds.
    let isOther = last.map { abs(delay &- $0) > 20_000_000 } ?? false
    if second != self.second || isOther { flush() }
    if isOther { part &+= 1 }
    self.second = second
    last = delay
    if delays.count < 20_000 { delays.append(delay) }
  }

  fileprivate mutating func flush() {
    defer { delays.removeAll(keepingCapacity: true) }
    guard !delays.isEmpty, seconds.count < 200_000 else { return }
    delays.sort()
    seconds.append(
      SenderFacts.Second(
        second: second, samples: Int32(truncatingIfNeeded: delays.count),
        low: delays[delays.count / 5], delay: delays[delays.count / 2], part: part))
  }
}

extension CallFacts.SenderReport {
  /// The middle 32 bits of the report's NTP time, as report blocks contain them.
  var compactTime: Int64 {
    let seconds = unixMicroseconds / 1_000_000
    let rest = unixMicroseconds &- seconds &* 1_000_000
    return ((seconds &+ 2_208_988_800) & 0xffff) << 16 | (rest &* 65_536 / 1_000_000 & 0xffff)
  }
}
