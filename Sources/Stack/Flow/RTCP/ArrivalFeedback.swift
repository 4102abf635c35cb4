import RTP
import Wire

/// Feedback on arriving packets for the peer's congestion control: arrival times, or the total bit
/// rate (REMB).
struct ArrivalFeedback {
  private var log = ArrivalLog()
  private var bitrate = IncomingBitrate()
  /// The SSRC of the newest packet with a transport-wide sequence number.
  private var newestSSRC: UInt32 = 0

  /// When arrivals are due to be reported.
  ///
  /// The next step after this time reports them; if there is none by `deadline`, a step is
  /// requested.
  var due: Instant? { log.due }
  var deadline: Instant? { log.deadline }

  /// The bit rate last sent to the peer, in bits per second; nil before the first.
  var reportedBitrate: UInt64? { bitrate.latest }

  /// Records the arrival of a packet with a transport-wide sequence number.
  mutating func receive(_ sequence: UInt16, ssrc: UInt32, arrival: Instant, at now: Instant) {
    log.receive(sequence, arrival: arrival, at: now)
    newestSSRC = ssrc
  }

  mutating func receive(bytes: Int, at arrival: Instant) {
    bitrate.receive(bytes: bytes, at: arrival)
  }

  /// Records the fraction of packets lost since the last report, in 1/256, for the next estimate.
  mutating func receive(fractionLost: UInt8) { bitrate.receive(fractionLost: fractionLost) }

  /// Returns feedback on the arrivals since the last call.
  mutating func makeReports(senderSSRC: UInt32) -> [TransportFeedback] {
    log.report(senderSSRC: senderSSRC, mediaSSRC: newestSSRC)
  }

  /// Returns a REMB message for these sources; nil if there are no sources, if nothing has arrived
  /// yet, or if it is too early for an estimate.
  mutating func estimate(senderSSRC: UInt32, of ssrcs: [UInt32], at now: Instant)
    -> MaximumBitrate?
  {
    guard !ssrcs.isEmpty, let bitrate = bitrate.estimate(at: now) else { return nil }
    return MaximumBitrate(senderSSRC: senderSSRC, bitrate: bitrate, ssrcs: ssrcs)
  }
}

// MARK: - ArrivalLog

/// Arrivals of packets with transport-wide sequence numbers that have not been reported yet.
struct ArrivalLog {
  private static let capacity: Int64 = 4096
  /// The maximum number of packets in a feedback message, so that it fits into a datagram.
  private static let reportedAtMost = 400
  /// The time from the first unreported arrival to the next report; `busyInterval` replaces it
  /// after a report on more than `busyCount` packets.
  private static let interval = Interval.milliseconds(100)
  private static let busyInterval = Interval.milliseconds(50)
  private static let busyCount = 20
  /// How long a due report may wait for a step that happens for another reason.
  private static let slack = Interval.milliseconds(20)
  private static let tickNanoseconds: Int64 = 250_000

  /// When arrivals are due to be reported by the next step; nil if none are waiting.
  private(set) var due: Instant?
  private var times: [(sequence: Int64, ticks: Int64)] = []
  private var unwrapper = SequenceUnwrapper()
  private var newest: Int64?
  private var oldestNew: Int64?
  private var reportedThrough: Int64?
  private var newCount = 0
  private var isBusy = false
  private var number: UInt8 = 0

  /// When a step must be made to report arrivals, if none has happened since `due`.
  var deadline: Instant? { due.map { $0 + ArrivalLog.slack } }

  mutating func receive(_ wireSequence: UInt16, arrival: Instant, at now: Instant) {
    if times.isEmpty {
      times = Array(repeating: (.min, 0), count: Int(ArrivalLog.capacity))
    }
    let sequence = unwrapper.unwrap(wireSequence)
    if let newest, sequence <= newest - ArrivalLog.capacity / 2 { return }
    guard times[place(sequence)].sequence != sequence else { return }
    times[place(sequence)] = (sequence, arrival.nanoseconds / ArrivalLog.tickNanoseconds)
    newest = max(newest ?? sequence, sequence)
    oldestNew = min(oldestNew ?? sequence, sequence)
    newCount += 1
    if due == nil { due = now + (isBusy ? ArrivalLog.busyInterval : ArrivalLog.interval) }
    if newCount >= ArrivalLog.reportedAtMost { due = min(due ?? now, now) }
  }

  /// Returns feedback on the arrivals since the last call.
  mutating func report(senderSSRC: UInt32, mediaSSRC: UInt32) -> [TransportFeedback] {
    due = nil
    isBusy = newCount > ArrivalLog.busyCount
    newCount = 0
    guard let newest, let oldestNew else { return [] }
    self.oldestNew = nil
    var first = min(oldestNew, (reportedThrough ?? oldestNew - 1) + 1)
    first = max(first, newest - ArrivalLog.capacity / 2 + 1)
    reportedThrough = newest
    var feedbacks: [TransportFeedback] = []
    while first <= newest {
      let feedback = feedback(from: first, through: newest, senderSSRC, mediaSSRC)
      first += Int64(feedback.count)
      guard !feedback.arrivals.isEmpty else { continue }
      number &+= 1
      feedbacks.append(feedback)
    }
    return feedbacks
  }

  /// Returns one feedback message with as many packets as fit and are close enough in time.
  private func feedback(
    from first: Int64, through last: Int64, _ senderSSRC: UInt32, _ mediaSSRC: UInt32
  ) -> TransportFeedback {
    var feedback = TransportFeedback(
      senderSSRC: senderSSRC, mediaSSRC: mediaSSRC, base: UInt16(truncatingIfNeeded: first),
      count: 0, reference: 0, number: number, arrivals: [])
    var origin: Int64?
    var before: Int64 = 0
    var sequence = first
    while sequence <= last, feedback.arrivals.count < ArrivalLog.reportedAtMost {
      let entry = times[place(sequence)]
      if entry.sequence == sequence {
        let start = origin ?? (entry.ticks >> 8) * TransportFeedback.ticksPerReference
        if origin == nil {
          origin = start
          before = start
          feedback.reference = (Int32(truncatingIfNeeded: entry.ticks >> 8) << 8) >> 8
        }
        guard Int16(exactly: entry.ticks - before) != nil else { break }
        before = entry.ticks
        feedback.arrivals.append(
          TransportFeedback.Arrival(
            offset: UInt16(truncatingIfNeeded: sequence - first),
            ticks: Int32(truncatingIfNeeded: entry.ticks - start)))
      }
      sequence += 1
    }
    feedback.count = UInt16(truncatingIfNeeded: sequence - first)
    return feedback
  }

  private func place(_ sequence: Int64) -> Int {
    Int(truncatingIfNeeded: sequence & (ArrivalLog.capacity - 1))
  }
}

// MARK: - IncomingBitrate

/// Estimates the receive rate for peers that rely on REMB.
///
/// The estimate stays above the receive rate while packets arrive, and falls below it when many are
/// lost.
struct IncomingBitrate {
  private static let initial = 1_000_000.0
  private static let minimum = 50_000.0
  private static let maximum = 100_000_000.0

  private var current = IncomingBitrate.initial
  /// The last estimate in bits per second; nil before the first.
  private(set) var latest: UInt64?
  private var bytes = 0
  private var since: Instant?
  private var fractionLost: UInt8 = 0

  mutating func receive(bytes: Int, at arrival: Instant) {
    if since == nil { since = arrival }
    self.bytes += bytes
  }

  /// Records the fraction of packets lost since the last report, in 1/256, for the next estimate.
  mutating func receive(fractionLost: UInt8) { self.fractionLost = fractionLost }

  /// Returns the estimate for the time since the last one, in bits per second; nil if nothing has
  /// arrived yet or that time is below 100 ms.
  mutating func estimate(at now: Instant) -> UInt64? {
    guard let since, now - since >= .milliseconds(100) else { return nil }
    let rate = Double(bytes) * 8 / (now - since).seconds
    let lost = Double(fractionLost) / 256
    if lost > 0.1 {
      current = min(current, rate) * (1 - 0.5 * lost)
    } else if lost < 0.02 {
      current = max(current, 1.5 * rate)
    }
    current = min(max(current, IncomingBitrate.minimum), IncomingBitrate.maximum)
    bytes = 0
    self.since = now
    latest = UInt64(current)
    return latest
  }
}
