package import RTP
package import Wire

/// The sending side of an audio track: a source and an encoder on a 20 ms clock.
///
/// A tone is generated on a 20 ms grid that begins at the first start and never drifts. Audio from
/// the application or the echo is encoded as it arrives, in 20 ms blocks.
package struct AudioCapture: Machine {
  package enum Input {
    case start
    case stop
    /// Audio of any length from the application or the echo; the capture cuts it into 20 ms blocks.
    case block(AudioBlock)
    /// Whether the audio is sent; otherwise silence replaces every block.
    case enabled(Bool)
    /// The fraction of packets that the peer reported lost, 0 to 255.
    case lossReported(UInt8)
    /// DTMF keys to send from now on; they replace any keys that are still waiting.
    case tones(KeyTones)
    case deadline
  }
  package enum Output {
    case encoded(EncodedFrame)
    /// The user began or stopped speaking into the disabled track.
    case mutedSpeech(isSpeaking: Bool)
    /// The encoder failed for this reason; the track is silent from then on.
    case failure(String)
  }

  package static let blockInterval = Interval.milliseconds(20)
  /// The maximum number of blocks that a late step catches up on; older ones are skipped.
  private static let mostLateBlocks: Int64 = 5
  /// The longest pause in the application's audio that does not advance the media time.
  private static let longestHiccup = Interval.milliseconds(200)

  package private(set) var counters = AudioCaptureCounters()
  /// The instant of media time 0: either passed to the initialiser or set by the first start; nil
  /// until then.
  package private(set) var origin: Instant?

  private let track: String
  private let settings: OpusSettings
  private let codecs: any CodecFactory
  private let tone: ToneGenerator?
  private var encoder: (any AudioEncoding)?
  private var cutter: BlockCutter?
  private var isRunning = false
  private var hasFailed = false
  private var isEnabled: Bool
  /// The number of the next block, counted from media time 0.
  private var nextBlock: Int64 = 0
  private var lastInput: Instant?
  private var mutedSpeech = MutedSpeech()
  private var lossPercent: Int32 = 0
  private var tones: KeyTones?

  /// Creates a track's capture.
  /// - Parameters:
  ///   - origin: the instant of media time 0 if this capture continues another one's stream (W3C
  ///     replaceTrack); if nil, the first start is used.
  ///   - counters: the counters of an earlier capture of the same source.
  ///   - isEnabled: whether audio is sent rather than silence.
  package init(
    track: String, source: MediaSource, settings: OpusSettings, codecs: any CodecFactory,
    origin: Instant? = nil, counters: AudioCaptureCounters = AudioCaptureCounters(),
    isEnabled: Bool = true
  ) {
    self.isEnabled = isEnabled
    self.counters = counters
    self.track = track
    self.settings = settings
    self.codecs = codecs
    self.origin = origin
    if case .tone(let hertz, let pauseSeconds) = source {
      tone = ToneGenerator(hertz: hertz, pauseSeconds: pauseSeconds)
    } else {
      tone = nil
    }
  }

  /// When the tone's next block is due; nil unless the tone is running.
  package var deadline: Instant? {
    guard isRunning, !hasFailed, tone != nil, let origin else { return nil }
    return origin + AudioCapture.blockInterval * nextBlock
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard !hasFailed else { return }
    switch input {
    case .start: start(at: now, into: &outbox)
    case .stop:
      isRunning = false
      cutter?.removeAll()
      report(mutedSpeech.end(), into: &outbox)
    case .block(let block):
      guard isRunning, tone == nil else { return }
      if !isEnabled { report(mutedSpeech.observe(block, at: now), into: &outbox) }
      // Audio that arrives while the track is disabled is not sent later either.
      let blank = AudioBlock(blank: block.frameCount, channels: block.channels)
      encodeBlocks(isEnabled ? block : blank, at: now, into: &outbox)
    case .enabled(let isEnabled):
      self.isEnabled = isEnabled
      report(mutedSpeech.end(), into: &outbox)
    case .lossReported(let share):
      let percent = Int32(share) * 100 / 256
      guard percent != lossPercent else { return }
      lossPercent = percent
      encoder?.setPacketLoss(percent: percent)
    case .tones(let tones):
      self.tones = tones.isOver ? nil : tones.counted(in: settings.codec.audioTicks)
    case .deadline:
      guard let deadline, now >= deadline else { return }
      tick(at: now, into: &outbox)
    }
  }

  private func report(_ isSpeaking: Bool?, into outbox: inout Outbox<Output>) {
    if let isSpeaking { outbox.append(.mutedSpeech(isSpeaking: isSpeaking)) }
  }

  private mutating func start(at now: Instant, into outbox: inout Outbox<Output>) {
    guard !isRunning else { return }
    if encoder == nil {
      do throws(CodecError) {
        let made = try codecs.audioEncoder(track: track, settings)
        if lossPercent > 0 { made.setPacketLoss(percent: lossPercent) }
        encoder = made
        cutter = BlockCutter(channels: settings.channels, keepsSamples: made.wantsSamples)
      } catch {
        fail(error, into: &outbox)
        return
      }
    }
    isRunning = true
    lastInput = nil
    // If this capture continues another one, the other one has already sent this instant's block.
    let first = origin == nil ? now : now + Interval(nanoseconds: 1)
    if origin == nil { origin = now }
    nextBlock = max(nextBlock, blockNumber(atOrAfter: first))
  }

  /// Returns the number of the first block that starts at or after an instant.
  private func blockNumber(atOrAfter now: Instant) -> Int64 {
    let length = AudioCapture.blockInterval.nanoseconds
    let elapsed = max(0, (now - (origin ?? now)).nanoseconds)
    return elapsed / length + (elapsed % length == 0 ? 0 : 1)
  }

  /// Encodes the tone's blocks that are due, and skips blocks that are too late.
  private mutating func tick(at now: Instant, into outbox: inout Outbox<Output>) {
    guard let tone, let encoder, let origin else { return }
    let newest = (now - origin).nanoseconds / AudioCapture.blockInterval.nanoseconds
    let oldest = max(nextBlock, newest - AudioCapture.mostLateBlocks + 1)
    counters.blocksSkipped &+= UInt64(oldest - nextBlock)
    for number in oldest...max(oldest, newest) where !hasFailed {
      let block =
        encoder.wantsSamples && isEnabled
        ? tone.block(
          at: number * Int64(BlockCutter.blockLength), frameCount: BlockCutter.blockLength,
          channels: settings.channels)
        : AudioBlock(blank: BlockCutter.blockLength, channels: settings.channels)
      encode(block, number, into: &outbox)
    }
    nextBlock = max(oldest, newest) + 1
  }

  /// Encodes the complete blocks in the application's audio.
  ///
  /// Media time counts samples, because the application's clock may differ from the local one. It
  /// advances to the elapsed time only after a pause.
  private mutating func encodeBlocks(
    _ block: AudioBlock, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if lastInput.map({ now - $0 > AudioCapture.longestHiccup }) ?? true {
      cutter?.removeAll()
      nextBlock = max(nextBlock, blockNumber(atOrAfter: now))
    }
    lastInput = now
    for full in cutter?.append(block) ?? [] where !hasFailed {
      encode(full, nextBlock, into: &outbox)
      nextBlock += 1
    }
  }

  private mutating func encode(
    _ block: AudioBlock, _ number: Int64, into outbox: inout Outbox<Output>
  ) {
    guard let encoder else { return }
    if sendTones(at: number &* Int64(BlockCutter.blockLength), into: &outbox) {
      counters.count(energy: 0, peak: 0, frameCount: block.frameCount)
      return
    }
    // An encoder treats a block without samples as silence.
    let block =
      isEnabled ? block : AudioBlock(blank: block.frameCount, channels: block.channels)
    do throws(CodecError) {
      let encoded = try encoder.encode(block)
      counters.count(
        energy: encoded.energy, peak: encoded.peak, frameCount: block.frameCount)
      // An Opus packet of one or two bytes means that the receiver's comfort noise is enough (DTX),
      // so nothing is sent.
      guard encoded.bytes.count > 2 else { return }
      counters.framesEncoded &+= 1
      let mediaTime = number &* Int64(BlockCutter.blockLength) / settings.codec.audioTicks
      var frame = EncodedFrame(
        kind: .audio, codec: settings.codec,
        mediaTime: UInt32(truncatingIfNeeded: mediaTime),
        bytes: encoded.bytes, isKey: true, audioLevel: encoded.level, isVoice: encoded.isVoice)
      frame.peak = encoded.peak
      frame.energy = encoded.energy
      outbox.append(.encoded(frame))
    } catch {
      fail(error, into: &outbox)
    }
  }

  /// Sends telephone events instead of a block; returns false if no key is pressed.
  private mutating func sendTones(at time: Int64, into outbox: inout Outbox<Output>) -> Bool {
    guard let events = tones?.next(at: time) else { return false }
    if tones?.isOver == true { tones = nil }
    let ticks = settings.codec.audioTicks
    for event in events {
      outbox.append(
        .encoded(
          EncodedFrame(
            kind: .audio, codec: .telephoneEvent,
            mediaTime: UInt32(truncatingIfNeeded: event.start / ticks),
            bytes: event.payload(ticks: ticks), isKey: true, isVoice: event.isFirst)))
    }
    return !events.isEmpty
  }

  private mutating func fail(_ error: CodecError, into outbox: inout Outbox<Output>) {
    hasFailed = true
    isRunning = false
    encoder = nil
    outbox.append(.failure(error.reason))
  }
}

// MARK: - BlockCutter

/// Cuts audio into 20 ms blocks and converts it to the encoder's channels.
struct BlockCutter {
  /// The number of samples per channel in a block.
  static let blockLength = 960
  /// The longest input accepted at once, ten seconds; the rest is dropped.
  private static let longestInput = 480_000

  private let channels: Int
  /// Whether samples are kept rather than only counted.
  private let keepsSamples: Bool
  private var samples: [Int16] = []
  /// Samples per channel waiting for a full block.
  private(set) var pendingCount = 0

  init(channels: Int, keepsSamples: Bool) {
    self.channels = channels
    self.keepsSamples = keepsSamples
  }

  mutating func removeAll() {
    samples.removeAll(keepingCapacity: true)
    pendingCount = 0
  }

  /// Appends audio and returns the blocks that are complete, oldest first.
  mutating func append(_ block: AudioBlock) -> [AudioBlock] {
    let length = BlockCutter.blockLength
    let count = min(max(block.frameCount, 0), BlockCutter.longestInput)
    if count == length, pendingCount == 0, block.channels == channels {
      return [keepsSamples ? block : AudioBlock(blank: length, channels: channels)]
    }
    if keepsSamples { store(block, count) }
    pendingCount += count
    var blocks: [AudioBlock] = []
    var start = 0
    while pendingCount >= length {
      pendingCount -= length
      guard keepsSamples else {
        blocks.append(AudioBlock(blank: length, channels: channels))
        continue
      }
      let end = start + length * channels
      blocks.append(AudioBlock(samples: Array(samples[start..<end]), channels: channels))
      start = end
    }
    samples.removeFirst(start)
    return blocks
  }

  /// Appends a block's samples in the encoder's channels; a block without samples is silence.
  private mutating func store(_ block: AudioBlock, _ count: Int) {
    let stride = block.channels
    guard stride > 0, block.samples.count / stride >= count else {
      samples.append(contentsOf: repeatElement(0, count: count * channels))
      return
    }
    switch (stride, channels) {
    case (channels, _):
      samples.append(contentsOf: block.samples[..<(count * channels)])
    case (1, _):
      for index in 0..<count {
        for _ in 0..<channels { samples.append(block.samples[index]) }
      }
    default:
      // Otherwise each output channel is the mean of the first two input channels.
      for index in 0..<count {
        let sum = Int32(block.samples[index * stride]) + Int32(block.samples[index * stride + 1])
        for _ in 0..<channels { samples.append(Int16(sum >> 1)) }
      }
    }
  }
}

// MARK: - MutedSpeech

/// Detects that the user speaks into a disabled track, so that an application can say "you are
/// muted".
struct MutedSpeech {
  /// The duration of voice that counts as speech; a cough is shorter.
  private static let onset = Interval.milliseconds(300)
  /// A pause this long ends speech, and restarts its detection.
  private static let pause = Interval.milliseconds(1_000)

  private var voiced = Interval.zero
  private var lastVoice: Instant?
  private(set) var isSpeaking = false

  /// Handles a block from the microphone.
  /// - Returns: true if speech started with the block, false if it ended, otherwise nil.
  mutating func observe(_ block: AudioBlock, at now: Instant) -> Bool? {
    let loudness = Loudness(samples: block.samples, channels: block.channels)
    let level = AudioMeter.level(energy: loudness.energy, frameCount: block.frameCount)
    let hasPaused = lastVoice.map { now - $0 >= Self.pause } ?? true
    if hasPaused { voiced = .zero }
    if !block.samples.isEmpty, AudioMeter.isVoice(level) {
      lastVoice = now
      voiced =
        voiced
        + Interval(
          nanoseconds: Int64(block.frameCount) * 1_000_000_000 / Int64(AudioBlock.sampleRate))
    }
    switch (isSpeaking, voiced >= Self.onset) {
    case (false, true): isSpeaking = true
    case (true, false): isSpeaking = false
    default: return nil
    }
    return isSpeaking
  }

  /// Resets the detector because the track was enabled or stopped.
  /// - Returns: false if that ends speech, otherwise nil.
  mutating func end() -> Bool? {
    defer { self = MutedSpeech() }
    return isSpeaking ? false : nil
  }
}

/// An audio source's counters for W3C media-source and outbound-rtp statistics.
///
/// They are derived from the energies that the encoder reports, so that a replay without samples
/// has the same counters.
package struct AudioCaptureCounters: Hashable, Sendable {
  /// Blocks skipped because the clock was late.
  package var blocksSkipped: UInt64 = 0
  /// Blocks encoded and sent; with DTX, fewer than were captured.
  package var framesEncoded: UInt64 = 0
  /// Captured samples per channel.
  package var samplesCaptured: UInt64 = 0

  package init() {}

  private var loudness = LoudnessWindow()

  /// The root mean square of the last 100 ms, 0 to 1 (W3C audioLevel); nil before the first 100 ms.
  package var audioLevel: Double? { loudness.level }
  /// Chromium's audioLevel, which follows the loudest samples; nil before the first 100 ms.
  package var peakAudioLevel: Double? { loudness.peakLevel }
  /// The sum of squared loudness times duration, in seconds (W3C totalAudioEnergy).
  package var totalAudioEnergy: Double { loudness.totalEnergy }
  /// The duration of captured audio in seconds (W3C totalSamplesDuration).
  package var totalSamplesDuration: Double {
    Double(samplesCaptured) / Double(AudioBlock.sampleRate)
  }

  mutating func count(energy: UInt64, peak: UInt16, frameCount: Int) {
    samplesCaptured &+= UInt64(frameCount)
    loudness.add(energy: energy, peak: peak, frameCount: frameCount)
  }
}
