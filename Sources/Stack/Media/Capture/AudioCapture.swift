package import RTP
package import Wire

/// The sending side of an audio track: a source and an encoder on a 20 ms clock.
///
/// A tone is generated on a grid of 20 ms that starts with the first start and never drifts. Audio
/// from the application or the echo is encoded as it arrives, in blocks of 20 ms.
package struct AudioCapture: Machine {
  package enum Input {
    case start
    case stop
    /// Audio of any length from the application or the echo, cut into 20 ms blocks.
    case block(AudioBlock)
    /// Whether the audio is sent; otherwise silence replaces it, block for block.
    case enabled(Bool)
    /// The share of packets that the peer reported lost, 0 to 255.
    case lossReported(UInt8)
    /// Telephone keys to press from now on, replacing earlier ones.
    case tones(KeyTones)
    case deadline
  }
  package enum Output {
    case encoded(EncodedFrame)
    /// Whether somebody speaks while the track is disabled.
    case mutedSpeech(isSpeaking: Bool)
    /// The encoder failed, for the reason given; the track is silent from then on.
    case failure(String)
  }

  /// The length of a block.
  package static let blockInterval = Interval.milliseconds(20)
  /// How many blocks a late step catches up on; older ones are skipped.
  private static let mostLateBlocks: Int64 = 5
  /// A longer pause in the application's audio shows in the media time.
  private static let longestHiccup = Interval.milliseconds(200)

  package private(set) var counters = AudioCaptureCounters()
  /// The instant of media time 0: the first start, unless given.
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
  /// The number of the next block on the grid (tone) or since media time 0 (application, echo).
  private var nextBlock: Int64 = 0
  private var lastInput: Instant?
  private var mutedSpeech = MutedSpeech()
  private var lossPercent: Int32 = 0
  private var tones: KeyTones?

  /// Creates the capture of a track.
  /// - Parameters:
  ///   - origin: the instant of media time 0 if this capture continues another one's stream (W3C
  ///     replaceTrack); nil for its first start.
  ///   - counters: those of an earlier capture of the same source.
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

  /// The grid's next block, while a tone runs.
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
      // Audio that arrives while the track is disabled is not heard later either.
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
    // If this capture continues another one, that one has sent the block of this instant.
    let first = origin == nil ? now : now + Interval(nanoseconds: 1)
    if origin == nil { origin = now }
    nextBlock = max(nextBlock, blockNumber(atOrAfter: first))
  }

  /// The number of the first block that begins at or after an instant.
  private func blockNumber(atOrAfter now: Instant) -> Int64 {
    let length = AudioCapture.blockInterval.nanoseconds
    let elapsed = max(0, (now - (origin ?? now)).nanoseconds)
    return elapsed / length + (elapsed % length == 0 ? 0 : 1)
  }

  /// Generates the blocks that are due.
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

  /// Encodes the full blocks of the application's audio.
  ///
  /// The media time counts samples, since the application's clock may differ. Only after a pause it
  /// is set forward to the elapsed time.
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
    // An encoder treats a block without content as silence.
    let block =
      isEnabled ? block : AudioBlock(blank: block.frameCount, channels: block.channels)
    do throws(CodecError) {
      let encoded = try encoder.encode(block)
      counters.count(
        energy: encoded.energy, peak: encoded.peak, frameCount: block.frameCount)
      // Opus says with one or two bytes that the receiver's comfort noise will do (DTX).
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

  /// Sends telephone events in place of a block; false if no key is pressed.
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
