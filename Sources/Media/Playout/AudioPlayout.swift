package import RTP
package import Wire

/// The receiving side of an audio track: reordering, adaptive delay, decoding, concealment.
///
/// Packets wait until the media time plus the fastest transit plus the target delay; the target is
/// the spread of the transits over the last seconds (`ArrivalSpread`). Each tick plays one block:
/// the packet whose turn it is, or one recovered from the next packet's in-band FEC, or one made
/// up. A block is as long as its packet, 20 ms as a rule. When the buffer runs dry the playout
/// holds its place, so that late packets are played later instead of being lost. After a second
/// without packets the track falls silent and has no deadline until packets come again.
///
/// Every call of the decoder gives exactly one output.
package struct AudioPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// The next block of audio, and the packet it came from.
    case played(PlayedAudio)
  }

  /// The least and the most that packets are delayed beyond the fastest transit.
  package static let leastDelay = Interval.milliseconds(40)
  package static let mostDelay = Interval.milliseconds(500)
  /// Added to the spread of the transits.
  private static let margin = Interval.milliseconds(10)
  /// How many ticks a late step makes up for; then the clock is set forward.
  private static let mostLateTicks = 10

  /// What was done so far.
  package internal(set) var counters = AudioPlayoutCounters()

  let track: String
  let channels: Int
  let codecs: any CodecFactory
  /// What the delay is at least, whatever the arrivals say.
  private let minimumDelay: Interval
  /// What the delay is at least so that the video frames of the same stream keep up with the audio.
  package var alignedDelay = Interval.zero
  /// How loud the audio is made before anything is counted or handed out.
  package var gain = PlayoutGain.unity
  var decoder: (any AudioDecoding)?
  var hasFailed = false

  var buffer = AudioPacketBuffer()
  var timing = ArrivalSpread(clockRate: AudioBlock.sampleRate)
  var ssrc: UInt32?
  /// When the next block goes out; nil while the track is silent.
  package internal(set) var nextTick: Instant?
  /// The media time of the next sample.
  var playhead: Int64 = 0
  /// Whether something was played since the track was last silent.
  var hasPlayed = false
  /// The newest sequence number played, and how long the last packet was.
  var lastSequence: Int64?
  var lastDuration = 960
  /// Whether the block played last was quiet, so that the ear bears a change of the delay.
  var isQuiet = true
  /// Samples made up in a row, and those of them during which the playhead stood still.
  var concealedRun = 0
  var heldSamples: Int64 = 0
  /// Ticks since the delay was changed.
  var ticksSinceAdjustment = 0

  /// Creates the playout of a track.
  ///
  /// - Parameters:
  ///   - channels: 1 or 2: what the decoder puts out, whatever the sender coded.
  ///   - minimumDelay: the least delay; at most 5 s are granted.
  package init(
    track: String, codecs: any CodecFactory, channels: Int = 1, minimumDelay: Interval = .zero
  ) {
    self.minimumDelay = min(minimumDelay, .seconds(5))
    self.track = track
    self.codecs = codecs
    self.channels = min(max(channels, 1), 2)
  }

  package var deadline: Instant? { nextTick }

  // What follows is asked for with every block: in place, because a call would copy the whole
  // playout.

  /// The delay that the arrivals of the last seconds call for.
  @inline(__always)
  var networkDelay: Interval {
    min(max(timing.spread + AudioPlayout.margin, AudioPlayout.leastDelay), AudioPlayout.mostDelay)
  }

  /// The delay of the track for itself, without regard to others of its stream.
  @inline(__always)
  package var ownDelay: Interval { max(minimumDelay, networkDelay) }

  /// The delay that is aimed at.
  @inline(__always)
  package var targetDelay: Interval { max(ownDelay, alignedDelay) }

  /// When a sample would be played if the track were for itself; nil before the first packet.
  package func ownPlayout(ofRTPTime time: UInt32) -> Instant? {
    timing.fastestArrival(ofRTPTime: time).map { $0 + ownDelay }
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch input {
    case .frame(let frame): take(frame, at: now)
    case .deadline:
      for _ in 0..<AudioPlayout.mostLateTicks {
        guard let nextTick, nextTick <= now else { return }
        tick(nextTick, at: now, into: &outbox)
      }
      guard let nextTick, nextTick <= now else { return }
      self.nextTick = now + interval(lastDuration)
    }
  }

  /// Puts a packet into the buffer, and wakes a silent track.
  private mutating func take(_ frame: ReceivedFrame, at now: Instant) {
    guard frame.codec == .opus, let packet = OpusPacket(frame.bytes) else {
      counters.packetsMalformed &+= 1
      return
    }
    if frame.ssrc != ssrc {
      ssrc = frame.ssrc
      timing.reset()
      reset()
    }
    switch timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.firstArrival)
    {
    case .steady: break
    case .jumped: reset()
    case .straggler:
      counters.packetsDiscarded &+= 1
      return
    }
    if let lastSequence, frame.firstSequence <= lastSequence {
      // The same packet again is no loss, a late one is.
      if frame.firstSequence == lastSequence {
        counters.packetsDuplicated &+= 1
      } else {
        counters.packetsDiscarded &+= 1
      }
      return
    }
    if hasPlayed, frame.extendedTime < playhead {
      counters.packetsDiscarded &+= 1
      return
    }
    if buffer.isFull {
      buffer.removeFirst()
      counters.packetsDiscarded &+= 1
    }
    guard buffer.insert(.init(frame: frame, packet: packet)) else {
      counters.packetsDuplicated &+= 1
      return
    }
    if nextTick == nil || !hasPlayed { begin(at: now) }
  }

  /// Forgets the packets and the place in the stream.
  private mutating func reset() {
    counters.packetsDiscarded &+= UInt64(buffer.entries.count)
    buffer.removeAll()
    lastSequence = nil
    rest()
  }

  /// Falls silent until the next packet.
  mutating func rest() {
    nextTick = nil
    hasPlayed = false
    heldSamples = 0
    concealedRun = 0
  }

  /// Plans the first block: the oldest packet at its time.
  private mutating func begin(at now: Instant) {
    guard let first = buffer.first else { return }
    playhead = first.frame.extendedTime
    nextTick = max(now, dueTime(of: playhead))
    ticksSinceAdjustment = 0
  }

  /// When the sample of a media time should be played, given the delay wanted now.
  @inline(__always)
  func dueTime(of time: Int64) -> Instant { timing.fastestArrival(of: time) + targetDelay }

  /// How long so many samples last.
  func interval(_ samples: Int) -> Interval {
    Interval(nanoseconds: Int64(samples) * 62_500 / 3)
  }
}
