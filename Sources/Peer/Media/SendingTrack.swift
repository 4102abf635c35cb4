import Flow
import Media
import RTP
import Wire

/// What this peer sends on one transceiver: a source with the encoder on its clock, and what both
/// counted.
struct SendingTrack: Machine {
  enum Input {
    /// Another source in the place of the present one, or none; nothing runs until the next start.
    case source(MediaSource?)
    /// Whether the source is heard or seen; else silence or black video frames are sent, and
    /// nothing of video frames that come encoded.
    case enabled(Bool)
    case start(Start)
    case stop
    /// Nothing is encoded until the next start, because the path does not carry this layer.
    case hold
    /// Media for the encoder, the sources that were mixed into it, and what video frames that come
    /// encoded have to keep to, in bits per second; nil for no limit.
    case media(CapturedMedia, from: [Contributor], limit: UInt64? = nil)
    /// A received frame that is sent as it came.
    case passOn(ReceivedFrame)
    case requestKeyframe
    /// The share of packets that the peer reported lost, 0 to 255.
    case lossReported(UInt8)
    /// What the encoder of video frames may spend from now on, in bits per second.
    case bitrate(UInt64)
    /// Other limits while it runs.
    case encoding(RTPEncoding)
    /// What is given up first of video frames, and what they show.
    case adaptation(DegradationPreference?, ContentHint)
    case deadline
  }

  enum Output {
    /// A frame for a section.
    case frame(EncodedFrame, mid: String, FrameRecord)
    /// Audio is no longer sent.
    case audioEnded
    /// Somebody speaks while the track is disabled, or no longer does.
    case mutedSpeech(isSpeaking: Bool)
    /// Why nothing can be encoded, in words.
    case failure(String)
  }

  /// What a capture begins with.
  struct Start {
    /// The section that it feeds.
    var mid: String
    /// The layer of a simulcast that it is agreed to be; nil for the only stream.
    var rid: String?
    /// What it encodes, by the encoding name in lower case.
    var codec: String
    var ssrc: UInt32
    var encoding: RTPEncoding
    /// What video frames may spend, in bits per second.
    var videoBitrate: UInt64
    /// Where media time is 0 for the layers that run already.
    var origin: Instant?
  }

  let transceiver: UInt32
  /// The layer of a simulcast that it is for; nil for the only stream.
  let rid: String?
  let kind: MediaKind
  private let codecs: any CodecFactory
  /// What audio may spend at most, in bits per second.
  private let audioBitrateMaximum: UInt32

  private(set) var source: MediaSource?
  private(set) var isEnabled = true
  /// Whether a received frame is sent as it came only from the next key frame on.
  private var waitsForKey = false
  private(set) var audio: AudioCapture?
  private(set) var video: VideoCapture?
  /// Empty between two inputs; kept for their memory.
  private var audioOutputs = Outbox<AudioCapture.Output>()
  private var videoOutputs = Outbox<VideoCapture.Output>()
  /// In the place of `video` where video frames come encoded.
  private(set) var stream: StreamCapture?
  /// The section that the capture feeds while it runs.
  private(set) var mid: String?
  /// The section that the capture would feed if the path carried it.
  private(set) var heldMID: String?
  /// The layer as which its frames are sent.
  private(set) var sentRID: String?
  private(set) var codec = ""
  private(set) var ssrc: UInt32 = 0
  /// The limits of what runs.
  private(set) var encoding = RTPEncoding()
  private var adaptation = VideoAdaptation()
  private var contentHint = ContentHint.none
  /// What the audio encoder that runs may spend, in bits per second.
  private var audioBitrate: UInt32 = 0
  /// What the encoder of video frames may spend, in bits per second.
  private(set) var bitrate: UInt64 = 0
  /// Where media time is 0: the first capture's start, kept by those that follow on the SSRC.
  private var origin: Instant?
  private(set) var totals = SendingTotals()
  /// How many sources were replaced: each attachment of a source is a media-source of its own.
  private(set) var attachment = 0
  /// What earlier captures of the present source counted.
  private(set) var audioCounters = AudioCaptureCounters()
  private(set) var videoCounters = VideoCaptureCounters()
  /// The sources of the audio that is fed to the encoder, when it is not an own one.
  private var contributors: [Contributor] = []

  init(
    transceiver: UInt32, rid: String? = nil, kind: MediaKind, source: MediaSource?,
    codecs: any CodecFactory, audioBitrateMaximum: UInt32
  ) {
    self.transceiver = transceiver
    self.rid = rid
    self.kind = kind
    self.source = source
    self.codecs = codecs
    self.audioBitrateMaximum = audioBitrateMaximum
  }

  var isRunning: Bool { mid != nil }
  /// Whether it is sent, as far as the path carries it.
  var isWanted: Bool { isRunning || heldMID != nil }
  /// Where its media time is 0; nil before its first start.
  var mediaOrigin: Instant? { video?.origin ?? stream?.origin ?? origin }
  /// What the present source of video frames gave.
  var frameCounters: VideoCaptureCounters {
    video?.counters ?? stream?.counters ?? videoCounters
  }
  /// When a capture wants its next input; kept, because every step of the peer asks for it.
  private(set) var deadline: Instant?

  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    defer { deadline = isRunning ? earliest(audio?.deadline, video?.deadline) : nil }
    switch input {
    case .source(let source): replaceSource(source, at: now, into: &outbox)
    case .enabled(let isEnabled): setEnabled(isEnabled, at: now, into: &outbox)
    case .start(let start): self.start(start, at: now, into: &outbox)
    case .stop: stop(at: now, into: &outbox)
    case .hold:
      let held = mid
      stop(at: now, into: &outbox)
      heldMID = held
    case .media(let media, let contributors, let limit):
      self.contributors = contributors
      switch media {
      case .audio(let block): drive(AudioCapture.Input.block(block), at: now, into: &outbox)
      case .videoFrame(let videoFrame):
        guard stream == nil else { return refuseEncoding(into: &outbox) }
        drive(VideoCapture.Input.videoFrame(videoFrame), at: now, into: &outbox)
      case .frame(let videoFrame, let timestamp):
        guard stream == nil else { return refuseEncoding(into: &outbox) }
        drive(
          VideoCapture.Input.frame(videoFrame, timestamp: timestamp), at: now, into: &outbox)
      case .encoded(let codec, let bytes):
        send(encoded: bytes, codec, limit: limit, at: now, into: &outbox)
      }
    case .passOn(let frame):
      guard isEnabled, frame.isKey || !waitsForKey else { return }
      waitsForKey = false
      passOn(frame, into: &outbox)
    case .requestKeyframe: drive(.requestKeyframe, at: now, into: &outbox)
    case .lossReported(let share): drive(.lossReported(share), at: now, into: &outbox)
    case .bitrate(let bitrate):
      self.bitrate = bitrate
      drive(.bitrate(bitrate), at: now, into: &outbox)
    case .encoding(let encoding): limit(to: encoding, at: now, into: &outbox)
    case .adaptation(let preference, let hint):
      guard preference != adaptation.preference || hint != contentHint else { return }
      adaptation.preference = preference
      contentHint = hint
      drive(.screen(hint.isScreen), at: now, into: &outbox)
      drive(.limits(of: encoding, adaptation.limits), at: now, into: &outbox)
    case .deadline:
      guard isRunning else { return }
      if let due = audio?.deadline, due <= now {
        drive(AudioCapture.Input.deadline, at: now, into: &outbox)
      }
      if let due = video?.deadline, due <= now {
        drive(VideoCapture.Input.deadline, at: now, into: &outbox)
      }
    }
  }

  // MARK: What runs

  private mutating func replaceSource(
    _ source: MediaSource?, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    stop(at: now, into: &outbox)
    self.source = source
    attachment += 1
    audioCounters = AudioCaptureCounters()
    videoCounters = VideoCaptureCounters()
  }

  private mutating func setEnabled(
    _ isEnabled: Bool, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard isEnabled != self.isEnabled else { return }
    self.isEnabled = isEnabled
    drive(AudioCapture.Input.enabled(isEnabled), at: now, into: &outbox)
    drive(VideoCapture.Input.enabled(isEnabled), at: now, into: &outbox)
    waitsForKey = true
    if let stream {
      self.stream = StreamCapture(
        of: stream.codec, at: now, origin: stream.origin, counters: stream.counters)
    }
  }

  private mutating func start(
    _ start: Start, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let source else { return }
    ssrc = start.ssrc
    mid = start.mid
    heldMID = nil
    sentRID = start.rid
    origin = origin ?? start.origin
    codec = start.codec
    encoding = start.encoding
    switch kind {
    case .audio:
      audioBitrate = start.encoding.audioBitrate(upTo: audioBitrateMaximum)
      var settings = OpusSettings()
      settings.bitrate = Int32(clamping: audioBitrate)
      audio = AudioCapture(
        track: String(transceiver), source: source, settings: settings, codecs: codecs,
        origin: origin, counters: audioCounters, isEnabled: isEnabled)
      drive(AudioCapture.Input.start, at: now, into: &outbox)
    case .video:
      let name = CodecName(rawValue: codec)
      guard !name.isPassedThrough else {
        switch source {
        case .echo: break
        case .application:
          stream = StreamCapture(
            of: name, at: now, origin: origin, counters: videoCounters)
        default: refuseEncoding(into: &outbox)
        }
        return
      }
      video = VideoCapture(
        track: String(transceiver), source: source, codec: name, codecs: codecs, origin: origin,
        counters: videoCounters, isEnabled: isEnabled)
      bitrate = min(start.videoBitrate, start.encoding.maxBitrate ?? .max)
      drive(.bitrate(bitrate), at: now, into: &outbox)
      drive(.screen(contentHint.isScreen), at: now, into: &outbox)
      drive(.limits(of: start.encoding, adaptation.limits), at: now, into: &outbox)
      drive(.temporalLayers(start.encoding.temporalLayers ?? 1), at: now, into: &outbox)
      drive(VideoCapture.Input.start, at: now, into: &outbox)
    }
  }

  private mutating func stop(at now: Instant, into outbox: inout Outbox<Output>) {
    origin = audio?.origin ?? video?.origin ?? stream?.origin ?? origin
    if audio != nil {
      drive(AudioCapture.Input.stop, at: now, into: &outbox)
      outbox.append(.audioEnded)
    }
    if video != nil { drive(VideoCapture.Input.stop, at: now, into: &outbox) }
    if let audio { audioCounters = audio.counters }
    videoCounters = frameCounters
    audio = nil
    video = nil
    stream = nil
    mid = nil
    heldMID = nil
  }

  private mutating func limit(
    to encoding: RTPEncoding, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard isRunning, encoding != self.encoding else { return }
    self.encoding = encoding
    if video != nil {
      drive(.limits(of: encoding, adaptation.limits), at: now, into: &outbox)
      drive(.temporalLayers(encoding.temporalLayers ?? 1), at: now, into: &outbox)
    } else if kind == .audio, audioBitrate != encoding.audioBitrate(upTo: audioBitrateMaximum) {
      // An encoder of audio keeps its bit rate, so another one goes on in its place.
      stop(at: now, into: &outbox)
    }
  }

  // MARK: Frames

  private mutating func drive(
    _ input: AudioCapture.Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    audio?.step(input, at: now, into: &audioOutputs)
    while let output = audioOutputs.next() {
      switch output {
      case .encoded(let frame): send(frame, quantiser: 0, at: now, into: &outbox)
      case .mutedSpeech(let isSpeaking): outbox.append(.mutedSpeech(isSpeaking: isSpeaking))
      case .failure(let reason): outbox.append(.failure(reason))
      }
    }
  }

  private mutating func drive(
    _ input: VideoCapture.Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var outputs = Outbox<VideoCapture.Output>()
    swap(&outputs, &videoOutputs)
    defer { swap(&outputs, &videoOutputs) }
    video?.step(input, at: now, into: &outputs)
    while let output = outputs.next() {
      switch output {
      case .encoded(let frame, let quantiser):
        send(frame, quantiser: quantiser, at: now, into: &outbox)
        adapt(at: now, into: &outbox)
      case .failure(let reason): outbox.append(.failure(reason))
      }
    }
  }

  /// Makes video frames fewer or smaller where they are too much, as far as the application said
  /// how.
  private mutating func adapt(at now: Instant, into outbox: inout Outbox<Output>) {
    guard let video, let origin = video.origin else { return }
    let mediaTime = RTPClock.ticks(from: origin, to: now)
    let rate = video.counters.framesPerSecond(atMediaTime: mediaTime)
    let changes = adaptation.judge(totals.limitation.reason, framesPerSecond: rate, at: now)
    if changes { drive(.limits(of: encoding, adaptation.limits), at: now, into: &outbox) }
  }

  private mutating func send(
    _ encoded: EncodedFrame, quantiser: UInt8, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let mid else { return }
    var frame = encoded
    if source == .echo { frame.contributors = contributors }
    totals.add(
      frame, quantiser: quantiser, bitrate: bitrate, late: video?.counters.framesLate ?? 0,
      at: now)
    var record = FrameRecord(
      transceiver: transceiver, kind: frame.kind, isInbound: false, codec: frame.codec, ssrc: ssrc,
      rtpTime: frame.mediaTime, isKey: frame.isKey, width: Int(frame.width),
      height: Int(frame.height), bytes: frame.bytes, outcome: "encoded", decoded: .none,
      quantiser: quantiser)
    record.audioLevel = frame.audioLevel
    record.isVoice = frame.isVoice
    record.peak = frame.peak
    record.energy = frame.energy
    record.contributors = frame.contributors
    outbox.append(.frame(frame, mid: mid, record))
  }

  private func passOn(_ frame: ReceivedFrame, into outbox: inout Outbox<Output>) {
    guard codec == frame.codec.rawValue else { return }
    pass(
      EncodedFrame(
        kind: .video, codec: frame.codec, mediaTime: frame.rtpTime, bytes: frame.bytes,
        isKey: frame.isKey), into: &outbox)
  }

  /// Sends a video frame that the application has encoded, where that codec was agreed on.
  private mutating func send(
    encoded bytes: [UInt8], _ name: CodecName, limit: UInt64?, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    guard stream?.codec == name else {
      let title = name.codec?.title ?? name.rawValue
      outbox.append(
        .failure("pictures in \(title) came to be sent, but \(codec) was agreed on"))
      return
    }
    guard isEnabled else { return }
    switch stream?.take(bytes, limit: limit, at: now) {
    case .send(let frame):
      totals.add(isThinned: false, at: now)
      pass(frame, into: &outbox)
    case .tooMuch: totals.add(isThinned: true, at: now)
    case .useless, nil: break
    }
  }

  /// Sends a frame that was encoded elsewhere.
  private func pass(_ frame: EncodedFrame, into outbox: inout Outbox<Output>) {
    guard let mid else { return }
    let record = FrameRecord(
      transceiver: transceiver, kind: .video, isInbound: false, codec: frame.codec, ssrc: ssrc,
      rtpTime: frame.mediaTime, isKey: frame.isKey, width: Int(frame.width),
      height: Int(frame.height), bytes: frame.bytes, outcome: "passed on", decoded: .none,
      quantiser: 0)
    outbox.append(.frame(frame, mid: mid, record))
  }

  private func refuseEncoding(into outbox: inout Outbox<Output>) {
    outbox.append(
      .failure(
        "nothing can be encoded as \(codec), which is all that the peer takes: send back"
          + " what comes (echo), or let the peer take \(Codec.encodedTitles)"))
  }
}

extension VideoCapture.Input {
  fileprivate static func limits(of encoding: RTPEncoding, _ adapted: VideoAdaptation.Limits)
    -> Self
  {
    let rates = [encoding.maxFramerate, adapted.framesPerSecond].compactMap(\.self)
    return .limits(
      framesPerSecond: rates.min(),
      scaleDownBy: (encoding.scaleResolutionDownBy ?? 1) * adapted.scaleDownBy)
  }
}
