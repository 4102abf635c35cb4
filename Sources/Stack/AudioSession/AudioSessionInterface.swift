package import Media
import Wire

/// What an application asks of an audio session.
public enum AudioSessionCall: Hashable, Sendable, Codable {
  /// Takes the lock for changes of the configuration; it counts.
  case lock
  /// Gives it back.
  case unlock
  /// Sets all of the configuration.
  case configure(AudioSessionConfiguration)
  /// Sets what audio is used for.
  case setCategory(AudioSessionCategory, options: AudioSessionOptions)
  /// Sets what it is tuned for.
  case setMode(AudioSessionMode)
  /// Sends output elsewhere than the route says.
  case overridePort(AudioPortOverride)
  /// Takes or gives back the right to audio; it counts.
  case setActive(Bool)
  /// Asks for a rate, in Hz.
  case setPreferredSampleRate(Int)
  /// Asks for a period of input and output.
  case setPreferredIOBuffer(milliseconds: Int)
  /// Asks for channels.
  case setPreferredChannels(input: Int, output: Int)
  /// Asks for a clock in common.
  case setIOType(AudioIOType)
  /// Sets what is done to the voice; needs no lock.
  case setProcessing(AudioProcessingProfile)
  /// Goes into a mode under a lock of its own.
  case applyMode(AudioMode, options: AudioSessionOptions)
  /// Whether the device waits for `setAudioEnabled`.
  case useManualAudio(Bool)
  /// Whether the device may run, with manual audio.
  case setAudioEnabled(Bool)
  /// Asks for the microphone and makes it ready.
  case initializeInput
  /// A connection begins that needs audio.
  case openConnection(UInt32, sends: Bool, receives: Bool)
  /// It is connected: a connection that sends sets category and mode once more, over whatever the
  /// application set while it was connecting.
  case connectionEstablished(UInt32)
  /// It ends.
  case closeConnection(UInt32)
  /// Really stops the microphone (hard mute).
  case pauseRecording
  /// Starts it again.
  case resumeRecording
  /// A source gives no more audio: nothing is put in its place.
  case removeSource(UInt32)
  /// Reads the counters.
  case readCounters

  /// Whether the configuration lock has to be held.
  package var needsLock: Bool {
    switch self {
    case .configure, .setCategory, .setMode, .overridePort, .setActive, .setPreferredSampleRate,
      .setPreferredIOBuffer, .setPreferredChannels, .setIOType:
      true
    default: false
    }
  }
}

/// What happens to an audio session from outside.
public enum AudioDeviceEvent: Hashable, Sendable, Codable {
  /// Somebody else takes the device.
  case interruptionBegan
  /// The device is free again; whether it is proper to continue.
  case interruptionEnded(shouldResume: Bool)
  /// Audio goes another way, or in other formats.
  case routeChanged(AudioRouteChangeReason, AudioRoute)
  /// The system's server of audio has ended.
  case mediaServerTerminated
  /// It is there again.
  case mediaServerReset
  /// The system has activated the session by itself, as for a call of its own telephone.
  case externallyActivated
  /// It has deactivated it.
  case externallyDeactivated
}

/// What a device answers to an operation.
public enum AudioDeviceAnswer: Hashable, Sendable, Codable {
  /// It is done.
  case ok
  /// It was refused, with the device's number for why.
  case failed(code: Int32)
  /// What the user said about the microphone.
  case permission(AudioPermission)
}

/// What a session tells its application; the names and the order are those of the platforms.
public enum AudioSessionEvent: Hashable, Sendable, Codable {
  /// Somebody else has the device: the unit is left alone until that ends.
  case didBeginInterruption
  /// That has ended.
  case didEndInterruption(shouldResumeSession: Bool)
  /// Audio goes another way.
  case didChangeRoute(AudioRouteChangeReason, previous: AudioRoute, current: AudioRoute)
  /// The system's server of audio has ended.
  case mediaServerTerminated
  /// It is there again.
  case mediaServerReset
  /// Whether the device may run has changed.
  case didChangeCanPlayOrRecord(Bool)
  /// The first connection plays or records.
  case didStartPlayOrRecord
  /// The last one does no longer.
  case didStopPlayOrRecord
  /// The device is about to be asked.
  case willSetActive(Bool)
  /// It said yes.
  case didSetActive(Bool)
  /// It said no.
  case failedToSetActive(Bool, code: Int32)
  /// The device refused something that nobody had called for.
  case operationFailed(AudioDeviceOperation, code: Int32)
  /// Silence is put in the place of a source that gives nothing.
  case sourceStarved(AudioSourceID)
  /// The source is back, after so many blocks of silence.
  case sourceResumed(AudioSourceID, silentBlocks: Int)
  /// A source comes in another format: what did not fill 10 ms is lost.
  case sourceFormatChanged(AudioSourceID, from: AudioFormat, to: AudioFormat, lostFrames: Int)
  /// Audio of a source is dropped from now on.
  case sourceRefused(AudioSourceID, reason: String)

  /// The name without arguments.
  public var name: String { "\(self)".prefix { $0 != "(" }.description }
}

/// The answer to a call.
package enum AudioSessionReply: Hashable, Sendable {
  case done
  case failed(AudioSessionError)
  case counters(AudioDeviceCounters)
}

/// What goes into an audio session.
package enum AudioSessionAction: Sendable {
  case genesis(AudioSessionPolicy)
  case deadline
  case call(id: UInt32, AudioSessionCall)
  case event(AudioDeviceEvent)
  /// The answer to an operation by its number.
  case answer(operation: UInt32, AudioDeviceAnswer)
  /// A piece of recorded audio.
  case deliver(AudioSourceID, PCMChunk)
  /// Audio that a connection has received, to be played.
  case rendered(track: UInt32, AudioBlock)
  /// The device wants so many units of 10 ms to play.
  case pull(units: Int)
}

/// 10 ms of audio for the senders.
package struct CapturedBlock: Sendable {
  /// Which block it is, counted from 0.
  package var index: UInt64
  package var block: AudioBlock
  /// How many sources are in it; 0 for silence that was put in their place.
  package var sources: Int
}

/// Audio for the device.
package struct RenderedAudio: Sendable {
  /// Which unit of 10 ms is the first, counted from 0.
  package var index: UInt64
  package var units: Int
  /// The tracks that were heard in it; none is silence.
  package var tracks: Int
  /// The samples at 48 kHz; none where the received audio was not decoded.
  package var block: AudioBlock
}

/// What comes out of an audio session.
package enum AudioSessionEffect: Sendable {
  case operation(id: UInt32, AudioDeviceOperation)
  case reply(call: UInt32, AudioSessionReply)
  case event(AudioSessionEvent)
  case state(machine: String, from: String, to: String)
  case captured(CapturedBlock)
  case played(RenderedAudio)
  /// How a delivery went: the frames taken, or why none was.
  case delivered(Result<Int, AudioDeviceError>)
}

/// What was counted at the device.
public struct AudioDeviceCounters: Hashable, Sendable, Codable {
  /// Pieces of audio that were taken.
  public var deliveries = 0
  /// Frames in them, in the source's rate.
  public var deliveredFrames = 0
  /// Pieces that were dropped.
  public var drops = 0
  /// Frames in those.
  public var droppedFrames = 0
  /// The drops by the name of their reason.
  public var dropsByReason: [String: Int] = [:]
  /// Pieces that had another rate than 48 kHz.
  public var resampledDeliveries = 0
  /// How often a source changed its format.
  public var formatChanges = 0
  /// Frames that were lost by that, in the old rate.
  public var framesLostByFormatChange = 0
  /// How often a source gave nothing.
  public var starvations = 0
  /// Blocks of silence that were put in the place of sources.
  public var silentBlocks = 0
  /// Blocks dropped because other sources lagged behind.
  public var overflowedBlocks = 0
  /// Blocks of 10 ms that went to the senders.
  public var capturedBlocks = 0
  /// Units of 10 ms that the device pulled.
  public var playedUnits = 0
  /// Those of them that were silence.
  public var silentUnits = 0
  /// Received audio that was dropped because nobody pulled.
  public var overflowedFrames = 0

  /// Nothing was counted.
  public init() {}
}
