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

  /// What was done so far.
  package private(set) var counters: VideoPlayoutCounters
  /// When the oldest frame is to be shown; kept, because every step of the peer asks for it.
  package private(set) var deadline: Instant?
  private(set) var delay: VideoDelay
  private(set) var frames = VideoFrameQueue()
  private var decoder: PlayoutVideoDecoder
  private var ssrc: UInt32?
  /// Whether it stands for somebody else's receiver.
  private let isWatched: Bool

  /// Creates the playout of a track.
  ///
  /// - Parameters:
  ///   - minimumDelay: the least delay, whatever the arrivals say; at most 5 s are granted.
  ///   - decodes: whether frames are decoded.
  ///   - furtherDecoders: the codecs that are decoded among those passed through otherwise.
  ///   - isWatched: whether it stands for somebody else's receiver, and does as browsers do: a
  ///     frame that had to be repaired makes those after it wait no longer.
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

  /// Whether frames of a codec are decoded, and not passed on as they are.
  package func decodes(_ codec: CodecName) -> Bool { decoder.decodes(codec) }

  // What follows is asked for with every frame: in place, because a call would copy the whole
  // playout.

  /// The delay of the track for itself, without regard to others of its stream.
  @inline(__always)
  package var ownDelay: Interval { delay.own }

  /// The delay that is aimed at.
  @inline(__always)
  package var targetDelay: Interval { delay.target }

  /// When a frame would be shown if the track were for itself; nil before the first frame.
  package func ownPlayout(ofRTPTime time: UInt32) -> Instant? {
    delay.ownPlayout(ofRTPTime: time)
  }

  /// Delays frames at least so much, so that the audio of the same stream keeps up with them.
  package mutating func align(to delay: Interval) {
    self.delay.align(to: delay)
    schedule()
  }

  /// Has all frames wait as long as a retransmission takes, once some did: so libwebrtc does where
  /// no forward error correction is agreed on.
  package mutating func awaitRepairs(taking roundTrip: Interval?) {
    delay.awaitRepairs(taking: roundTrip)
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if case .frame(let frame) = input { take(frame, at: now, into: &outbox) }
    while let first = frames.first, delay.dueTime(of: first) <= now || frames.isOverfull {
      showFirst(at: now, into: &outbox)
    }
    schedule()
  }

  @inline(__always)
  private mutating func schedule() {
    if let first = frames.first { deadline = delay.dueTime(of: first) } else { deadline = nil }
  }

  private mutating func take(
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
    // What waits belongs to the old times, which are no longer in force.
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
      // Where nothing at all is decoded, what would be shown makes up the rhythm of the video
      // frames.
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
