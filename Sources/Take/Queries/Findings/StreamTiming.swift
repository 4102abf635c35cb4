import Wire

/// When the packets of a stream came, against the times that they carry.
package struct StreamTiming: Sendable {
  /// The packets of a second, each timestamp once.
  package struct Second: Sendable, Hashable {
    package var second: Int64
    package var packets: Int32
    /// Arrival less media time, in microseconds from the stream's first packet on: the least, one
    /// tenth of them, the middle one, and nine tenths.
    package var least: Int64
    package var low: Int64
    package var median: Int64
    package var high: Int64
    /// The interarrival jitter at its end, in microseconds (RFC 3550 section 6.4.1).
    package var jitter: Int64
    /// Packets that came 15 ms and more nearer to or farther from the one before than they were
    /// sent.
    package var swings: Int32
    /// By how much more at most one packet was delayed than the one before it, in microseconds.
    package var leap: Int64
    /// Delays of one part compare with each other; a pause or a clock set anew begins another.
    package var part: Int32
  }

  /// Timestamps that went on otherwise than time did.
  package struct Jump: Sendable, Hashable {
    package var at: Int64
    /// By how much they went farther, in nanoseconds; negative: backwards.
    package var length: Int64
  }

  /// A packet against the one before it.
  struct Step {
    /// How much farther its number is.
    var numbers: Int64
    /// How much later it came than its timestamp says, in nanoseconds.
    var lateness: Int64
  }

  package private(set) var seconds: [Second] = []
  package private(set) var jumps: [Jump] = []
  /// The last silence after which a packet of it came; for who counts them.
  var silence = -1

  private let clockRate: Int64
  private var hasBegun = false
  private var at: Int64 = 0
  private var sequence: Int64 = 0
  private var rtpTime: Int64 = 0
  /// Arrival less media time, in nanoseconds.
  private var delay: Int64 = 0
  /// That of the first packet of the timestamp that came last.
  private var firstDelay: Int64 = 0
  private var jitter: Int64 = 0
  private var part: Int32 = 0
  /// Whether the last packet followed a silence of its sender.
  private var wasSilent = false
  private var current: (second: Int64, swings: Int32, leap: Int64) = (.min, 0, 0)
  private var delays: [Int64] = []
  /// The least delay of this part, and when the last pause of a stream that goes on ended, in
  /// nanoseconds.
  private var leastDelay: Int64 = 0
  private var resumed = Int64.min / 2
  private var ranAhead = false

  /// A stream that pauses this long may have delays that do not compare.
  private static let pause: Int64 = 1_000_000_000
  private static let swing: Int64 = 15_000_000
  private static let leap: Int64 = 150_000_000
  /// Packets of silence are farther apart (DTX), and speech after it may begin later by its clock.
  private static let silence: Int64 = 150_000_000
  private static let shift: Int64 = 40_000_000
  /// What was captured meanwhile comes at once after a pause of this length, within that time.
  private static let halt: Int64 = 150_000_000
  private static let burst: Int64 = 60_000_000
  private static let most = 200_000

  init(clockRate: Int64) { self.clockRate = clockRate }

  /// Adds a packet; nil for the first one, and for a stream whose clock is unknown.
  mutating func add(_ at: Int64, _ sequence: Int64, _ rtpTime: Int64) -> Step? {
    guard hasBegun else {
      hasBegun = true
      (self.at, self.sequence, self.rtpTime) = (at, sequence, rtpTime)
      collect(at, 0)
      return nil
    }
    let numbers = ((sequence &- self.sequence &+ 32_768) & 65_535) &- 32_768
    guard numbers > 0 || numbers <= -100 else {
      // One that came after its followers counts as jitter, and its delay is no other's.
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
    // Packets that waited come one after another, each by its own length nearer at most: one that
    // is farther ahead has another time of its sender's clock, which stood still or lost samples.
    // So has one that begins to talk out of silence, when the application was late with it.
    let isAnew = numbers == 1 && (late <= -Self.leap || wasSilent && late >= Self.shift)
    wasSilent = numbers == 1 && media >= Self.silence && clockRate != 90_000
    if passed >= Self.pause || abs(numbers) >= 3000 || isAnew {
      begin(at)
      return Step(numbers: numbers, lateness: max(0, late))
    }
    // Who stood still and hands in what its device kept may count that twice: no way gets shorter
    // like this.
    if ranAhead, at &- resumed > Self.burst {
      begin(at)
      return Step(numbers: numbers, lateness: max(0, late))
    }
    if passed >= Self.halt { resumed = at }
    // Packets of one video frame leave one after another: only the first one counts.
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

  /// Adds what a delay differs from the one before it to the jitter, and returns it.
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

  /// Neither a pause nor a queue makes timestamps run three seconds ahead, and none makes them go
  /// back while the numbers go on.
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

  /// How much more than at its best each second's packets were on their way, in microseconds: the
  /// middle one.
  ///
  /// The best is that of the whole part; clocks that drift apart by 150 ppm and less add nothing.
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
