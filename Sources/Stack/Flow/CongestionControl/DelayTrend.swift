import RTP
import Wire

/// Detects growing queues from packet spacing: the delay-based part of draft-ietf-rmcat-gcc-02,
/// with a line fitted to the accumulated delay.
struct DelayTrend: Sendable {
  /// The state of the queues on the path.
  enum Signal: Sendable {
    case steady
    case growing
    case shrinking
  }

  /// A burst of packets sent together (section 5.2).
  private struct Group {
    var firstSent: Instant
    var lastSent: Instant
    var lastArrivalTicks: Int64
  }

  private static let groupLength = Interval.milliseconds(5)
  private static let window = 20
  /// The minimum number of points from which a trend is computed at the start of a stream.
  private static let fewest = 10
  private static let smoothing = 0.9
  private static let gain = 4.0
  /// The time in milliseconds that a rising trend must last before the queues count as growing.
  private static let overuseTime = 10.0

  private(set) var signal = Signal.steady
  private var current: Group?
  private var previous: Group?
  private var accumulated = 0.0
  private var smoothed = 0.0
  private var points: [(time: Double, delay: Double)] = []
  private var originTicks: Int64?
  private var groupCount = 0
  private var lastTrend = 0.0
  private var threshold = 12.5
  private var overuseFor: Double = -1
  private var overuseCount = 0
  private var lastThresholdUpdate: Double?

  /// Handles a packet that the peer received, unless it was sent before the current group.
  mutating func receive(_ packet: SentLog.Acknowledged) {
    guard var group = current else {
      current = Group(
        firstSent: packet.sentAt, lastSent: packet.sentAt, lastArrivalTicks: packet.arrivalTicks)
      return
    }
    guard packet.sentAt >= group.firstSent else { return }
    if packet.sentAt - group.firstSent <= DelayTrend.groupLength {
      group.lastSent = max(group.lastSent, packet.sentAt)
      group.lastArrivalTicks = max(group.lastArrivalTicks, packet.arrivalTicks)
      current = group
      return
    }
    if let previous { compare(previous, group) }
    previous = group
    current = Group(
      firstSent: packet.sentAt, lastSent: packet.sentAt, lastArrivalTicks: packet.arrivalTicks)
  }

  private mutating func compare(_ old: Group, _ new: Group) {
    let sendDelta = (new.lastSent - old.lastSent).seconds * 1000
    let arrivalDelta = Double(new.lastArrivalTicks - old.lastArrivalTicks) * 0.25
    // A jump of seconds is a pause or a clock change, not a queue.
    guard arrivalDelta >= 0, arrivalDelta < 3000, sendDelta < 3000 else {
      restart()
      return
    }
    let origin = originTicks ?? new.lastArrivalTicks
    originTicks = origin
    groupCount = min(groupCount + 1, 1000)
    accumulated += arrivalDelta - sendDelta
    smoothed = DelayTrend.smoothing * smoothed + (1 - DelayTrend.smoothing) * accumulated
    points.append((Double(new.lastArrivalTicks - origin) * 0.25, smoothed))
    if points.count > DelayTrend.window { points.removeFirst() }
    let trend = points.count >= DelayTrend.fewest ? slope() : lastTrend
    detect(trend, sendDelta: sendDelta, time: Double(new.lastArrivalTicks - origin) * 0.25)
  }

  /// Returns the slope of the least-squares line through the points.
  private func slope() -> Double {
    var timeSum = 0.0
    var delaySum = 0.0
    for point in points {
      timeSum += point.time
      delaySum += point.delay
    }
    let timeMean = timeSum / Double(points.count)
    let delayMean = delaySum / Double(points.count)
    var above = 0.0
    var below = 0.0
    for point in points {
      above += (point.time - timeMean) * (point.delay - delayMean)
      below += (point.time - timeMean) * (point.time - timeMean)
    }
    return below > 0 ? above / below : 0
  }

  private mutating func detect(_ trend: Double, sendDelta: Double, time: Double) {
    let value = Double(min(groupCount, 60)) * trend * DelayTrend.gain
    if value > threshold {
      overuseFor = overuseFor < 0 ? sendDelta / 2 : overuseFor + sendDelta
      overuseCount += 1
      if overuseFor > DelayTrend.overuseTime, overuseCount > 1, trend >= lastTrend {
        overuseFor = 0
        overuseCount = 0
        signal = .growing
      }
    } else {
      overuseFor = -1
      overuseCount = 0
      signal = value < -threshold ? .shrinking : .steady
    }
    lastTrend = trend
    adapt(to: value.magnitude, time: time)
  }

  /// Moves the threshold towards the trend, so that other flows do not starve this one
  /// (section 5.4).
  private mutating func adapt(to magnitude: Double, time: Double) {
    let elapsed = min(time - (lastThresholdUpdate ?? time), 100)
    lastThresholdUpdate = time
    guard magnitude <= threshold + 15 else { return }
    let speed = magnitude < threshold ? 0.039 : 0.0087
    threshold = min(max(threshold + speed * (magnitude - threshold) * elapsed, 6), 600)
  }

  private mutating func restart() {
    points.removeAll()
    accumulated = 0
    smoothed = 0
    lastTrend = 0
    groupCount = 0
    originTicks = nil
    lastThresholdUpdate = nil
    overuseFor = -1
    overuseCount = 0
    signal = .steady
  }
}

// MARK: - SentLog

/// The most recent packets sent with transport-wide sequence numbers, for matching with the peer's
/// feedback.
struct SentLog: Sendable {
  /// A packet that the peer received.
  struct Acknowledged {
    var sentAt: Instant
    /// Arrival on the peer's clock, in units of 250 µs.
    var arrivalTicks: Int64
    var bytes: Int
  }

  /// The packets on which a feedback message reports for the first time: those that arrived, and
  /// the number of those lost.
  struct News {
    var arrived: [Acknowledged] = []
    var lostCount = 0
  }

  private struct Entry {
    var sequence: Int64 = -1
    var sentAt = Instant.zero
    var bytes: Int32 = 0
    var isAcknowledged = false
  }

  private static let capacity = 4096
  private var entries: [Entry] = []
  private var newest: Int64 = -1
  /// The newest packet covered by any feedback.
  private var newestReported: Int64 = -1
  private var reference: Int64?

  mutating func append(_ sequence: Int64, bytes: Int, at now: Instant) {
    if entries.isEmpty { entries = [Entry](repeating: Entry(), count: SentLog.capacity) }
    entries[place(sequence)] = Entry(
      sequence: sequence, sentAt: now, bytes: Int32(clamping: bytes))
    newest = max(newest, sequence)
  }

  /// Returns the packets on which a feedback message is the first to report, both arrived and lost.
  mutating func news(in feedback: TransportFeedback) -> News {
    var news = News()
    guard newest >= 0 else { return news }
    let base = newest - Int64(UInt16(truncatingIfNeeded: newest) &- feedback.base)
    let origin = unwrapReference(feedback.reference) * TransportFeedback.ticksPerReference
    var arrivedNow: Int64 = 0
    for arrival in feedback.arrivals {
      let sequence = base + Int64(arrival.offset)
      guard sequence >= 0, sequence <= newest else { continue }
      let entry = entries[place(sequence)]
      if sequence > newestReported { arrivedNow += 1 }
      guard entry.sequence == sequence, !entry.isAcknowledged else { continue }
      entries[place(sequence)].isAcknowledged = true
      news.arrived.append(
        Acknowledged(
          sentAt: entry.sentAt, arrivalTicks: origin + Int64(arrival.ticks),
          bytes: Int(entry.bytes)))
    }
    let last = min(newest, base + Int64(feedback.count) - 1)
    if last > newestReported {
      // Packets that no feedback has covered may have arrived, so they do not count as lost.
      let first = max(newestReported + 1, base)
      news.lostCount = Int(max(0, last - first + 1 - arrivedNow))
      newestReported = last
    }
    return news
  }

  /// Extends the 24-bit reference time, which wraps around after 12 days.
  private mutating func unwrapReference(_ wire: Int32) -> Int64 {
    guard let reference else {
      self.reference = Int64(wire)
      return Int64(wire)
    }
    let difference = (Int32(truncatingIfNeeded: Int64(wire) - reference) << 8) >> 8
    self.reference = reference + Int64(difference)
    return reference + Int64(difference)
  }

  private func place(_ sequence: Int64) -> Int {
    Int(truncatingIfNeeded: sequence) & (SentLog.capacity - 1)
  }
}
