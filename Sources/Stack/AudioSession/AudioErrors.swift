/// Why audio was not accepted.
public enum AudioDeviceError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The session's own device is running, so audio from the application would be a second
  /// microphone.
  case audioUnitActive
  /// The session's own device is not running.
  case audioUnitInactive
  /// The microphone is muted at the device.
  case recordingPaused
  /// The samples are not 16-bit.
  case unsupportedSamples(AudioSampleFormat)
  /// The rate is not one of `AudioFormat.sampleRates`.
  case unsupportedRate(Int)
  /// The number of channels is not supported.
  case unsupportedChannels(Int)
  /// The bytes end within a frame.
  case partialFrame(bytes: Int)
  /// The device captures in another format than announced; it is reinitialised for this one.
  case formatMismatch
  /// There are too many sources.
  case tooManySources
  /// More than two seconds at once.
  case chunkTooLong(frames: Int)
  /// A device needs something that this machine does not have; the text says what.
  case unavailable(String)

  /// The name in takes.
  public var name: String {
    switch self {
    case .audioUnitActive: "audioUnitActive"
    case .audioUnitInactive: "audioUnitInactive"
    case .recordingPaused: "recordingPaused"
    case .unsupportedSamples, .unsupportedRate, .unsupportedChannels, .partialFrame: "notAudio"
    case .formatMismatch: "formatMismatch"
    case .tooManySources: "tooManySources"
    case .chunkTooLong: "chunkTooLong"
    case .unavailable: "unavailable"
    }
  }

  /// The reason in one sentence.
  public var description: String {
    switch self {
    case .audioUnitActive:
      "the session's own device runs: use manual audio and keep it disabled to hand in audio"
    case .audioUnitInactive: "the session's own device does not run"
    case .recordingPaused: "recording is paused at the device"
    case .unsupportedSamples(let samples):
      "samples are \(samples.rawValue): 16 bits are needed, s16le or s16be"
    case .unsupportedRate(let rate): "the rate is \(rate) Hz: 8000 to 192000 are taken"
    case .unsupportedChannels(let count): "there are \(count) channels: 1 to 32 are taken"
    case .partialFrame(let bytes): "\(bytes) bytes do not fill whole frames"
    case .formatMismatch: "the device captures in another format than it said, and is made ready"
    case .tooManySources: "16 sources are mixed already"
    case .chunkTooLong(let frames): "\(frames) frames at once are more than two seconds"
    case .unavailable(let what): what
    }
  }
}

/// Why a call of an audio session failed.
public enum AudioSessionError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// A setting was changed without holding the lock.
  case lockRequired
  /// The device refused an operation, with its own error code.
  case refused(AudioDeviceOperation, code: Int32)
  /// The microphone may not be used.
  case permissionDenied
  /// The application has not declared what it uses the microphone for.
  case microphoneUseNotDeclared
  /// Too many calls are waiting.
  case busy

  /// The reason in one sentence.
  public var description: String {
    switch self {
    case .lockRequired: "lockRequired: hold the configuration lock to change this"
    case .refused(let operation, let code):
      "refused: the device refused \(operation.name), code \(code)"
    case .permissionDenied: "permissionDenied: the microphone may not be used"
    case .microphoneUseNotDeclared:
      "microphoneUseNotDeclared: say in the policy what the microphone is for"
    case .busy: "busy: too many calls wait for the device"
    }
  }
}
