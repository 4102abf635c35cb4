import RTP
import Wire

/// Composes RTCP packets: reports with canonical names (RFC 3550 section 6.1), and feedback
/// preceded by a report unless reduced size was negotiated (RFC 4585 section 3.1, RFC 5506).
struct RTCPComposer {
  /// The maximum number of report blocks in a compound packet, and of sources in its BYE.
  static let sourcesMaximum = 31

  /// The canonical name in source descriptions (RFC 7022).
  private let cname: String
  /// Whether a PLI or FIR is preceded by a report on its source.
  let reportsWithDemands: Bool

  init(cname: String, reportsWithDemands: Bool = false) {
    self.cname = cname
    self.reportsWithDemands = reportsWithDemands
  }

  /// Composes sender reports, or a receiver report if there are none, with canonical names and, if
  /// needed, an extended report.
  /// - Parameters:
  ///   - blocks: the report blocks, all in the first report.
  ///   - reference: the current NTP time, which the peer refers to in its answer.
  func reports(
    _ senders: [SenderReport], _ blocks: [ReportBlock], localSSRC: UInt32,
    receives: Bool, reference: UInt64, _ answers: [ExtendedReport.DelayBlock]
  ) -> [RTCPPacket] {
    let blocks = Array(blocks.prefix(Self.sourcesMaximum))
    var packets: [RTCPPacket] = []
    for (index, var report) in senders.enumerated() {
      if index == 0 { report.blocks = blocks }
      packets.append(.senderReport(report))
    }
    if senders.isEmpty {
      packets.append(.receiverReport(ReceiverReport(ssrc: localSSRC, blocks: blocks)))
    }
    packets.append(names(senders.isEmpty ? [localSSRC] : senders.map(\.ssrc)))
    // Only senders can measure the round trip from report blocks; a receiver has to ask for an
    // answer (RFC 3611 section 4.4).
    let asks = senders.isEmpty || receives
    if asks || !answers.isEmpty {
      packets.append(
        .extendedReport(
          ExtendedReport(
            ssrc: localSSRC, receiverReferenceTime: asks ? reference : nil, delays: answers)))
    }
    return packets
  }

  /// Composes a feedback message, preceded by a report if required.
  /// - Parameter block: a report block on the source that the feedback concerns.
  func feedback(
    _ packet: RTCPPacket, localSSRC: UInt32, isAlone: Bool, block: ReportBlock? = nil
  ) -> [RTCPPacket] {
    if isAlone { return [packet] }
    let report = ReceiverReport(ssrc: localSSRC, blocks: block.map { [$0] } ?? [])
    return [.receiverReport(report), names([localSSRC]), packet]
  }

  private func names(_ ssrcs: [UInt32]) -> RTCPPacket {
    .sourceDescription(
      SourceDescription(chunks: ssrcs.map { .init(ssrc: $0, cname: cname) }))
  }

  /// Returns a compound packet's bytes, with spare capacity for SRTP.
  static func bytes(_ packets: [RTCPPacket]) -> [UInt8] {
    var writer = ByteWriter(capacity: 512 + MediaFlow.reservedOverhead)
    for packet in packets { packet.write(into: &writer) }
    var bytes = writer.bytes
    writer = ByteWriter()
    bytes.reserveCapacity(bytes.count + MediaFlow.reservedOverhead)
    return bytes
  }
}

/// Schedules reports while media is sent or received; the first one comes early (RFC 3550 section
/// 6.2).
struct ReportSchedule {
  /// How long a due report may wait for a step that happens for another reason.
  private static let slack = Interval.milliseconds(50)

  private(set) var due: Instant?
  private var hasReported = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// When a step must be made to send a report, if none has happened since `due`.
  var deadline: Instant? { due.map { $0 + Self.slack } }

  /// Schedules a report because media was sent or received, unless one is already scheduled; the
  /// first report comes earlier.
  mutating func begin(at now: Instant) {
    guard due == nil else { return }
    let random = Int64(entropy.integer(below: 1_000_000_000))
    let interval = Interval(nanoseconds: 500_000_000 + random)
    due = now + (hasReported ? interval : interval / 2)
  }

  /// Returns whether a report is due, and clears the schedule if so.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let due, due <= now else { return false }
    self.due = nil
    hasReported = true
    return true
  }
}

// MARK: - RoundTripMeter

/// Measures the round trip to the peer, and stores receivers' reference times until they are
/// answered (RFC 3611 section 4.4).
struct RoundTripMeter {
  private struct ReferenceTime {
    let ssrc: UInt32
    let compactNTP: UInt32
    let arrival: Instant
  }

  /// The longest plausible round trip; longer ones are treated as errors.
  private static let longest = Interval.seconds(30)
  /// The maximum number of reference times answered in one report.
  private static let referencesMaximum = 8

  /// The latest round trip; nil before the first measurement.
  private(set) var newest: Interval?
  private var references: [ReferenceTime] = []

  /// Measures a round trip without the delay at the peer (RFC 3550 section 6.4.1); nil if the peer
  /// had no report to answer or the result is implausible.
  /// - Parameter arrival: the middle 32 bits of the NTP time when the answer arrived.
  mutating func measure(lastReport: UInt32, delay: UInt32, arrival: UInt32) -> Interval? {
    guard lastReport != 0 else { return nil }
    let units = arrival &- lastReport &- delay
    // Rounding may make the difference slightly negative.
    let isNothing = Int32(bitPattern: units) <= 0 && Int32(bitPattern: units) > -65
    let length = Interval(compactUnits: isNothing ? 1 : units)
    guard length < Self.longest else { return nil }
    newest = length
    return length
  }

  /// The shortest time between two requests for the same packet.
  var requestSpacing: Interval {
    guard let newest else { return .milliseconds(100) }
    return max(newest * 5 / 4, .milliseconds(20))
  }

  /// The shortest time between two retransmissions of the same packet.
  var resendSpacing: Interval {
    min(max(newest ?? .milliseconds(20), .milliseconds(5)), .milliseconds(500))
  }

  /// Stores a receiver's reference time until the next report answers it.
  mutating func recordReference(_ ntpTime: UInt64, of ssrc: UInt32, arrival: Instant) {
    references.removeAll { $0.ssrc == ssrc }
    if references.count == Self.referencesMaximum { references.removeFirst() }
    references.append(
      ReferenceTime(
        ssrc: ssrc, compactNTP: UInt32(truncatingIfNeeded: ntpTime >> 16), arrival: arrival))
  }

  /// Returns answers to the stored reference times and clears them.
  mutating func makeAnswers(at now: Instant) -> [ExtendedReport.DelayBlock] {
    defer { references.removeAll() }
    return references.map {
      ExtendedReport.DelayBlock(
        ssrc: $0.ssrc, lastReport: $0.compactNTP,
        delaySinceLastReport: (now - $0.arrival).compactUnits)
    }
  }
}

// Conversions between instants or intervals and RTCP's units of time.

extension Interval {
  /// The length in units of 1/65536 s; 0 if negative.
  var compactUnits: UInt32 {
    let length = max(0, nanoseconds)
    let seconds = UInt64(length / 1_000_000_000)
    let rest = UInt64(length % 1_000_000_000)
    return UInt32(truncatingIfNeeded: seconds << 16 | (rest << 16) / 1_000_000_000)
  }

  /// Creates an interval from units of 1/65536 s.
  init(compactUnits: UInt32) {
    self.init(nanoseconds: Int64((UInt64(compactUnits) * 1_000_000_000) >> 16))
  }
}

extension WallClock {
  /// Converts an instant to the format of abs-send-time: seconds as a 6.18 fixed-point number.
  func absoluteSendTime(at now: Instant) -> UInt32 {
    UInt32(truncatingIfNeeded: ntp(at: now) >> 14) & 0xff_ffff
  }

  /// Converts an NTP time to Unix time in nanoseconds (RFC 5905 section 6).
  static func unixNanoseconds(ntp: UInt64) -> Int64 {
    let seconds = Int64(ntp >> 32) - 2_208_988_800
    let fraction = Int64(((ntp & 0xffff_ffff) * 1_000_000_000) >> 32)
    return seconds * 1_000_000_000 + fraction
  }
}
