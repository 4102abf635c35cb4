import Peer
import Room

/// A WHIP (RFC 9725) or WHEP (draft-ietf-wish-whep) client: signaling with a few HTTP requests.
public struct SessionClient: Sendable {
  /// The protocol spoken with the endpoint.
  public let kind: SessionProtocol
  /// The endpoint's URL, as passed to the initialiser.
  public let endpoint: String
  private let token: BearerToken?
  private let http: HTTPClient

  /// Creates a client for an endpoint, without sending a request.
  public init(
    _ kind: SessionProtocol, endpoint: String, token: BearerToken? = nil,
    http: HTTPClient = HTTPClient()
  ) {
    self.kind = kind
    self.endpoint = endpoint
    self.token = token
    self.http = http
  }

  /// A session that the server created.
  public struct Session: Hashable, Sendable {
    /// The session's URL, for later requests.
    public var url: String
    /// The ICE session's entity tag, with quotes; nil if the server does not support fragments.
    public var entityTag: String?
    /// The server's description: its answer, or its own offer.
    public var description: String
    /// Whether the server offers instead of answering (WHEP only).
    public var isCounterOffer = false
    /// The STUN and TURN servers that the response names; empty if it names none.
    public var iceServers: [LinkedICEServer] = []
  }

  private var access: SessionAccess { SessionAccess(endpoint: endpoint, token: token?.text) }

  /// Returns the ICE servers that the endpoint lists before a session exists; empty if it lists
  /// none.
  public func iceServers() async throws(HTTPError) -> [LinkedICEServer] {
    let response = try await send(access.options)
    return response.isGood ? response.linkedICEServers : []
  }

  /// Sends an offer and returns the session with the server's answer or, for WHEP, its own offer.
  public func open(offer: String) async throws(HTTPError) -> Session {
    let response = try await send(access.open(offer: offer))
    do throws(SessionRefusal) {
      let opening = try response.opening(takesOffers: kind == .whep, hasToken: token != nil)
      return Session(
        url: opening.session, entityTag: opening.entityTag, description: opening.description,
        isCounterOffer: opening.isCounterOffer, iceServers: response.linkedICEServers)
    } catch {
      throw HTTPError(reason: error.reason)
    }
  }

  /// Sends an answer to the server's offer.
  public func answer(_ answer: String, in session: Session) async throws(HTTPError) {
    let response = try await send(access.answer(answer, session: session.url))
    guard response.isGood else { throw refusal(response) }
  }

  /// Sends candidates.
  /// - Returns: false if the server accepts no candidates (RFC 9725 section 4.3.1). That is not a
  ///   failure, because the server also learns addresses from connectivity checks.
  public func add(fragment: String, to session: Session) async throws(HTTPError) -> Bool {
    let response = try await send(
      access.patch(fragment, session: session.url, match: session.entityTag))
    if response.refusesCandidates { return false }
    guard response.isGood else { throw refusal(response) }
    return true
  }

  /// Restarts ICE: sends new ICE parameters, and returns the server's parameters.
  /// - Returns: the server's fragment; `session` has the new entity tag.
  public func restart(fragment: String, of session: inout Session) async throws(HTTPError)
    -> String
  {
    let response = try await send(access.patch(fragment, session: session.url, match: "*"))
    do throws(SessionRefusal) {
      let text = try response.restart(hasToken: token != nil)
      session.entityTag = response.entityTag ?? session.entityTag
      return text
    } catch {
      throw HTTPError(reason: error.reason)
    }
  }

  /// Ends the session.
  public func close(_ session: Session) async throws(HTTPError) {
    let response = try await send(access.close(session: session.url))
    guard response.isGood else { throw refusal(response) }
  }

  /// Sends a request and follows redirects.
  private func send(_ request: SessionRequest) async throws(HTTPError) -> SessionResponse {
    var request = request
    while true {
      let asked = request.http
      let response = try await http.send(
        asked.method, asked.url, headers: asked.fields.map { ($0.name, $0.value) },
        body: asked.body.isEmpty ? nil : asked.body)
      let fields = response.headers.map { HTTPField($0.name, $0.value) }
      switch request.follow(status: response.status, fields: fields, body: response.body) {
      case .again(let next): request = next
      case .answered(let answer): return answer
      case .failed(let reason): throw HTTPError(reason: reason)
      }
    }
  }

  private func refusal(_ response: SessionResponse) -> HTTPError {
    HTTPError(reason: response.refusal(hasToken: token != nil).reason)
  }
}

extension SessionResponse {
  fileprivate var linkedICEServers: [LinkedICEServer] {
    LinkedICEServer.all(inField: field("Link") ?? "")
  }
}

extension HTTPResponse {
  /// Returns a header field's value; several values are joined as a list.
  package func header(_ name: String) -> String? {
    let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  /// The body's media type in lower case, without parameters.
  var mediaType: String {
    guard let field = header("Content-Type") else { return "" }
    return (field.split(separator: ";").first ?? "").trimmed.lowercased()
  }

  /// The server's explanation: a problem's detail or title, an error, or the text itself.
  package var sentence: String? {
    SessionResponse(
      status: status, fields: headers.map { HTTPField($0.name, $0.value) }, body: body, url: ""
    ).sentence
  }
}

// MARK: - LinkedICEServer

/// An ICE server in a `Link` field (RFC 9725 section 4.6).
public struct LinkedICEServer: Hashable, Sendable {
  /// The server's URI: `stun:...`, `turn:...`, ...
  public var uri: String
  /// The user name for a TURN server.
  public var username: String?
  /// The password for a TURN server.
  public var credential: String?

  /// Creates a server with its credentials, if any.
  public init(uri: String, username: String? = nil, credential: String? = nil) {
    self.uri = uri
    self.username = username
    self.credential = credential
  }

  /// The server's `Link` field value.
  package var field: String {
    var field = "<\(uri)>; rel=\"ice-server\""
    if let username { field += "; username=\(LinkedICEServer.quoted(username))" }
    if let credential {
      field += "; credential=\(LinkedICEServer.quoted(credential)); credential-type=\"password\""
    }
    return field
  }

  /// Formats a quoted string (RFC 9110 section 5.6.4).
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for character in text {
      if character == "\"" || character == "\\" { quoted += "\\" }
      quoted.append(character)
    }
    return quoted + "\""
  }

  /// Returns the ICE servers in a response's links.
  static func all(in response: HTTPResponse) -> [LinkedICEServer] {
    all(inField: response.header("Link") ?? "")
  }

  /// Returns the ICE servers in a `Link` field: `<uri>; rel="ice-server"; ...` (RFC 8288).
  static func all(inField field: String) -> [LinkedICEServer] {
    LinkField.iceServers(field).map {
      LinkedICEServer(
        uri: $0.urls.first ?? "", username: $0.username, credential: $0.credential)
    }
  }
}
