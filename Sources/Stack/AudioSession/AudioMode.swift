/// The output of a mode.
public enum AudioOutput: String, Hashable, Sendable, Codable {
  /// The default of the route.
  case `default`
  /// The loudspeaker.
  case speaker

  var override: AudioPortOverride { self == .speaker ? .speaker : .none }
}

/// A preset of category, mode, options and port.
public enum AudioMode: Hashable, Sendable, Codable {
  /// A category without a special mode.
  case `default`(category: AudioSessionCategory, output: AudioOutput)
  /// A video call, which implies the loudspeaker.
  case videoChat
  /// An audio call.
  case voiceChat(output: AudioOutput)
}

/// A single request of a session to the device; each can fail.
public enum AudioDeviceOperation: Hashable, Sendable, Codable {
  /// Sets the category.
  case setCategory(AudioSessionCategory, options: AudioSessionOptions)
  /// Sets the mode within the category.
  case setMode(AudioSessionMode)
  /// Overrides the output port of the route.
  case overridePort(AudioPortOverride)
  /// Activates or deactivates the session.
  case setActive(Bool)
  /// Sets the preferred rate in Hz.
  case setPreferredSampleRate(Int)
  /// Sets the preferred I/O buffer duration.
  case setPreferredIOBuffer(milliseconds: Int)
  /// Sets the preferred numbers of channels.
  case setPreferredChannels(input: Int, output: Int)
  /// Sets whether input and output share a clock.
  case setIOType(AudioIOType)
  /// Sets the voice processing.
  case setProcessing(AudioProcessingProfile)
  /// Asks the user for the microphone.
  case requestPermission
  /// Prepares the device to run.
  case initializeUnit(capture: AudioFormat?, render: AudioFormat?)
  /// Starts the device.
  case startUnit
  /// Stops the device.
  case stopUnit
  /// Releases the device's resources.
  case uninitializeUnit
  /// Stops the microphone itself; output continues.
  case pauseRecording
  /// Restarts the microphone.
  case resumeRecording

  /// The name without arguments.
  public var name: String { "\(self)".prefix { $0 != "(" }.description }
}

extension AudioMode {
  /// The operations for entering the mode, in order.
  ///
  /// The given options replace the default ones. A speaker override is undone first if the mode
  /// does not want it, because devices would keep it.
  /// - Parameters:
  ///   - options: how to share audio with other applications.
  ///   - current: the previous category.
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

  /// The mode's category.
  public var category: AudioSessionCategory {
    if case .default(let category, _) = self { category } else { .playAndRecord }
  }

  /// The session mode.
  public var mode: AudioSessionMode {
    switch self {
    case .default: .default
    case .videoChat: .videoChat
    case .voiceChat: .voiceChat
    }
  }

  /// The output; nil leaves it to the mode.
  private var output: AudioOutput? {
    switch self {
    case .default(_, let output), .voiceChat(let output): output
    case .videoChat: nil
    }
  }
}
