import DequeModule
package import RTP
import Wire

/// The playout position in the stream, and the current run of concealment.
struct AudioPlace {
  /// The relation of a packet to the audio played so far.
  enum Arrival {
    /// Neither this packet nor a later one has been played.
    case inTime
    /// The packet duplicates the last one that was played.
    case again
    case late
  }

  /// Media time of the next sample.
  private(set) var playhead: Int64 = 0
  /// Whether anything was played since the track was last silent.
  private(set) var hasPlayed = false
  /// The newest sequence number played, and the last packet's duration.
  private var lastSequence: Int64?
  private(set) var lastDuration = 960
  /// Recent sequence numbers of packets without audio: events or comfort noise.
  private var silentSequences: [Int64] = []
  private static let silentMaximum = 64
  /// The number of consecutive concealed samples, and how many were concealed while the playhead
  /// was held.
  private(set) var concealedRun = 0
  private var heldSamples: Int64 = 0

  /// Compares a packet with the audio played so far.
  func arrival(of frame: ReceivedFrame) -> Arrival {
    if let lastSequence, frame.firstSequence <= lastSequence {
      return frame.firstSequence == lastSequence ? .again : .late
    }
    return hasPlayed && frame.extendedTime < playhead ? .late : .inTime
  }

  /// Returns whether a packet follows the last one played, without loss.
  func isFollowed(by frame: ReceivedFrame) -> Bool {
    lastSequence.map { last in
      var next = last &+ 1
      while next < frame.firstSequence, silentSequences.contains(next) { next &+= 1 }
      return frame.firstSequence == next
    } ?? false
  }

  /// Whether the packet after the last one played has no audio.
  var isFollowedBySilence: Bool {
    lastSequence.map { silentSequences.contains($0 &+ 1) } ?? false
  }

  /// Records a packet without audio, so that its sequence number does not count as lost.
  mutating func pass(_ sequence: Int64) {
    if silentSequences.count == AudioPlace.silentMaximum { silentSequences.removeFirst() }
    silentSequences.append(sequence)
  }

  /// Resets the position for another stream.
  mutating func forget() {
    lastSequence = nil
    silentSequences = []
    rest()
  }

  /// Suspends playout until the next packet.
  mutating func rest() {
    hasPlayed = false
    heldSamples = 0
    concealedRun = 0
  }

  /// Continues at another media time.
  mutating func move(to time: Int64) { playhead = time }

  mutating func play(_ entry: AudioPacketBuffer.Entry) {
    pass(entry)
    // Concealment uses blocks of at least 2.5 ms, however short the packet was.
    lastDuration = max(entry.packet.duration, 120)
    concealedRun = 0
    hasPlayed = true
  }

  mutating func skip(_ entry: AudioPacketBuffer.Entry) {
    pass(entry)
    heldSamples = 0
  }

  private mutating func pass(_ entry: AudioPacketBuffer.Entry) {
    playhead = entry.end
    lastSequence = max(lastSequence ?? entry.frame.lastSequence, entry.frame.lastSequence)
  }

  // MARK: Concealment

  /// Counts concealed samples; returns whether they start a run.
  mutating func conceal(_ count: Int) -> Bool {
    defer { concealedRun += count }
    return concealedRun == 0
  }

  /// Ends a run of concealment.
  mutating func recover() { concealedRun = 0 }

  /// Records that the playhead was held during a concealed block.
  mutating func hold() { heldSamples += Int64(lastDuration) }

  /// Shortens the gap before a packet by the concealment played during a hold; returns the
  /// remaining gap.
  mutating func closeGap(before head: AudioPacketBuffer.Entry) -> Int64 {
    let gap = head.frame.extendedTime &- playhead
    guard gap > 0 else {
      heldSamples = 0
      return 0
    }
    playhead &+= min(gap, heldSamples)
    heldSamples = 0
    // Less than 2.5 ms cannot be concealed.
    if head.frame.extendedTime &- playhead < 120 { playhead = head.frame.extendedTime }
    return head.frame.extendedTime &- playhead
  }
}

// MARK: - AudioDelay

/// The audio playout delay: as long as arrivals, the requested minimum and the stream's other
/// tracks require.
///
/// It also decides when to insert or remove a block to reach that delay.
struct AudioDelay {
  /// The time added to the spread of transits to get the delay.
  private static let margin = Interval.milliseconds(10)
  /// Blocks no louder than this, in -dBov, can be repeated or removed unnoticed.
  private static let quietLevel: UInt8 = 45

  private let minimum: Interval
  /// The minimum delay that keeps audio in sync with the stream's video.
  private(set) var aligned = Interval.zero
  private var timing = ArrivalSpread(clockRate: AudioBlock.sampleRate)
  /// Ticks since the delay was last changed.
  private var ticksSinceAdjustment = 0
  /// Whether the last block was quiet, in which case a change of the delay goes unnoticed.
  private(set) var isQuiet = true

  /// Creates a delay; the minimum is limited to 5 s.
  init(minimum: Interval) { self.minimum = min(minimum, .seconds(5)) }

  // The next members are read for every block; they are inlined because a call would copy the
  // measurement.

  /// The delay that recent arrivals require.
  @inline(__always)
  var network: Interval {
    min(max(timing.spread + AudioDelay.margin, AudioPlayout.leastDelay), AudioPlayout.mostDelay)
  }

  /// This track's delay, ignoring other tracks in its stream.
  @inline(__always)
  var independent: Interval { max(minimum, network) }

  @inline(__always)
  var target: Interval { max(independent, aligned) }

  /// Returns when the sample with a media time should be played, given the target delay.
  @inline(__always)
  func dueTime(of time: Int64) -> Instant { timing.fastestArrival(of: time) + target }

  /// Returns when a sample would be played, ignoring other tracks; nil before the first packet.
  /// - Parameter ticks: 48 kHz ticks per tick of the RTP clock.
  func independentPlayout(ofRTPTime time: UInt32, lasting ticks: Int64) -> Instant? {
    timing.fastestArrival(ofRTPTime: time, lasting: ticks).map { $0 + independent }
  }

  mutating func align(to delay: Interval) { aligned = delay }

  mutating func observe(_ frame: ReceivedFrame) -> ArrivalSpread.Observation {
    timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.firstArrival)
  }

  /// Resets the measurement for another stream.
  mutating func reset() { timing.reset() }

  // MARK: Adjustment

  mutating func tick() { ticksSinceAdjustment += 1 }

  mutating func recordAdjustment() { ticksSinceAdjustment = 0 }

  /// Remembers whether a block being played is quiet.
  mutating func record(level: UInt8) { isQuiet = level >= AudioDelay.quietLevel }

  /// Returns whether a concealed block is practically silent.
  func isSilent(level: UInt8) -> Bool { isQuiet || level >= AudioDelay.quietLevel }

  /// Returns whether the delay is so short that a block should be inserted; during quiet audio, a
  /// smaller shortfall is enough.
  func shouldInsert(_ excess: Interval, block: Interval) -> Bool {
    ticksSinceAdjustment >= 5 && excess <= (isQuiet ? .milliseconds(-5) : block / -2)
  }

  /// Returns whether the delay is more than a block too long, in which case a block should be
  /// removed; during loud audio, that happens later.
  func shouldRemove(_ excess: Interval, block: Interval) -> Bool {
    guard ticksSinceAdjustment >= 5, excess >= block + .milliseconds(10) else { return false }
    return isQuiet || ticksSinceAdjustment >= (excess >= block * 3 ? 10 : 100)
  }
}

// MARK: - AudioPacketBuffer

/// Packets waiting for playout, ordered by media time.
struct AudioPacketBuffer {
  struct Entry {
    var frame: ReceivedFrame
    var packet: AudioPacket

    /// The media time at which the packet ends.
    var end: Int64 { frame.extendedTime &+ Int64(packet.duration) }
  }

  /// The maximum number of packets: 5 s of 20 ms packets, the longest delay that can be requested.
  static let capacity = 250

  private(set) var entries = Deque<Entry>()

  var first: Entry? { entries.first }
  var isEmpty: Bool { entries.isEmpty }
  var isFull: Bool { entries.count >= AudioPacketBuffer.capacity }

  /// Whether the second packet follows the first without a gap.
  var firstIsFollowed: Bool {
    entries.count > 1 && entries[1].frame.extendedTime == entries[0].end
  }

  /// Inserts a packet; returns false if it is a duplicate.
  mutating func insert(_ entry: Entry) -> Bool {
    var place = entries.count
    while place > 0, entries[place - 1].frame.extendedTime > entry.frame.extendedTime {
      place -= 1
    }
    if place > 0, entries[place - 1].frame.extendedTime == entry.frame.extendedTime {
      return false
    }
    entries.insert(entry, at: place)
    return true
  }

  mutating func removeFirst() { entries.removeFirst() }

  mutating func removeAll() { entries.removeAll(keepingCapacity: true) }
}

/// A block of audio to play, and its origin.
package struct PlayedAudio: Sendable {
  /// How a block was produced.
  package enum Origin: String, Sendable {
    /// Decoded from its own packet.
    case packet
    /// Recovered from the next packet's in-band FEC.
    case recovered
    /// Synthesized by the decoder, in place of a missing packet or to lengthen the delay.
    case concealed
  }
  package var origin: Origin
  /// The packet that was decoded, or whose FEC was used; nil for concealed audio.
  package var frame: ReceivedFrame?
  package var decoded: DecodedAudio
  /// The codec that decoded or concealed the block.
  package var codec: CodecName

  package init(
    origin: Origin, frame: ReceivedFrame?, decoded: DecodedAudio, codec: CodecName = .opus
  ) {
    self.origin = origin
    self.frame = frame
    self.decoded = decoded
    self.codec = codec
  }
}

// MARK: - PlayoutGain

/// A received track's volume, as an integer factor.
package struct PlayoutGain: Hashable, Sendable {
  /// The gain that leaves audio unchanged.
  package static let unity = PlayoutGain(volume: 1)
  package static let silence = PlayoutGain(volume: 0)
  /// The allowed volumes; values outside are clamped.
  package static let volumes = 0.0...10.0
  /// Volumes so close to 1 that the difference is inaudible; multiplication is skipped.
  private static let unheard = 0.99...1.01
  /// The integer that stands for a factor of 1.
  private static let one = 65_536.0

  private let factor: Int64

  /// Whether the gain is so close to 1 that samples stay unchanged.
  package let isUnity: Bool

  /// Creates the gain for a finite volume.
  package init(volume: Double) {
    let volume = min(max(volume, PlayoutGain.volumes.lowerBound), PlayoutGain.volumes.upperBound)
    isUnity = PlayoutGain.unheard.contains(volume)
    factor = Int64((volume * PlayoutGain.one).rounded())
  }

  /// Applies the gain to a block, clipping samples that become too loud.
  ///
  /// A block without samples comes from a recording, whose loudness already includes the gain.
  package func applied(to decoded: DecodedAudio) -> DecodedAudio {
    guard !isUnity, !decoded.block.samples.isEmpty else { return decoded }
    var block = decoded.block
    block.samples = block.samples.map { sample in
      Int16(clamping: (Int64(sample) * factor + 32_768) >> 16)
    }
    return PlayoutGain.measured(block)
  }

  /// Applies a gain that changes evenly over the block, from the previous gain to this one.
  package func applied(to decoded: DecodedAudio, from former: PlayoutGain) -> DecodedAudio {
    var block = decoded.block
    guard !block.samples.isEmpty, block.frameCount > 0 else { return decoded }
    for frame in 0..<block.frameCount {
      let step = (factor - former.factor) * Int64(frame + 1) / Int64(block.frameCount)
      for index in (frame * block.channels)..<((frame + 1) * block.channels) {
        let scaled = (Int64(block.samples[index]) * (former.factor + step) + 32_768) >> 16
        block.samples[index] = Int16(clamping: scaled)
      }
    }
    return PlayoutGain.measured(block)
  }

  private static func measured(_ block: AudioBlock) -> DecodedAudio {
    let loudness = Loudness(samples: block.samples, channels: block.channels)
    return DecodedAudio(block: block, peak: loudness.peak, energy: loudness.energy)
  }
}
