import FoundationEssentials
import Room
import Signaling

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
