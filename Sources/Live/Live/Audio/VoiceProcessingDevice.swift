public import AudioSession

/// A device that removes echo and noise from another device's microphone while the session requests
/// `voice`, the default.
///
/// `music` and other profiles leave the microphone unchanged, except for automatic gain control if
/// enabled. Echo is cancelled if both sides have the same rate, a multiple of 100 Hz, and if it
/// lags by at most 200 ms. The session, its take and the peer get the processed audio.
public final class VoiceProcessingDevice: AudioDeviceModule {
  private let device: any AudioDeviceModule
  private let processor: VoiceProcessor

  /// Creates a device that processes another one's microphone.
  public init(_ device: any AudioDeviceModule, autoGain: Bool = false) {
    self.device = device
    processor = VoiceProcessor(renderFormat: device.renderFormat, controlsGain: autoGain)
  }

  /// The name in takes.
  public var name: String { device.name }
  /// The captured format; nil if it cannot capture.
  public var captureFormat: AudioFormat? { device.captureFormat }
  /// The played format; nil if it cannot play.
  public var renderFormat: AudioFormat? { device.renderFormat }

  /// Whether the gain of the microphone is controlled automatically.
  public var autoGain: Bool {
    get { processor.controlsGain }
    set { processor.controlsGain = newValue }
  }

  /// Stores the port to the session.
  public func connect(_ port: AudioDevicePort) { device.connect(port.processing(processor)) }

  /// Performs an operation of the session.
  public func perform(_ operation: AudioDeviceOperation) -> AudioDeviceAnswer {
    let answer = device.perform(operation)
    if case .setProcessing(let profile) = operation, answer == .ok { processor.set(profile) }
    return answer
  }
}
