public import Dispatch
public import Live
public import RetakeRTC
import RoomClient

/// Where a mode sends audio.
public enum AudioOutput: Sendable {
  /// Where the route says.
  case `default`
  /// To the loudspeaker.
  case speaker
}

/// A choice of category, mode, options and port under one name.
public enum AudioMode: Sendable {
  /// A category, without a special mode.
  case `default`(category: AVAudioSession.Category, output: AudioOutput)
  /// A call with video: its category is `playAndRecord`, and it sounds from the loudspeaker.
  case videoChat
  /// A call: its category is `playAndRecord`.
  case voiceChat(output: AudioOutput)

  fileprivate var choice: AudioModeChoice {
    switch self {
    case .default(let category, let output): .plain(category, toSpeaker: output == .speaker)
    case .videoChat: .videoChat
    case .voiceChat(let output): .voiceChat(toSpeaker: output == .speaker)
    }
  }
}

/// The SDK of WebRTC SFU Sora for iOS by its names, over Retake's client of Sora servers.
///
/// It is compatible by interface with what the SDK's page on operations of audio shows (of the time
/// of iOS 14): types, methods, handlers and their values. That page begins where a channel is
/// connected; `connect` and what else a channel needs is named here as in descriptions of the same
/// SDK, and each says so.
///
/// Handlers are ordinary closures: they are called one after the other on `callbackQueue`.
public final class Sora: Sendable {
  /// The one object.
  public static let shared = Sora()

  let machine = MachineSession()
  let calls = CallbackQueue(label: "RetakeSora.callbacks")

  private init() {}

  // MARK: What is not of the page

  /// The serial queue on which handlers are called.
  ///
  /// Set it before the first channel: to `.main` in an application whose objects live there.
  public var callbackQueue: DispatchQueue {
    get { calls.queue }
    set { calls.queue = newValue }
  }

  /// Chooses the session that channels which are made from now on belong to; nil: one that is not
  /// recorded.
  public func use(_ session: Session?) { machine.use(session) }

  /// Records the channels that are made from now on, with their connections and their audio.
  ///
  /// - Throws: `SessionError` when the take cannot be written.
  public func record(to path: String) throws { try machine.record(to: path) }

  /// Ends all connections, and completes the take of channels that are recorded.
  ///
  /// - Throws: `TapeError` when something could not be written; what was written stays valid.
  public func finish() async throws { try await machine.finish() }

  /// Connects to a channel; not of the page.
  ///
  /// - Parameter handler: called once with the channel, or the error.
  /// - Returns: what ends the attempt.
  @discardableResult
  public func connect(
    configuration: Configuration,
    handler: @escaping (_ mediaChannel: MediaChannel?, _ error: (any Error)?) -> Void
  ) -> ConnectionTask {
    let channel = MediaChannel(configuration, calls, handler)
    Task { [machine] in await channel.connect(machine) }
    return ConnectionTask(channel)
  }

  // MARK: Audio

  /// Changes category, mode, options and port of the audio session in one.
  ///
  /// It is to be called when a channel is connected: connecting sets category and mode once more.
  ///
  /// - Parameter options: they take the place of the usual ones; the loudspeaker as output adds
  ///   `defaultToSpeaker`.
  /// - Returns: what the device refused, if anything.
  public func setAudioMode(
    _ mode: AudioMode,
    options: AVAudioSession.CategoryOptions = [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay]
  ) -> Result<Void, any Error> {
    Result { try RTCAudioSession.sharedInstance().apply(mode.choice, options: options) }
  }

  /// Whether the device waits for `audioEnabled`; not of the page.
  public var usesManualAudio: Bool {
    get { RTCAudioSession.sharedInstance().useManualAudio }
    set { RTCAudioSession.sharedInstance().useManualAudio = newValue }
  }

  /// Whether the device may run, with manual audio; not of the page.
  public var audioEnabled: Bool {
    get { RTCAudioSession.sharedInstance().isAudioEnabled }
    set { RTCAudioSession.sharedInstance().isAudioEnabled = newValue }
  }
}

/// An attempt to connect; not of the page.
public final class ConnectionTask: Sendable {
  private let channel: MediaChannel

  init(_ channel: MediaChannel) { self.channel = channel }

  /// Cancels the attempt; its handler receives an error.
  public func cancel() { channel.disconnect() }
}
