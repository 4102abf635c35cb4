import RTP
import Wire

/// Arrivals of packets with transport-wide sequence numbers that are not reported yet.
struct ArrivalLog {
  private static let capacity: Int64 = 4096
  /// The most packets in one feedback message, so that it fits into a datagram.
  private static let reportedAtMost = 400
  /// The interval between reports; shorter if there are many arrivals.
  private static let interval = Interval.milliseconds(100)
  private static let busyInterval = Interval.milliseconds(50)
  private static let busyCount = 20
  /// How long a due report waits for a step that happens anyway.
  private static let slack = Interval.milliseconds(20)
  private static let tickNanoseconds: Int64 = 250_000

  /// When the arrivals are reported if a step happens anyway.
  private(set) var due: Instant?
  private var times: [(sequence: Int64, ticks: Int64)] = []
  private var unwrapper = SequenceUnwrapper()
  private var newest: Int64?
  private var oldestNew: Int64?
  private var reportedThrough: Int64?
  private var newCount = 0
  private var isBusy = false
  private var number: UInt8 = 0

  /// When the arrivals need a step of their own.
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

  /// Returns one feedback message: as many packets as fit and are close enough to each other.
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
