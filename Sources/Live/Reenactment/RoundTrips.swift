import RTP
package import Wire

// The round trip time that the recorded receiver had measured. It affects how long a receiver waits
// for retransmissions: Chromium's jitter buffer grows with it. A live client can measure a round
// trip only if its reports are answered.

extension ReenactmentPlan {
  /// A round trip that the recorded receiver measured.
  package struct RoundTrip: Hashable, Sendable {
    package var distance: Interval
    package var value: Interval
  }

  /// Returns the last round trip that the recorded receiver had measured by a given time; nil
  /// before the first one.
  func roundTrip(at distance: Interval) -> Interval? {
    var (low, high) = (0, roundTrips.count)
    while low < high {
      let middle = (low + high) / 2
      if roundTrips[middle].distance <= distance { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? roundTrips[low - 1].value : nil
  }
}

/// Returns the middle 32 bits of an NTP timestamp, by which reports refer to each other.
private func middle(_ time: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: time >> 16) }

/// Finds the round trips that a recorded receiver measured, from the answers to its sender reports
/// (RFC 3550 section 6.4.1) and reference times (RFC 3611 section 4.5).
struct RoundTripFinder {
  private var sent: [UInt32: Instant] = [:]
  private(set) var found: [(at: Instant, value: Interval)] = []

  /// The maximum number of reports to remember.
  private static let sentMaximum = 10_000

  /// Adds RTCP that the receiver sent.
  mutating func add(sent bytes: [UInt8], at now: Instant) {
    if sent.count > RoundTripFinder.sentMaximum { sent.removeAll() }
    for packet in RTCPCompound(parsing: bytes.span.bytes).packets {
      switch packet {
      case .senderReport(let report): sent[middle(report.ntpTime)] = now
      case .extendedReport(let report):
        if let time = report.receiverReferenceTime { sent[middle(time)] = now }
      default: break
      }
    }
  }

  /// Adds RTCP that the receiver received.
  mutating func add(received bytes: [UInt8], at now: Instant) {
    for packet in RTCPCompound(parsing: bytes.span.bytes).packets {
      switch packet {
      case .senderReport(let report): add(report.blocks, at: now)
      case .receiverReport(let report): add(report.blocks, at: now)
      case .extendedReport(let report):
        for delay in report.delays {
          add(answering: delay.lastReport, after: delay.delaySinceLastReport, at: now)
        }
      default: break
      }
    }
  }

  private mutating func add(_ blocks: [ReportBlock], at now: Instant) {
    for block in blocks where block.lastSenderReport != 0 {
      add(answering: block.lastSenderReport, after: block.delaySinceLastSenderReport, at: now)
    }
  }

  private mutating func add(answering report: UInt32, after delay: UInt32, at now: Instant) {
    guard let began = sent[report] else { return }
    let value = now - began - Interval(sixtyFiveThousandths: delay)
    guard value > .zero else { return }
    found.append((now, value))
  }

  /// Returns the round trips with their times since an instant.
  func roundTrips(from origin: Instant) -> [ReenactmentPlan.RoundTrip] {
    found.map {
      ReenactmentPlan.RoundTrip(distance: max(.zero, $0.at - origin), value: $0.value)
    }.sorted { $0.distance < $1.distance }
  }
}

extension Interval {
  /// Creates an interval from a delay field of a report, in units of 1/65536 s.
  fileprivate init(sixtyFiveThousandths count: UInt32) {
    self.init(nanoseconds: Int64(count) * 1_000_000_000 / 65_536)
  }

  /// The interval as a delay field of a report, in units of 1/65536 s.
  fileprivate var sixtyFiveThousandths: UInt32 {
    UInt32(clamping: nanoseconds * 65_536 / 1_000_000_000)
  }
}

// MARK: - ReportAnswers

/// Answers the reports of a live client so that it measures the same round trip as the recorded
/// receiver.
struct ReportAnswers {
  private struct Answer {
    /// The time to send the answer, at least one round trip after the report, because the delay in
    /// the answer cannot be negative.
    var due: Instant
    var received: Instant
    var roundTrip: Interval
    var ssrc: UInt32
    var report: UInt32
    var isReferenceTime: Bool
    var transport: Int
  }

  private var waiting: [Answer] = []
  /// The highest sequence number of each of the client's streams.
  private var highest: [UInt32: UInt16] = [:]

  /// The maximum number of pending answers, and of streams.
  private static let waitingMaximum = 100

  var deadline: Instant? { waiting.map(\.due).min() }

  /// Records the sequence number of a media packet of the client.
  mutating func receive(media bytes: [UInt8]) {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes) else { return }
    let last = highest[header.ssrc]
    guard last != nil || highest.count < ReportAnswers.waitingMaximum else { return }
    if Int16(bitPattern: header.sequence &- (last ?? header.sequence)) >= 0 {
      highest[header.ssrc] = header.sequence
    }
  }

  /// Schedules the answer to a report of the client.
  ///
  /// - Parameters:
  ///   - start: the time of the recorded receiver's first round trip; no answer is sent before
  ///     then.
  ///   - roundTrip: the round trip that the client should measure.
  mutating func receive(
    _ report: RTCPPacket, over transport: Int, at now: Instant, notBefore start: Instant,
    roundTrip: Interval
  ) {
    let time: UInt64
    let ssrc: UInt32
    let isReferenceTime: Bool
    switch report {
    case .senderReport(let report):
      (time, ssrc, isReferenceTime) = (report.ntpTime, report.ssrc, false)
    case .extendedReport(let report):
      guard let reference = report.receiverReferenceTime else { return }
      (time, ssrc, isReferenceTime) = (reference, report.ssrc, true)
    default: return
    }
    guard waiting.count < ReportAnswers.waitingMaximum else { return }
    waiting.append(
      Answer(
        due: max(now + roundTrip, start), received: now, roundTrip: roundTrip, ssrc: ssrc,
        report: middle(time), isReferenceTime: isReferenceTime, transport: transport))
  }

  /// Returns the answers that are due, with their transports.
  ///
  /// - Parameter sender: the local SSRC.
  mutating func advance(to now: Instant, from sender: UInt32) -> [(bytes: [UInt8], transport: Int)]
  {
    let due = waiting.filter { $0.due <= now }
    waiting.removeAll { $0.due <= now }
    return due.map { answer in
      let delay = (now - answer.received - answer.roundTrip).sixtyFiveThousandths
      var report = ReceiverReport(ssrc: sender, blocks: [])
      var extended: ExtendedReport?
      if answer.isReferenceTime {
        extended = ExtendedReport(
          ssrc: sender,
          delays: [
            ExtendedReport.DelayBlock(
              ssrc: answer.ssrc, lastReport: answer.report, delaySinceLastReport: delay)
          ])
      } else {
        report.blocks = [
          ReportBlock(
            ssrc: answer.ssrc, fractionLost: 0, cumulativeLost: 0,
            highestSequence: UInt32(highest[answer.ssrc] ?? 0), jitter: 0,
            lastSenderReport: answer.report, delaySinceLastSenderReport: delay)
        ]
      }
      var writer = ByteWriter(capacity: 64)
      RTCPPacket.receiverReport(report).write(into: &writer)
      if let extended { RTCPPacket.extendedReport(extended).write(into: &writer) }
      return (writer.bytes, answer.transport)
    }
  }
}
