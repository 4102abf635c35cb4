public import Dispatch
public import Foundation
public import Live
public import RetakeRTC
import Room
import RoomClient

/// The audio output that a mode uses.
public enum AudioOutput: Sendable {
  /// The route's normal output.
  case `default`
  /// The loudspeaker.
  case speaker
}

/// A combination of category, mode, options and port.
public enum AudioMode: Sendable {
  /// A category with the default mode.
  case `default`(category: AVAudioSession.Category, output: AudioOutput)
  /// A video call: `playAndRecord` with the loudspeaker.
  case videoChat
  /// A voice call: `playAndRecord`.
  case voiceChat(output: AudioOutput)

  fileprivate var choice: AudioModeChoice {
    switch self {
    case .default(let category, let output): .plain(category, toSpeaker: output == .speaker)
    case .videoChat: .videoChat
    case .voiceChat(let output): .voiceChat(toSpeaker: output == .speaker)
    }
  }
}

/// The API of the WebRTC SFU Sora SDK for iOS, for Retake's client of Sora servers.
///
/// It is source-compatible with the types, methods, handlers and values on the page about audio
/// operations in the SDK's documentation (as of iOS 14). That page assumes a connected channel, so
/// `connect` and the other members needed to connect follow other descriptions of the SDK.
///
/// Handlers are called one at a time on `callbackQueue`.
public final class Sora: Sendable {
  /// The shared object.
  public static let shared = Sora()

  let machine = MachineSession()
  let calls = CallbackQueue(label: "RetakeSora.callbacks")

  private init() {}

  // MARK: Beyond the audio page of the SDK's documentation

  /// The serial queue on which handlers are called.
  ///
  /// Set it before creating the first channel; use `.main` if handlers must run on the main thread.
  public var callbackQueue: DispatchQueue {
    get { calls.queue }
    set { calls.queue = newValue }
  }

  /// Sets the session for channels created from now on; nil selects a session that is not recorded.
  public func use(_ session: Session?) { machine.use(session) }

  /// Records channels created from now on, with their connections and audio.
  /// - Throws: `SessionError` if the take cannot be written.
  public func record(to path: String) throws { try machine.record(to: path) }

  /// Closes all connections, and completes a recorded session's take.
  /// - Throws: `TapeError` if writing failed; everything written before stays valid.
  public func finish() async throws { try await machine.finish() }

  /// Connects to a channel.
  /// - Parameter handler: called once with the channel, or the error.
  /// - Returns: a task that can cancel the attempt.
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

  /// Changes the audio session's category, mode, options and port together.
  ///
  /// Call this once a channel is connected, because connecting sets category and mode again.
  /// - Parameter options: the options to set; `defaultToSpeaker` is added if the output is the
  ///   loudspeaker.
  /// - Returns: the device's error, if any.
  public func setAudioMode(
    _ mode: AudioMode,
    options: AVAudioSession.CategoryOptions = [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay]
  ) -> Result<Void, any Error> {
    Result { try RTCAudioSession.sharedInstance().apply(mode.choice, options: options) }
  }

  /// Whether the device waits for `audioEnabled`.
  public var usesManualAudio: Bool {
    get { RTCAudioSession.sharedInstance().useManualAudio }
    set { RTCAudioSession.sharedInstance().useManualAudio = newValue }
  }

  /// Whether the device may run while `usesManualAudio` is set.
  public var audioEnabled: Bool {
    get { RTCAudioSession.sharedInstance().isAudioEnabled }
    set { RTCAudioSession.sharedInstance().isAudioEnabled = newValue }
  }
}

/// An attempt to connect.
public final class ConnectionTask: Sendable {
  private let channel: MediaChannel

  init(_ channel: MediaChannel) { self.channel = channel }

  /// Cancels the attempt; its handler receives an error.
  public func cancel() { channel.disconnect() }
}

// MARK: - Configuration

/// The directions of media that a channel uses.
public enum Role: String, Sendable {
  /// Only sends.
  case sendonly
  /// Only receives.
  case recvonly
  /// Sends and receives.
  case sendrecv
}

/// A channel's configuration.
public struct Configuration: Sendable {
  var core: SoraConfiguration

  /// Handlers for the channel's events; copies of the configuration share them.
  public var mediaChannelHandlers = MediaChannelHandlers()

  /// Creates a channel's configuration.
  /// - Parameters:
  ///   - url: the signaling URL: `wss://host/signaling`.
  ///   - multistreamEnabled: whether several participants may send in the channel.
  public init(url: URL, channelId: String, role: Role, multistreamEnabled: Bool) {
    self.init(
      url: url.absoluteString, channelId: channelId, role: role,
      multistreamEnabled: multistreamEnabled)
  }

  /// Creates a channel's configuration, with the URL as a string.
  public init(url: String, channelId: String, role: Role, multistreamEnabled: Bool) {
    core = SoraConfiguration(
      url: url, channelId: channelId, role: SoraConfiguration.Role(role),
      multistreamEnabled: multistreamEnabled)
  }

  /// The channel's identifier.
  public var channelId: String {
    get { core.channelId }
    set { core.channelId = newValue }
  }
  /// The directions of media that the channel uses.
  public var role: Role {
    get { Role(core.role) }
    set { core.role = SoraConfiguration.Role(newValue) }
  }
  /// Whether several participants may send in the channel.
  public var multistreamEnabled: Bool {
    get { core.multistreamEnabled ?? true }
    set { core.multistreamEnabled = newValue }
  }
  /// The local stream's identifier, which distinguishes it from received streams.
  public var publisherStreamId: String {
    get { core.publisherStreamId }
    set { core.publisherStreamId = newValue }
  }

  // MARK: Beyond the audio page of the SDK's documentation

  /// The time limit for connecting, in seconds.
  public var connectionTimeout: Int {
    get { core.connectionTimeout }
    set { core.connectionTimeout = newValue }
  }
  /// Whether video is sent and received.
  public var videoEnabled: Bool {
    get { core.videoEnabled }
    set { core.videoEnabled = newValue }
  }
  /// Whether audio is sent and received.
  public var audioEnabled: Bool {
    get { core.audioEnabled }
    set { core.audioEnabled = newValue }
  }
  /// Whether the camera is initially enabled.
  public var initialCameraEnabled: Bool {
    get { core.initialCameraEnabled }
    set { core.initialCameraEnabled = newValue }
  }
  /// Whether the microphone is initially enabled.
  public var initialMicrophoneEnabled: Bool {
    get { core.initialMicrophoneEnabled }
    set { core.initialMicrophoneEnabled = newValue }
  }
}

extension Role {
  fileprivate init(_ core: SoraConfiguration.Role) {
    self =
      switch core {
      case .sendonly: .sendonly
      case .recvonly: .recvonly
      case .sendrecv: .sendrecv
      }
  }
}

extension SoraConfiguration.Role {
  fileprivate init(_ role: Role) {
    self =
      switch role {
      case .sendonly: .sendonly
      case .recvonly: .recvonly
      case .sendrecv: .sendrecv
      }
  }
}
