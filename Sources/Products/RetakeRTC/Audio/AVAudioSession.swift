import AudioSession

/// The names of AVFoundation for the audio session, in the place of its class.
///
/// There is one object. What is set and read of it is that of `RTCAudioSession`, whose lock it
/// takes by itself for each call, as nobody has to take one for that of AVFoundation.
public final class AVAudioSession: Sendable {
  private static let shared = AVAudioSession()

  private init() {}

  /// The one object.
  public static func sharedInstance() -> AVAudioSession { shared }

  /// What audio is used for.
  public struct Category: RawRepresentable, Hashable, Sendable {
    /// The name.
    public let rawValue: String
    /// Takes a name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Plays, and falls silent with the ring switch.
    public static let ambient = Category(rawValue: "AVAudioSessionCategoryAmbient")
    /// The same, alone.
    public static let soloAmbient = Category(rawValue: "AVAudioSessionCategorySoloAmbient")
    /// Plays.
    public static let playback = Category(rawValue: "AVAudioSessionCategoryPlayback")
    /// Records.
    public static let record = Category(rawValue: "AVAudioSessionCategoryRecord")
    /// Does both: that of a call.
    public static let playAndRecord = Category(rawValue: "AVAudioSessionCategoryPlayAndRecord")
    /// Sends different audio to different ports.
    public static let multiRoute = Category(rawValue: "AVAudioSessionCategoryMultiRoute")

    private static let prefix = "AVAudioSessionCategory"

    init(_ native: AudioSessionCategory) { rawValue = prefixed(native.rawValue, by: Self.prefix) }
    var native: AudioSessionCategory {
      AudioSessionCategory(rawValue: bare(rawValue, after: Self.prefix))
    }
  }

  /// What the session is tuned for.
  public struct Mode: RawRepresentable, Hashable, Sendable {
    /// The name.
    public let rawValue: String
    /// Takes a name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Nothing special.
    public static let `default` = Mode(rawValue: "AVAudioSessionModeDefault")
    /// Speech close to the ear.
    public static let voiceChat = Mode(rawValue: "AVAudioSessionModeVoiceChat")
    /// Speech in front of a camera.
    public static let videoChat = Mode(rawValue: "AVAudioSessionModeVideoChat")
    /// Speech within a game.
    public static let gameChat = Mode(rawValue: "AVAudioSessionModeGameChat")
    /// Recording of video frames with audio.
    public static let videoRecording = Mode(rawValue: "AVAudioSessionModeVideoRecording")
    /// As little processing as can be.
    public static let measurement = Mode(rawValue: "AVAudioSessionModeMeasurement")
    /// Films.
    public static let moviePlayback = Mode(rawValue: "AVAudioSessionModeMoviePlayback")
    /// Read texts.
    public static let spokenAudio = Mode(rawValue: "AVAudioSessionModeSpokenAudio")

    private static let prefix = "AVAudioSessionMode"

    init(_ native: AudioSessionMode) { rawValue = prefixed(native.rawValue, by: Self.prefix) }
    var native: AudioSessionMode {
      AudioSessionMode(rawValue: bare(rawValue, after: Self.prefix))
    }
  }

  /// How a category gets on with other audio and which ports it may use.
  public struct CategoryOptions: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// Takes bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Others continue playing.
    public static let mixWithOthers = CategoryOptions(rawValue: 1)
    /// Others continue more quietly.
    public static let duckOthers = CategoryOptions(rawValue: 2)
    /// Hands-free Bluetooth may be used.
    public static let allowBluetooth = CategoryOptions(rawValue: 4)
    /// The loudspeaker instead of the earpiece.
    public static let defaultToSpeaker = CategoryOptions(rawValue: 8)
    /// Read texts of others are interrupted.
    public static let interruptSpokenAudioAndMixWithOthers = CategoryOptions(rawValue: 17)
    /// Bluetooth in stereo may be used for output.
    public static let allowBluetoothA2DP = CategoryOptions(rawValue: 32)
    /// Devices on the network may be used for output.
    public static let allowAirPlay = CategoryOptions(rawValue: 64)
  }

  /// Where output is sent whatever the route says.
  public enum PortOverride: UInt, Sendable {
    /// Where the route says.
    case none = 0
    /// To the loudspeaker: `spkr`.
    case speaker = 0x7370_6b72
  }

  /// A kind of microphone or output.
  public struct Port: RawRepresentable, Hashable, Sendable {
    /// The name.
    public let rawValue: String
    /// Takes a name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The microphone of the machine.
    public static let builtInMic = Port(rawValue: "MicrophoneBuiltIn")
    /// What one holds to the ear.
    public static let builtInReceiver = Port(rawValue: "Receiver")
    /// The loudspeaker of the machine.
    public static let builtInSpeaker = Port(rawValue: "Speaker")
  }

  /// What others hear of an activation.
  public struct SetActiveOptions: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// Takes bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Others may continue; nobody else is interrupted on this system, so nobody is told.
    public static let notifyOthersOnDeactivation = SetActiveOptions(rawValue: 1)
  }

  /// Whether the microphone may be used, numbered by the four characters of AVFoundation.
  public enum RecordPermission: UInt, Sendable {
    /// Nobody was asked.
    case undetermined = 0x756e_6474
    /// It may not.
    case denied = 0x6465_6e79
    /// It may.
    case granted = 0x6772_6e74
  }

  /// Why a route changed, numbered as in AVFoundation.
  public enum RouteChangeReason: UInt, Sendable {
    /// Nobody knows.
    case unknown = 0
    /// A device came.
    case newDeviceAvailable = 1
    /// The device in use went.
    case oldDeviceUnavailable = 2
    /// The category was changed.
    case categoryChange = 3
    /// The port was overridden.
    case override = 4
    /// The same ports have another format.
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

/// A part of a microphone or an output, in the place of the class of AVFoundation; none are known
/// here.
public final class AVAudioSessionDataSourceDescription: Sendable {
  /// What people call it.
  public let dataSourceName: String

  init(dataSourceName: String) { self.dataSourceName = dataSourceName }
}

/// A microphone or an output, in the place of the class of AVFoundation.
public final class AVAudioSessionPortDescription: Sendable {
  /// What kind of port it is.
  public let portType: AVAudioSession.Port
  /// What the device is called in takes.
  public let portName: String
  /// Names the port.
  public var uid: String { portName }

  init(_ portType: AVAudioSession.Port, _ portName: String) {
    (self.portType, self.portName) = (portType, portName)
  }
}

/// Where audio comes from and goes to, in the place of the class of AVFoundation.
public final class AVAudioSessionRouteDescription: Sendable {
  /// The microphones; none when there is none.
  public let inputs: [AVAudioSessionPortDescription]
  /// The outputs.
  public let outputs: [AVAudioSessionPortDescription]

  init(_ route: AudioRoute, isSpeaker: Bool) {
    inputs =
      route.input.isEmpty ? [] : [AVAudioSessionPortDescription(.builtInMic, route.input)]
    let output = isSpeaker ? AVAudioSession.Port.builtInSpeaker : .builtInReceiver
    outputs = route.output.isEmpty ? [] : [AVAudioSessionPortDescription(output, route.output)]
  }
}

/// `playAndRecord` for `AVAudioSessionCategoryPlayAndRecord`; other names stay as they are.
private func bare(_ name: String, after prefix: String) -> String {
  guard name.hasPrefix(prefix), let first = name.dropFirst(prefix.count).first else { return name }
  return first.lowercased() + name.dropFirst(prefix.count + 1)
}

private func prefixed(_ name: String, by prefix: String) -> String {
  guard let first = name.first, !name.hasPrefix(prefix) else { return name }
  return prefix + first.uppercased() + name.dropFirst()
}
