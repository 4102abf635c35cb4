public import Foundation
import Room
import RoomClient

/// Which way media goes.
public enum Role: String, Sendable {
  /// Local media only.
  case sendonly
  /// Media of others only.
  case recvonly
  /// Both.
  case sendrecv
}

/// How a channel is entered.
public struct Configuration: Sendable {
  var core: SoraConfiguration

  /// What is called with the events of the channel; copies of the configuration share it.
  public var mediaChannelHandlers = MediaChannelHandlers()

  /// Enters a channel.
  ///
  /// - Parameters:
  ///   - url: where signaling is: `wss://host/signaling`.
  ///   - multistreamEnabled: whether several may send in the channel.
  public init(url: URL, channelId: String, role: Role, multistreamEnabled: Bool) {
    self.init(
      url: url.absoluteString, channelId: channelId, role: role,
      multistreamEnabled: multistreamEnabled)
  }

  /// Enters a channel whose address is a text.
  public init(url: String, channelId: String, role: Role, multistreamEnabled: Bool) {
    core = SoraConfiguration(
      url: url, channelId: channelId, role: SoraConfiguration.Role(role),
      multistreamEnabled: multistreamEnabled)
  }

  /// The channel.
  public var channelId: String {
    get { core.channelId }
    set { core.channelId = newValue }
  }
  /// Which way media goes.
  public var role: Role {
    get { Role(core.role) }
    set { core.role = SoraConfiguration.Role(newValue) }
  }
  /// Whether several may send in the channel.
  public var multistreamEnabled: Bool {
    get { core.multistreamEnabled ?? true }
    set { core.multistreamEnabled = newValue }
  }
  /// The id of the local stream, which tells it apart from received ones.
  public var publisherStreamId: String {
    get { core.publisherStreamId }
    set { core.publisherStreamId = newValue }
  }

  // MARK: What is not of the page

  /// How long connecting may take, in seconds; not of the page.
  public var connectionTimeout: Int {
    get { core.connectionTimeout }
    set { core.connectionTimeout = newValue }
  }
  /// Whether there is video; not of the page.
  public var videoEnabled: Bool {
    get { core.videoEnabled }
    set { core.videoEnabled = newValue }
  }
  /// Whether there is audio; not of the page.
  public var audioEnabled: Bool {
    get { core.audioEnabled }
    set { core.audioEnabled = newValue }
  }
  /// Whether the camera is on at first; not of the page.
  public var initialCameraEnabled: Bool {
    get { core.initialCameraEnabled }
    set { core.initialCameraEnabled = newValue }
  }
  /// Whether the microphone is on at first; not of the page.
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
