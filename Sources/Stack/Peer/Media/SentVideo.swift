import Media
import RTP
import Wire

/// The stream that a sending track feeds: section, layer, SSRC and limits, which are kept when it
/// is no longer fed.
struct SentStream {
  /// The section it currently feeds.
  private(set) var mid: String?
  /// The section it would feed if the path carried it.
  private(set) var heldMID: String?
  /// The layer that frames are sent as.
  private(set) var rid: String?
  private(set) var codec = ""
  private(set) var ssrc: UInt32 = 0
  private(set) var encoding = RTPEncoding()
  /// The largest unit of H.264 in bytes; nil if the peer accepts fragments.
  private(set) var unitLimit: Int?

  var isFed: Bool { mid != nil }

  mutating func begin(_ start: SendingTrack.Start) {
    (mid, heldMID, rid) = (start.mid, nil, start.rid)
    (codec, ssrc, encoding) = (start.codec, start.ssrc, start.encoding)
    unitLimit = start.unitLimit
  }

  /// Stops feeding; a paused track feeds it again once the path carries it.
  mutating func end(isHeld: Bool) {
    heldMID = isHeld ? mid : nil
    mid = nil
  }

  /// Sets other limits; false if they are unchanged, or nothing is fed.
  mutating func limit(to encoding: RTPEncoding) -> Bool {
    guard isFed, encoding != self.encoding else { return false }
    self.encoding = encoding
    return true
  }

  /// The record of a sent frame.
  /// - Parameter outcome: where its bytes are from: encoded here, or passed on.
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

/// The audio of a sending track: the running capture, and the counters of its source.
struct SentAudio {
  /// The limit in bits per second.
  private let bitrateMaximum: UInt32
  /// The running encoder's bit rate; an audio encoder keeps it.
  private var bitrate: UInt32 = 0
  private var capture: AudioCapture?
  /// The counters of earlier captures of the current source.
  private var earlier = AudioCaptureCounters()
  /// Empty between inputs; kept to reuse the memory.
  private var outputs = Outbox<AudioCapture.Output>()

  init(bitrateMaximum: UInt32) { self.bitrateMaximum = bitrateMaximum }

  var isRunning: Bool { capture != nil }
  var deadline: Instant? { capture?.deadline }
  /// The instant of media time 0 of the running capture.
  var origin: Instant? { capture?.origin }
  /// The counters of the current source.
  var counters: AudioCaptureCounters { capture?.counters ?? earlier }

  /// Replaces the source; counters restart from 0.
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

  /// Ends the capture; its last outputs follow.
  mutating func stop(at now: Instant) {
    drive(.stop, at: now)
    earlier = counters
    capture = nil
  }

  mutating func drive(_ input: AudioCapture.Input, at now: Instant) {
    capture?.step(input, at: now, into: &outputs)
  }

  /// The capture's next output; call until nil.
  mutating func next() -> AudioCapture.Output? { outputs.next() }

  /// Whether new limits need another encoder.
  func needsRestart(within encoding: RTPEncoding) -> Bool {
    bitrate != encoding.audioBitrate(upTo: bitrateMaximum)
  }
}

// MARK: - SentVideo

/// The video of a sending track: the running capture or stream of encoded frames, its reductions,
/// and the counters of its source.
struct SentVideo {
  private var capture: VideoCapture?
  /// Replaces the capture when video arrives encoded.
  private var stream: StreamCapture?
  /// How to start a capture if frames of this codec may arrive encoded or not; nil if only one is
  /// possible.
  private var choice: Choice?
  /// The counters of earlier captures of the current source.
  private var earlier = VideoCaptureCounters()
  /// Empty between inputs; kept to reuse the memory.
  private var outputs = Outbox<VideoCapture.Output>()
  private var adaptation = VideoAdaptation()
  private var contentHint = ContentHint.none
  /// The encoder's bit rate in bits per second.
  private(set) var bitrate: UInt64 = 0
  /// Whether received frames are sent only from the next key frame on.
  private var waitsForKey = false

  /// A codec whose frames are encoded here or passed on, depending on how they arrive.
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
  /// Whether its video currently arrives encoded.
  var comesEncoded: Bool { stream != nil }
  var deadline: Instant? { capture?.deadline }
  /// The instant of media time 0 of what runs.
  var origin: Instant? { capture?.origin ?? stream?.origin }
  /// The counters of the current source.
  var counters: VideoCaptureCounters { capture?.counters ?? stream?.counters ?? earlier }
  /// How many frames the running capture dropped because its clock was late.
  var framesLate: UInt64 { capture?.counters.framesLate ?? 0 }

  /// Replaces the source; counters restart from 0.
  mutating func replaceSource() { earlier = VideoCaptureCounters() }

  /// Starts with negotiated parameters.
  /// - Returns: false if the source provides nothing that can be sent as that codec.
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
    // Received frames of the codec are sent as received: nothing is encoded until other frames
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

  /// Switches from passing frames on to encoding them.
  /// - Returns: false if they cannot be encoded.
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

  /// The capture's next output; call until nil.
  mutating func next() -> VideoCapture.Output? { outputs.next() }

  /// Enables or disables the source; video that arrives encoded then starts with a key frame.
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

  /// Applies the limits of an encoding.
  mutating func limit(to encoding: RTPEncoding, at now: Instant) {
    choice?.start.encoding = encoding
    drive(limits(within: encoding), at: now)
    drive(.temporalLayers(encoding.temporalLayers ?? 1), at: now)
  }

  /// Sets what to reduce first, and the content hint.
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

  /// Reduces frame rate or resolution if necessary, according to the preference.
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

  /// Handles a frame that the application encoded; nil if the codec was not negotiated.
  mutating func accept(
    encoded bytes: [UInt8], _ codec: CodecName, limit: UInt64?, isEnabled: Bool, at now: Instant
  ) -> StreamCapture.Verdict? {
    if choice?.codec == codec {
      // The other simulcast layers are encoded or not sent.
      guard choice?.start.isFirst == true else { return .useless }
      beginPassing(at: now)
    }
    guard stream?.codec == codec else { return nil }
    return isEnabled ? stream?.accept(bytes, limit: limit, at: now) : .useless
  }

  /// Handles a received frame to be sent as received; nil until a decoder can start.
  mutating func acceptReceived(_ frame: ReceivedFrame) -> EncodedFrame? {
    guard frame.isKey || !waitsForKey else { return nil }
    waitsForKey = false
    return EncodedFrame(
      kind: .video, codec: frame.codec, mediaTime: frame.rtpTime, bytes: frame.bytes,
      isKey: frame.isKey)
  }
}
