import Flow
import JSEP
import Media
import RTP
import Wire

/// The receiving side of a transceiver: a playout with its decoder.
struct ReceivingTrack: Machine {
  enum Input {
    case frame(ReceivedFrame)
    case deadline
  }

  enum Output {
    /// An audio block that was played, with its level in -dBov.
    case audio(AudioBlock, level: UInt8, FrameRecord)
    /// A decoded video frame and its encoded frame.
    case videoFrame(I420Buffer, ReceivedFrame, FrameRecord)
    /// A frame that the decoder refused; a key frame is now needed.
    case undecodable(FrameRecord)
    /// A frame that is passed on without decoding, at its display time.
    case passed(ReceivedFrame, FrameRecord)
  }

  let transceiver: UInt32
  let kind: MediaKind
  let mid: String
  private(set) var audio: AudioPlayout?
  private(set) var video: VideoPlayout?
  /// The playout's outputs; empty between inputs, and kept to reuse their memory.
  private var audioOutputs = Outbox<AudioPlayout.Output>()
  private var videoOutputs = Outbox<VideoPlayout.Output>()
  /// The RTP time that was last played or shown, and when that happened.
  private(set) var lastPlayed: (rtpTime: UInt32, at: Instant)?
  private(set) var sources = SourceHistory()
  private let decodes: Bool
  /// Whether the track is enabled; a disabled track is silent or black.
  private var isEnabled = true
  private var blackout = Blackout()
  /// The size stated by the last key frame of a codec that is not decoded.
  private(set) var statedSize = (width: 0, height: 0)

  /// The playout's next deadline.
  ///
  /// It is cached, because each step of the peer reads it.
  private(set) var deadline: Instant?

  init(
    _ section: NegotiatedSection, codecs: any CodecFactory, minimumDelay: Interval,
    furtherDecoders: [CodecName], rampsVolume: Bool
  ) {
    self.init(
      section.transceiverID, section.kind, mid: section.mid, codecs: codecs,
      minimumDelay: minimumDelay, furtherDecoders: furtherDecoders, rampsVolume: rampsVolume)
  }

  /// Creates a track.
  /// - Parameters:
  ///   - decodes: whether video is decoded; audio is always decoded, by the decoder that `codecs`
  ///     creates.
  ///   - furtherDecoders: pass-through codecs that are decoded here.
  ///   - isWatched: whether the track models the receiver in an observed call.
  init(
    _ number: UInt32, _ kind: MediaKind, mid: String, codecs: any CodecFactory,
    minimumDelay: Interval = .zero, decodes: Bool = true, furtherDecoders: [CodecName] = [],
    isWatched: Bool = false, rampsVolume: Bool = false
  ) {
    transceiver = number
    self.kind = kind
    self.mid = mid
    self.decodes = decodes
    let track = String(number)
    switch kind {
    case .audio:
      audio = AudioPlayout(
        track: track, codecs: codecs, minimumDelay: minimumDelay, rampsGain: rampsVolume)
    case .video:
      video = VideoPlayout(
        track: track, codecs: codecs, minimumDelay: minimumDelay, decodes: decodes,
        furtherDecoders: furtherDecoders, isWatched: isWatched)
    }
  }

  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    defer { deadline = earliest(audio?.nextTick, video?.deadline) }
    switch input {
    case .frame(let frame) where !frame.codec.carriesMedia:
      audio?.pass(frame.firstSequence)
      outbox.append(.passed(frame, eventRecord(of: frame)))
    case .frame(let frame) where frame.kind == .audio:
      driveAudio(.frame(frame), at: now, into: &outbox)
    case .frame(let frame): driveVideo(.frame(frame), at: now, into: &outbox)
    case .deadline:
      if let due = audio?.nextTick, due <= now { driveAudio(.deadline, at: now, into: &outbox) }
      if let due = video?.deadline, due <= now { driveVideo(.deadline, at: now, into: &outbox) }
    }
  }

  /// Delays video frames by the time that a retransmission takes, once some frames have needed one.
  mutating func awaitRepairs(taking roundTrip: Interval?) {
    video?.awaitRepairs(taking: roundTrip)
  }

  /// Applies the application's settings: the volume, and whether the track is enabled.
  mutating func set(_ state: TrackState) {
    isEnabled = state.isEnabled
    audio?.setGain(state.isEnabled ? PlayoutGain(volume: state.volume) : .silence)
  }

  // MARK: Audio

  private mutating func driveAudio(
    _ input: AudioPlayout.Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    audio?.step(input, at: now, into: &audioOutputs)
    while case .played(let played)? = audioOutputs.next() {
      let block = played.decoded.block
      let record = record(of: played)
      let level =
        record.audioLevel
        ?? AudioMeter.level(energy: record.energy, frameCount: block.frameCount)
      if played.origin == .packet { recordPlayed(record, level: level, at: now) }
      outbox.append(.audio(block, level: level, record))
    }
  }

  // Inlined, because a call would copy the complete track.
  @inline(__always)
  private func record(of played: PlayedAudio) -> FrameRecord {
    // Recovered and concealed audio has neither bytes nor a sender's level.
    let own = played.origin == .packet ? played.frame : nil
    // G.711 is always decoded.
    let decodes = decodes || played.codec.isG711
    var record = FrameRecord(
      transceiver: transceiver, kind: .audio, isInbound: true,
      codec: played.codec, ssrc: played.frame?.ssrc ?? 0,
      rtpTime: played.frame?.rtpTime ?? 0, isKey: true, width: 0, height: 0,
      bytes: own?.bytes ?? [],
      outcome: played.origin == .packet
        ? (decodes ? "decoded" : "not decoded") : played.origin.rawValue,
      decoded: decodes ? .audio(played.decoded.block) : .none, quantiser: 0)
    record.peak = played.decoded.peak
    record.energy = played.decoded.energy
    record.audioLevel = own?.audioLevel
    record.isVoice = own?.isVoice ?? false
    record.contributors = own?.contributors ?? []
    if !decodes, let level = own?.audioLevel {
      // Audio that was not decoded has the level that its sender stated.
      let sample = AudioMeter.linear(level) * 32_767
      record.peak = UInt16(sample)
      record.energy = UInt64(sample * sample) * UInt64(played.decoded.block.frameCount)
    }
    return record
  }

  /// Returns a telephone event's record; the event is never played.
  private func eventRecord(of frame: ReceivedFrame) -> FrameRecord {
    FrameRecord(
      transceiver: transceiver, kind: .audio, isInbound: true, codec: frame.codec,
      ssrc: frame.ssrc, rtpTime: frame.rtpTime, isKey: true, width: 0, height: 0,
      bytes: frame.bytes, outcome: "not decoded", decoded: .none, quantiser: 0)
  }

  // MARK: Video frames

  private mutating func driveVideo(
    _ input: VideoPlayout.Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    video?.step(input, at: now, into: &videoOutputs)
    while let output = videoOutputs.next() {
      switch output {
      case .shown(let frame, let decoded):
        var decoded = decoded
        if !isEnabled { decoded.videoFrame = blackout.black(like: decoded.videoFrame) }
        let record = record(of: frame, "decoded", decoded)
        recordPlayed(record, level: nil, at: now)
        outbox.append(.videoFrame(decoded.videoFrame, frame, record))
      case .undecodable(let frame): outbox.append(.undecodable(record(of: frame, "undecodable")))
      case .passed(let frame):
        learnSize(of: frame)
        var record = record(of: frame, "not decoded")
        (record.width, record.height) = statedSize
        record.isWithheld = !isEnabled
        recordPlayed(record, level: nil, at: now)
        outbox.append(.passed(frame, record))
      }
    }
  }

  private mutating func learnSize(of frame: ReceivedFrame) {
    guard decodes else {
      if frame.isKey, let size = frame.codedSize { statedSize = size }
      return
    }
    guard let codec = frame.codec.codec, codec.recordsSize else { return statedSize = (0, 0) }
    guard frame.isKey else { return }
    statedSize = codec.look?(frame.bytes.span.bytes).size ?? statedSize
  }

  @inline(__always)
  private func record(
    of frame: ReceivedFrame, _ outcome: String, _ decoded: DecodedVideo? = nil
  ) -> FrameRecord {
    FrameRecord(
      transceiver: transceiver, kind: .video, isInbound: true, codec: frame.codec, ssrc: frame.ssrc,
      rtpTime: frame.rtpTime, isKey: frame.isKey, width: decoded?.videoFrame.width ?? 0,
      height: decoded?.videoFrame.height ?? 0, bytes: frame.bytes,
      outcome: outcome, decoded: decoded.map { .videoFrame($0.videoFrame) } ?? .none,
      quantiser: decoded?.quantiser ?? 0)
  }

  private mutating func recordPlayed(_ record: FrameRecord, level: UInt8?, at now: Instant) {
    lastPlayed = (record.rtpTime, now)
    sources.play(record, level: level, at: now)
  }

  // MARK: Alignment

  /// Adds a delay in nanoseconds to synchronise the track with others.
  mutating func align(by nanoseconds: Int64) {
    defer { deadline = earliest(audio?.nextTick, video?.deadline) }
    let extra = Interval(nanoseconds: nanoseconds)
    if let own = audio?.independentDelay {
      audio?.align(to: nanoseconds == 0 ? .zero : own + extra)
    }
    if let own = video?.independentDelay {
      video?.align(to: nanoseconds == 0 ? .zero : own + extra)
    }
  }
}

// MARK: - ReceiverTable

/// The application's settings for received tracks, and the tracks' reported states.
struct ReceiverTable {
  private struct Receiver {
    var transceiver: UInt32
    var state = TrackState(isMuted: true)
    /// Whether the remote peer announced the track and has not ended it.
    var isLive = false
  }

  private var receivers: [Receiver] = []

  func state(of transceiver: UInt32) -> TrackState {
    receivers.first { $0.transceiver == transceiver }?.state ?? TrackState(isMuted: true)
  }

  /// The transceivers whose received tracks have not ended, in order of appearance.
  var live: [UInt32] { receivers.filter(\.isLive).map(\.transceiver) }

  /// Sets whether a track is enabled; returns false if nothing changed.
  mutating func setEnabled(_ isEnabled: Bool, of transceiver: UInt32) -> Bool {
    change(transceiver, \.state.isEnabled, to: isEnabled)
  }

  /// Sets a track's volume; returns false if nothing changed.
  mutating func setVolume(_ volume: Double, of transceiver: UInt32) -> Bool {
    change(transceiver, \.state.volume, to: volume)
  }

  /// Records whether media arrives; returns false if nothing changed.
  mutating func setMuted(_ isMuted: Bool, of transceiver: UInt32) -> Bool {
    // This is called for each frame, so the common case comes first.
    if let known = receivers.firstIndex(where: { $0.transceiver == transceiver }),
      receivers[known].state.isMuted == isMuted
    {
      return false
    }
    return change(transceiver, \.state.isMuted, to: isMuted)
  }

  /// Records whether the remote peer's track is live; returns false if nothing changed.
  mutating func setLive(_ isLive: Bool, of transceiver: UInt32) -> Bool {
    change(transceiver, \.isLive, to: isLive)
  }

  private mutating func change<Value: Equatable>(
    _ transceiver: UInt32, _ member: WritableKeyPath<Receiver, Value>, to value: Value
  ) -> Bool {
    let known = receivers.firstIndex { $0.transceiver == transceiver }
    if known == nil { receivers.append(Receiver(transceiver: transceiver)) }
    let index = known ?? receivers.count - 1
    guard receivers[index][keyPath: member] != value else { return false }
    receivers[index][keyPath: member] = value
    return true
  }
}
