import FoundationEssentials
public import Peer
public import Room
import Signaling

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

/// Why a room refused a call, or what went wrong in it.
public struct RoomError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error code.
  public var code: RoomErrorCode
  /// The event as a sentence.
  public var message: String
  /// Whether the room cannot continue; it is disconnected next.
  public var isCritical: Bool
  /// The video or audio concerned, if any.
  public var mediaID: Int?

  /// Creates an error.
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

  /// The code and the message.
  public var description: String { "\(code.rawValue): \(message)" }
}

// MARK: - Authenticator

/// The right to enter rooms for a limited time.
public struct RoomToken: Hashable, Sendable {
  /// The text for the service.
  public var text: String
  /// Its lifetime; nil if it does not expire.
  public var lifetimeSeconds: Int64?

  /// Creates a token.
  public init(text: String, lifetimeSeconds: Int64? = nil) {
    self.text = text
    self.lifetimeSeconds = lifetimeSeconds
  }
}

/// Provides tokens: asked when signing in, and again before a token expires.
///
/// It keeps keys and secrets; rooms and their takes only get tokens.
public protocol Authenticator: Sendable {
  /// Returns a token.
  /// - Throws: `RoomError` 1101 to 1105.
  func token() async throws(RoomError) -> RoomToken
}

/// A token obtained elsewhere.
public struct TokenAuthenticator: Authenticator {
  private let value: RoomToken

  /// Creates an authenticator with a token for a service.
  public init(serviceId: String, token: String, lifetimeSeconds: Int64? = nil) {
    value = RoomToken(text: token, lifetimeSeconds: lifetimeSeconds)
  }

  /// Returns the token.
  public func token() async throws(RoomError) -> RoomToken {
    guard !value.text.isEmpty else {
      throw RoomError(.signInIncomplete, RoomErrorCode.signInIncomplete.meaning)
    }
    return value
  }
}

/// Requests tokens from a service over HTTP, with an application's key and secret.
///
/// `POST endpoint {"serviceId", "key", "secret"}` answers `{"token", "expiresIn"}`.
public struct ServiceAuthenticator: Authenticator {
  private let serviceId: String
  private let serviceSecret: String
  private let endpoint: String

  /// - Parameters:
  ///   - serviceSecret: `key:secret`.
  ///   - endpoint: the URL for tokens, such as `https://rooms.example/token`.
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

  /// Requests a token.
  public func token() async throws(RoomError) -> RoomToken {
    let parts = serviceSecret.split(separator: ":", maxSplits: 1)
    guard !serviceId.isEmpty, parts.count == 2 else {
      throw RoomError(.signInIncomplete, "a service has an identifier, and a secret as key:secret")
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
