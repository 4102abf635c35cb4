import Media
import RTP
import Wire

/// The stream that a sending track feeds: its section, layer, SSRC and limits, which are kept after
/// feeding stops.
struct SentStream {
  /// The section that the track currently feeds; nil if there is none.
  private(set) var mid: String?
  /// The section that the track would feed if the path could carry it.
  private(set) var heldMID: String?
  /// The name of the layer in which frames are sent; nil for the only stream.
  private(set) var rid: String?
  private(set) var codec = ""
  private(set) var ssrc: UInt32 = 0
  private(set) var encoding = RTPEncoding()
  /// The largest H.264 unit in bytes; nil if the remote peer accepts fragments.
  private(set) var unitLimit: Int?

  var isFed: Bool { mid != nil }

  mutating func begin(_ start: SendingTrack.Start) {
    (mid, heldMID, rid) = (start.mid, nil, start.rid)
    (codec, ssrc, encoding) = (start.codec, start.ssrc, start.encoding)
    unitLimit = start.unitLimit
  }

  /// Stops feeding the stream; a paused track resumes once the path can carry it.
  mutating func end(isHeld: Bool) {
    heldMID = isHeld ? mid : nil
    mid = nil
  }

  /// Sets new limits; returns false if they are unchanged or the track feeds no stream.
  mutating func limit(to encoding: RTPEncoding) -> Bool {
    guard isFed, encoding != self.encoding else { return false }
    self.encoding = encoding
    return true
  }

  /// Returns a sent frame's record.
  /// - Parameter outcome: whether the bytes were encoded here or passed on.
  func record(
    of frame: EncodedFrame, from transceiver: UInt32, outcome: String, quantiser: UInt8 = 0
  ) -> FrameRecord {
    var record = FrameRecord(
      transceiver: transceiver, kind: frame.kind, isInbound: false, codec: frame.codec, ssrc: ssrc,
      rtpTime: frame.mediaTime, isKey: frame.isKey, width: Int(frame.width),
      height: Int(frame.height), bytes: frame.bytes, outcome: outcome, decoded: .none,
      quantiser: quantiser)
    record.audioLevel = frame.audioLevel
    record.isVoice = frame.isVoice
    record.peak = frame.peak
    record.energy = frame.energy
    record.contributors = frame.contributors
    return record
  }
}

// MARK: - SentAudio

/// A sending track's audio: the running capture, and its source's counters.
struct SentAudio {
  /// The connection's maximum audio bit rate, in bit/s.
  private let bitrateMaximum: UInt32
  /// The running encoder's bit rate, which cannot be changed.
  private var bitrate: UInt32 = 0
  private var capture: AudioCapture?
  /// The counters of the current source's earlier captures.
  private var earlier = AudioCaptureCounters()
  /// The capture's outputs; empty between inputs, and kept to reuse their memory.
  private var outputs = Outbox<AudioCapture.Output>()

  init(bitrateMaximum: UInt32) { self.bitrateMaximum = bitrateMaximum }

  var isRunning: Bool { capture != nil }
  var deadline: Instant? { capture?.deadline }
  /// The instant of media time 0 of the running capture; nil if none is running.
  var origin: Instant? { capture?.origin }
  /// The current source's counters.
  var counters: AudioCaptureCounters { capture?.counters ?? earlier }

  /// Resets the counters for a new source.
  mutating func replaceSource() { earlier = AudioCaptureCounters() }

  mutating func start(
    track: UInt32, _ source: MediaSource, as codec: CodecName = .opus, within encoding: RTPEncoding,
    codecs: any CodecFactory, origin: Instant?, isEnabled: Bool, at now: Instant
  ) {
    bitrate = encoding.audioBitrate(upTo: bitrateMaximum)
    var settings = OpusSettings()
    if codec.isG711 { settings.codec = codec }
    settings.bitrate = Int32(clamping: bitrate)
    capture = AudioCapture(
      track: String(track), source: source, settings: settings, codecs: codecs, origin: origin,
      counters: earlier, isEnabled: isEnabled)
    drive(.start, at: now)
  }

  /// Ends the capture; `next` then returns its last outputs.
  mutating func stop(at now: Instant) {
    drive(.stop, at: now)
    earlier = counters
    capture = nil
  }

  mutating func drive(_ input: AudioCapture.Input, at now: Instant) {
    capture?.step(input, at: now, into: &outputs)
  }

  /// Returns the capture's next output, or nil after the last one.
  mutating func next() -> AudioCapture.Output? { outputs.next() }

  /// Returns whether new limits require a new encoder.
  func needsRestart(within encoding: RTPEncoding) -> Bool {
    bitrate != encoding.audioBitrate(upTo: bitrateMaximum)
  }
}

// MARK: - SentVideo

/// A sending track's video: the running capture or stream of encoded frames, how far it is reduced,
/// and its source's counters.
struct SentVideo {
  private var capture: VideoCapture?
  /// The stream that replaces the capture while video arrives encoded.
  private var stream: StreamCapture?
  /// The values for switching between encoding frames and passing them on; nil if the codec allows
  /// only one of the two.
  private var choice: Choice?
  /// The counters of the current source's earlier captures.
  private var earlier = VideoCaptureCounters()
  /// The capture's outputs; empty between inputs, and kept to reuse their memory.
  private var outputs = Outbox<VideoCapture.Output>()
  private var adaptation = VideoAdaptation()
  private var contentHint = ContentHint.none
  /// The encoder's bit rate in bit/s.
  private(set) var bitrate: UInt64 = 0
  /// Whether received frames are sent only from the next key frame on.
  private var waitsForKey = false

  /// A codec whose frames are either encoded here or passed on, depending on how they arrive.
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
  /// Whether the video currently arrives encoded.
  var comesEncoded: Bool { stream != nil }
  var deadline: Instant? { capture?.deadline }
  /// The instant of media time 0 of the running capture or stream; nil if none is running.
  var origin: Instant? { capture?.origin ?? stream?.origin }
  /// The current source's counters.
  var counters: VideoCaptureCounters { capture?.counters ?? stream?.counters ?? earlier }
  /// The number of frames that were dropped because a capture's clock was late, since the source
  /// was attached; 0 if no capture is running.
  var framesLate: UInt64 { capture?.counters.framesLate ?? 0 }

  /// Resets the counters for a new source.
  mutating func replaceSource() { earlier = VideoCaptureCounters() }

  /// Starts a capture, or a stream of encoded frames, with negotiated parameters.
  /// - Returns: false if the source provides no media that can be sent with the codec.
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
    // Received frames of the codec are sent unchanged, and nothing is encoded until other frames
    // arrive, so that key frame requests reach the original sender.
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

  /// Switches from passing on frames to encoding them.
  /// - Returns: false if the frames cannot be encoded.
  mutating func beginEncoding(at now: Instant) -> Bool {
    guard capture == nil else { return true }
    guard let choice else { return stream == nil }
    let origin = self.origin ?? choice.origin
    earlier = counters
    stream = nil
    encode(choice, origin: origin, at: now)
    return true
  }

  /// Switches from encoding frames to passing them on.
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

  /// Returns the capture's next output, or nil after the last one.
  mutating func next() -> VideoCapture.Output? { outputs.next() }

  /// Enables or disables the source; afterwards, video that arrives encoded is sent only from its
  /// next key frame on.
  mutating func setEnabled(_ isEnabled: Bool, at now: Instant) {
    drive(.enabled(isEnabled), at: now)
    choice?.isEnabled = isEnabled
    waitsForKey = true
    if let stream {
      self.stream = StreamCapture(
        of: stream.codec, at: now, origin: stream.origin, counters: stream.counters)
    }
  }

  // MARK: Limits

  mutating func setBitrate(_ bitrate: UInt64, at now: Instant) {
    self.bitrate = bitrate
    drive(.bitrate(bitrate), at: now)
  }

  mutating func limit(to encoding: RTPEncoding, at now: Instant) {
    choice?.start.encoding = encoding
    drive(limits(within: encoding), at: now)
    drive(.temporalLayers(encoding.temporalLayers ?? 1), at: now)
  }

  /// Sets what to reduce first if the bit rate is short, and the content hint.
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

  /// Reduces or restores frame rate or resolution, according to the reason and the preference.
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

  // MARK: Encoded video

  /// Decides whether to send a frame that the application encoded; returns nil if its codec was not
  /// negotiated.
  mutating func accept(
    encoded bytes: [UInt8], _ codec: CodecName, limit: UInt64?, isEnabled: Bool, at now: Instant
  ) -> StreamCapture.Verdict? {
    if choice?.codec == codec {
      // Only the first layer can carry frames that arrive encoded.
      guard choice?.start.isFirst == true else { return .useless }
      beginPassing(at: now)
    }
    guard stream?.codec == codec else { return nil }
    return isEnabled ? stream?.accept(bytes, limit: limit, at: now) : .useless
  }

  /// Returns a received frame in the form in which it is sent on; nil while waiting for a key
  /// frame.
  mutating func acceptReceived(_ frame: ReceivedFrame) -> EncodedFrame? {
    guard frame.isKey || !waitsForKey else { return nil }
    waitsForKey = false
    return EncodedFrame(
      kind: .video, codec: frame.codec, mediaTime: frame.rtpTime, bytes: frame.bytes,
      isKey: frame.isKey)
  }
}
