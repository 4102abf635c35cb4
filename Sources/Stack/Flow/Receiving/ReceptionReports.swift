import RTP
import Wire

/// Owns what is reported of a received stream: its numbers and those of its retransmissions, what
/// came since the last report, and the source's own report that is answered (RFC 3550 section
/// 6.4.1).
struct ReceptionReports {
  private(set) var media = ReceptionStatistics()
  private var retransmissions = ReceptionStatistics()
  private var hasNews = false
  private var hasRTXNews = false
  private var lastSenderReport: (compactNTP: UInt32, arrival: Instant)?

  /// Handles a packet of the media source; returns its extended number, nil when it is not
  /// believed.
  mutating func receive(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) -> Int64? {
    hasNews = true
    return media.receive(
      header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
  }

  /// Handles a packet of the retransmission source.
  mutating func receiveRTX(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) {
    hasRTXNews = true
    _ = retransmissions.receive(
      header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
  }

  /// Handles the source's own report.
  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    lastSenderReport = (UInt32(truncatingIfNeeded: report.ntpTime >> 16), arrival)
  }

  /// Believes the next number, wherever it is.
  mutating func acceptJump() { media.acceptJump() }

  /// The extended number of a packet that was lost.
  func extended(_ sequence: UInt16) -> Int64? {
    media.isStarted ? media.extended(sequence) : nil
  }

  /// A report block on the media source out of turn: those of reports continue as if it were not.
  func block(on ssrc: UInt32, at now: Instant) -> ReportBlock? {
    guard media.isStarted else { return nil }
    var copy = self
    copy.hasNews = true
    return copy.takeBlocks(ssrc, rtxSSRC: nil, at: now).first
  }

  /// The report blocks about what came since the last ones.
  mutating func takeBlocks(_ ssrc: UInt32, rtxSSRC: UInt32?, at now: Instant) -> [ReportBlock] {
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
