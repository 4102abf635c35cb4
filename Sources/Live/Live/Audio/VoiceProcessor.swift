public import AudioSession
import CSpeexDSP
import Synchronization

/// Processes microphone audio between a device and its session: cancels the echo of played audio,
/// reduces noise, and controls the gain if requested.
///
/// The session receives the processed audio, so a take contains it and a replay does not process it
/// again.
final class VoiceProcessor: Sendable {
  private struct State: ~Copyable {
    var profile: AudioProcessingProfile
    var controlsGain: Bool
    var chain: VoiceChain?
  }

  private let renderFormat: AudioFormat?
  private let state: Mutex<State>

  /// - Parameter renderFormat: the format the device plays; nil if it plays nothing and therefore
  ///   causes no echo.
  init(
    renderFormat: AudioFormat?, profile: AudioProcessingProfile = .voice, controlsGain: Bool
  ) {
    self.renderFormat = renderFormat
    state = Mutex(State(profile: profile, controlsGain: controlsGain))
  }

  var controlsGain: Bool {
    get { state.withLock { $0.controlsGain } }
    set {
      state.withLock { state in
        state.controlsGain = newValue
        state.chain = nil
      }
    }
  }

  func set(_ profile: AudioProcessingProfile, controlsGain: Bool? = nil) {
    state.withLock { state in
      state.profile = profile
      state.controlsGain = controlsGain ?? state.controlsGain
      state.chain = nil
    }
  }

  /// Adds played audio, whose echo is cancelled in captured audio.
  func played(_ samples: [Int16]) { state.withLock { $0.chain?.played(samples) } }

  /// Returns processed audio in complete periods of 10 ms; nil if no period is complete yet.
  ///
  /// Audio in an unsupported format is returned unchanged; the session reports what is wrong with
  /// it.
  func processed(_ chunk: PCMChunk) -> PCMChunk? {
    let format = chunk.format
    return state.withLock { state in
      guard state.profile == .voice || state.controlsGain, format.fault == nil,
        format.samples == .s16le, format.sampleRate % VoiceChain.periodsPerSecond == 0
      else { return chunk }
      if state.chain?.format != format {
        state.chain = VoiceChain(
          format, render: state.profile == .voice ? renderFormat : nil,
          holdsNoiseDown: state.profile == .voice, controlsGain: state.controlsGain)
      }
      return state.chain?.processed(chunk)
    }
  }
}

/// The processing stages for one format.
private struct VoiceChain: ~Copyable {
  static let periodsPerSecond = 100
  /// The longest echo that is cancelled is a second divided by this number (200 ms).
  private static let tailsPerSecond = 5
  /// Played audio is kept for a second divided by this number (500 ms); older audio causes no echo.
  private static let backlogsPerSecond = 2

  let format: AudioFormat
  private let canceller: EchoCanceller?
  /// The noise reduction and gain control, one object per channel.
  private let regulators: [VoiceRegulator]
  private let period: Int
  private let backlog: Int
  /// Captured samples of an incomplete period.
  private var pending: [Int16] = []
  /// Played audio not yet matched with captured audio.
  private var reference: [Int16] = []

  init(
    _ format: AudioFormat, render: AudioFormat?, holdsNoiseDown: Bool, controlsGain: Bool
  ) {
    self.format = format
    period = format.sampleRate / VoiceChain.periodsPerSecond
    // Echo cannot be cancelled between different rates.
    let speaker = render?.sampleRate == format.sampleRate ? render : nil
    canceller = speaker.map { speaker in
      EchoCanceller(
        rate: format.sampleRate, period: format.sampleRate / VoiceChain.periodsPerSecond,
        tail: format.sampleRate / VoiceChain.tailsPerSecond,
        channels: (format.channels, speaker.channels))
    }
    backlog = (speaker?.channels ?? 0) * format.sampleRate / VoiceChain.backlogsPerSecond
    regulators = (0..<format.channels).map { [canceller, period] _ in
      VoiceRegulator(
        rate: format.sampleRate, period: period, after: canceller,
        holdsNoiseDown: holdsNoiseDown, controlsGain: controlsGain)
    }
  }

  mutating func played(_ samples: [Int16]) {
    guard canceller != nil else { return }
    reference += samples
    if reference.count > backlog { reference.removeFirst(reference.count - backlog) }
  }

  mutating func processed(_ chunk: PCMChunk) -> PCMChunk? {
    let held = pending.count / format.channels
    pending += chunk.data.withUnsafeBytes { bytes in
      (0..<bytes.count / 2).map {
        Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self))
      }
    }
    var samples: [Int16] = []
    var place = 0
    while pending.count - place >= period * format.channels {
      samples += processed(Array(pending[place..<place + period * format.channels]))
      place += period * format.channels
    }
    pending.removeFirst(place)
    guard !samples.isEmpty else { return nil }
    let before = Int64(held) * 1_000_000_000 / Int64(format.sampleRate)
    return PCMChunk(
      samples: samples, sampleRate: format.sampleRate, channels: format.channels,
      captureTimeNanoseconds: chunk.captureTimeNanoseconds &- before)
  }

  private mutating func processed(_ period: [Int16]) -> [Int16] {
    var samples = period
    if let canceller {
      samples = canceller.cancelled(samples, played: reference)
      reference.removeFirst(min(reference.count, canceller.playedCount))
    }
    guard format.channels > 1 else {
      regulators[0].regulate(&samples)
      return samples
    }
    for (channel, regulator) in regulators.enumerated() {
      var own = stride(from: channel, to: samples.count, by: format.channels).map { samples[$0] }
      regulator.regulate(&own)
      for (frame, sample) in own.enumerated() {
        samples[frame * format.channels + channel] = sample
      }
    }
    return samples
  }
}

/// Owns a SpeexDSP echo canceller.
private final class EchoCanceller {
  fileprivate let handle: OpaquePointer
  private let period: Int
  private let channels: (microphone: Int, speaker: Int)

  init(rate: Int, period: Int, tail: Int, channels: (microphone: Int, speaker: Int)) {
    (self.period, self.channels) = (period, channels)
    // SpeexDSP aborts the process if there is no memory, and never returns null.
    handle = speex_echo_state_init_mc(
      Int32(period), Int32(tail), Int32(channels.microphone), Int32(channels.speaker))
    var rate = Int32(rate)
    speex_echo_ctl(handle, SPEEX_ECHO_SET_SAMPLING_RATE, &rate)
  }

  deinit { speex_echo_state_destroy(handle) }

  /// The number of played samples in a period.
  var playedCount: Int { period * channels.speaker }

  /// Returns a period with the echo of played audio removed; missing played samples count as
  /// silence.
  func cancelled(_ samples: [Int16], played: [Int16]) -> [Int16] {
    var reference = Array(played.prefix(playedCount))
    reference += repeatElement(0, count: playedCount - reference.count)
    return [Int16](unsafeUninitializedCapacity: samples.count) { target, count in
      guard let base = target.baseAddress else { return }
      speex_echo_cancellation(handle, samples, reference, base)
      count = samples.count
    }
  }
}

/// Owns a SpeexDSP preprocessor for one channel.
private final class VoiceRegulator {
  private let handle: OpaquePointer
  /// Must outlive the handle, which queries it for the residual echo.
  private let canceller: EchoCanceller?

  init(
    rate: Int, period: Int, after canceller: EchoCanceller?, holdsNoiseDown: Bool,
    controlsGain: Bool
  ) {
    self.canceller = canceller
    handle = speex_preprocess_state_init(Int32(period), Int32(rate))
    var (denoises, regulates): (Int32, Int32) = (holdsNoiseDown ? 1 : 0, controlsGain ? 1 : 0)
    speex_preprocess_ctl(handle, SPEEX_PREPROCESS_SET_DENOISE, &denoises)
    speex_preprocess_ctl(handle, SPEEX_PREPROCESS_SET_AGC, &regulates)
    if let canceller {
      speex_preprocess_ctl(
        handle, SPEEX_PREPROCESS_SET_ECHO_STATE, UnsafeMutableRawPointer(canceller.handle))
    }
  }

  deinit { speex_preprocess_state_destroy(handle) }

  func regulate(_ samples: inout [Int16]) { speex_preprocess_run(handle, &samples) }
}

/// A device that removes echo and noise from another device's microphone while the session requests
/// `voice`, the default.
///
/// `music` and other profiles leave the microphone unchanged, except for automatic gain control if
/// enabled. Echo is cancelled if microphone and loudspeaker have the same rate, a multiple of 100
/// Hz, and the echo lags by at most 200 ms. The session, its take and the peer receive the
/// processed audio.
public final class VoiceProcessingDevice: AudioDeviceModule {
  private let device: any AudioDeviceModule
  private let processor: VoiceProcessor

  /// Creates a device that processes another device's microphone.
  public init(_ device: any AudioDeviceModule, autoGain: Bool = false) {
    self.device = device
    processor = VoiceProcessor(renderFormat: device.renderFormat, controlsGain: autoGain)
  }

  /// The device's name in takes.
  public var name: String { device.name }
  /// The captured format; nil if the device cannot capture.
  public var captureFormat: AudioFormat? { device.captureFormat }
  /// The played format; nil if the device cannot play.
  public var renderFormat: AudioFormat? { device.renderFormat }

  /// Whether the microphone's gain is controlled automatically.
  public var autoGain: Bool {
    get { processor.controlsGain }
    set { processor.controlsGain = newValue }
  }

  /// Connects the device through the processor.
  public func connect(_ port: AudioDevicePort) { device.connect(port.processing(processor)) }

  /// Carries out an operation that the audio session requests, and returns the result.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    let answer = device.perform(operation)
    if case .setProcessing(let profile) = operation, answer == .ok { processor.set(profile) }
    return answer
  }
}
