import AudioSession
public import Foundation

/// The audio session under AVFoundation's names; replaces AVFoundation's class.
///
/// There is one shared object. It shares its settings with `RTCAudioSession`, and acquires the lock
/// of `RTCAudioSession` for each call, because callers of AVFoundation's class need no lock.
public final class AVAudioSession: Sendable {
  private static let shared = AVAudioSession()

  private init() {}

  /// The shared object.
  public static func sharedInstance() -> AVAudioSession { shared }

  /// A category of audio use, such as playback or recording.
  public struct Category: RawRepresentable, Hashable, Sendable {
    /// The category's name in AVFoundation.
    public let rawValue: String
    /// Creates a category from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Plays, and is silenced by the ring switch.
    public static let ambient = Category(rawValue: "AVAudioSessionCategoryAmbient")
    /// Plays alone, and is silenced by the ring switch.
    public static let soloAmbient = Category(rawValue: "AVAudioSessionCategorySoloAmbient")
    /// Plays even if the ring switch is silent.
    public static let playback = Category(rawValue: "AVAudioSessionCategoryPlayback")
    /// Records, and silences playback.
    public static let record = Category(rawValue: "AVAudioSessionCategoryRecord")
    /// Plays and records, for calls.
    public static let playAndRecord = Category(rawValue: "AVAudioSessionCategoryPlayAndRecord")
    /// Routes different audio to different ports.
    public static let multiRoute = Category(rawValue: "AVAudioSessionCategoryMultiRoute")

    private static let prefix = "AVAudioSessionCategory"

    init(_ native: AudioSessionCategory) { rawValue = prefixed(native.rawValue, by: Self.prefix) }
    var native: AudioSessionCategory {
      AudioSessionCategory(rawValue: bare(rawValue, after: Self.prefix))
    }
  }

  /// A mode, which optimizes the session for a kind of use, such as voice calls.
  public struct Mode: RawRepresentable, Hashable, Sendable {
    /// The mode's name in AVFoundation.
    public let rawValue: String
    /// Creates a mode from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// No special use.
    public static let `default` = Mode(rawValue: "AVAudioSessionModeDefault")
    /// Voice calls.
    public static let voiceChat = Mode(rawValue: "AVAudioSessionModeVoiceChat")
    /// Video calls.
    public static let videoChat = Mode(rawValue: "AVAudioSessionModeVideoChat")
    /// Voice chat in games.
    public static let gameChat = Mode(rawValue: "AVAudioSessionModeGameChat")
    /// Recording video with audio.
    public static let videoRecording = Mode(rawValue: "AVAudioSessionModeVideoRecording")
    /// Measurements, with as little processing as possible.
    public static let measurement = Mode(rawValue: "AVAudioSessionModeMeasurement")
    /// Playing films.
    public static let moviePlayback = Mode(rawValue: "AVAudioSessionModeMoviePlayback")
    /// Podcasts and audiobooks.
    public static let spokenAudio = Mode(rawValue: "AVAudioSessionModeSpokenAudio")

    private static let prefix = "AVAudioSessionMode"

    init(_ native: AudioSessionMode) { rawValue = prefixed(native.rawValue, by: Self.prefix) }
    var native: AudioSessionMode {
      AudioSessionMode(rawValue: bare(rawValue, after: Self.prefix))
    }
  }

  /// How a category mixes with other audio and which ports it may use.
  public struct CategoryOptions: OptionSet, Hashable, Sendable {
    /// The options as bits.
    public let rawValue: UInt
    /// Creates options from bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Lets other audio continue playing.
    public static let mixWithOthers = CategoryOptions(rawValue: 1)
    /// Lets other audio continue at a lower volume.
    public static let duckOthers = CategoryOptions(rawValue: 2)
    /// Allows hands-free Bluetooth.
    public static let allowBluetooth = CategoryOptions(rawValue: 4)
    /// Uses the loudspeaker instead of the earpiece.
    public static let defaultToSpeaker = CategoryOptions(rawValue: 8)
    /// Interrupts other applications' spoken audio.
    public static let interruptSpokenAudioAndMixWithOthers = CategoryOptions(rawValue: 17)
    /// Allows stereo Bluetooth for output.
    public static let allowBluetoothA2DP = CategoryOptions(rawValue: 32)
    /// Allows AirPlay devices for output.
    public static let allowAirPlay = CategoryOptions(rawValue: 64)
  }

  /// A port that overrides the route.
  public enum PortOverride: UInt, Sendable {
    /// No override.
    case none = 0
    /// Overrides the route with the loudspeaker; the value is the four-character code `spkr`.
    case speaker = 0x7370_6b72
  }

  /// A type of microphone or output.
  public struct Port: RawRepresentable, Hashable, Sendable {
    /// The port type's name in AVFoundation.
    public let rawValue: String
    /// Creates a port from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The built-in microphone.
    public static let builtInMic = Port(rawValue: "MicrophoneBuiltIn")
    /// The earpiece.
    public static let builtInReceiver = Port(rawValue: "Receiver")
    /// The built-in loudspeaker.
    public static let builtInSpeaker = Port(rawValue: "Speaker")
  }

  /// Options for activating or deactivating the session.
  public struct SetActiveOptions: OptionSet, Hashable, Sendable {
    /// The options as bits.
    public let rawValue: UInt
    /// Creates options from bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Lets interrupted applications resume; no effect here, because this system interrupts none.
    public static let notifyOthersOnDeactivation = SetActiveOptions(rawValue: 1)
  }

  /// Whether the microphone may be used, with AVFoundation's four-character values.
  public enum RecordPermission: UInt, Sendable {
    /// Permission was not requested.
    case undetermined = 0x756e_6474
    /// Permission was denied.
    case denied = 0x6465_6e79
    /// Permission was granted.
    case granted = 0x6772_6e74
  }

  /// The reason that a route changed, numbered as in AVFoundation.
  public enum RouteChangeReason: UInt, Sendable {
    /// The reason is unknown.
    case unknown = 0
    /// A device became available.
    case newDeviceAvailable = 1
    /// The device in use became unavailable.
    case oldDeviceUnavailable = 2
    /// The category was changed.
    case categoryChange = 3
    /// The port was overridden.
    case override = 4
    /// The ports stayed the same, but their format changed.
    case routeConfigurationChange = 8

    init(_ native: AudioRouteChangeReason) {
      self =
        switch native {
        case .newDeviceAvailable: .newDeviceAvailable
        case .oldDeviceUnavailable: .oldDeviceUnavailable
        case .categoryChange: .categoryChange
        case .override: .override
        case .routeConfigurationChange: .routeConfigurationChange
        default: .unknown
        }
    }
  }
}

/// A data source of a microphone or output; replaces AVFoundation's class, but is never created
/// here.
public final class AVAudioSessionDataSourceDescription: Sendable {
  /// The display name.
  public let dataSourceName: String

  init(dataSourceName: String) { self.dataSourceName = dataSourceName }
}

/// A microphone or an output; replaces AVFoundation's class.
public final class AVAudioSessionPortDescription: Sendable {
  /// The port's type.
  public let portType: AVAudioSession.Port
  /// The device's name, as recorded in takes.
  public let portName: String
  /// The port's identifier, which is its name.
  public var uid: String { portName }

  init(_ portType: AVAudioSession.Port, _ portName: String) {
    (self.portType, self.portName) = (portType, portName)
  }
}

/// The inputs and outputs in use; replaces AVFoundation's class.
public final class AVAudioSessionRouteDescription: Sendable {
  /// The microphones in use.
  public let inputs: [AVAudioSessionPortDescription]
  /// The outputs in use.
  public let outputs: [AVAudioSessionPortDescription]

  init(_ route: AudioRoute, isSpeaker: Bool) {
    inputs =
      route.input.isEmpty ? [] : [AVAudioSessionPortDescription(.builtInMic, route.input)]
    let output = isSpeaker ? AVAudioSession.Port.builtInSpeaker : .builtInReceiver
    outputs = route.output.isEmpty ? [] : [AVAudioSessionPortDescription(output, route.output)]
  }
}

/// Shortens `AVAudioSessionCategoryPlayAndRecord` to `playAndRecord`; other names stay as they are.
private func bare(_ name: String, after prefix: String) -> String {
  guard name.hasPrefix(prefix), let first = name.dropFirst(prefix.count).first else { return name }
  return first.lowercased() + name.dropFirst(prefix.count + 1)
}

private func prefixed(_ name: String, by prefix: String) -> String {
  guard let first = name.first, !name.hasPrefix(prefix) else { return name }
  return prefix + first.uppercased() + name.dropFirst()
}

// MARK: - Settings

// Settings and values that applications access without `RTCAudioSession`.
extension AVAudioSession {
  private var shared: RTCAudioSession { RTCAudioSession.sharedInstance() }

  private func change(_ body: (RTCAudioSession) throws -> Void) rethrows {
    shared.lockForConfiguration()
    defer { shared.unlockForConfiguration() }
    try body(shared)
  }

  // MARK: Settings

  /// Sets the category and its options without changing the mode.
  public func setCategory(_ category: Category, options: CategoryOptions = []) throws {
    try change { try $0.setCategory(category, with: options) }
  }

  /// Sets the category, its options, and the mode.
  public func setCategory(
    _ category: Category, mode: Mode, options: CategoryOptions = []
  ) throws {
    try change { session in
      try session.setCategory(category, with: options)
      try session.setMode(mode)
    }
  }

  /// Sets the mode without changing the category.
  public func setMode(_ mode: Mode) throws { try change { try $0.setMode(mode) } }

  /// Activates or deactivates the session; activations are counted.
  public func setActive(_ active: Bool, options: SetActiveOptions = []) throws {
    try change { try $0.setActive(active) }
  }

  /// Sends output to the loudspeaker, or restores the route's normal output.
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

  /// Always throws: a microphone's gain cannot be set here.
  public func setInputGain(_ gain: Float) throws { try shared.setInputGain(gain) }

  // MARK: State

  /// The category; before the first connection, the category that the application has set.
  public var category: Category { Category(rawValue: shared.category) }
  /// The mode; before the first connection, the mode that the application has set.
  public var mode: Mode { Mode(rawValue: shared.mode) }
  /// How the category mixes with other audio, and which ports it may use.
  public var categoryOptions: CategoryOptions { shared.categoryOptions }
  /// The current inputs and outputs.
  public var currentRoute: AVAudioSessionRouteDescription { shared.currentRoute }
  /// Whether there is a microphone.
  public var isInputAvailable: Bool { shared.inputAvailable }
  /// The device's sample rate in Hz.
  public var sampleRate: Double { shared.sampleRate }
  /// The preferred sample rate in Hz.
  public var preferredSampleRate: Double { shared.preferredSampleRate }
  /// The I/O buffer duration in seconds.
  public var ioBufferDuration: TimeInterval { shared.ioBufferDuration }
  /// The preferred I/O buffer duration in seconds.
  public var preferredIOBufferDuration: TimeInterval { shared.preferredIOBufferDuration }
  /// The number of microphone channels.
  public var inputNumberOfChannels: Int { shared.inputNumberOfChannels }
  /// The number of output channels.
  public var outputNumberOfChannels: Int { shared.outputNumberOfChannels }
  /// The microphone's latency in seconds.
  public var inputLatency: TimeInterval { shared.inputLatency }
  /// The output's latency in seconds.
  public var outputLatency: TimeInterval { shared.outputLatency }
  /// The output's volume; always 1.
  public var outputVolume: Float { shared.outputVolume }
  /// The microphone's gain; always 1.
  public var inputGain: Float { shared.inputGain }
  /// Whether `setInputGain` has an effect; always false.
  public var isInputGainSettable: Bool { shared.isInputGainSettable }

  // MARK: Microphone

  /// Whether the microphone may be used.
  public var recordPermission: RecordPermission {
    switch AVCaptureDevice.authorizationStatus(for: .audio) {
    case .authorized: .granted
    case .notDetermined: .undetermined
    case .denied, .restricted: .denied
    }
  }

  /// Requests permission to use the microphone; the user is asked once and the answer is
  /// remembered.
  public func requestRecordPermission(_ response: @escaping (Bool) -> Void) {
    AVCaptureDevice.requestAccess(for: .audio, completionHandler: response)
  }
}
