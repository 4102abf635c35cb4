import RTP
import Wire

/// Reception statistics for reports on a stream: its sequence numbers and those of its RTX, and the
/// last sender report (RFC 3550 section 6.4.1).
struct ReceptionReports {
  private(set) var media = ReceptionStatistics()
  private var retransmissions = ReceptionStatistics()
  private var hasNews = false
  private var hasRTXNews = false
  private var lastSenderReport: (compactNTP: UInt32, arrival: Instant)?

  /// Handles a packet of the media SSRC; returns its extended number, or nil for an implausible
  /// jump.
  mutating func receive(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) -> Int64? {
    hasNews = true
    return media.receive(
      header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
  }

  /// Handles a packet of the RTX SSRC.
  mutating func receiveRTX(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) {
    hasRTXNews = true
    _ = retransmissions.receive(
      header.sequence, timestamp: header.timestamp, clockRate: clockRate, arrival: arrival)
  }

  /// Handles a sender report.
  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    lastSenderReport = (UInt32(truncatingIfNeeded: report.ntpTime >> 16), arrival)
  }

  /// Accepts the next number, wherever it is.
  mutating func acceptJump() { media.acceptJump() }

  /// Extends the number of a lost packet.
  func extended(_ sequence: UInt16) -> Int64? {
    media.isStarted ? media.extended(sequence) : nil
  }

  /// An extra report block on the media SSRC, which does not affect the regular ones.
  func block(on ssrc: UInt32, at now: Instant) -> ReportBlock? {
    guard media.isStarted else { return nil }
    var copy = self
    copy.hasNews = true
    return copy.makeBlocks(ssrc, rtxSSRC: nil, at: now).first
  }

  /// The report blocks for the time since the last ones.
  mutating func makeBlocks(_ ssrc: UInt32, rtxSSRC: UInt32?, at now: Instant) -> [ReportBlock] {
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
