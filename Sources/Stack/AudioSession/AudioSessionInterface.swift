package import Media
import Wire

/// A call that an application makes to its audio session.
public enum AudioSessionCall: Hashable, Sendable, Codable {
  /// Acquires the configuration lock; may be nested.
  case lock
  /// Releases the configuration lock once; a nested lock stays held.
  case unlock
  /// Replaces the configuration; category, options and mode apply now, the rest when the device is
  /// next initialised.
  case configure(AudioSessionConfiguration)
  /// Sets the category and its options.
  case setCategory(AudioSessionCategory, options: AudioSessionOptions)
  /// Sets the mode within the category.
  case setMode(AudioSessionMode)
  /// Overrides the route's output port.
  case overridePort(AudioPortOverride)
  /// Activates the session, or removes one activation; removing the last one deactivates it.
  case setActive(Bool)
  /// Sets the preferred rate in Hz.
  case setPreferredSampleRate(Int)
  /// Sets how much audio the device should handle in each I/O period.
  case setPreferredIOBuffer(milliseconds: Int)
  /// Sets how many channels the device should capture and play.
  case setPreferredChannels(input: Int, output: Int)
  /// Sets whether input and output share a clock.
  case setIOType(AudioIOType)
  /// Sets voice processing; needs no lock.
  case setProcessing(AudioProcessingProfile)
  /// Enters a mode; acquires the lock itself.
  case applyMode(AudioMode, options: AudioSessionOptions)
  /// Sets whether the device waits for `setAudioEnabled`.
  case useManualAudio(Bool)
  /// Sets whether the device may run while audio is manual.
  case setAudioEnabled(Bool)
  /// Asks for permission to use the microphone, then prepares the device if a connection needs it.
  case initializeInput
  /// A connection was opened, with the directions in which it needs audio.
  case openConnection(UInt32, sends: Bool, receives: Bool)
  /// The connection is established.
  ///
  /// A sending connection sets the category `playAndRecord` and the configured mode again. This
  /// overrides any other category or `applyMode` preset that was set while connecting.
  case connectionEstablished(UInt32)
  /// A connection was closed and no longer needs audio.
  case closeConnection(UInt32)
  /// Stops the microphone at the device (hard mute).
  case pauseRecording
  /// Restarts the microphone after `pauseRecording`.
  case resumeRecording
  /// Removes all sources with this number, so that silence does not replace them once they end.
  case removeSource(UInt32)
  /// Reads the device's counters; changes nothing.
  case readCounters

  package var needsLock: Bool {
    switch self {
    case .configure, .setCategory, .setMode, .overridePort, .setActive, .setPreferredSampleRate,
      .setPreferredIOBuffer, .setPreferredChannels, .setIOType:
      true
    default: false
    }
  }
}

/// An event from the audio device or the system.
public enum AudioDeviceEvent: Hashable, Sendable, Codable {
  /// Another application started using the device.
  case interruptionBegan
  /// The device is free again; `shouldResume` says whether to continue.
  case interruptionEnded(shouldResume: Bool)
  /// The route or its formats changed.
  case routeChanged(AudioRouteChangeReason, AudioRoute)
  /// The system's audio server has terminated.
  case mediaServerTerminated
  /// The audio server is available again.
  case mediaServerReset
  /// The system has activated the session, for example for a telephone call.
  case externallyActivated
  /// The system has deactivated the session.
  case externallyDeactivated
}

/// The device's answer to an operation.
public enum AudioDeviceAnswer: Hashable, Sendable, Codable {
  /// The operation succeeded.
  case ok
  /// The operation failed with the device's error code.
  case failed(code: Int32)
  /// The user's decision about the microphone.
  case permission(AudioPermission)
}

/// An event for the application, named and ordered as on mobile platforms.
public enum AudioSessionEvent: Hashable, Sendable, Codable {
  /// Another application is using the device; the session leaves it alone until the interruption
  /// ends.
  case didBeginInterruption
  /// The device is free again; the argument says whether to continue playing and recording.
  case didEndInterruption(shouldResumeSession: Bool)
  /// The input or output port, or its format, changed.
  case didChangeRoute(AudioRouteChangeReason, previous: AudioRoute, current: AudioRoute)
  /// The system's audio server has terminated.
  case mediaServerTerminated
  /// The audio server is available again.
  case mediaServerReset
  /// Manual audio now permits (true) or forbids (false) playing and recording.
  case didChangeCanPlayOrRecord(Bool)
  /// The first connection started playing or recording.
  case didStartPlayOrRecord
  /// The last connection has stopped playing and recording.
  case didStopPlayOrRecord
  /// The session is about to be activated (true) or deactivated (false).
  case willSetActive(Bool)
  /// The session was activated (true) or deactivated (false).
  case didSetActive(Bool)
  /// The device refused to activate (true) or deactivate (false) the session.
  case failedToSetActive(Bool, code: Int32)
  /// The device refused an operation that the application did not request directly.
  case operationFailed(AudioDeviceOperation, code: Int32)
  /// A source provides no audio and is replaced by silence.
  case sourceStarved(AudioSourceID)
  /// The source provides audio again, after some blocks of silence.
  case sourceResumed(AudioSourceID, silentBlocks: Int)
  /// A source changed its format; audio too short to fill a 10 ms block was lost.
  case sourceFormatChanged(AudioSourceID, from: AudioFormat, to: AudioFormat, lostFrames: Int)
  /// A source's audio is dropped until the session accepts it again.
  case sourceRefused(AudioSourceID, reason: String)

  /// The event's name without arguments.
  public var name: String { "\(self)".prefix { $0 != "(" }.description }
}

/// The reply to an application's call; it may come later, once the device has answered.
package enum AudioSessionReply: Hashable, Sendable {
  case done
  case failed(AudioSessionError)
  case counters(AudioDeviceCounters)
}

/// Everything that drives an audio session: calls, device events and audio.
package enum AudioSessionAction: Sendable {
  case genesis(AudioSessionPolicy)
  case deadline
  case call(id: UInt32, AudioSessionCall)
  case event(AudioDeviceEvent)
  case answer(operation: UInt32, AudioDeviceAnswer)
  /// Recorded audio of any length from one source.
  case deliver(AudioSourceID, PCMChunk)
  /// Audio received on a connection, for playback.
  case rendered(track: UInt32, AudioBlock)
  /// The device needs this many 10 ms units to play.
  case pull(units: Int)
}

/// 10 ms of captured audio for the senders.
package struct CapturedBlock: Sendable {
  /// The block's number, from 0.
  package var index: UInt64
  package var block: AudioBlock
  /// The number of sources that provided audio; 0 if silence replaces all of them.
  package var sources: Int
}

/// Audio for the device to play.
package struct RenderedAudio: Sendable {
  /// The number of the block's first 10 ms unit, from 0.
  package var index: UInt64
  package var units: Int
  /// The number of tracks mixed; 0 for silence.
  package var tracks: Int
  /// The samples at 48 kHz; silence where the received audio was not decoded.
  package var block: AudioBlock
}

/// Everything that leaves an audio session: device operations, replies, events and audio.
package enum AudioSessionEffect: Sendable {
  case operation(id: UInt32, AudioDeviceOperation)
  case reply(call: UInt32, AudioSessionReply)
  case event(AudioSessionEvent)
  case state(machine: String, from: String, to: String)
  case captured(CapturedBlock)
  case played(RenderedAudio)
  /// The result of a delivery: the number of frames accepted, or an error.
  case delivered(Result<Int, AudioDeviceError>)
}

/// Counters of accepted, dropped, mixed and played audio since the session was created.
public struct AudioDeviceCounters: Hashable, Sendable, Codable {
  /// Accepted chunks.
  public var deliveries = 0
  /// Frames in accepted chunks, at the source's rate.
  public var deliveredFrames = 0
  /// Chunks refused with an error.
  public var drops = 0
  /// Frames in refused chunks, at the source's rate.
  public var droppedFrames = 0
  /// Refused chunks by the error's name.
  public var dropsByReason: [String: Int] = [:]
  /// Accepted chunks at rates other than 48 kHz.
  public var resampledDeliveries = 0
  /// The number of times that a source continued in another format.
  public var formatChanges = 0
  /// Frames lost in format changes, at the old rate.
  public var framesLostByFormatChange = 0
  /// The number of times that a source stopped providing audio.
  public var starvations = 0
  /// Blocks of silence that replaced missing audio.
  public var silentBlocks = 0
  /// Blocks dropped because other sources lagged behind.
  public var overflowedBlocks = 0
  /// 10 ms blocks passed to the senders.
  public var capturedBlocks = 0
  /// 10 ms units pulled by the device.
  public var playedUnits = 0
  /// Pulled units that were silence.
  public var silentUnits = 0
  /// Received frames dropped because the playout queue had no room for them.
  public var overflowedFrames = 0

  /// Creates counters at zero.
  public init() {}
}

// MARK: - AudioErrors

/// The reason that audio was not accepted.
public enum AudioDeviceError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The session's own device is initialised, so the application's audio would act as a second
  /// microphone.
  case audioUnitActive
  /// The session's own device is not running, or is not recording.
  case audioUnitInactive
  /// The microphone is muted at the device.
  case recordingPaused
  /// The samples are not 16-bit.
  case unsupportedSamples(AudioSampleFormat)
  /// The rate is outside `AudioFormat.sampleRates`.
  case unsupportedRate(Int)
  /// The number of channels is outside `AudioFormat.channelCounts`.
  case unsupportedChannels(Int)
  /// The bytes end in the middle of a frame.
  case partialFrame(bytes: Int)
  /// The device captures in a different format than it announced, and is reinitialised for the
  /// actual format.
  case formatMismatch
  /// Sixteen sources are already being mixed.
  case tooManySources
  /// The chunk is longer than two seconds.
  case chunkTooLong(frames: Int)
  /// The device needs something that this machine lacks; the text says what.
  case unavailable(String)

  /// The error's name in takes.
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

  /// The error in one sentence.
  public var description: String {
    switch self {
    case .audioUnitActive:
      "the session's own device runs: use manual audio and keep it disabled to hand in audio"
    case .audioUnitInactive: "the session's own device does not run"
    case .recordingPaused: "recording is paused at the device"
    case .unsupportedSamples(let samples):
      "samples are \(samples.rawValue): 16 bits are needed, s16le or s16be"
    case .unsupportedRate(let rate): "the rate is \(rate) Hz: 8000 to 192000 are supported"
    case .unsupportedChannels(let count): "there are \(count) channels: 1 to 32 are supported"
    case .partialFrame(let bytes): "\(bytes) bytes do not fill whole frames"
    case .formatMismatch: "the device captures in an unreported format; it is prepared again"
    case .tooManySources: "16 sources are mixed already"
    case .chunkTooLong(let frames): "\(frames) frames at once are more than two seconds"
    case .unavailable(let what): what
    }
  }
}

/// The reason that a call to an audio session failed.
public enum AudioSessionError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// A setting was changed without holding the lock.
  case lockRequired
  /// The device refused an operation, with its own error code.
  case refused(AudioDeviceOperation, code: Int32)
  /// The user has not permitted the microphone.
  case permissionDenied
  /// The application has not declared why it uses the microphone.
  case microphoneUseNotDeclared
  /// Too many calls are waiting for the device, or too many connections are open.
  case busy

  /// The error in one sentence.
  public var description: String {
    switch self {
    case .lockRequired: "lockRequired: hold the configuration lock to change this"
    case .refused(let operation, let code):
      "refused: the device refused \(operation.name), code \(code)"
    case .permissionDenied: "permissionDenied: the microphone may not be used"
    case .microphoneUseNotDeclared:
      "microphoneUseNotDeclared: state in the policy what the microphone is used for"
    case .busy: "busy: too many calls wait for the device"
    }
  }
}
