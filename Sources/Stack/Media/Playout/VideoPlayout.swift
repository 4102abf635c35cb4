package import RTP
package import Wire

/// The receiving side of a video track: adaptive delay and decoding.
///
/// A frame is decoded and shown when its media time plus a transit is reached. The target transit
/// is that of the slowest recent frames (`ArrivalSpread`); the current one follows slowly, so that
/// the picture neither freezes nor races. A late frame is shown immediately. Frames are decoded in
/// order of arrival, each exactly once.
package struct VideoPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// A video frame to show now, and its encoded frame.
    case shown(ReceivedFrame, DecodedVideo)
    /// The decoder refused a frame; a key frame is needed.
    case undecodable(ReceivedFrame)
    /// A frame that passes through undecoded, at its display time.
    case passed(ReceivedFrame)
  }

  /// The bounds of the delay beyond the fastest transit.
  package static let leastDelay = Interval.milliseconds(10)
  package static let mostDelay = Interval.milliseconds(300)

  package private(set) var counters: VideoPlayoutCounters
  /// When the oldest frame is shown.
  ///
  /// Cached, because every step of the peer asks for it.
  package private(set) var deadline: Instant?
  private(set) var delay: VideoDelay
  private(set) var frames = VideoFrameQueue()
  private var decoder: PlayoutVideoDecoder
  private var ssrc: UInt32?
  /// Whether it models an observed receiver.
  private let isWatched: Bool

  /// Creates the playout of a track.
  /// - Parameters:
  ///   - minimumDelay: at most 5 s.
  ///   - decodes: whether frames are decoded.
  ///   - furtherDecoders: pass-through codecs that are decoded here.
  ///   - isWatched: whether it models an observed receiver, and so behaves as browsers do: a frame
  ///     that was repaired does not delay those after it.
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

  /// Whether frames of a codec are decoded rather than passed through.
  package func decodes(_ codec: CodecName) -> Bool { decoder.decodes(codec) }

  // Accessed with every frame: computed in place, because a call would copy the whole playout.

  /// The delay of this track without regard to others of its stream.
  @inline(__always)
  package var independentDelay: Interval { delay.independent }

  /// The delay that is aimed at.
  @inline(__always)
  package var targetDelay: Interval { delay.target }

  /// When a frame would be shown without regard to other tracks; nil before the first frame.
  package func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    delay.independentPlayout(ofRTPTime: time)
  }

  /// Sets the minimum delay for video to stay in sync with the stream's audio.
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
    // Waiting frames have times that are no longer valid.
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
      // If nothing is decoded, frames that would be shown define the frame rate.
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
