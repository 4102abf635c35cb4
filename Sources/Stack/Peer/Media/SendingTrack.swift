import Flow
import Media
import RTP
import Wire

/// The sending side of a transceiver: a source, the encoder on its clock, and their counters.
struct SendingTrack: Machine {
  enum Input {
    /// Replaces or removes the source; nothing is captured until the next start.
    case source(MediaSource?)
    /// Enables or disables the source; while disabled, it sends silence or black frames, or nothing
    /// if its video arrives encoded.
    case enabled(Bool)
    case start(Start)
    case stop
    /// Pauses encoding until the next start, because the path does not carry this layer.
    case hold
    /// Media for the encoder, with the sources mixed into it and the limit in bit/s for video that
    /// arrives encoded; nil for no limit.
    case media(CapturedMedia, from: [Contributor], limit: UInt64? = nil)
    /// Sends a received frame unchanged.
    case passOn(ReceivedFrame)
    /// Sends DTMF tones in place of audio.
    case tones(KeyTones)
    case requestKeyframe
    /// The fraction of packets that the remote peer reported lost, in 1/256.
    case lossReported(UInt8)
    /// Sets the video encoder's bit rate in bit/s.
    case bitrate(UInt64)
    /// Changes the encoding's limits while the track runs.
    case encoding(RTPEncoding)
    /// Sets what to reduce first when the bit rate is too low, and the content hint.
    case adaptation(DegradationPreference?, ContentHint)
    case deadline
  }

  enum Output {
    case frame(EncodedFrame, mid: String, FrameRecord)
    /// Audio is no longer sent.
    case audioEnded
    /// Speech began or ended while the track is disabled.
    case mutedSpeech(isSpeaking: Bool)
    /// The reason that nothing can be encoded or a frame cannot be sent, as a sentence.
    case failure(String)
  }

  /// The parameters for starting a capture.
  struct Start {
    /// The section that the capture feeds.
    var mid: String
    /// The negotiated simulcast layer; nil for the only stream.
    var rid: String?
    /// The encoding name in lower case.
    var codec: String
    var ssrc: UInt32
    var encoding: RTPEncoding
    /// The initial video bit rate in bit/s.
    var videoBitrate: UInt64
    /// The instant of media time 0 of the sender's layers; nil if none has started yet.
    var origin: Instant?
    /// Whether frames can be encoded here in the codec, rather than only passed on.
    var isEncoded = false
    /// Whether video that arrives encoded is sent here, because this is the first layer or the only
    /// stream.
    var isFirst = true
    /// The largest H.264 unit in bytes; nil if the remote peer accepts fragments.
    var unitLimit: Int?
  }

  let transceiver: UInt32
  /// The track's simulcast layer; nil for the only stream.
  let rid: String?
  let kind: MediaKind
  private let codecs: any CodecFactory

  private(set) var source: MediaSource?
  /// The number of times that the source was replaced; each attached source has its own
  /// `media-source` object in stats.
  private(set) var attachment = 0
  private(set) var isEnabled = true
  /// The outgoing stream in which the frames are sent.
  private(set) var stream = SentStream()
  private(set) var audio: SentAudio
  private(set) var video = SentVideo()
  private(set) var totals: SendingTotals
  /// The instant of media time 0: the first capture's start; later captures on the SSRC keep it.
  private var origin: Instant?
  /// The sources mixed into the audio; empty if it was captured locally.
  private var contributors: [Contributor] = []
  /// A capture's next deadline.
  ///
  /// It is cached, because each step of the peer reads it.
  private(set) var deadline: Instant?

  init(
    transceiver: UInt32, rid: String? = nil, kind: MediaKind, source: MediaSource?,
    codecs: any CodecFactory, audioBitrateMaximum: UInt32, limitationFollowsTarget: Bool = false
  ) {
    totals = SendingTotals(followsTarget: limitationFollowsTarget)
    self.transceiver = transceiver
    self.rid = rid
    self.kind = kind
    self.source = source
    self.codecs = codecs
    audio = SentAudio(bitrateMaximum: audioBitrateMaximum)
  }

  var isRunning: Bool { stream.isFed }
  /// Whether the track should be sent if the path can carry it.
  var isWanted: Bool { isRunning || stream.heldMID != nil }
  /// The instant of media time 0 of video; nil before the first start.
  var mediaOrigin: Instant? { video.origin ?? origin }

  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    apply(input, at: now, into: &outbox)
    drain(at: now, into: &outbox)
    deadline = isRunning ? earliest(audio.deadline, video.deadline) : nil
  }

  private mutating func apply(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch input {
    case .source(let source): replaceSource(source, at: now, into: &outbox)
    case .enabled(let isEnabled): setEnabled(isEnabled, at: now)
    case .start(let start): self.start(start, at: now, into: &outbox)
    case .stop: stop(at: now, into: &outbox)
    case .hold:
      stop(isHeld: true, at: now, into: &outbox)
      totals.hold(at: now)
    case .media(let media, let contributors, let limit):
      self.contributors = contributors
      capture(media, limit: limit, at: now, into: &outbox)
    case .passOn(let frame):
      guard isEnabled, let encoded = video.acceptReceived(frame),
        stream.codec == frame.codec.rawValue
      else { return }
      pass(encoded, into: &outbox)
    case .tones(let tones): audio.drive(.tones(tones), at: now)
    case .requestKeyframe: video.drive(.requestKeyframe, at: now)
    case .lossReported(let share): audio.drive(.lossReported(share), at: now)
    case .bitrate(let bitrate): video.setBitrate(bitrate, at: now)
    case .encoding(let encoding): limit(to: encoding, at: now, into: &outbox)
    case .adaptation(let preference, let hint):
      video.adapt(preference, hint, within: stream.encoding, at: now)
    case .deadline:
      guard isRunning else { return }
      if let due = audio.deadline, due <= now { audio.drive(.deadline, at: now) }
      if let due = video.deadline, due <= now { video.drive(.deadline, at: now) }
    }
  }

  private mutating func capture(
    _ media: CapturedMedia, limit: UInt64?, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch media {
    case .audio(let block): audio.drive(.block(block), at: now)
    case .videoFrame(let videoFrame):
      guard video.beginEncoding(at: now) else { return refuseEncoding(into: &outbox) }
      video.drive(.videoFrame(videoFrame), at: now)
    case .frame(let videoFrame, let timestamp):
      guard video.beginEncoding(at: now) else { return refuseEncoding(into: &outbox) }
      video.drive(.frame(videoFrame, timestamp: timestamp), at: now)
    case .encoded(let codec, let bytes):
      send(encoded: bytes, codec, limit: limit, at: now, into: &outbox)
    }
  }

  // MARK: Starting and stopping

  private mutating func replaceSource(
    _ source: MediaSource?, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    stop(at: now, into: &outbox)
    self.source = source
    attachment += 1
    audio.replaceSource()
    video.replaceSource()
  }

  private mutating func setEnabled(_ isEnabled: Bool, at now: Instant) {
    guard isEnabled != self.isEnabled else { return }
    self.isEnabled = isEnabled
    audio.drive(.enabled(isEnabled), at: now)
    video.setEnabled(isEnabled, at: now)
  }

  private mutating func start(
    _ start: Start, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let source else { return }
    stream.begin(start)
    origin = origin ?? start.origin
    switch kind {
    case .audio:
      audio.start(
        track: transceiver, source, as: CodecName(rawValue: start.codec), within: start.encoding,
        codecs: codecs, origin: origin, isEnabled: isEnabled, at: now)
    case .video:
      let canSend = video.start(
        start, track: transceiver, source, codecs: codecs, origin: origin, isEnabled: isEnabled,
        at: now)
      if !canSend { refuseEncoding(into: &outbox) }
    }
  }

  private mutating func stop(
    isHeld: Bool = false, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    origin = audio.origin ?? video.origin ?? origin
    let endsAudio = audio.isRunning
    audio.stop(at: now)
    video.stop(at: now)
    // The last outputs still belong to the stream that is ending.
    drain(at: now, into: &outbox)
    if endsAudio { outbox.append(.audioEnded) }
    stream.end(isHeld: isHeld)
  }

  private mutating func limit(
    to encoding: RTPEncoding, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard stream.limit(to: encoding) else { return }
    switch kind {
    case .audio:
      // An audio encoder cannot change its bit rate, so a new encoder replaces it.
      if audio.needsRestart(within: encoding) { stop(at: now, into: &outbox) }
    case .video: video.limit(to: encoding, at: now)
    }
  }

  // MARK: Frames

  private mutating func drain(at now: Instant, into outbox: inout Outbox<Output>) {
    while let output = audio.next() {
      switch output {
      case .encoded(let frame): send(frame, quantiser: 0, at: now, into: &outbox)
      case .mutedSpeech(let isSpeaking): outbox.append(.mutedSpeech(isSpeaking: isSpeaking))
      case .failure(let reason): outbox.append(.failure(reason))
      }
    }
    while let output = video.next() {
      switch output {
      case .encoded(let frame, let quantiser):
        send(frame, quantiser: quantiser, at: now, into: &outbox)
        video.adapt(to: totals.limitation.shown, within: stream.encoding, at: now)
      case .failure(let reason): outbox.append(.failure(reason))
      }
    }
  }

  private mutating func send(
    _ encoded: EncodedFrame, quantiser: UInt8, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let mid = stream.mid else { return }
    var frame = encoded
    if source == .echo { frame.contributors = contributors }
    totals.add(
      frame, quantiser: quantiser, bitrate: video.bitrate, limit: stream.encoding.maxBitrate,
      late: video.framesLate, at: now)
    let record = stream.record(
      of: frame, from: transceiver,
      // No encoder produces telephone events.
      outcome: frame.codec.carriesMedia ? "encoded" : "passed on", quantiser: quantiser)
    outbox.append(.frame(frame, mid: mid, record))
  }

  /// Sends a frame that the application encoded, if its codec was negotiated.
  private mutating func send(
    encoded bytes: [UInt8], _ name: CodecName, limit: UInt64?, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    switch video.accept(encoded: bytes, name, limit: limit, isEnabled: isEnabled, at: now) {
    case .send(let frame):
      totals.add(isThinned: false, at: now)
      pass(frame, into: &outbox)
    case .tooMuch: totals.add(isThinned: true, at: now)
    case .useless: break
    case nil:
      let title = name.codec?.title ?? name.rawValue
      outbox.append(
        .failure("pictures in \(title) came to be sent, but \(stream.codec) was agreed on"))
    }
  }

  /// Sends a frame that the remote peer or the application encoded.
  private func pass(_ frame: EncodedFrame, into outbox: inout Outbox<Output>) {
    guard let mid = stream.mid else { return }
    let record = stream.record(of: frame, from: transceiver, outcome: "passed on")
    outbox.append(.frame(frame, mid: mid, record))
  }

  private func refuseEncoding(into outbox: inout Outbox<Output>) {
    outbox.append(
      .failure(
        "nothing can be encoded as \(stream.codec), which is all that the peer takes: send back"
          + " what comes (echo), or let the peer take \(Codec.encodedTitles)"))
  }
}

// MARK: - SendingTotals

/// Counts frames for W3C media-source and outbound-rtp; packets are counted in the flow.
struct SendingTotals {
  private(set) var framesEncoded: UInt64 = 0
  private(set) var keyFramesEncoded: UInt64 = 0
  private(set) var quantiserSum: UInt64 = 0
  private(set) var encodedBytes: UInt64 = 0
  private(set) var width = 0
  private(set) var height = 0
  /// The bytes that the target bit rate allowed for the encoded frames (W3C
  /// totalEncodedBytesTarget).
  private(set) var targetBytes = 0.0
  private(set) var resolutionChanges: UInt64 = 0
  private(set) var rate = FrameRate(ticksPerSecond: 1_000_000_000)
  private(set) var limitation = QualityLimitation()
  /// Whether a target far below what the video needs counts as a bandwidth limitation.
  private let followsTarget: Bool
  /// The highest target so far, and the rate that the largest frames need, in bit/s.
  private var highest = (target: UInt64(0), wanted: UInt64(0))
  /// The number of late frames that had been dropped when the last frame was encoded.
  private var framesLate: UInt64 = 0
  private var lastMediaTime: UInt32?

  /// The assumed duration of the first frame in units of 1/90000 s.
  private static let usualTicks: UInt32 = 3000

  init(followsTarget: Bool = false) { self.followsTarget = followsTarget }

  /// Records that encoding pauses because the path cannot carry this layer, which counts as a
  /// bandwidth limitation.
  mutating func hold(at now: Instant) {
    if followsTarget { limitation.hold(at: now) }
  }

  /// Records a frame that arrived encoded, and whether it was dropped because the path is too slow.
  mutating func add(isThinned: Bool, at now: Instant) {
    limitation.record(isThinned: isThinned, at: now)
  }

  /// Counts an encoded frame.
  /// - Parameters:
  ///   - bitrate: the target in bit/s.
  ///   - limit: the limit set by the application and the remote peer.
  mutating func add(
    _ frame: EncodedFrame, quantiser: UInt8, bitrate: UInt64, limit: UInt64?, late: UInt64,
    at now: Instant
  ) {
    framesEncoded += 1
    if frame.isKey { keyFramesEncoded += 1 }
    quantiserSum += UInt64(quantiser)
    encodedBytes += UInt64(frame.bytes.count)
    guard frame.kind == .video else { return }
    if width != 0, width != Int(frame.width) || height != Int(frame.height) {
      resolutionChanges += 1
    }
    width = Int(frame.width)
    height = Int(frame.height)
    let ticks = lastMediaTime.map { frame.mediaTime &- $0 } ?? SendingTotals.usualTicks
    lastMediaTime = frame.mediaTime
    targetBytes += Double(bitrate) / 8 * Double(min(ticks, 90_000)) / 90_000
    rate.record(now.nanoseconds)
    limitation.record(
      quantiser: quantiser, of: frame.codec,
      late: Int(clamping: late >= framesLate ? late - framesLate : late),
      isNarrow: isNarrow(bitrate, limit), at: now)
    framesLate = late
  }

  /// Returns whether the target is at most a quarter of its highest value so far, and at most half
  /// of the rate that the largest frames so far can use; false if the target reaches a configured
  /// limit.
  private mutating func isNarrow(_ target: UInt64, _ limit: UInt64?) -> Bool {
    guard followsTarget else { return false }
    let wanted = LayerAllocation.target(width: width, height: height, dividedBy: 1)
    highest = (max(highest.target, target), max(highest.wanted, wanted))
    if let limit, target >= limit { return false }
    return target <= highest.target / 4 && target <= highest.wanted / 2
  }
}
