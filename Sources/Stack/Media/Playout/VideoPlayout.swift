import DequeModule
package import RTP
package import Wire

/// The receiving side of a video track: adaptive delay and decoding.
///
/// A frame is decoded and shown at its media time plus a transit. The target is the transit of the
/// slowest recent frames (`ArrivalSpread`); the current transit follows it slowly, so that the
/// picture neither freezes nor races. A late frame is shown immediately. Frames are decoded in
/// order of arrival, each exactly once.
package struct VideoPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// A video frame to show now, with its encoded frame.
    case shown(ReceivedFrame, DecodedVideo)
    /// The decoder refused a frame; a key frame is needed.
    case undecodable(ReceivedFrame)
    /// A frame that passes through undecoded, at its display time.
    case passed(ReceivedFrame)
  }

  /// The bounds of the delay beyond the fastest transit, unless a longer delay was requested or is
  /// needed for sync.
  package static let leastDelay = Interval.milliseconds(10)
  package static let mostDelay = Interval.milliseconds(300)

  package private(set) var counters: VideoPlayoutCounters
  /// When the oldest frame will be shown.
  ///
  /// Cached, because every step of the peer reads it.
  package private(set) var deadline: Instant?
  private(set) var delay: VideoDelay
  private(set) var frames = VideoFrameQueue()
  private var decoder: PlayoutVideoDecoder
  private var ssrc: UInt32?
  /// Whether this playout models the receiver in an observed call.
  private let isWatched: Bool

  /// Creates a track's playout.
  /// - Parameters:
  ///   - minimumDelay: the lower limit of the delay; more than 5 s counts as 5 s.
  ///   - decodes: whether frames are decoded; if not, all codecs pass through.
  ///   - furtherDecoders: codecs that are decoded here although they usually pass through.
  ///   - isWatched: whether this models an observed receiver, in which case, as in browsers, a
  ///     repaired frame does not delay the frames after it.
  package init(
    track: String, codecs: any CodecFactory, minimumDelay: Interval = .zero, decodes: Bool = true,
    furtherDecoders: [CodecName] = [], isWatched: Bool = false
  ) {
    self.isWatched = isWatched
    counters = VideoPlayoutCounters(countsGapItself: isWatched)
    delay = VideoDelay(minimum: minimumDelay)
    decoder = PlayoutVideoDecoder(
      track: track, codecs: codecs, isOn: decodes, furtherDecoders: furtherDecoders)
  }

  /// Returns whether a codec's frames are decoded rather than passed through.
  package func decodes(_ codec: CodecName) -> Bool { decoder.decodes(codec) }

  // The next members are read for every frame; they are inlined because a call would copy the
  // playout.

  /// This track's delay, ignoring other tracks in its stream.
  @inline(__always)
  package var independentDelay: Interval { delay.independent }

  @inline(__always)
  package var targetDelay: Interval { delay.target }

  /// Returns when a frame would be shown, ignoring other tracks; nil before the first frame.
  package func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    delay.independentPlayout(ofRTPTime: time)
  }

  /// Sets the minimum delay that keeps video in sync with the stream's audio.
  package mutating func align(to delay: Interval) {
    self.delay.align(to: delay)
    schedule()
  }

  /// Delays all frames by the time that a retransmission takes, once some frames have needed one.
  ///
  /// libwebrtc does the same if no forward error correction is negotiated.
  package mutating func awaitRepairs(taking roundTrip: Interval?) {
    delay.awaitRepairs(taking: roundTrip)
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if case .frame(let frame) = input { enqueue(frame, at: now, into: &outbox) }
    while let first = frames.first, delay.dueTime(of: first) <= now || frames.isOverfull {
      showFirst(at: now, into: &outbox)
    }
    schedule()
  }

  @inline(__always)
  private mutating func schedule() {
    if let first = frames.first { deadline = delay.dueTime(of: first) } else { deadline = nil }
  }

  private mutating func enqueue(
    _ frame: ReceivedFrame, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    counters.countReceived(frame)
    if frame.ssrc != ssrc {
      ssrc = frame.ssrc
      showAll(at: now, into: &outbox)
      delay.reset()
    }
    if isWatched, frame.isRepaired, !delay.isNew {
      delay.countRepair(at: frame.lastArrival)
      frames.append(frame)
      return
    }
    // After a jump, the due times of waiting frames are no longer valid.
    if delay.observe(frame) == .jumped { showAll(at: now, into: &outbox) }
    frames.append(frame)
  }

  private mutating func showAll(at now: Instant, into outbox: inout Outbox<Output>) {
    while !frames.isEmpty { showFirst(at: now, into: &outbox) }
  }

  private mutating func showFirst(at now: Instant, into outbox: inout Outbox<Output>) {
    guard let frame = frames.popFirst() else { return }
    counters.countEmitted(frame, delay, at: now)
    guard decoder.decodes(frame.codec) else {
      // If nothing is decoded, the frame rate counts the frames that would be shown.
      if !decoder.isOn { counters.countShown(at: now) }
      outbox.append(.passed(frame))
      return
    }
    do throws(CodecError) {
      let decoded = try decoder.decode(frame)
      counters.countShown(decoded, isKey: frame.isKey, at: now)
      outbox.append(.shown(frame, decoded))
    } catch {
      counters.countDropped()
      outbox.append(.undecodable(frame))
    }
  }
}

/// Video frames waiting to be shown, in order of arrival.
struct VideoFrameQueue {
  /// The maximum number of waiting frames; beyond that, the oldest is shown immediately.
  private static let mostFrames = 120
  private static let mostBytes = 32 << 20

  private var frames = Deque<ReceivedFrame>()
  private(set) var bytes = 0

  var count: Int { frames.count }
  var first: ReceivedFrame? { frames.first }
  var isEmpty: Bool { frames.isEmpty }

  /// Whether more frames or bytes than the maximum are waiting.
  var isOverfull: Bool {
    frames.count > VideoFrameQueue.mostFrames || bytes > VideoFrameQueue.mostBytes
  }

  mutating func append(_ frame: ReceivedFrame) {
    frames.append(frame)
    bytes += frame.bytes.count
  }

  /// Removes and returns the oldest frame, if any.
  mutating func popFirst() -> ReceivedFrame? {
    let frame = frames.popFirst()
    if let frame { bytes -= frame.bytes.count }
    return frame
  }
}

// MARK: - VideoDelay

/// The video delay beyond the fastest transit.
///
/// The target is as long as arrivals, the requested minimum and the stream's audio require. The
/// current delay follows it slowly.
struct VideoDelay {
  /// The RTP clock rate for video (RFC 7741 section 4.1).
  private static let clockRate = 90_000
  /// The current delay changes by at most a tenth of the elapsed media time, except after a late
  /// frame.
  private static let slowness: Int64 = 10

  private let minimum: Interval
  /// The minimum delay that keeps video in sync with the stream's audio.
  private(set) var aligned = Interval.zero
  private var timing = ArrivalSpread(clockRate: VideoDelay.clockRate)
  private var newestTime: Int64?
  /// The time that frames wait for retransmitted packets once some frames needed them; nil for a
  /// receiver that does not wait.
  private var repairTime: Interval?
  private var repairs = (count: 0, last: Instant.zero)
  /// The number of repaired frames after which all frames are delayed, and how long the delay lasts
  /// after the last repaired frame.
  private static let repairsNeeded = 3
  private static let repairsForgotten = Interval.seconds(60)
  private(set) var current: Interval

  /// Creates a delay; the minimum is limited to 5 s.
  init(minimum: Interval) {
    self.minimum = max(VideoPlayout.leastDelay, min(minimum, .seconds(5)))
    current = self.minimum
  }

  // The next members are read for every frame; they are inlined because a call would copy the
  // measurement.

  /// The delay that recent arrivals require.
  @inline(__always)
  var network: Interval {
    min(max(timing.spread + repairDelay, VideoPlayout.leastDelay), VideoPlayout.mostDelay)
  }

  @inline(__always)
  private var repairDelay: Interval {
    repairs.count >= VideoDelay.repairsNeeded ? repairTime ?? .zero : .zero
  }

  /// This track's delay, ignoring other tracks in its stream.
  @inline(__always)
  var independent: Interval { max(minimum, network) }

  @inline(__always)
  var target: Interval { max(independent, aligned) }

  /// The upper limit of the delay, however frames arrive.
  @inline(__always)
  private var maximum: Interval { max(VideoPlayout.mostDelay, max(minimum, aligned)) }

  /// Returns when a frame is shown: at most `maximum` after its arrival, whatever its media time.
  @inline(__always)
  func dueTime(of frame: ReceivedFrame) -> Instant {
    min(timing.fastestArrival(of: frame.extendedTime) + current, frame.lastArrival + maximum)
  }

  /// Returns when a frame would be shown, ignoring other tracks; nil before the first frame.
  func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    timing.fastestArrival(ofRTPTime: time).map { $0 + independent }
  }

  mutating func align(to delay: Interval) { aligned = delay }

  /// Resets the delay for another stream, whose first frame uses the target immediately.
  mutating func reset() {
    timing.reset()
    newestTime = nil
  }

  /// Sets how long all frames wait for repairs once some have been repaired.
  mutating func awaitRepairs(taking time: Interval?) { repairTime = time }

  /// Counts a frame with lost packets that were repaired.
  mutating func countRepair(at now: Instant) {
    repairs = (min(repairs.count + 1, VideoDelay.repairsNeeded), now)
  }

  /// Whether nothing has been measured yet.
  var isNew: Bool { newestTime == nil }

  /// Records a frame's times and moves the delay towards its target.
  mutating func observe(_ frame: ReceivedFrame) -> ArrivalSpread.Observation {
    if repairs.count > 0, frame.lastArrival - repairs.last > VideoDelay.repairsForgotten {
      repairs.count = 0
    }
    let before = timing
    let observation = timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.lastArrival)
    guard observation != .jumped, let last = newestTime else {
      newestTime = frame.extendedTime
      current = target
      return observation
    }
    newestTime = max(last, frame.extendedTime)
    follow(frame, after: last, previous: before)
    return observation
  }

  @inline(__always)
  private mutating func follow(
    _ frame: ReceivedFrame, after last: Int64, previous: ArrivalSpread
  ) {
    // If the fastest transit has changed, adjust the delay so that due times stay the same.
    current =
      current
      + (previous.fastestArrival(of: frame.extendedTime)
        - timing.fastestArrival(of: frame.extendedTime))
    let (step, overflow) = frame.extendedTime.subtractingReportingOverflow(last)
    let ticks = overflow ? 0 : min(max(0, step), Int64(VideoDelay.clockRate))
    let most = Interval(
      nanoseconds: ticks * 1_000_000_000 / Int64(VideoDelay.clockRate) / VideoDelay.slowness)
    let wanted = target
    current = min(max(wanted, current - most), current + most)
    // A late frame freezes the picture anyway, so the delay may rise to its lateness at once.
    let lateness = timing.lateness(of: frame.extendedTime, arrival: frame.lastArrival)
    current = max(current, min(lateness, wanted))
    current = min(max(current, minimum), maximum)
  }
}

/// A video playout's decoder, created for the first frame of its codec, and the codecs to decode.
struct PlayoutVideoDecoder {
  private let track: String
  private let codecs: any CodecFactory
  let isOn: Bool
  /// Pass-through codecs that are decoded here.
  private let furtherDecoders: [CodecName]
  private var decoder: (any VideoDecoding)?
  /// The decoder's codec, even if it could not be created.
  private var codec: CodecName?

  init(track: String, codecs: any CodecFactory, isOn: Bool, furtherDecoders: [CodecName]) {
    self.track = track
    self.codecs = codecs
    self.isOn = isOn
    self.furtherDecoders = furtherDecoders
  }

  /// Returns whether a codec's frames are decoded rather than passed through.
  func decodes(_ codec: CodecName) -> Bool {
    isOn && (!codec.isPassedThrough || furtherDecoders.contains(codec))
  }

  mutating func decode(_ frame: ReceivedFrame) throws(CodecError) -> DecodedVideo {
    if codec != frame.codec {
      // Try only once: a missing library will not appear.
      codec = frame.codec
      decoder = nil
      decoder = try codecs.videoDecoder(track: track, frame.codec)
    }
    guard let decoder else { throw CodecError(reason: "no video decoder") }
    return try decoder.decode(frame.bytes)
  }
}
