import Wire

/// Compares a stream's arrival times with its timestamps.
package struct StreamTiming: Sendable {
  /// The delays of the packets in one second; of packets with equal timestamps, only the first
  /// counts.
  package struct Second: Sendable, Hashable {
    package var second: Int64
    package var packets: Int32
    /// Arrival time minus media time in microseconds, relative to the part's first packet: minimum,
    /// 10th percentile, median and 90th percentile.
    package var least: Int64
    package var low: Int64
    package var median: Int64
    package var high: Int64
    /// The interarrival jitter at the end of the second, in microseconds (RFC 3550 section 6.4.1).
    package var jitter: Int64
    /// The number of packets whose delay differed from the previous one's by 15 ms or more.
    package var swings: Int32
    /// The largest increase in delay from one packet to the next, in microseconds.
    package var leap: Int64
    /// Only delays in the same part are comparable: a pause or a clock change begins a new part.
    package var part: Int32
  }

  /// A jump of the timestamps that the arrival times do not explain.
  package struct Jump: Sendable, Hashable {
    package var at: Int64
    /// How much more the timestamps advanced than real time, in nanoseconds; negative if they went
    /// back.
    package var length: Int64
  }

  /// How a packet differs from the previous packet.
  struct Step {
    /// The advance of the sequence number.
    var numbers: Int64
    /// How much later the packet arrived than its timestamp implies, in nanoseconds.
    var lateness: Int64
  }

  package private(set) var seconds: [Second] = []
  package private(set) var jumps: [Jump] = []
  /// The index of the last silence that a packet of this stream followed; the caller sets it.
  var silence = -1

  private let clockRate: Int64
  private var hasBegun = false
  private var at: Int64 = 0
  private var sequence: Int64 = 0
  private var rtpTime: Int64 = 0
  /// Arrival time minus media time, in nanoseconds.
  private var delay: Int64 = 0
  /// The delay of the first packet with the current timestamp.
  private var firstDelay: Int64 = 0
  private var jitter: Int64 = 0
  private var part: Int32 = 0
  /// Whether the sender paused (DTX) just before the last packet.
  private var wasSilent = false
  private var current: (second: Int64, swings: Int32, leap: Int64) = (.min, 0, 0)
  private var delays: [Int64] = []
  /// The minimum delay in this part, and the arrival of the first packet after the last pause.
  private var leastDelay: Int64 = 0
  private var resumed = Int64.min / 2
  private var ranAhead = false

  /// The minimum pause, in nanoseconds, after which delays may not be comparable.
  private static let pause: Int64 = 1_000_000_000
  private static let swing: Int64 = 15_000_000
  private static let leap: Int64 = 150_000_000
  /// The minimum step between timestamps that counts as silence (DTX), in nanoseconds.
  ///
  /// After a silence, the first packet of speech may be late, because the sender's clock may have
  /// shifted.
  private static let silence: Int64 = 150_000_000
  private static let shift: Int64 = 40_000_000
  /// After a pause of at least `halt`, media captured during it arrives within `burst`.
  private static let halt: Int64 = 150_000_000
  private static let burst: Int64 = 60_000_000
  /// By how much a sender's clock must run ahead after a stall, in nanoseconds; a queue is more.
  private static let lead: Int64 = 60_000_000
  private static let most = 200_000

  init(clockRate: Int64) { self.clockRate = clockRate }

  /// Adds a packet and returns how it differs from the previous one; nil for the first packet and
  /// for late ones.
  mutating func add(_ at: Int64, _ sequence: Int64, _ rtpTime: Int64) -> Step? {
    guard hasBegun else {
      hasBegun = true
      (self.at, self.sequence, self.rtpTime) = (at, sequence, rtpTime)
      collect(at, 0)
      return nil
    }
    let numbers = ((sequence &- self.sequence &+ 32_768) & 65_535) &- 32_768
    guard numbers > 0 || numbers <= -100 else {
      // A late packet counts as jitter, but its delay says nothing about the path.
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
    // Packets from a draining queue arrive together, each early by at most its own length. If a
    // packet is even earlier, the sender's clock changed: the sender stopped or lost samples. A
    // late packet right after a silence also shows a changed clock.
    let isAnew = numbers == 1 && (late <= -Self.leap || wasSilent && late >= Self.shift)
    wasSilent = numbers == 1 && media >= Self.silence && clockRate != 90_000
    if passed >= Self.pause || abs(numbers) >= 3000 || isAnew {
      begin(at)
      return Step(numbers: numbers, lateness: max(0, late))
    }
    // A sender that stalled may count the audio in its device's buffer twice when it resumes, so
    // its packets seem to arrive too early. No path becomes that much shorter.
    if ranAhead, at &- resumed > Self.burst {
      begin(at)
      return Step(numbers: numbers, lateness: max(0, late))
    }
    if passed >= Self.halt { resumed = at }
    // Later packets of a video frame have its timestamp but were sent after the first, so their
    // delays are not collected.
    delay &+= late
    // In the burst, each packet is ahead by one packet more than the one before it, so all of them
    // are compared with the delays before the stall.
    if at &- resumed <= Self.burst, delay < leastDelay {
      ranAhead = delay < leastDelay &- Self.lead
      return Step(numbers: numbers, lateness: late)
    }
    leastDelay = min(leastDelay, delay)
    guard ticks != 0 else { return Step(numbers: numbers, lateness: 0) }
    collect(at, spread(to: delay))
    return Step(numbers: numbers, lateness: late)
  }

  /// Updates the jitter with the change in delay, and returns the change.
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

  /// Returns whether the timestamps jumped.
  ///
  /// Neither a pause nor a queue moves them three seconds ahead of real time, and nothing moves
  /// them back while sequence numbers advance.
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
  /// The excess is the amount by which a delay exceeds the part's minimum. A clock drift of up to
  /// 150 ppm is not counted.
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
