/// What a session uses audio for; names as the platforms have them, others pass through.
public struct AudioSessionCategory: RawRepresentable, Hashable, Sendable, Codable {
  /// The name.
  public let rawValue: String
  /// Takes a name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Plays, and falls silent with the ring switch.
  public static let ambient = Self(rawValue: "ambient")
  /// The same, alone.
  public static let soloAmbient = Self(rawValue: "soloAmbient")
  /// Plays.
  public static let playback = Self(rawValue: "playback")
  /// Records.
  public static let record = Self(rawValue: "record")
  /// Does both: that of a call.
  public static let playAndRecord = Self(rawValue: "playAndRecord")
  /// Sends different audio to different ports.
  public static let multiRoute = Self(rawValue: "multiRoute")

  /// Whether a session of this category may open a microphone.
  public var allowsInput: Bool {
    [.record, .playAndRecord, .multiRoute].contains(self)
  }
}

/// What a session is tuned for within its category.
public struct AudioSessionMode: RawRepresentable, Hashable, Sendable, Codable {
  /// The name.
  public let rawValue: String
  /// Takes a name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Nothing special.
  public static let `default` = Self(rawValue: "default")
  /// Speech close to the ear.
  public static let voiceChat = Self(rawValue: "voiceChat")
  /// Speech in front of a camera: the loudspeaker, and the microphone at the top.
  public static let videoChat = Self(rawValue: "videoChat")
  /// Speech within a game.
  public static let gameChat = Self(rawValue: "gameChat")
  /// Recording of video frames with audio.
  public static let videoRecording = Self(rawValue: "videoRecording")
  /// As little processing as can be.
  public static let measurement = Self(rawValue: "measurement")
  /// Films.
  public static let moviePlayback = Self(rawValue: "moviePlayback")
  /// Read texts, which others may interrupt.
  public static let spokenAudio = Self(rawValue: "spokenAudio")
}

/// How a category gets on with other audio and which ports it may use.
public struct AudioSessionOptions: OptionSet, Hashable, Sendable, Codable {
  /// The bits, numbered as the platforms number them.
  public let rawValue: UInt
  /// Takes bits.
  public init(rawValue: UInt) { self.rawValue = rawValue }

  /// Others continue playing.
  public static let mixWithOthers = Self(rawValue: 1)
  /// Others continue more quietly.
  public static let duckOthers = Self(rawValue: 2)
  /// Hands-free Bluetooth may be used.
  public static let allowBluetooth = Self(rawValue: 4)
  /// The loudspeaker instead of the earpiece.
  public static let defaultToSpeaker = Self(rawValue: 8)
  /// Read texts of others are interrupted.
  public static let interruptSpokenAudio = Self(rawValue: 17)
  /// Bluetooth in stereo may be used for output.
  public static let allowBluetoothA2DP = Self(rawValue: 32)
  /// Devices on the network may be used for output.
  public static let allowAirPlay = Self(rawValue: 64)

  /// What `AudioMode` allows when nothing is said.
  public static let modeDefaults: Self = [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay]
}

/// Where output is sent whatever the route says.
public enum AudioPortOverride: String, Hashable, Sendable, Codable {
  /// Where the route says.
  case none
  /// To the loudspeaker.
  case speaker
}

/// Whether several threads of the device share one clock.
public enum AudioIOType: String, Hashable, Sendable, Codable {
  /// Input and output are served one by one, each on its own.
  case notSpecified
  /// Input and output of a period are served together.
  case aggregated
}

/// What a device does to the voice before it is sent.
///
/// The session asks for it and hears what is left; `VoiceProcessingDevice` does it.
public enum AudioProcessingProfile: Hashable, Sendable, Codable {
  /// As for speech, with echo cancellation where the device has it.
  case voice
  /// As for music: untouched.
  case music
  /// A unit by its four characters, as numbers of the platform's.
  case custom(UInt32)
}

/// Whether the microphone may be used.
public enum AudioPermission: String, Hashable, Sendable, Codable {
  /// Nobody was asked yet.
  case undetermined
  /// It may.
  case granted
  /// It may not.
  case denied
}

/// When the microphone is asked for.
public enum AudioInputRequest: String, Hashable, Sendable, Codable {
  /// By the first connection that sends.
  case whenSending
  /// By `initializeInput` alone.
  case explicitly
}

/// What stays as it is for the life of an audio session: its part of genesis.
public struct AudioSessionPolicy: Hashable, Sendable, Codable {
  /// Whether the application has said what it wants the microphone for; without that the
  /// microphone is refused before anybody is asked.
  public var declaresMicrophoneUse = true
  /// When the microphone is asked for.
  public var inputRequest = AudioInputRequest.whenSending
  /// Whether a connection that only receives asks for the microphone too, as old stacks did.
  public var requestsInputOnReceiveOnly = false
  /// Channels of the blocks that go to senders, 1 or 2.
  public var captureChannels = 1
  /// How long a source may be silent before silence is put in its place, in milliseconds.
  public var starvationMilliseconds = 20

  /// The usual policy.
  public init() {}
}

/// What a session asks of the device.
public struct AudioSessionConfiguration: Hashable, Sendable, Codable {
  /// What audio is used for.
  public var category = AudioSessionCategory.playAndRecord
  /// What it is tuned for.
  public var mode = AudioSessionMode.voiceChat
  /// Other audio, and ports.
  public var options: AudioSessionOptions = [.allowBluetooth]
  /// Frames per second that the device should have.
  public var sampleRate = 48_000
  /// How much audio the device should hand over at once, in milliseconds.
  public var ioBufferMilliseconds = 60
  /// Channels of the microphone that should be used.
  public var inputChannels = 1
  /// Channels of the output that should be used.
  public var outputChannels = 1
  /// Whether input and output share a clock.
  public var ioType = AudioIOType.notSpecified
  /// What is done to the voice.
  public var processing = AudioProcessingProfile.voice

  /// The configuration of a call.
  public init() {}
}

/// Where audio comes from and goes to, and in which formats.
public struct AudioRoute: Hashable, Sendable, Codable {
  /// The name of the microphone's port; empty when there is none.
  public var input: String
  /// The name of the output's port.
  public var output: String
  /// What the device captures; nil when it cannot.
  public var captureFormat: AudioFormat?
  /// What the device plays; nil when it cannot.
  public var renderFormat: AudioFormat?

  /// Creates a route.
  public init(
    input: String = "microphone", output: String = "receiver",
    captureFormat: AudioFormat? = AudioFormat(), renderFormat: AudioFormat? = AudioFormat()
  ) {
    (self.input, self.output) = (input, output)
    (self.captureFormat, self.renderFormat) = (captureFormat, renderFormat)
  }
}

/// Why a route changed; names as the platforms have them.
public struct AudioRouteChangeReason: RawRepresentable, Hashable, Sendable, Codable {
  /// The name.
  public let rawValue: String
  /// Takes a name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Nobody knows.
  public static let unknown = Self(rawValue: "unknown")
  /// A device came.
  public static let newDeviceAvailable = Self(rawValue: "newDeviceAvailable")
  /// The device in use went.
  public static let oldDeviceUnavailable = Self(rawValue: "oldDeviceUnavailable")
  /// The category was changed.
  public static let categoryChange = Self(rawValue: "categoryChange")
  /// The port was overridden.
  public static let override = Self(rawValue: "override")
  /// The same ports have another format.
  public static let routeConfigurationChange = Self(rawValue: "routeConfigurationChange")
}
