import FoundationEssentials

/// A client of WHIP (RFC 9725) or WHEP (draft-ietf-wish-whep): signaling by a few HTTP requests.
public struct SessionClient: Sendable {
  /// What is spoken.
  public let kind: SessionProtocol
  /// The endpoint as the user gave it.
  public let endpoint: String
  private let token: BearerToken?
  private let http: HTTPClient

  /// Creates a client of an endpoint.
  public init(
    _ kind: SessionProtocol, endpoint: String, token: BearerToken? = nil,
    http: HTTPClient = HTTPClient()
  ) {
    self.kind = kind
    self.endpoint = endpoint
    self.token = token
    self.http = http
  }

  /// A session that the server has begun.
  public struct Session: Hashable, Sendable {
    /// Where it is reached.
    public var url: String
    /// Names the ICE session, with its quotes; nil when the server takes no fragments.
    public var entityTag: String?
    /// The server's description: its answer, or its own offer.
    public var description: String
    /// Whether the server offers instead of answering (WHEP only).
    public var isCounterOffer = false
    /// The ICE servers that the server names.
    public var iceServers: [LinkedICEServer] = []
  }

  private static let redirectsMaximum = 5

  /// The ICE servers that the endpoint names before a session begins; none when it tells nothing.
  public func iceServers() async throws(HTTPError) -> [LinkedICEServer] {
    let (response, _) = try await send("OPTIONS", endpoint)
    guard (200..<300).contains(response.status) else { return [] }
    return LinkedICEServer.all(in: response)
  }

  /// Offers, and gets an answer.
  public func open(offer: String) async throws(HTTPError) -> Session {
    let (response, url) = try await send(
      "POST", endpoint,
      [("Content-Type", "application/sdp"), ("Accept", "application/sdp")], Array(offer.utf8))
    let isDescription = response.mediaType == "application/sdp" && !response.body.isEmpty
    let isCounterOffer = kind == .whep && response.status == 406 && isDescription
    guard response.status == 201 || isCounterOffer else { throw refusal(response, url) }
    guard isDescription else {
      throw HTTPError(reason: "\(url) answered with status 201 but without application/sdp")
    }
    guard let location = response.header("Location"), let session = HTTPTarget.url(location, url)
    else { throw HTTPError(reason: "\(url) gave no usable Location of the session") }
    return Session(
      url: session, entityTag: response.header("ETag"), description: response.text,
      isCounterOffer: isCounterOffer, iceServers: LinkedICEServer.all(in: response))
  }

  /// Answers the server's own offer.
  public func answer(_ answer: String, in session: Session) async throws(HTTPError) {
    let (response, url) = try await send(
      "PATCH", session.url, [("Content-Type", "application/sdp")], Array(answer.utf8))
    guard (200..<300).contains(response.status) else { throw refusal(response, url) }
  }

  /// Tells candidates.
  ///
  /// - Returns: false when the server takes none (RFC 9725 section 4.3.1), which is no failure:
  ///   checks from addresses that it does not know tell it of them as well.
  public func add(fragment: String, to session: Session) async throws(HTTPError) -> Bool {
    let (response, url) = try await patch(fragment, session, match: session.entityTag)
    if [405, 415, 422, 501].contains(response.status) { return false }
    guard (200..<300).contains(response.status) else { throw refusal(response, url) }
    return true
  }

  /// Restarts ICE: tells the new parameters and gets those of the server.
  ///
  /// - Returns: the server's fragment; the session has the new entity tag.
  public func restart(fragment: String, of session: inout Session) async throws(HTTPError)
    -> String
  {
    let (response, url) = try await patch(fragment, session, match: "*")
    guard response.status == 200, !response.body.isEmpty else { throw refusal(response, url) }
    session.entityTag = response.header("ETag") ?? session.entityTag
    return response.text
  }

  /// Ends the session.
  public func close(_ session: Session) async throws(HTTPError) {
    let (response, url) = try await send("DELETE", session.url)
    guard (200..<300).contains(response.status) else { throw refusal(response, url) }
  }

  // MARK: Requests

  private func patch(_ fragment: String, _ session: Session, match: String?)
    async throws(HTTPError) -> (HTTPResponse, String)
  {
    var fields = [(name: "Content-Type", value: "application/trickle-ice-sdpfrag")]
    if let match { fields.append(("If-Match", match)) }
    return try await send("PATCH", session.url, fields, Array(fragment.utf8))
  }

  /// Sends a request and follows redirects that keep the method (RFC 9110 section 15.4).
  private func send(
    _ method: String, _ url: String, _ fields: [(name: String, value: String)] = [],
    _ body: [UInt8]? = nil
  ) async throws(HTTPError) -> (response: HTTPResponse, url: String) {
    var place = url
    for _ in 0...SessionClient.redirectsMaximum {
      var headers = fields
      // Another server has no business knowing the token.
      if let token, HTTPTarget.haveSameOrigin(place, endpoint) {
        headers.append(("Authorization", token.field))
      }
      let response = try await http.send(method, place, headers: headers, body: body)
      guard response.status == 307 || response.status == 308 else { return (response, place) }
      guard let location = response.header("Location"), let next = HTTPTarget.url(location, place)
      else { throw HTTPError(reason: "\(place) redirects without a usable Location") }
      place = next
    }
    throw HTTPError(
      reason: "\(url) redirects more than \(SessionClient.redirectsMaximum) times")
  }

  private func refusal(_ response: HTTPResponse, _ url: String) -> HTTPError {
    let hint =
      switch response.status {
      case 401, 403: token == nil ? "; give a token with --token" : "; check --token"
      default: ""
      }
    let told = response.sentence.map { ": \($0)" } ?? ""
    return HTTPError(reason: "\(url) answered with status \(response.status)\(told)\(hint)")
  }
}

extension HTTPTarget {
  /// The absolute URL that a reference means which came from some URL (RFC 3986 section 5).
  static func url(_ reference: String, _ base: String) -> String? {
    guard let base = URL(string: base), let url = URL(string: reference, relativeTo: base) else {
      return nil
    }
    return url.absoluteString
  }

  static func haveSameOrigin(_ one: String, _ other: String) -> Bool {
    guard let one = try? HTTPTarget(one), let other = try? HTTPTarget(other) else { return false }
    return one.host.lowercased() == other.host.lowercased() && one.port == other.port
      && one.isSecure == other.isSecure
  }
}

extension HTTPResponse {
  /// The value of a header field; several are joined as one list.
  package func header(_ name: String) -> String? {
    let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  /// The media type of the body in lower case, without parameters.
  var mediaType: String {
    guard let field = header("Content-Type") else { return "" }
    return (field.split(separator: ";").first ?? "").trimmed.lowercased()
  }

  /// What the server says in words: a problem's detail or title, an error, or the text itself.
  package var sentence: String? {
    if let words = decodedJSON(RefusalWords.self, from: body) {
      return words.detail ?? words.title ?? words.error
    }
    let text = text.prefix(200).split(whereSeparator: \.isNewline).joined(separator: " ")
    return text.isEmpty || mediaType == "text/html" ? nil : text
  }
}

/// The members of the refusals of several servers.
private struct RefusalWords: Decodable {
  var detail: String?
  var title: String?
  var error: String?
}
