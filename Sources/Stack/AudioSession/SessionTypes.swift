/// A session's category, named as on the platforms; unknown names are kept.
public struct AudioSessionCategory: RawRepresentable, Hashable, Sendable, Codable {
  /// The platform's name.
  public let rawValue: String
  /// Creates a category from its name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Playback that the ring switch silences.
  public static let ambient = Self(rawValue: "ambient")
  /// Like `ambient`, but silences other applications.
  public static let soloAmbient = Self(rawValue: "soloAmbient")
  /// Playback that the ring switch does not silence.
  public static let playback = Self(rawValue: "playback")
  /// Recording without playback.
  public static let record = Self(rawValue: "record")
  /// Playback and recording, as calls need.
  public static let playAndRecord = Self(rawValue: "playAndRecord")
  /// Different audio on different ports.
  public static let multiRoute = Self(rawValue: "multiRoute")

  /// Whether a session in this category may open a microphone.
  public var allowsInput: Bool {
    [.record, .playAndRecord, .multiRoute].contains(self)
  }
}

/// A session's mode within its category.
public struct AudioSessionMode: RawRepresentable, Hashable, Sendable, Codable {
  /// The platform's name.
  public let rawValue: String
  /// Creates a mode from its name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// No special mode.
  public static let `default` = Self(rawValue: "default")
  /// Speech with the device held to the ear.
  public static let voiceChat = Self(rawValue: "voiceChat")
  /// Speech in front of a camera, with the loudspeaker and the microphone at the top.
  public static let videoChat = Self(rawValue: "videoChat")
  /// Voice chat in a game.
  public static let gameChat = Self(rawValue: "gameChat")
  /// Recording video with audio.
  public static let videoRecording = Self(rawValue: "videoRecording")
  /// Minimal processing.
  public static let measurement = Self(rawValue: "measurement")
  /// Playback of films; platforms may enhance it for the output in use.
  public static let moviePlayback = Self(rawValue: "moviePlayback")
  /// Spoken audio that other applications may interrupt.
  public static let spokenAudio = Self(rawValue: "spokenAudio")
}

/// Options for a category: how it shares audio with other applications, and which ports it may use.
public struct AudioSessionOptions: OptionSet, Hashable, Sendable, Codable {
  /// The bits, numbered as on the platforms.
  public let rawValue: UInt
  /// Creates options from bits.
  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// Other applications continue playing.
  public static let mixWithOthers = Self(rawValue: 1)
  /// Other applications continue at a lower volume.
  public static let duckOthers = Self(rawValue: 2)
  /// Permits hands-free Bluetooth.
  public static let allowBluetooth = Self(rawValue: 4)
  /// Uses the loudspeaker instead of the earpiece.
  public static let defaultToSpeaker = Self(rawValue: 8)
  /// Interrupts other applications' spoken audio and mixes with their other audio.
  public static let interruptSpokenAudio = Self(rawValue: 17)
  /// Permits Bluetooth stereo output.
  public static let allowBluetoothA2DP = Self(rawValue: 32)
  /// Permits output to devices on the network.
  public static let allowAirPlay = Self(rawValue: 64)

  /// The default options of `AudioMode`.
  public static let modeDefaults: Self = [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay]
}

/// The output port to use instead of the route's default.
public enum AudioPortOverride: String, Hashable, Sendable, Codable {
  /// No override: the route's port.
  case none
  /// The loudspeaker, whatever the route's port is.
  case speaker
}

/// Whether input and output share a clock.
public enum AudioIOType: String, Hashable, Sendable, Codable {
  /// Input and output are separate.
  case notSpecified
  /// The input and output of an I/O period are handled together.
  case aggregated
}

/// The processing of captured audio.
///
/// The session requests it, and `VoiceProcessingDevice` performs it.
public enum AudioProcessingProfile: Hashable, Sendable, Codable {
  /// Processing for speech; cancels echo if the device can.
  case voice
  /// No processing, for music.
  case music
  /// An audio unit with this four-character code.
  case custom(UInt32)
}

/// Whether the microphone may be used.
public enum AudioPermission: String, Hashable, Sendable, Codable {
  /// The user has not been asked.
  case undetermined
  /// The user agreed.
  case granted
  /// The user refused.
  case denied
}

/// When permission for the microphone is requested.
public enum AudioInputRequest: String, Hashable, Sendable, Codable {
  /// When the first sending connection opens.
  case whenSending
  /// When `initializeInput` is called, and at no other time.
  case explicitly
}

/// The fixed part of a session's configuration, recorded in genesis.
public struct AudioSessionPolicy: Hashable, Sendable, Codable {
  /// Whether the application declares its use of the microphone; if not, the microphone is refused
  /// without asking the user.
  public var declaresMicrophoneUse = true
  /// When permission for the microphone is requested.
  public var inputRequest = AudioInputRequest.whenSending
  /// Whether a receive-only connection also requests the microphone, as old stacks do.
  public var requestsInputOnReceiveOnly = false
  /// The number of channels to which captured audio is converted, 1 or 2.
  public var captureChannels = 1
  /// The time in milliseconds that a source may provide no audio before silence replaces it.
  public var starvationMilliseconds = 20

  /// Creates the default policy, which requests the microphone when a connection first sends.
  public init() {}
}

/// The settings requested from the device.
public struct AudioSessionConfiguration: Hashable, Sendable, Codable {
  /// The category, which decides whether the session plays, records, or both.
  public var category = AudioSessionCategory.playAndRecord
  /// The mode, which tunes the category for a purpose such as voice chat.
  public var mode = AudioSessionMode.voiceChat
  /// The options for sharing audio, and the permitted ports.
  public var options: AudioSessionOptions = [.allowBluetooth]
  /// The preferred rate in Hz.
  public var sampleRate = 48_000
  /// The preferred I/O buffer duration in milliseconds.
  public var ioBufferMilliseconds = 60
  /// The preferred number of microphone channels.
  public var inputChannels = 1
  /// The preferred number of output channels.
  public var outputChannels = 1
  /// Whether input and output share a clock.
  public var ioType = AudioIOType.notSpecified
  /// The processing of captured audio.
  public var processing = AudioProcessingProfile.voice

  /// Creates the default configuration, which suits calls.
  public init() {}
}

/// The input and output ports with their formats.
public struct AudioRoute: Hashable, Sendable, Codable {
  /// The input port's name; empty if there is none.
  public var input: String
  /// The output port's name.
  public var output: String
  /// The format the device captures; nil if it cannot capture.
  public var captureFormat: AudioFormat?
  /// The format the device plays; nil if it cannot play.
  public var renderFormat: AudioFormat?

  /// Creates a route between two ports, by default the microphone and the receiver.
  public init(
    input: String = "microphone", output: String = "receiver",
    captureFormat: AudioFormat? = AudioFormat(), renderFormat: AudioFormat? = AudioFormat()
  ) {
    (self.input, self.output) = (input, output)
    (self.captureFormat, self.renderFormat) = (captureFormat, renderFormat)
  }
}

/// The reason for a route change, named as on the platforms.
public struct AudioRouteChangeReason: RawRepresentable, Hashable, Sendable, Codable {
  /// The platform's name.
  public let rawValue: String
  /// Creates a reason from its name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The platform stated no reason.
  public static let unknown = Self(rawValue: "unknown")
  /// A device such as a headset was connected.
  public static let newDeviceAvailable = Self(rawValue: "newDeviceAvailable")
  /// The device in use was disconnected.
  public static let oldDeviceUnavailable = Self(rawValue: "oldDeviceUnavailable")
  /// The session's category was changed, and the route with it.
  public static let categoryChange = Self(rawValue: "categoryChange")
  /// The session overrode the route's output port.
  public static let override = Self(rawValue: "override")
  /// The same ports changed their formats.
  public static let routeConfigurationChange = Self(rawValue: "routeConfigurationChange")
}
