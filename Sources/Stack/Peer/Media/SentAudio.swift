import Media
import RTP
import Wire

/// The audio of a sending track: the capture that runs, and what all those of its source counted.
struct SentAudio {
  /// What may be spent at most, in bits per second.
  private let bitrateMaximum: UInt32
  /// What the encoder that runs may spend; an encoder of audio keeps its bit rate.
  private var bitrate: UInt32 = 0
  private var capture: AudioCapture?
  /// What earlier captures of the present source counted.
  private var earlier = AudioCaptureCounters()
  /// Empty between two inputs; kept for its memory.
  private var outputs = Outbox<AudioCapture.Output>()

  init(bitrateMaximum: UInt32) { self.bitrateMaximum = bitrateMaximum }

  var isRunning: Bool { capture != nil }
  var deadline: Instant? { capture?.deadline }
  /// Where media time is 0 for the capture that runs.
  var origin: Instant? { capture?.origin }
  /// What the present source gave.
  var counters: AudioCaptureCounters { capture?.counters ?? earlier }

  /// Another source takes the place of the present one, and counts from 0.
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

  /// Ends the capture; what it still says comes next.
  mutating func stop(at now: Instant) {
    drive(.stop, at: now)
    earlier = counters
    capture = nil
  }

  mutating func drive(_ input: AudioCapture.Input, at now: Instant) {
    capture?.step(input, at: now, into: &outputs)
  }

  /// What the capture said next; to be asked for until there is nothing more.
  mutating func next() -> AudioCapture.Output? { outputs.next() }

  /// Whether other limits ask for another encoder.
  func needsRestart(within encoding: RTPEncoding) -> Bool {
    bitrate != encoding.audioBitrate(upTo: bitrateMaximum)
  }
}
