import Media
import RTP
import Wire

/// The video of a sending track: the capture that runs, or video frames that come encoded, what
/// is given up of them, and what all captures of the source counted.
struct SentVideo {
  private var capture: VideoCapture?
  /// In the place of the capture where video frames come encoded.
  private var stream: StreamCapture?
  /// What earlier captures of the present source counted.
  private var earlier = VideoCaptureCounters()
  /// Empty between two inputs; kept for its memory.
  private var outputs = Outbox<VideoCapture.Output>()
  private var adaptation = VideoAdaptation()
  private var contentHint = ContentHint.none
  /// What the encoder may spend, in bits per second.
  private(set) var bitrate: UInt64 = 0
  /// Whether a received frame is sent as it came only from the next key frame on.
  private var waitsForKey = false

  var isEncoding: Bool { capture != nil }
  /// Whether its video frames come encoded, and cannot be made of others.
  var comesEncoded: Bool { stream != nil }
  var deadline: Instant? { capture?.deadline }
  /// Where media time is 0 for what runs.
  var origin: Instant? { capture?.origin ?? stream?.origin }
  /// What the present source gave.
  var counters: VideoCaptureCounters { capture?.counters ?? stream?.counters ?? earlier }
  /// How many video frames the capture that runs left out because its clock was late.
  var framesLate: UInt64 { capture?.counters.framesLate ?? 0 }

  /// Another source takes the place of the present one, and counts from 0.
  mutating func replaceSource() { earlier = VideoCaptureCounters() }

  /// Begins with what was agreed on.
  ///
  /// - Returns: false where the source gives nothing that can be sent as that codec.
  mutating func start(
    _ start: SendingTrack.Start, track: UInt32, _ source: MediaSource, codecs: any CodecFactory,
    origin: Instant?, isEnabled: Bool, at now: Instant
  ) -> Bool {
    let codec = CodecName(rawValue: start.codec)
    guard !codec.isPassedThrough else {
      if source == .application {
        stream = StreamCapture(of: codec, at: now, origin: origin, counters: earlier)
      }
      return source == .application || source == .echo
    }
    capture = VideoCapture(
      track: String(track), source: source, codec: codec, codecs: codecs, origin: origin,
      counters: earlier, isEnabled: isEnabled)
    setBitrate(min(start.videoBitrate, start.encoding.maxBitrate ?? .max), at: now)
    drive(.screen(contentHint.isScreen), at: now)
    limit(to: start.encoding, at: now)
    drive(.start, at: now)
    return true
  }

  mutating func stop(at now: Instant) {
    drive(.stop, at: now)
    earlier = counters
    (capture, stream) = (nil, nil)
  }

  mutating func drive(_ input: VideoCapture.Input, at now: Instant) {
    capture?.step(input, at: now, into: &outputs)
  }

  /// What the capture said next; to be asked for until there is nothing more.
  mutating func next() -> VideoCapture.Output? { outputs.next() }

  /// Lets the source be seen, or not; what comes encoded is then sent from a key frame on.
  mutating func setEnabled(_ isEnabled: Bool, at now: Instant) {
    drive(.enabled(isEnabled), at: now)
    waitsForKey = true
    if let stream {
      self.stream = StreamCapture(
        of: stream.codec, at: now, origin: stream.origin, counters: stream.counters)
    }
  }

  // MARK: What may be spent

  mutating func setBitrate(_ bitrate: UInt64, at now: Instant) {
    self.bitrate = bitrate
    drive(.bitrate(bitrate), at: now)
  }

  /// Takes the limits of an encoding.
  mutating func limit(to encoding: RTPEncoding, at now: Instant) {
    drive(limits(within: encoding), at: now)
    drive(.temporalLayers(encoding.temporalLayers ?? 1), at: now)
  }

  /// Takes what is given up first, and what the video frames show.
  mutating func adapt(
    _ preference: DegradationPreference?, _ hint: ContentHint, within encoding: RTPEncoding,
    at now: Instant
  ) {
    guard preference != adaptation.preference || hint != contentHint else { return }
    adaptation.preference = preference
    contentHint = hint
    drive(.screen(hint.isScreen), at: now)
    drive(limits(within: encoding), at: now)
  }

  /// Makes video frames fewer or smaller where they are too much, as far as the application said
  /// how.
  mutating func adapt(
    to reason: QualityLimitation.Reason, within encoding: RTPEncoding, at now: Instant
  ) {
    guard let capture, let origin = capture.origin else { return }
    let mediaTime = RTPClock.ticks(from: origin, to: now)
    let rate = capture.counters.framesPerSecond(atMediaTime: mediaTime)
    guard adaptation.judge(reason, framesPerSecond: rate, at: now) else { return }
    drive(limits(within: encoding), at: now)
  }

  private func limits(within encoding: RTPEncoding) -> VideoCapture.Input {
    let adapted = adaptation.limits
    let rates = [encoding.maxFramerate, adapted.framesPerSecond].compactMap(\.self)
    return .limits(
      framesPerSecond: rates.min(),
      scaleDownBy: (encoding.scaleResolutionDownBy ?? 1) * adapted.scaleDownBy)
  }

  // MARK: What comes encoded

  /// Takes a video frame that the application has encoded; nil where that codec was not agreed on.
  mutating func take(
    encoded bytes: [UInt8], _ codec: CodecName, limit: UInt64?, isEnabled: Bool, at now: Instant
  ) -> StreamCapture.Verdict? {
    guard stream?.codec == codec else { return nil }
    return isEnabled ? stream?.take(bytes, limit: limit, at: now) : .useless
  }

  /// Takes a received frame that is to be sent as it came; nil until a decoder can begin with it.
  mutating func takeReceived(_ frame: ReceivedFrame) -> EncodedFrame? {
    guard frame.isKey || !waitsForKey else { return nil }
    waitsForKey = false
    return EncodedFrame(
      kind: .video, codec: frame.codec, mediaTime: frame.rtpTime, bytes: frame.bytes,
      isKey: frame.isKey)
  }
}
