import Media
import RTP
import Wire

/// The video of a sending track: the capture that runs, or video frames that come encoded, what
/// is given up of them, and what all captures of the source counted.
struct SentVideo {
  private var capture: VideoCapture?
  /// In the place of the capture where video frames come encoded.
  private var stream: StreamCapture?
  /// What a capture is made of where frames of this codec may come encoded or not; nil if they come
  /// in one way alone.
  private var choice: Choice?
  /// What earlier captures of the present source counted.
  private var earlier = VideoCaptureCounters()
  /// Empty between two inputs; kept for its memory.
  private var outputs = Outbox<VideoCapture.Output>()
  private var adaptation = VideoAdaptation()
  private var contentHint = ContentHint.none
  /// What the encoder may spend, in bits per second.
  private(set) var bitrate: UInt64 = 0
  /// Whether a received frame is sent as received only from the next key frame on.
  private var waitsForKey = false

  /// A codec of which frames are encoded here, and sent as they come where they come encoded.
  private struct Choice {
    var codec: CodecName
    var start: SendingTrack.Start
    var track: UInt32
    var source: MediaSource
    var codecs: any CodecFactory
    var origin: Instant?
    var isEnabled: Bool
  }

  var isEncoding: Bool { capture != nil }
  /// Whether its video frames come encoded at present.
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
    self.bitrate = min(start.videoBitrate, start.encoding.maxBitrate ?? .max)
    let choice = Choice(
      codec: codec, start: start, track: track, source: source, codecs: codecs, origin: origin,
      isEnabled: isEnabled)
    guard start.isEncoded || !codec.isPassedThrough else {
      if source == .application {
        stream = StreamCapture(of: codec, at: now, origin: origin, counters: earlier)
      }
      return source == .application || source == .echo
    }
    if codec.isPassedThrough { self.choice = choice }
    // What is received in the codec goes back as received: nothing is encoded before other frames
    // come, so that a demand for a key frame reaches whoever sends it.
    if source != .echo || !codec.isPassedThrough { encode(choice, origin: origin, at: now) }
    return true
  }

  private mutating func encode(_ choice: Choice, origin: Instant?, at now: Instant) {
    capture = VideoCapture(
      track: String(choice.track), source: choice.source, codec: choice.codec,
      codecs: choice.codecs, origin: origin, counters: earlier, isEnabled: choice.isEnabled,
      unitLimit: choice.start.unitLimit)
    setBitrate(bitrate, at: now)
    drive(.screen(contentHint.isScreen), at: now)
    limit(to: choice.start.encoding, at: now)
    drive(.start, at: now)
  }

  /// Lets the frames that follow be encoded, where they came encoded until now.
  ///
  /// - Returns: false where they cannot be.
  mutating func beginEncoding(at now: Instant) -> Bool {
    guard capture == nil else { return true }
    guard let choice else { return stream == nil }
    let origin = self.origin ?? choice.origin
    earlier = counters
    stream = nil
    encode(choice, origin: origin, at: now)
    return true
  }

  /// Lets the frames that follow be sent as they come, where they were encoded until now.
  private mutating func beginPassing(at now: Instant) {
    guard let choice, stream == nil, choice.source == .application, choice.start.isFirst else {
      return
    }
    let origin = self.origin ?? choice.origin
    drive(.stop, at: now)
    earlier = counters
    capture = nil
    stream = StreamCapture(of: choice.codec, at: now, origin: origin, counters: earlier)
  }

  mutating func stop(at now: Instant) {
    drive(.stop, at: now)
    earlier = counters
    (capture, stream, choice) = (nil, nil, nil)
  }

  mutating func drive(_ input: VideoCapture.Input, at now: Instant) {
    capture?.step(input, at: now, into: &outputs)
  }

  /// What the capture said next; to be asked for until there is nothing more.
  mutating func next() -> VideoCapture.Output? { outputs.next() }

  /// Lets the source be seen, or not; what comes encoded is then sent from a key frame on.
  mutating func setEnabled(_ isEnabled: Bool, at now: Instant) {
    drive(.enabled(isEnabled), at: now)
    choice?.isEnabled = isEnabled
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

  /// Handles the limits of an encoding.
  mutating func limit(to encoding: RTPEncoding, at now: Instant) {
    choice?.start.encoding = encoding
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

  /// Handles a video frame that the application has encoded; nil if that codec was not agreed on.
  mutating func take(
    encoded bytes: [UInt8], _ codec: CodecName, limit: UInt64?, isEnabled: Bool, at now: Instant
  ) -> StreamCapture.Verdict? {
    if choice?.codec == codec {
      // The other layers of a simulcast are encoded or nothing.
      guard choice?.start.isFirst == true else { return .useless }
      beginPassing(at: now)
    }
    guard stream?.codec == codec else { return nil }
    return isEnabled ? stream?.take(bytes, limit: limit, at: now) : .useless
  }

  /// Handles a received frame that is to be sent as received; nil until a decoder can begin with
  /// it.
  mutating func takeReceived(_ frame: ReceivedFrame) -> EncodedFrame? {
    guard frame.isKey || !waitsForKey else { return nil }
    waitsForKey = false
    return EncodedFrame(
      kind: .video, codec: frame.codec, mediaTime: frame.rtpTime, bytes: frame.bytes,
      isKey: frame.isKey)
  }
}
