public import Peer
public import Room

/// The configuration of a room.
public struct RoomConfig: Hashable, Sendable {
  /// The initial number of received videos.
  public var videoReceiverInitialCount = 9
  /// The maximum number of received videos; subscribing to more is error 1322.
  public var videoReceiverMaximumCount = 20
  /// By how many the pool of receivers grows when it is full.
  public var videoReceiverGrowthRate = 1
  /// How many voices are played at once; nil for all.
  ///
  /// Retake's own rooms send only these, the loudest; of services that send all, the rest is not
  /// played.
  public var audioOccupants: Int? = 4
  /// The time limit for connecting in seconds.
  public var connectTimeoutSeconds = 30
  /// The name of this participant for others; empty for none.
  public var displayName = ""
  /// Whether to send, to receive, or both.
  public var role = RoomRole.both
  /// Metadata of this participant for others or the service, as JSON, if any.
  public var metadata: String?

  /// The base configuration of connections; the service's ICE servers come before those in it.
  public var connection = PeerConfiguration()

  /// The defaults.
  public init() {}

  func configuration(_ server: RoomServer) -> RoomConfiguration {
    var configuration = RoomConfiguration(signaling: server.signaling)
    configuration.videoReceiverInitialCount = videoReceiverInitialCount
    configuration.videoReceiverMaximumCount = videoReceiverMaximumCount
    configuration.videoReceiverGrowthRate = videoReceiverGrowthRate
    configuration.audioOccupants = audioOccupants
    configuration.silencesWithoutSlot = true
    if server.signaling.protocolName == RetakeRoomMachine.name, let audioOccupants {
      configuration.signaling.options[RetakeRoomMachine.voicesOption] =
        String(min(max(0, audioOccupants), 1_000))
    }
    let seconds = min(max(1, connectTimeoutSeconds), 86_400)
    configuration.connectTimeoutMilliseconds = Int64(seconds) * 1000
    configuration.checksRoomID = server.checksRoomID
    configuration.needsToken = server.needsToken
    return configuration
  }
}

/// The direction of media.
public enum RoomRole: String, Hashable, Sendable, CaseIterable {
  /// Sending only.
  case sendonly
  /// Receiving only.
  case recvonly
  /// Both.
  case both

  var connection: ConnectionRole {
    switch self {
    case .sendonly: .up
    case .recvonly: .down
    case .both: .both
    }
  }
}

/// A service with rooms, and its protocol.
public struct RoomServer: Hashable, Sendable {
  let signaling: SignalingConfiguration
  let checksRoomID: Bool
  let needsToken: Bool
  /// The parameters for joining, if the server's own configuration has them.
  let join: RoomJoin?
  /// The configuration of a Sora channel, if it was given as such.
  let sora: SoraConfiguration?

  /// Retake's own rooms, as served by `retake record serve --rooms`: `ws://host:port/rooms`.
  public static func retake(_ url: String, needsToken: Bool = false) -> RoomServer {
    RoomServer("room", [url], [:], checksRoomID: true, needsToken: needsToken)
  }

  /// Whether an identifier is valid in Retake's own rooms: 1 to 32 letters, digits and hyphens.
  public static func isRoomID(_ text: String) -> Bool { RoomMachine.isRoomID(text) }

  /// A Janus server: `ws://host:8188/`.
  /// - Parameter options: `plugin` (`videoroom`, `audiobridge`, `echotest`), `pin`, `apisecret`,
  ///   `textroom` (a room of that plugin for user messages), ...
  public static func janus(_ url: String, options: [String: String] = [:]) -> RoomServer {
    RoomServer("janus", [url], options)
  }

  /// A Sora server by its nodes' URLs: `wss://host/signaling`.
  /// - Parameter options: fields of the `connect` message by name.
  public static func sora(_ urls: [String], options: [String: String] = [:]) -> RoomServer {
    RoomServer("sora", urls, options)
  }

  /// A channel of a Sora server, with the names and defaults of its own SDKs; its role and metadata
  /// replace those of the room.
  public static func sora(_ configuration: SoraConfiguration) -> RoomServer {
    let signaling = configuration.signaling
    var options = signaling.options
    options["tells_signaling"] = "true"
    return RoomServer(
      signaling.protocolName, signaling.urls, options, join: configuration.join,
      sora: configuration)
  }

  /// A service by the name of its protocol.
  package init(
    _ name: String, _ urls: [String], _ options: [String: String], checksRoomID: Bool = false,
    needsToken: Bool = false, join: RoomJoin? = nil, sora: SoraConfiguration? = nil
  ) {
    self.join = join
    self.sora = sora
    signaling = SignalingConfiguration(protocolName: name, urls: urls, options: options)
    self.checksRoomID = checksRoomID
    self.needsToken = needsToken
  }
}
