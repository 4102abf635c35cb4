/// Where a mode sends audio.
public enum AudioOutput: String, Hashable, Sendable, Codable {
  /// Where the route says.
  case `default`
  /// To the loudspeaker.
  case speaker

  var override: AudioPortOverride { self == .speaker ? .speaker : .none }
}

/// A choice of category, mode, options and port under one name.
public enum AudioMode: Hashable, Sendable, Codable {
  /// A category without a special mode.
  case `default`(category: AudioSessionCategory, output: AudioOutput)
  /// A call with video frames: the loudspeaker comes with the mode.
  case videoChat
  /// A call.
  case voiceChat(output: AudioOutput)
}

/// What a session asks of the device, one thing at a time; each can fail.
public enum AudioDeviceOperation: Hashable, Sendable, Codable {
  /// Sets what audio is used for.
  case setCategory(AudioSessionCategory, options: AudioSessionOptions)
  /// Sets what it is tuned for.
  case setMode(AudioSessionMode)
  /// Sends output elsewhere than the route says.
  case overridePort(AudioPortOverride)
  /// Takes or gives back the right to audio.
  case setActive(Bool)
  /// Asks for a rate, in Hz.
  case setPreferredSampleRate(Int)
  /// Asks for a period of input and output.
  case setPreferredIOBuffer(milliseconds: Int)
  /// Asks for channels.
  case setPreferredChannels(input: Int, output: Int)
  /// Asks for a clock in common.
  case setIOType(AudioIOType)
  /// Asks for a kind of processing.
  case setProcessing(AudioProcessingProfile)
  /// Asks the user for the microphone.
  case requestPermission
  /// Prepares the device to run.
  case initializeUnit(capture: AudioFormat?, render: AudioFormat?)
  /// Lets the device run.
  case startUnit
  /// Stops the device.
  case stopUnit
  /// Gives the device's resources back.
  case uninitializeUnit
  /// Really stops the microphone; output continues.
  case pauseRecording
  /// Starts the microphone again.
  case resumeRecording

  /// The name without arguments.
  public var name: String { "\(self)".prefix { $0 != "(" }.description }
}

extension AudioMode {
  /// What is asked of the device to get into a mode, in this order.
  ///
  /// Given options take the place of the default ones. A forced loudspeaker is given back first
  /// when the mode does not want it: devices keep it otherwise.
  ///
  /// - Parameters:
  ///   - options: how to get on with other audio.
  ///   - current: the category before.
  public func operations(
    options: AudioSessionOptions = .modeDefaults, current: AudioSessionCategory
  ) -> [AudioDeviceOperation] {
    var operations: [AudioDeviceOperation] = []
    if output == .default, current == .playAndRecord { operations.append(.overridePort(.none)) }
    var options = options
    if output == .speaker { options.insert(.defaultToSpeaker) }
    operations.append(.setCategory(category, options: options))
    operations.append(.setMode(mode))
    if case .voiceChat(let output) = self { operations.append(.overridePort(output.override)) }
    return operations
  }

  /// The category that the mode comes with.
  public var category: AudioSessionCategory {
    if case .default(let category, _) = self { category } else { .playAndRecord }
  }

  /// The session's mode that it stands for.
  public var mode: AudioSessionMode {
    switch self {
    case .default: .default
    case .videoChat: .videoChat
    case .voiceChat: .voiceChat
    }
  }

  /// Where it sends audio; nil leaves that to the mode.
  private var output: AudioOutput? {
    switch self {
    case .default(_, let output), .voiceChat(let output): output
    case .videoChat: nil
    }
  }
}
