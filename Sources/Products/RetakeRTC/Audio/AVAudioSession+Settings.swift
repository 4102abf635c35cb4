public import Foundation

// What applications set and read of the audio session without RTCAudioSession.
extension AVAudioSession {
  private var shared: RTCAudioSession { RTCAudioSession.sharedInstance() }

  private func change(_ body: (RTCAudioSession) throws -> Void) rethrows {
    shared.lockForConfiguration()
    defer { shared.unlockForConfiguration() }
    try body(shared)
  }

  // MARK: Settings

  /// Sets what audio is used for.
  public func setCategory(_ category: Category, options: CategoryOptions = []) throws {
    try change { try $0.setCategory(category, with: options) }
  }

  /// Sets what audio is used for, and what it is tuned for.
  public func setCategory(
    _ category: Category, mode: Mode, options: CategoryOptions = []
  ) throws {
    try change { session in
      try session.setCategory(category, with: options)
      try session.setMode(mode)
    }
  }

  /// Sets what audio is tuned for.
  public func setMode(_ mode: Mode) throws { try change { try $0.setMode(mode) } }

  /// Takes the right to audio, or gives it back; it counts.
  public func setActive(_ active: Bool, options: SetActiveOptions = []) throws {
    try change { try $0.setActive(active) }
  }

  /// Sends output to the loudspeaker, or where the route says.
  public func overrideOutputAudioPort(_ portOverride: PortOverride) throws {
    try change { try $0.overrideOutputAudioPort(portOverride) }
  }

  /// Asks for a rate in Hz.
  public func setPreferredSampleRate(_ sampleRate: Double) throws {
    try change { try $0.setPreferredSampleRate(sampleRate) }
  }

  /// Asks for a period of input and output in seconds.
  public func setPreferredIOBufferDuration(_ duration: TimeInterval) throws {
    try change { try $0.setPreferredIOBufferDuration(duration) }
  }

  /// Asks for channels of the microphone.
  public func setPreferredInputNumberOfChannels(_ count: Int) throws {
    try change { try $0.setPreferredInputNumberOfChannels(count) }
  }

  /// Asks for channels of the output.
  public func setPreferredOutputNumberOfChannels(_ count: Int) throws {
    try change { try $0.setPreferredOutputNumberOfChannels(count) }
  }

  /// Refuses: the gain of a microphone cannot be set here.
  public func setInputGain(_ gain: Float) throws { try shared.setInputGain(gain) }

  // MARK: State

  /// What audio is used for.
  public var category: Category { Category(rawValue: shared.category) }
  /// What it is tuned for.
  public var mode: Mode { Mode(rawValue: shared.mode) }
  /// Other audio, and ports.
  public var categoryOptions: CategoryOptions { shared.categoryOptions }
  /// Where audio comes from and goes to.
  public var currentRoute: AVAudioSessionRouteDescription { shared.currentRoute }
  /// Whether there is a microphone.
  public var isInputAvailable: Bool { shared.inputAvailable }
  /// Frames per second of the device.
  public var sampleRate: Double { shared.sampleRate }
  /// Frames per second that were asked for.
  public var preferredSampleRate: Double { shared.preferredSampleRate }
  /// How much audio is handed over at once, in seconds.
  public var ioBufferDuration: TimeInterval { shared.ioBufferDuration }
  /// How much audio was asked for at once, in seconds.
  public var preferredIOBufferDuration: TimeInterval { shared.preferredIOBufferDuration }
  /// Channels of the microphone.
  public var inputNumberOfChannels: Int { shared.inputNumberOfChannels }
  /// Channels of the output.
  public var outputNumberOfChannels: Int { shared.outputNumberOfChannels }
  /// How long audio of the microphone is under way, in seconds.
  public var inputLatency: TimeInterval { shared.inputLatency }
  /// How long audio is under way to the output, in seconds.
  public var outputLatency: TimeInterval { shared.outputLatency }
  /// How loud the device plays; 1.
  public var outputVolume: Float { shared.outputVolume }
  /// The gain of the microphone; 1.
  public var inputGain: Float { shared.inputGain }
  /// Whether `setInputGain` has an effect: it has none.
  public var isInputGainSettable: Bool { shared.isInputGainSettable }

  // MARK: The microphone

  /// Whether the microphone may be used.
  public var recordPermission: RecordPermission {
    switch AVCaptureDevice.authorizationStatus(for: .audio) {
    case .authorized: .granted
    case .notDetermined: .undetermined
    case .denied, .restricted: .denied
    }
  }

  /// Asks for the microphone, once; the answer is kept.
  public func requestRecordPermission(_ response: @escaping (Bool) -> Void) {
    AVCaptureDevice.requestAccess(for: .audio, completionHandler: response)
  }
}
