import DequeModule
package import RTP
package import Wire

/// The receiving side of a video track: adaptive delay and decoding.
///
/// A frame is decoded and shown when its media time plus a transit is reached. The transit wanted
/// is that of the slowest frames of the last seconds (`ArrivalSpread`); the one in force follows
/// it slowly, so that the video frame neither stops nor races. A frame that comes too late is shown
/// at once. Frames are decoded in the order in which they came, each exactly once.
package struct VideoPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// A video frame to show now, and the frame it came from.
    case shown(ReceivedFrame, DecodedVideo)
    /// The decoder refused a frame; a key frame is needed.
    case undecodable(ReceivedFrame)
    /// A frame of a codec that is passed through undecoded, at the time when it would be shown.
    case passed(ReceivedFrame)
  }

  /// The least and the most that frames are delayed beyond the fastest transit.
  package static let leastDelay = Interval.milliseconds(10)
  package static let mostDelay = Interval.milliseconds(300)
  /// The RTP clock of video (RFC 7741 section 4.1).
  private static let clockRate = 90_000
  /// The most that may wait; what comes beyond is shown at once.
  private static let mostFrames = 120
  private static let mostBytes = 32 << 20
  /// The transit in force changes by at most a tenth of the media time that passes.
  private static let slowness: Int64 = 10

  /// What was done so far.
  package private(set) var counters = VideoPlayoutCounters()

  private let track: String
  private let codecs: any CodecFactory
  /// What the delay is at least.
  private let minimumDelay: Interval
  /// Whether anything is decoded.
  private let decodes: Bool
  /// The codecs among those that are usually passed through that are decoded too.
  private let furtherDecoders: [CodecName]
  /// What it is at least so that the audio of the same stream keeps up with the video frames.
  package var alignedDelay = Interval.zero {
    didSet { deadline = nextDeadline }
  }
  private var decoder: (any VideoDecoding)?
  /// What the decoder decodes, or was to decode when it could not be made.
  private var decoded: CodecName?
  private var timing = ArrivalSpread(clockRate: VideoPlayout.clockRate)
  private var ssrc: UInt32?
  private(set) var queue = Deque<ReceivedFrame>()
  private(set) var queuedBytes = 0
  private var newestTime: Int64?
  /// How much later than the fastest transit frames are shown now.
  private(set) var delay: Interval

  /// Creates the playout of a track.
  ///
  /// - Parameters:
  ///   - minimumDelay: the least delay, whatever the arrivals say; at most 5 s are granted.
  ///   - decodes: whether frames are decoded.
  ///   - furtherDecoders: the codecs that are decoded among those passed through otherwise.
  package init(
    track: String, codecs: any CodecFactory, minimumDelay: Interval = .zero, decodes: Bool = true,
    furtherDecoders: [CodecName] = []
  ) {
    self.decodes = decodes
    self.furtherDecoders = furtherDecoders
    self.track = track
    self.codecs = codecs
    self.minimumDelay = max(VideoPlayout.leastDelay, min(minimumDelay, .seconds(5)))
    delay = self.minimumDelay
  }

  /// Whether frames of a codec are decoded, and not passed on as they are.
  package func decodes(_ codec: CodecName) -> Bool {
    decodes && (!codec.isPassedThrough || furtherDecoders.contains(codec))
  }

  /// When the oldest frame is to be shown; kept, because every step of the peer asks for it.
  package private(set) var deadline: Instant?

  private var nextDeadline: Instant? { queue.first.map { dueTime(of: $0) } }

  // What follows is asked for with every frame: in place, because a call would copy the whole
  // playout.

  /// The delay that the arrivals of the last seconds call for.
  @inline(__always)
  private var networkDelay: Interval {
    min(max(timing.spread, VideoPlayout.leastDelay), VideoPlayout.mostDelay)
  }

  /// The delay of the track for itself, without regard to others of its stream.
  @inline(__always)
  package var ownDelay: Interval { max(minimumDelay, networkDelay) }

  /// The delay that is aimed at.
  @inline(__always)
  package var targetDelay: Interval { max(ownDelay, alignedDelay) }

  /// The most that the delay comes to, whatever happens to the arrivals.
  @inline(__always)
  private var maximumDelay: Interval {
    max(VideoPlayout.mostDelay, max(minimumDelay, alignedDelay))
  }

  /// When a frame would be shown if the track were for itself; nil before the first frame.
  package func ownPlayout(ofRTPTime time: UInt32) -> Instant? {
    timing.fastestArrival(ofRTPTime: time).map { $0 + ownDelay }
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    defer { deadline = nextDeadline }
    if case .frame(let frame) = input { take(frame, at: now, into: &outbox) }
    while let first = queue.first,
      dueTime(of: first) <= now || queue.count > VideoPlayout.mostFrames
        || queuedBytes > VideoPlayout.mostBytes
    {
      showFirst(at: now, into: &outbox)
    }
  }

  /// When a frame is to be shown; never long after its arrival, whatever its media time says.
  @inline(__always)
  private func dueTime(of frame: ReceivedFrame) -> Instant {
    min(
      timing.fastestArrival(of: frame.extendedTime) + delay,
      frame.lastArrival + maximumDelay)
  }

  private mutating func take(
    _ frame: ReceivedFrame, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    counters.framesReceived &+= 1
    if frame.lastSequence > frame.firstSequence {
      counters.framesAssembledFromMultiplePackets &+= 1
      counters.totalAssemblyTime =
        counters.totalAssemblyTime + max(.zero, frame.lastArrival - frame.firstArrival)
    }
    var isNew = newestTime == nil
    if frame.ssrc != ssrc {
      ssrc = frame.ssrc
      showAll(at: now, into: &outbox)
      timing.reset()
      isNew = true
    }
    let before = timing
    let observation = timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.lastArrival)
    if observation == .jumped {
      // What waits belongs to the old times, which are no longer in force.
      showAll(at: now, into: &outbox)
      isNew = true
    }
    adapt(to: frame, previous: before, isNew: isNew)
    queue.append(frame)
    queuedBytes += frame.bytes.count
  }

  /// Lets the delay follow its target.
  private mutating func adapt(
    to frame: ReceivedFrame, previous: ArrivalSpread, isNew: Bool
  ) {
    let last = newestTime
    newestTime = isNew ? frame.extendedTime : max(last ?? .min, frame.extendedTime)
    guard !isNew, let last else {
      delay = targetDelay
      return
    }
    // The fastest transit moved: what is in force stays where it was in absolute time.
    delay =
      delay
      + (previous.fastestArrival(of: frame.extendedTime)
        - timing.fastestArrival(of: frame.extendedTime))
    let (step, overflow) = frame.extendedTime.subtractingReportingOverflow(last)
    let ticks = overflow ? 0 : min(max(0, step), Int64(VideoPlayout.clockRate))
    let most = Interval(
      nanoseconds: ticks * 1_000_000_000 / Int64(VideoPlayout.clockRate) / VideoPlayout.slowness)
    let wanted = targetDelay
    delay = min(max(wanted, delay - most), delay + most)
    // A late frame stops the video frame anyway: the frames after it may have its delay at once.
    let lateness = timing.lateness(of: frame.extendedTime, arrival: frame.lastArrival)
    delay = max(delay, min(lateness, wanted))
    delay = min(max(delay, minimumDelay), maximumDelay)
  }

  private mutating func showAll(at now: Instant, into outbox: inout Outbox<Output>) {
    while !queue.isEmpty { showFirst(at: now, into: &outbox) }
  }

  private mutating func showFirst(at now: Instant, into outbox: inout Outbox<Output>) {
    let frame = queue.removeFirst()
    queuedBytes -= frame.bytes.count
    counters.jitterBufferEmittedCount &+= 1
    counters.jitterBufferDelay =
      counters.jitterBufferDelay + max(.zero, now - frame.firstArrival)
    counters.jitterBufferTargetDelay = counters.jitterBufferTargetDelay + targetDelay
    counters.jitterBufferMinimumDelay = counters.jitterBufferMinimumDelay + networkDelay
    guard decodes(frame.codec) else {
      // Where nothing at all is decoded, what would be shown makes up the rhythm of the video
      // frames.
      if !decodes { counters.countShown(at: now) }
      outbox.append(.passed(frame))
      return
    }
    do throws(CodecError) {
      let decoded = try decode(frame)
      counters.countShown(decoded, isKey: frame.isKey, at: now)
      outbox.append(.shown(frame, decoded))
    } catch {
      counters.framesDropped &+= 1
      outbox.append(.undecodable(frame))
    }
  }

  private mutating func decode(_ frame: ReceivedFrame) throws(CodecError) -> DecodedVideo {
    if decoded != frame.codec {
      // Once is enough: a library that is not there will not come.
      decoded = frame.codec
      decoder = nil
      decoder = try codecs.videoDecoder(track: track, frame.codec)
    }
    guard let decoder else { throw CodecError(reason: "no video decoder") }
    return try decoder.decode(frame.bytes)
  }
}
