public import Foundation

// What applications set and read of the audio session without `RTCAudioSession`.
extension AVAudioSession {
  private var shared: RTCAudioSession { RTCAudioSession.sharedInstance() }

  private func change(_ body: (RTCAudioSession) throws -> Void) rethrows {
    shared.lockForConfiguration()
    defer { shared.unlockForConfiguration() }
    try body(shared)
  }

  // MARK: Settings

  /// Sets the category.
  public func setCategory(_ category: Category, options: CategoryOptions = []) throws {
    try change { try $0.setCategory(category, with: options) }
  }

  /// Sets the category and the mode.
  public func setCategory(
    _ category: Category, mode: Mode, options: CategoryOptions = []
  ) throws {
    try change { session in
      try session.setCategory(category, with: options)
      try session.setMode(mode)
    }
  }

  /// Sets the mode.
  public func setMode(_ mode: Mode) throws { try change { try $0.setMode(mode) } }

  /// Activates or deactivates the session; calls are counted.
  public func setActive(_ active: Bool, options: SetActiveOptions = []) throws {
    try change { try $0.setActive(active) }
  }

  /// Routes output to the loudspeaker, or according to the route.
  public func overrideOutputAudioPort(_ portOverride: PortOverride) throws {
    try change { try $0.overrideOutputAudioPort(portOverride) }
  }

  /// Sets the preferred sample rate in Hz.
  public func setPreferredSampleRate(_ sampleRate: Double) throws {
    try change { try $0.setPreferredSampleRate(sampleRate) }
  }

  /// Sets the preferred I/O buffer duration in seconds.
  public func setPreferredIOBufferDuration(_ duration: TimeInterval) throws {
    try change { try $0.setPreferredIOBufferDuration(duration) }
  }

  /// Sets the preferred number of microphone channels.
  public func setPreferredInputNumberOfChannels(_ count: Int) throws {
    try change { try $0.setPreferredInputNumberOfChannels(count) }
  }

  /// Sets the preferred number of output channels.
  public func setPreferredOutputNumberOfChannels(_ count: Int) throws {
    try change { try $0.setPreferredOutputNumberOfChannels(count) }
  }

  /// Always throws: the gain of a microphone cannot be set here.
  public func setInputGain(_ gain: Float) throws { try shared.setInputGain(gain) }

  // MARK: State

  /// The category.
  public var category: Category { Category(rawValue: shared.category) }
  /// The mode.
  public var mode: Mode { Mode(rawValue: shared.mode) }
  /// How the category mixes with other audio, and which ports it may use.
  public var categoryOptions: CategoryOptions { shared.categoryOptions }
  /// The current inputs and outputs.
  public var currentRoute: AVAudioSessionRouteDescription { shared.currentRoute }
  /// Whether there is a microphone.
  public var isInputAvailable: Bool { shared.inputAvailable }
  /// The sample rate of the device in Hz.
  public var sampleRate: Double { shared.sampleRate }
  /// The preferred sample rate in Hz.
  public var preferredSampleRate: Double { shared.preferredSampleRate }
  /// The duration of an I/O buffer in seconds.
  public var ioBufferDuration: TimeInterval { shared.ioBufferDuration }
  /// The preferred duration of an I/O buffer in seconds.
  public var preferredIOBufferDuration: TimeInterval { shared.preferredIOBufferDuration }
  /// The number of microphone channels.
  public var inputNumberOfChannels: Int { shared.inputNumberOfChannels }
  /// The number of output channels.
  public var outputNumberOfChannels: Int { shared.outputNumberOfChannels }
  /// The latency of the microphone in seconds.
  public var inputLatency: TimeInterval { shared.inputLatency }
  /// The latency of the output in seconds.
  public var outputLatency: TimeInterval { shared.outputLatency }
  /// The volume of the output; always 1.
  public var outputVolume: Float { shared.outputVolume }
  /// The gain of the microphone; always 1.
  public var inputGain: Float { shared.inputGain }
  /// Whether `setInputGain` has an effect; always false.
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

  /// Requests permission to use the microphone, once; the answer is remembered.
  public func requestRecordPermission(_ response: @escaping (Bool) -> Void) {
    AVCaptureDevice.requestAccess(for: .audio, completionHandler: response)
  }
}
