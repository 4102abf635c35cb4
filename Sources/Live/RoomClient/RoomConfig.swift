import FoundationEssentials
public import Peer
public import Room
import Signaling

/// How a client takes part in a room: its name and role, limits, time-outs and connections.
public struct RoomConfig: Hashable, Sendable {
  /// The initial number of videos that can be received.
  public var videoReceiverInitialCount = 9
  /// The maximum number of received videos; subscribing to more is error 1322.
  public var videoReceiverMaximumCount = 20
  /// The number of video receivers added when all are in use.
  public var videoReceiverGrowthRate = 1
  /// The maximum number of voices played at once; nil for all.
  ///
  /// Retake's own rooms send only this many voices: the loudest. Other services send all voices,
  /// but only this many are played.
  public var audioOccupants: Int? = 4
  /// The time limit for connecting, in seconds.
  public var connectTimeoutSeconds = 30
  /// The local participant's name, as others see it; empty if there is none.
  public var displayName = ""
  /// Whether the client sends, receives, or both.
  public var role = RoomRole.both
  /// The local participant's metadata for others or for the service, as JSON, if any.
  public var metadata: String?

  /// The connections' base configuration; its ICE servers follow the service's.
  public var connection = PeerConfiguration()

  /// Creates the default configuration.
  public init() {}

  func configuration(_ server: RoomServer) -> RoomConfiguration {
    var configuration = RoomConfiguration(signaling: server.signaling)
    configuration.videoReceiverInitialCount = videoReceiverInitialCount
    configuration.videoReceiverMaximumCount = videoReceiverMaximumCount
    configuration.videoReceiverGrowthRate = videoReceiverGrowthRate
    configuration.audioOccupants = audioOccupants
    configuration.silencesWithoutSlot = true
    configuration.restartsOnceConnected = true
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

/// The directions of media that a participant uses.
public enum RoomRole: String, Hashable, Sendable, CaseIterable {
  /// Only sends.
  case sendonly
  /// Only receives.
  case recvonly
  /// Sends and receives.
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
  /// The parameters for joining, if the server's own configuration includes them.
  let join: RoomJoin?
  /// The Sora channel's configuration, if the server was created from one.
  let sora: SoraConfiguration?

  /// Returns a server for Retake's own rooms, run by `retake record serve --rooms`, with a URL such
  /// as `ws://host:port/rooms`.
  public static func retake(_ url: String, needsToken: Bool = false) -> RoomServer {
    RoomServer("room", [url], [:], checksRoomID: true, needsToken: needsToken)
  }

  /// Returns whether an identifier is valid in Retake's own rooms, that is, consists of 1 to 32
  /// letters, digits and hyphens.
  public static func isRoomID(_ text: String) -> Bool { RoomMachine.isRoomID(text) }

  /// Returns a Janus server with a URL such as `ws://host:8188/`.
  /// - Parameter options: `plugin` (`videoroom`, `audiobridge`, `echotest`), `pin`, `apisecret`,
  ///   `textroom` (a room of that plugin for user messages), ...
  public static func janus(_ url: String, options: [String: String] = [:]) -> RoomServer {
    RoomServer("janus", [url], options)
  }

  /// Returns a Sora server whose nodes have URLs such as `wss://host/signaling`.
  /// - Parameter options: fields to add to the `connect` message, by name.
  public static func sora(_ urls: [String], options: [String: String] = [:]) -> RoomServer {
    RoomServer("sora", urls, options)
  }

  /// Returns a Sora channel; its configuration has the names and defaults of Sora's own SDKs, and
  /// its role and metadata replace the room's.
  public static func sora(_ configuration: SoraConfiguration) -> RoomServer {
    let signaling = configuration.signaling
    var options = signaling.options
    options["tells_signaling"] = "true"
    return RoomServer(
      signaling.protocolName, signaling.urls, options, join: configuration.join,
      sora: configuration)
  }

  /// Creates a server from the name of its protocol.
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

/// A refused call or another failure in a room.
public struct RoomError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error code, such as 1301 for an invalid room identifier.
  public var code: RoomErrorCode
  /// What happened, in one sentence.
  public var message: String
  /// Whether the error ends the room, which then disconnects.
  public var isCritical: Bool
  /// The number of the video or audio concerned; nil if there is none.
  public var mediaID: Int?

  /// Creates an error, which is not critical by default.
  public init(
    _ code: RoomErrorCode, _ message: String, isCritical: Bool = false, mediaID: Int? = nil
  ) {
    self.code = code
    self.message = message
    self.isCritical = isCritical
    self.mediaID = mediaID
  }

  init(_ failure: SignalingFailure) {
    self.init(
      failure.code, failure.message, isCritical: failure.isCritical,
      mediaID: failure.media.map { Int($0.number) })
  }

  /// The code followed by the message.
  public var description: String { "\(code.rawValue): \(message)" }
}

// MARK: - Authenticator

/// The right to enter rooms for a limited time.
public struct RoomToken: Hashable, Sendable {
  /// The token's text, as the service issued it.
  public var text: String
  /// How long the token is valid; nil if it does not expire.
  public var lifetimeSeconds: Int64?

  /// Creates a token; without a lifetime it does not expire.
  public init(text: String, lifetimeSeconds: Int64? = nil) {
    self.text = text
    self.lifetimeSeconds = lifetimeSeconds
  }
}

/// Provides tokens when a room signs in, and again before a token expires.
///
/// An authenticator holds keys and secrets; rooms and their takes only contain tokens.
public protocol Authenticator: Sendable {
  /// Returns a new token.
  /// - Throws: `RoomError` 1101 to 1105 if the sign-in fails.
  func token() async throws(RoomError) -> RoomToken
}

/// Provides a token obtained elsewhere.
public struct TokenAuthenticator: Authenticator {
  private let value: RoomToken

  /// Creates an authenticator that always returns this token.
  public init(serviceId: String, token: String, lifetimeSeconds: Int64? = nil) {
    value = RoomToken(text: token, lifetimeSeconds: lifetimeSeconds)
  }

  /// Returns the token passed to the initialiser.
  public func token() async throws(RoomError) -> RoomToken {
    guard !value.text.isEmpty else {
      throw RoomError(.signInIncomplete, RoomErrorCode.signInIncomplete.meaning)
    }
    return value
  }
}

/// Requests tokens from a service over HTTP, with an application's key and secret.
///
/// The service answers `POST endpoint {"serviceId", "key", "secret"}` with `{"token",
/// "expiresIn"}`.
public struct ServiceAuthenticator: Authenticator {
  private let serviceId: String
  private let serviceSecret: String
  private let endpoint: String

  /// Creates an authenticator for a service.
  /// - Parameters:
  ///   - serviceSecret: `key:secret`.
  ///   - endpoint: the URL that issues tokens, such as `https://rooms.example/token`.
  public init(serviceId: String, serviceSecret: String, endpoint: String) {
    self.serviceId = serviceId
    self.serviceSecret = serviceSecret
    self.endpoint = endpoint
  }

  private struct Question: Encodable {
    var serviceId: String
    var key: String
    var secret: String
  }

  private struct Answer: Decodable {
    var token: String
    var expiresIn: Int64?
  }

  /// Requests a token from the endpoint.
  public func token() async throws(RoomError) -> RoomToken {
    let parts = serviceSecret.split(separator: ":", maxSplits: 1)
    guard !serviceId.isEmpty, parts.count == 2 else {
      throw RoomError(
        .signInIncomplete,
        "a service needs an identifier, and a secret as key:secret")
    }
    let question = Question(
      serviceId: serviceId, key: String(parts[0]), secret: String(parts[1]))
    guard let body = try? JSONEncoder().encode(question) else {
      throw RoomError(.signInIncomplete, RoomErrorCode.signInIncomplete.meaning)
    }
    let response: HTTPResponse
    do throws(HTTPError) {
      response = try await HTTPClient().post(
        endpoint, json: String(decoding: body, as: UTF8.self))
    } catch {
      throw RoomError(.signInUnreachable, error.reason)
    }
    guard response.status == 200 else {
      throw RoomError(.signInRefused, "the service answered \(response.status)")
    }
    guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(response.body)) else {
      throw RoomError(.signInUnreadable, RoomErrorCode.signInUnreadable.meaning)
    }
    return RoomToken(text: answer.token, lifetimeSeconds: answer.expiresIn)
  }
}
