package import RTP
package import Wire

/// Counts packets on one SSRC as in RFC 3550 appendices A.1, A.3 and A.8.
struct ReceptionStatistics {
  /// A jump of this size or more is accepted only if the next packet follows it (appendix A.1).
  private static let maximumJump: Int16 = 3000

  private(set) var isStarted = false
  private(set) var highest: Int64 = 0
  private var first: Int64 = 0
  private var received: Int64 = 0
  /// Losses before the sender restarted its sequence numbers.
  private var lostBefore: Int64 = 0
  private var expectedReported: Int64 = 0
  private var lostReported: Int64 = 0
  private var expectedAfterJump: UInt16?
  private var acceptsJump = false
  private var transit: UInt32?
  private var jitterSixteenths: Int64 = 0

  /// The total number of missing packets; negative if there were more duplicates than losses.
  var lost: Int64 { lostBefore + (isStarted ? highest - first + 1 - received : 0) }

  /// The jitter in RTP timestamp units.
  var jitter: UInt32 { UInt32(clamping: jitterSixteenths >> 4) }

  /// Returns the extended number that ends in these 16 bits and is nearest to the newest number.
  func extended(_ sequence: UInt16) -> Int64 {
    highest + Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest)))
  }

  /// Accepts any sequence number as the next one.
  mutating func acceptJump() { acceptsJump = isStarted }

  /// Counts a packet and returns its extended sequence number; nil for an implausible jump.
  mutating func receive(
    _ sequence: UInt16, timestamp: UInt32, clockRate: UInt32, arrival: Instant
  ) -> Int64? {
    guard isStarted else {
      isStarted = true
      first = Int64(sequence)
      highest = first
      received = 1
      transit = transitTime(timestamp, clockRate, arrival)
      return first
    }
    let step = Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest))
    let isNear = abs(Int(step)) < Int(ReceptionStatistics.maximumJump)
    if isNear, step > 0 || !acceptsJump {
      expectedAfterJump = nil
      acceptsJump = false
      received += 1
      guard step > 0 else {
        first = min(first, highest + Int64(step))
        return highest + Int64(step)
      }
      highest += Int64(step)
      updateJitter(timestamp, clockRate, arrival)
      return highest
    }
    guard acceptsJump || expectedAfterJump == sequence else {
      expectedAfterJump = sequence &+ 1
      return nil
    }
    lostBefore = lost
    expectedAfterJump = nil
    acceptsJump = false
    highest += Int64(sequence &- UInt16(truncatingIfNeeded: highest))
    first = highest
    received = 1
    expectedReported = 0
    lostReported = lostBefore
    transit = transitTime(timestamp, clockRate, arrival)
    return highest
  }

  /// Restarts the sequence numbers at the previous packet, which was counted as late.
  mutating func beginAnew(with sequence: UInt16) {
    guard isStarted else { return }
    received -= 1
    lostBefore = lost
    let step = Int64(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: highest)))
    highest += step > 0 ? step : step + 65_536
    first = highest
    received = 1
    expectedReported = 0
    lostReported = lostBefore
    transit = nil
  }

  /// Returns a report block for the time since the last one.
  mutating func report(ssrc: UInt32, lastReport: UInt32, delay: UInt32) -> ReportBlock {
    let expected = isStarted ? highest - first + 1 : 0
    let expectedSince = expected - expectedReported
    let lostSince = lost - lostReported
    expectedReported = expected
    lostReported = lost
    let fraction = expectedSince > 0 && lostSince > 0 ? (lostSince << 8) / expectedSince : 0
    return ReportBlock(
      ssrc: ssrc, fractionLost: UInt8(clamping: fraction), cumulativeLost: Int32(clamping: lost),
      highestSequence: UInt32(truncatingIfNeeded: highest), jitter: jitter,
      lastSenderReport: lastReport, delaySinceLastSenderReport: delay)
  }

  private mutating func updateJitter(_ timestamp: UInt32, _ clockRate: UInt32, _ arrival: Instant) {
    let now = transitTime(timestamp, clockRate, arrival)
    if let transit {
      let difference = Int64(Int32(bitPattern: now &- transit).magnitude)
      // A difference of 5 seconds or more is a new timestamp base, not jitter.
      if difference < 5 * Int64(clockRate) {
        jitterSixteenths += difference - ((jitterSixteenths + 8) >> 4)
      }
    }
    transit = now
  }

  private func transitTime(_ timestamp: UInt32, _ clockRate: UInt32, _ arrival: Instant) -> UInt32 {
    let seconds = arrival.nanoseconds / 1_000_000_000
    let rest = arrival.nanoseconds % 1_000_000_000
    let units = seconds &* Int64(clockRate) &+ rest * Int64(clockRate) / 1_000_000_000
    return UInt32(truncatingIfNeeded: units) &- timestamp
  }
}

/// Remembers which recent sequence numbers have arrived.
struct SequenceWindow {
  /// The result of inserting a number.
  enum Verdict {
    case new
    case duplicate
    /// Older than the window.
    case old
  }

  private static let size: Int64 = 2048
  private var words: [32 of UInt64] = .init(repeating: 0)
  private var newest: Int64?

  mutating func insert(_ number: Int64) -> Verdict {
    guard let newest else {
      self.newest = number
      mark(number)
      return .new
    }
    if number > newest {
      if number - newest >= SequenceWindow.size {
        words = .init(repeating: 0)
      } else {
        var passed = newest + 1
        while passed < number {
          words[word(passed)] &= ~bit(passed)
          passed += 1
        }
      }
      self.newest = number
      mark(number)
      return .new
    }
    guard newest - number < SequenceWindow.size else { return .old }
    guard words[word(number)] & bit(number) == 0 else { return .duplicate }
    mark(number)
    return .new
  }

  private mutating func mark(_ number: Int64) { words[word(number)] |= bit(number) }

  private func word(_ number: Int64) -> Int {
    Int(truncatingIfNeeded: number >> 6) & (words.count - 1)
  }

  private func bit(_ number: Int64) -> UInt64 { 1 << UInt64(number & 63) }
}

// MARK: - ReceptionReports

/// Makes report blocks on a received stream from statistics on its packets and its RTX packets, and
/// from the last sender report (RFC 3550 section 6.4.1).
package struct ReceptionReports {
  private(set) var media = ReceptionStatistics()
  private var retransmissions = ReceptionStatistics()
  private var hasNews = false
  private var hasRTXNews = false
  private var lastSenderReport: (compactNTP: UInt32, arrival: Instant)?

  package init() {}

  /// Handles a packet on the media SSRC; returns its extended number, or nil for an implausible
  /// jump.
  package mutating func receive(
    _ header: RTPHeader, clockRate: UInt32, arrival: Instant
  ) -> Int64? {
    hasNews = true
    return media.receive(
      header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
  }

  /// Counts a packet on the RTX SSRC.
  mutating func receiveRTX(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) {
    hasRTXNews = true
    _ = retransmissions.receive(
      header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
  }

  package mutating func receive(_ report: SenderReport, at arrival: Instant) {
    lastSenderReport = (UInt32(truncatingIfNeeded: report.ntpTime >> 16), arrival)
  }

  /// Accepts any sequence number as the next one.
  mutating func acceptJump() { media.acceptJump() }

  /// Restarts the media sequence numbers at the previous packet, which was counted as late.
  mutating func beginAnew(with sequence: UInt16) { media.beginAnew(with: sequence) }

  /// Returns a lost packet's extended sequence number; nil before the stream's first packet.
  func extended(_ sequence: UInt16) -> Int64? {
    media.isStarted ? media.extended(sequence) : nil
  }

  /// Returns an extra report block on the media SSRC without affecting the regular ones; nil before
  /// the first packet.
  func block(on ssrc: UInt32, at now: Instant) -> ReportBlock? {
    guard media.isStarted else { return nil }
    var copy = self
    copy.hasNews = true
    return copy.makeBlocks(ssrc, rtxSSRC: nil, at: now).first
  }

  /// Returns report blocks that cover the time since the last ones.
  package mutating func makeBlocks(
    _ ssrc: UInt32, rtxSSRC: UInt32?, at now: Instant
  ) -> [ReportBlock] {
    var blocks: [ReportBlock] = []
    if hasNews {
      var last: UInt32 = 0
      var delay: UInt32 = 0
      if let lastSenderReport {
        last = lastSenderReport.compactNTP
        delay = (now - lastSenderReport.arrival).compactUnits
      }
      blocks.append(media.report(ssrc: ssrc, lastReport: last, delay: delay))
    }
    if hasRTXNews, let rtxSSRC {
      blocks.append(retransmissions.report(ssrc: rtxSSRC, lastReport: 0, delay: 0))
    }
    hasNews = false
    hasRTXNews = false
    return blocks
  }
}
