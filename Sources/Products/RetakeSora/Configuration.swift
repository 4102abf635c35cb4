public import Foundation
import Room
import RoomClient

/// The direction of media.
public enum Role: String, Sendable {
  /// Local media only.
  case sendonly
  /// Remote media only.
  case recvonly
  /// Both.
  case sendrecv
}

/// The configuration of a channel.
public struct Configuration: Sendable {
  var core: SoraConfiguration

  /// The handlers of the channel's events; copies of the configuration share them.
  public var mediaChannelHandlers = MediaChannelHandlers()

  /// Creates the configuration of a channel.
  /// - Parameters:
  ///   - url: the signaling URL: `wss://host/signaling`.
  ///   - multistreamEnabled: whether several participants may send in the channel.
  public init(url: URL, channelId: String, role: Role, multistreamEnabled: Bool) {
    self.init(
      url: url.absoluteString, channelId: channelId, role: role,
      multistreamEnabled: multistreamEnabled)
  }

  /// Creates the configuration of a channel with the URL as a string.
  public init(url: String, channelId: String, role: Role, multistreamEnabled: Bool) {
    core = SoraConfiguration(
      url: url, channelId: channelId, role: SoraConfiguration.Role(role),
      multistreamEnabled: multistreamEnabled)
  }

  /// The identifier of the channel.
  public var channelId: String {
    get { core.channelId }
    set { core.channelId = newValue }
  }
  /// The direction of media.
  public var role: Role {
    get { Role(core.role) }
    set { core.role = SoraConfiguration.Role(newValue) }
  }
  /// Whether several participants may send in the channel.
  public var multistreamEnabled: Bool {
    get { core.multistreamEnabled ?? true }
    set { core.multistreamEnabled = newValue }
  }
  /// The identifier of the local stream, which distinguishes it from received ones.
  public var publisherStreamId: String {
    get { core.publisherStreamId }
    set { core.publisherStreamId = newValue }
  }

  // MARK: Beyond the page

  /// The timeout of connecting in seconds; not on the page.
  public var connectionTimeout: Int {
    get { core.connectionTimeout }
    set { core.connectionTimeout = newValue }
  }
  /// Whether video is sent and received; not on the page.
  public var videoEnabled: Bool {
    get { core.videoEnabled }
    set { core.videoEnabled = newValue }
  }
  /// Whether audio is sent and received; not on the page.
  public var audioEnabled: Bool {
    get { core.audioEnabled }
    set { core.audioEnabled = newValue }
  }
  /// Whether the camera is enabled at first; not on the page.
  public var initialCameraEnabled: Bool {
    get { core.initialCameraEnabled }
    set { core.initialCameraEnabled = newValue }
  }
  /// Whether the microphone is enabled at first; not on the page.
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
