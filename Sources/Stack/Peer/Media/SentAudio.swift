import Media
import RTP
import Wire

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
