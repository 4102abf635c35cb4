public import Peer
public import Room

/// How a room behaves.
public struct RoomConfig: Hashable, Sendable {
  /// How many videos are received at first.
  public var videoReceiverInitialCount = 9
  /// How many videos are received at most; subscribing to more is error 1322.
  public var videoReceiverMaximumCount = 20
  /// By how many the receivers grow when all are taken.
  public var videoReceiverGrowthRate = 1
  /// How many voices are heard at once; nil: all.
  ///
  /// Retake's own rooms send no more than these, the loudest; of other services that send all, the
  /// rest is not played.
  public var audioOccupants: Int? = 4
  /// How long connecting may take, in seconds.
  public var connectTimeoutSeconds = 30
  /// The name under which others see this participant; empty: none.
  public var displayName = ""
  /// Whether local media is sent, that of others received, or both.
  public var role = RoomRole.both
  /// What the others or the service get of this participant, as JSON; nil: nothing.
  public var metadata: String?

  /// What the connections of the room behave like; the service names its own ICE servers, which
  /// come before these.
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

/// Which way media goes.
public enum RoomRole: String, Hashable, Sendable, CaseIterable {
  /// Local media only.
  case sendonly
  /// Media of others only.
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

/// A service with rooms, and the protocol that it speaks.
public struct RoomServer: Hashable, Sendable {
  let signaling: SignalingConfiguration
  let checksRoomID: Bool
  let needsToken: Bool
  /// What is said on entering, where the server's own configuration says it.
  let join: RoomJoin?
  /// The configuration of a Sora channel, where it was given as such.
  let sora: SoraConfiguration?

  /// Retake's own rooms, as `retake record serve --rooms` has them: `ws://host:port/rooms`.
  public static func retake(_ url: String, needsToken: Bool = false) -> RoomServer {
    RoomServer("room", [url], [:], checksRoomID: true, needsToken: needsToken)
  }

  /// Whether a room of Retake's own can be called that: 1 to 32 letters, digits and hyphens.
  public static func isRoomID(_ text: String) -> Bool { RoomMachine.isRoomID(text) }

  /// A Janus server: `ws://host:8188/`.
  ///
  /// - Parameter options: `plugin` (`videoroom`, `audiobridge`, `echotest`), `pin`, `apisecret`,
  ///   `textroom` (a room of that plugin for user messages), ...
  public static func janus(_ url: String, options: [String: String] = [:]) -> RoomServer {
    RoomServer("janus", [url], options)
  }

  /// A Sora server, by the addresses of its nodes: `wss://host/signaling`.
  ///
  /// - Parameter options: fields of the `connect` message by name.
  public static func sora(_ urls: [String], options: [String: String] = [:]) -> RoomServer {
    RoomServer("sora", urls, options)
  }

  /// A channel of a Sora server, by the names and with the defaults of its own SDKs; its role and
  /// metadata count instead of those of the room.
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
