import FoundationEssentials
import Room
import Signaling

/// The right to enter rooms for a while.
public struct RoomToken: Hashable, Sendable {
  /// What the service is shown.
  public var text: String
  /// For how long it is valid; nil: it does not end.
  public var lifetimeSeconds: Int64?

  /// Creates a token.
  public init(text: String, lifetimeSeconds: Int64? = nil) {
    self.text = text
    self.lifetimeSeconds = lifetimeSeconds
  }
}

/// Who gives tokens: it is asked when somebody signs in, and again before a token ends.
///
/// Keys and secrets stay with it: the room and its take have the tokens alone.
public protocol Authenticator: Sendable {
  /// Gives a token.
  ///
  /// - Throws: `RoomError` 1101 to 1105.
  func token() async throws(RoomError) -> RoomToken
}

/// A token that somebody else got.
public struct TokenAuthenticator: Authenticator {
  private let value: RoomToken

  /// Signs in to a service with a token.
  public init(serviceId: String, token: String, lifetimeSeconds: Int64? = nil) {
    value = RoomToken(text: token, lifetimeSeconds: lifetimeSeconds)
  }

  /// Gives the token.
  public func token() async throws(RoomError) -> RoomToken {
    guard !value.text.isEmpty else {
      throw RoomError(.signInIncomplete, RoomErrorCode.signInIncomplete.meaning)
    }
    return value
  }
}

/// Asks a service for tokens over HTTP, with the key and the secret of an application.
///
/// `POST endpoint {"serviceId", "key", "secret"}` answers `{"token", "expiresIn"}`.
public struct ServiceAuthenticator: Authenticator {
  private let serviceId: String
  private let serviceSecret: String
  private let endpoint: String

  /// - Parameters:
  ///   - serviceSecret: `key:secret`.
  ///   - endpoint: where tokens are given, as `https://rooms.example/token`.
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

  /// Asks for a token.
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
