import Wire

/// The outputs on which a mode plays audio.
public enum AudioOutput: String, Hashable, Sendable, Codable {
  /// The route's default.
  case `default`
  /// The loudspeaker, whatever the route's default.
  case speaker

  var override: AudioPortOverride { self == .speaker ? .speaker : .none }
}

/// A preset for category, mode, options and port.
public enum AudioMode: Hashable, Sendable, Codable {
  /// A category without a special mode.
  case `default`(category: AudioSessionCategory, output: AudioOutput)
  /// A video call, which implies the loudspeaker.
  case videoChat
  /// An audio call, over the route's default output or the loudspeaker.
  case voiceChat(output: AudioOutput)
}

/// An operation that a session requests from the device, and that the device may refuse.
public enum AudioDeviceOperation: Hashable, Sendable, Codable {
  /// Sets the category and its options.
  case setCategory(AudioSessionCategory, options: AudioSessionOptions)
  /// Sets the mode within the category.
  case setMode(AudioSessionMode)
  /// Overrides the route's output port.
  case overridePort(AudioPortOverride)
  /// Activates or deactivates the session.
  case setActive(Bool)
  /// Sets the preferred rate in Hz.
  case setPreferredSampleRate(Int)
  /// Sets how much audio the device should handle in each I/O period.
  case setPreferredIOBuffer(milliseconds: Int)
  /// Sets how many channels the device should capture and play.
  case setPreferredChannels(input: Int, output: Int)
  /// Sets whether input and output share a clock.
  case setIOType(AudioIOType)
  /// Sets the processing of captured audio, such as echo cancellation.
  case setProcessing(AudioProcessingProfile)
  /// Asks the user for permission to use the microphone.
  case requestPermission
  /// Prepares the device to capture and play in these formats; a format is nil if the device lacks
  /// that direction.
  case initializeUnit(capture: AudioFormat?, render: AudioFormat?)
  /// Starts capturing and playing.
  case startUnit
  /// Stops capturing and playing; the device stays initialised.
  case stopUnit
  /// Releases the device's resources.
  case uninitializeUnit
  /// Stops the microphone itself; output continues.
  case pauseRecording
  /// Restarts the microphone after `pauseRecording`.
  case resumeRecording

  /// The operation's name without arguments.
  public var name: String { "\(self)".prefix { $0 != "(" }.description }
}

extension AudioMode {
  /// Returns the operations that enter the mode, in order.
  ///
  /// `options` replaces the default options. A speaker override is undone first if the mode uses
  /// the route's default output, because devices would keep the override.
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

  /// The category that the preset sets; `playAndRecord` for calls.
  public var category: AudioSessionCategory {
    if case .default(let category, _) = self { category } else { .playAndRecord }
  }

  /// The platform mode that the preset sets.
  public var mode: AudioSessionMode {
    switch self {
    case .default: .default
    case .videoChat: .videoChat
    case .voiceChat: .voiceChat
    }
  }

  /// The output; nil leaves the choice to the mode.
  private var output: AudioOutput? {
    switch self {
    case .default(_, let output), .voiceChat(let output): output
    case .videoChat: nil
    }
  }
}

// MARK: - SessionSettings

/// The device's current settings, and the settings that the application requested.
struct SessionSettings {
  /// The configuration that the application requested.
  var wanted = AudioSessionConfiguration()
  var category = AudioSessionCategory.soloAmbient
  var mode = AudioSessionMode.default
  var options: AudioSessionOptions = []
  var portOverride = AudioPortOverride.none
  private(set) var sampleRate: Int?
  private(set) var ioBufferMilliseconds: Int?
  private(set) var channels: [Int] = []
  private(set) var ioType: AudioIOType?
  private(set) var processing: AudioProcessingProfile?
  /// The capture and playback formats that the device was initialised for.
  private(set) var unitFormats: [AudioFormat?] = []

  /// Clears the device's settings, which are lost when the audio server terminates.
  mutating func forget() {
    let wanted = wanted
    self = SessionSettings()
    self.wanted = wanted
  }

  /// Applies a completed operation to the device's settings.
  mutating func apply(_ operation: AudioDeviceOperation) {
    switch operation {
    case .setCategory(let category, let options):
      (self.category, self.options) = (category, options)
    case .setMode(let mode): self.mode = mode
    case .overridePort(let override): portOverride = override
    case .setPreferredSampleRate(let rate): sampleRate = rate
    case .setPreferredIOBuffer(let milliseconds): ioBufferMilliseconds = milliseconds
    case .setPreferredChannels(let input, let output): channels = [input, output]
    case .setIOType(let type): ioType = type
    case .setProcessing(let profile): processing = profile
    case .initializeUnit(let capture, let render): unitFormats = [capture, render]
    default: break
    }
  }

  /// The settings still to be applied before the device is initialised.
  var preferences: [AudioDeviceOperation] {
    var operations: [AudioDeviceOperation] = []
    if ioType != wanted.ioType { operations.append(.setIOType(wanted.ioType)) }
    if processing != wanted.processing { operations.append(.setProcessing(wanted.processing)) }
    if sampleRate != wanted.sampleRate {
      operations.append(.setPreferredSampleRate(wanted.sampleRate))
    }
    if ioBufferMilliseconds != wanted.ioBufferMilliseconds {
      operations.append(.setPreferredIOBuffer(milliseconds: wanted.ioBufferMilliseconds))
    }
    if channels != [wanted.inputChannels, wanted.outputChannels] {
      operations.append(
        .setPreferredChannels(input: wanted.inputChannels, output: wanted.outputChannels))
    }
    return operations
  }
}

extension AudioSessionCall {
  /// The operations for a configuration call; nil for other calls.
  var operations: [AudioDeviceOperation]? {
    switch self {
    case .configure(let wanted):
      [.setCategory(wanted.category, options: wanted.options), .setMode(wanted.mode)]
    case .setCategory(let category, let options): [.setCategory(category, options: options)]
    case .setMode(let mode): [.setMode(mode)]
    case .overridePort(let override): [.overridePort(override)]
    case .setPreferredSampleRate(let rate): [.setPreferredSampleRate(rate)]
    case .setPreferredIOBuffer(let milliseconds):
      [.setPreferredIOBuffer(milliseconds: milliseconds)]
    case .setPreferredChannels(let input, let output):
      [.setPreferredChannels(input: input, output: output)]
    case .setIOType(let type): [.setIOType(type)]
    case .setProcessing(let profile): [.setProcessing(profile)]
    default: nil
    }
  }

  package func apply(to wanted: inout AudioSessionConfiguration) {
    switch self {
    case .configure(let configuration): wanted = configuration
    case .setCategory(let category, let options):
      (wanted.category, wanted.options) = (category, options)
    case .setMode(let mode): wanted.mode = mode
    case .setPreferredSampleRate(let rate): wanted.sampleRate = rate
    case .setPreferredIOBuffer(let milliseconds): wanted.ioBufferMilliseconds = milliseconds
    case .setPreferredChannels(let input, let output):
      (wanted.inputChannels, wanted.outputChannels) = (input, output)
    case .setIOType(let type): wanted.ioType = type
    case .setProcessing(let profile): wanted.processing = profile
    default: break
    }
  }
}

// MARK: - SessionStates

/// The states shown in takes; each is changed in only one place, so that every transition is
/// reported.
struct SessionStates {
  typealias Effects = Outbox<AudioSessionEffect>

  private(set) var lockCount = 0
  private(set) var isActive = false
  private(set) var isInterrupted = false
  private(set) var hasServer = true
  private(set) var permission = AudioPermission.undetermined
  private(set) var unit = AudioUnitState.uninitialized
  private(set) var recording = "stopped"
  private(set) var playout = "stopped"

  mutating func setLock(_ count: Int, into outbox: inout Effects) {
    report(
      "audio-lock", lockCount > 0 ? "locked" : "unlocked", count > 0 ? "locked" : "unlocked",
      into: &outbox)
    lockCount = count
  }

  mutating func setActive(_ next: Bool, into outbox: inout Effects) {
    report(
      "audio-session", isActive ? "active" : "inactive", next ? "active" : "inactive",
      into: &outbox)
    isActive = next
  }

  mutating func setInterrupted(_ next: Bool, into outbox: inout Effects) {
    report(
      "audio-interruption", isInterrupted ? "interrupted" : "none", next ? "interrupted" : "none",
      into: &outbox)
    isInterrupted = next
  }

  mutating func setServer(_ next: Bool, into outbox: inout Effects) {
    report(
      "audio-server", hasServer ? "running" : "terminated", next ? "running" : "terminated",
      into: &outbox)
    hasServer = next
  }

  mutating func setPermission(_ next: AudioPermission, into outbox: inout Effects) {
    report("audio-permission", permission.rawValue, next.rawValue, into: &outbox)
    permission = next
  }

  mutating func setUnit(_ next: AudioUnitState, into outbox: inout Effects) {
    report("audio-unit", unit.rawValue, next.rawValue, into: &outbox)
    unit = next
  }

  mutating func setRecording(_ next: String, into outbox: inout Effects) {
    report("audio-recording", recording, next, into: &outbox)
    recording = next
  }

  mutating func setPlayout(_ next: String, into outbox: inout Effects) {
    report("audio-playout", playout, next, into: &outbox)
    playout = next
  }

  private func report(
    _ machine: String, _ from: String, _ to: String, into outbox: inout Effects
  ) {
    if from != to { outbox.append(.state(machine: machine, from: from, to: to)) }
  }
}
