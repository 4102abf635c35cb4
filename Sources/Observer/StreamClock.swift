import RTP
import Wire

/// Finds the clock by which the timestamps of a stream run.
///
/// Over time they run as the clock does, whatever the network does to single packets: the longer a
/// stream was seen, the less bursts and jitter matter. Before that, the steps between packets tell:
/// audio steps by whole packets of some milliseconds, and video sends several packets of one time.
struct StreamClock {
  /// How a packet stands to the one before it.
  enum Spacing {
    /// It is the first one, or packets are missing between them.
    case unknown
    /// It has the time of the one before.
    case sameTime
    /// So many ticks later.
    case step(UInt32)
  }

  private static let audioRates: [UInt32] = [8000, 16_000, 24_000, 32_000, 44_100, 48_000]
  /// What packets of Opus last, in ticks (RFC 6716 section 2.1.4, RFC 7587 section 4.2).
  private static let opusSteps: Set<UInt32> = [120, 240, 480, 960, 1920, 2880, 3840, 4800, 5760]
  /// How many different steps and payload types are counted.
  private static let stepsMaximum = 24
  private static let typesMaximum = 8
  /// Over less time nothing is concluded.
  private static let timeMinimum = Interval.milliseconds(300)

  private var began: Instant?
  private var lastAt = Instant.zero
  private var elapsedTicks: Int64 = 0
  private var lastTime: UInt32 = 0
  private var lastSequence: UInt16 = 0
  private var steps: [(ticks: UInt32, count: Int)] = []
  private var stepCount = 0
  private var sameTimes = 0
  /// How many packets have an earlier time than the one before.
  private var backwards = 0
  private var types: [(type: UInt8, count: Int)] = []

  /// The payload type of most packets.
  var payloadType: UInt8? { types.max { $0.count < $1.count }?.type }

  /// Counts a packet.
  mutating func add(_ header: RTPHeader, at now: Instant) -> Spacing {
    if let known = types.firstIndex(where: { $0.type == header.payloadType }) {
      types[known].count += 1
    } else if types.count < Self.typesMaximum {
      types.append((header.payloadType, 1))
    }
    defer { (lastTime, lastSequence, lastAt) = (header.timestamp, header.sequence, now) }
    guard began != nil else {
      began = now
      return .unknown
    }
    let ticks = Int32(bitPattern: header.timestamp &- lastTime)
    // A jump of minutes is a new beginning, with which time is measured anew.
    guard abs(Int64(ticks)) < 1 << 26 else {
      (began, elapsedTicks) = (now, 0)
      return .unknown
    }
    elapsedTicks += Int64(ticks)
    guard header.sequence &- lastSequence == 1 else { return .unknown }
    guard ticks > 0 else {
      if ticks == 0 { sameTimes += 1 } else { backwards += 1 }
      return ticks == 0 ? .sameTime : .unknown
    }
    let step = UInt32(ticks)
    stepCount += 1
    if let known = steps.firstIndex(where: { $0.ticks == step }) {
      steps[known].count += 1
    } else if steps.count < Self.stepsMaximum {
      steps.append((step, 1))
    }
    return .step(step)
  }

  /// The step that most packets have.
  private var usualStep: (ticks: UInt32, count: Int) {
    steps.max { $0.count < $1.count } ?? (0, 0)
  }

  /// Whether several packets have one time now and then: parts of a video frame.
  private var sharesTimes: Bool { sameTimes >= 2 && sameTimes * 50 > stepCount }

  /// Whether the clock is that of video, as far as can be told.
  var isVideo: Bool { sharesTimes || rate == 90_000 }

  /// The clock in Hz; nil where it is none of the usual ones, or cannot be told yet.
  var rate: UInt32? {
    guard let began, lastAt - began >= Self.timeMinimum, stepCount >= 3 else { return nil }
    let seconds = (lastAt - began).seconds
    let seen = Double(elapsedTicks) / seconds
    // What waits somewhere at the beginning or the end, 300 ms at most, and clocks that are not
    // quite right.
    let tolerance = min(0.5, 0.02 + 0.3 / seconds)
    func error(_ rate: UInt32) -> Double { abs(seen / Double(rate) - 1) }
    if sharesTimes { return error(90_000) < max(tolerance, 0.12) ? 90_000 : nil }
    let even = Self.audioRates.filter { error($0) < tolerance && steps(evenly: $0) }
    if let best = even.min(by: { error($0) < error($1) }) { return best }
    // Frames of one packet each, or audio that does not step evenly: time has to tell. Within a
    // second the usual clocks are far enough apart.
    guard backwards * 5 <= stepCount else { return nil }
    guard seconds >= 1, !Self.opusSteps.contains(usualStep.ticks) || seconds >= 10 else {
      return nil
    }
    let near = (Self.audioRates + [90_000]).filter { error($0) < min(tolerance, 0.12) }
    return near.min { error($0) < error($1) }
  }

  /// Whether nearly all steps are whole packets of audio with this clock: multiples of 2.5 ms, most
  /// of them of one length up to 120 ms.
  private func steps(evenly rate: UInt32) -> Bool {
    // Steps have any 32 bits.
    let whole = steps.reduce(0) { sum, step in
      sum + (UInt64(step.ticks) * 400 % UInt64(rate) == 0 ? step.count : 0)
    }
    return whole * 10 >= stepCount * 9 && usualStep.count * 2 >= stepCount
      && UInt64(usualStep.ticks) * 1000 <= UInt64(rate) * 120
  }
}
