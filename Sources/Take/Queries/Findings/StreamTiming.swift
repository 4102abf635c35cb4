import Wire

/// Compares a stream's arrival times with its timestamps.
package struct StreamTiming: Sendable {
  /// A second's packets, one per timestamp.
  package struct Second: Sendable, Hashable {
    package var second: Int64
    package var packets: Int32
    /// Arrival time minus media time in microseconds, relative to the stream's first packet:
    /// minimum, 10th percentile, median and 90th percentile.
    package var least: Int64
    package var low: Int64
    package var median: Int64
    package var high: Int64
    /// The interarrival jitter at its end, in microseconds (RFC 3550 section 6.4.1).
    package var jitter: Int64
    /// The number of packets whose spacing changed by 15 ms or more.
    package var swings: Int32
    /// The largest increase in delay from one packet to the next, in microseconds.
    package var leap: Int64
    /// Delays are comparable only within a part; a pause or a clock change begins another.
    package var part: Int32
  }

  /// Timestamps that advanced differently than time.
  package struct Jump: Sendable, Hashable {
    package var at: Int64
    /// The advance of timestamps beyond that of time, in nanoseconds; negative means backwards.
    package var length: Int64
  }

  /// A packet relative to the previous one.
  struct Step {
    /// The advance of the sequence number.
    var numbers: Int64
    /// The delay relative to its timestamp, in nanoseconds.
    var lateness: Int64
  }

  package private(set) var seconds: [Second] = []
  package private(set) var jumps: [Jump] = []
  /// The last silence after which a packet arrived on this stream; maintained by the caller.
  var silence = -1

  private let clockRate: Int64
  private var hasBegun = false
  private var at: Int64 = 0
  private var sequence: Int64 = 0
  private var rtpTime: Int64 = 0
  /// Arrival time minus media time, in nanoseconds.
  private var delay: Int64 = 0
  /// The delay of the first packet with the latest timestamp.
  private var firstDelay: Int64 = 0
  private var jitter: Int64 = 0
  private var part: Int32 = 0
  /// Whether the last packet followed a silence of its sender.
  private var wasSilent = false
  private var current: (second: Int64, swings: Int32, leap: Int64) = (.min, 0, 0)
  private var delays: [Int64] = []
  /// The least delay in this part, and the end of the stream's last pause, in nanoseconds.
  private var leastDelay: Int64 = 0
  private var resumed = Int64.min / 2
  private var ranAhead = false

  /// After a pause this long, delays may not be comparable.
  private static let pause: Int64 = 1_000_000_000
  private static let swing: Int64 = 15_000_000
  private static let leap: Int64 = 150_000_000
  /// The minimum step between timestamps that counts as silence (DTX), after which speech may begin
  /// later on the media clock.
  private static let silence: Int64 = 150_000_000
  private static let shift: Int64 = 40_000_000
  /// The minimum pause after which media captured meanwhile arrives at once, and for how long.
  private static let halt: Int64 = 150_000_000
  private static let burst: Int64 = 60_000_000
  private static let most = 200_000

  init(clockRate: Int64) { self.clockRate = clockRate }

  /// Adds a packet; returns nil for the first one, and if the clock rate is unknown.
  mutating func add(_ at: Int64, _ sequence: Int64, _ rtpTime: Int64) -> Step? {
    guard hasBegun else {
      hasBegun = true
      (self.at, self.sequence, self.rtpTime) = (at, sequence, rtpTime)
      collect(at, 0)
      return nil
    }
    let numbers = ((sequence &- self.sequence &+ 32_768) & 65_535) &- 32_768
    guard numbers > 0 || numbers <= -100 else {
      // An overtaken packet counts as jitter, and its delay is not representative.
      if numbers < 0 { addLate(at, rtpTime) }
      return nil
    }
    defer { (self.at, self.sequence, self.rtpTime) = (at, sequence, rtpTime) }
    guard clockRate > 0 else { return Step(numbers: numbers, lateness: 0) }
    let ticks = ((rtpTime &- self.rtpTime &+ 0x8000_0000) & 0xffff_ffff) &- 0x8000_0000
    let media = ticks &* 1_000_000_000 / clockRate
    let passed = at &- self.at
    let late = passed &- media
    if isJump(numbers, media, late) {
      if jumps.count < 1000 { jumps.append(Jump(at: at, length: media &- max(0, passed))) }
      begin(at)
      return Step(numbers: numbers, lateness: 0)
    }
    // Queued packets arrive in a row, each earlier by at most its own length. If a packet is
    // further ahead, its sender's clock changed: it stopped or lost samples. The same holds if the
    // first packet after a silence is late.
    let isAnew = numbers == 1 && (late <= -Self.leap || wasSilent && late >= Self.shift)
    wasSilent = numbers == 1 && media >= Self.silence && clockRate != 90_000
    if passed >= Self.pause || abs(numbers) >= 3000 || isAnew {
      begin(at)
      return Step(numbers: numbers, lateness: max(0, late))
    }
    // A stalled sender may count audio buffered in its device twice when it resumes: no path gets
    // shorter this way.
    if ranAhead, at &- resumed > Self.burst {
      begin(at)
      return Step(numbers: numbers, lateness: max(0, late))
    }
    if passed >= Self.halt { resumed = at }
    // The packets of a video frame are sent one after another, so only the first counts.
    delay &+= late
    if at &- resumed <= Self.burst, delay < leastDelay &- 100_000_000 {
      ranAhead = true
      return Step(numbers: numbers, lateness: late)
    }
    leastDelay = min(leastDelay, delay)
    guard ticks != 0 else { return Step(numbers: numbers, lateness: 0) }
    collect(at, spread(to: delay))
    return Step(numbers: numbers, lateness: late)
  }

  /// Adds the change in delay to the jitter and returns it.
  private mutating func spread(to delay: Int64) -> Int64 {
    let change = delay &- firstDelay
    firstDelay = delay
    jitter &+= (min(abs(change), 10_000_000_000) &- jitter) / 16
    return change
  }

  private mutating func addLate(_ at: Int64, _ rtpTime: Int64) {
    let ticks = ((rtpTime &- self.rtpTime &+ 0x8000_0000) & 0xffff_ffff) &- 0x8000_0000
    guard clockRate > 0, ticks != 0, abs(ticks) < clockRate else { return }
    let change = spread(to: delay &+ (at &- self.at) &- ticks &* 1_000_000_000 / clockRate)
    if abs(change) >= Self.swing { current.swings +|= 1 }
  }

  /// Returns whether timestamps jumped: neither a pause nor a queue moves them three seconds ahead,
  /// and nothing moves them back while sequence numbers advance.
  private func isJump(_ numbers: Int64, _ media: Int64, _ late: Int64) -> Bool {
    guard (1...100).contains(numbers) else { return false }
    return late <= -3_000_000_000 || media <= -1_000_000_000
  }

  private mutating func begin(_ at: Int64) {
    flush()
    part &+= 1
    (delay, firstDelay, leastDelay, ranAhead) = (0, 0, 0, false)
    current = (.min, 0, 0)
    collect(at, 0)
  }

  private mutating func collect(_ at: Int64, _ late: Int64) {
    let second = at / 1_000_000_000
    if second != current.second {
      flush()
      current = (second, 0, 0)
    }
    if abs(late) >= Self.swing { current.swings +|= 1 }
    current.leap = max(current.leap, late / 1000)
    if delays.count < 20_000 { delays.append(delay / 1000) }
  }

  private mutating func flush() {
    guard !delays.isEmpty else { return }
    delays.sort()
    let count = delays.count
    if seconds.count < Self.most {
      seconds.append(
        Second(
          second: current.second, packets: Int32(truncatingIfNeeded: count), least: delays[0],
          low: delays[count / 10], median: delays[count / 2], high: delays[count *| 9 / 10],
          jitter: jitter / 1000, swings: current.swings, leap: current.leap, part: part))
    }
    delays.removeAll(keepingCapacity: true)
  }

  mutating func finish() { flush() }

  /// Each second's median excess delay, in microseconds.
  ///
  /// It is relative to the part's minimum; clock drift up to 150 ppm adds nothing.
  package var excess: [Int64] {
    guard !seconds.isEmpty else { return [] }
    var best = seconds.map(\.least)
    func relax(_ place: Int, from other: Int) {
      guard seconds[place].part == seconds[other].part else { return }
      let apart = abs(seconds[place].second &- seconds[other].second)
      best[place] = min(best[place], best[other] &+ apart &* 150)
    }
    for place in seconds.indices.dropFirst() { relax(place, from: place -| 1) }
    for place in seconds.indices.dropLast().reversed() { relax(place, from: place +| 1) }
    return zip(seconds, best).map { $0.median -| $1 }
  }
}
