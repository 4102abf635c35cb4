public import AudioSession

/// A device with voice processing: another one, whose microphone is freed of the echo of its
/// loudspeaker and of noise while the session asks for `voice`, as it does at first.
///
/// `music` and other profiles leave the microphone as it is, but for its loudness where that is to
/// be regulated. The echo is cancelled where both sides have the same rate, a multiple of 100 Hz;
/// what lags more than 200 ms stays. The session, its take and the other end have what is left.
public final class VoiceProcessingDevice: AudioDeviceModule {
  private let device: any AudioDeviceModule
  private let processor: VoiceProcessor

  /// Puts the processing before a device.
  public init(_ device: any AudioDeviceModule, autoGain: Bool = false) {
    self.device = device
    processor = VoiceProcessor(renderFormat: device.renderFormat, controlsGain: autoGain)
  }

  /// What the device is called in takes.
  public var name: String { device.name }
  /// What it captures; nil when it cannot.
  public var captureFormat: AudioFormat? { device.captureFormat }
  /// What it plays; nil when it cannot.
  public var renderFormat: AudioFormat? { device.renderFormat }

  /// Whether the loudness of the microphone is regulated.
  public var autoGain: Bool {
    get { processor.controlsGain }
    set { processor.controlsGain = newValue }
  }

  /// Keeps the way to the session.
  public func connect(_ port: AudioDevicePort) { device.connect(port.processing(processor)) }

  /// Does what the session asks.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    let answer = device.perform(operation)
    if case .setProcessing(let profile) = operation, answer == .ok { processor.set(profile) }
    return answer
  }
}
