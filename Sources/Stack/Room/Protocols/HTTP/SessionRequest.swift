/// One request of a WHIP or WHEP client (RFC 9725, draft-ietf-wish-whep), with its redirects.
package struct SessionRequest: Hashable, Sendable {
  /// The result of a response.
  package enum Step: Hashable, Sendable {
    /// Send the request again to another URL.
    case again(SessionRequest)
    case answered(SessionResponse)
    /// The failure, as a sentence.
    case failed(String)
  }

  package static let redirectsMaximum = 5
  package static let descriptionType = "application/sdp"
  package static let fragmentType = "application/trickle-ice-sdpfrag"

  package let method: String
  /// The current URL.
  package private(set) var url: String
  private let first: String
  private let fields: [HTTPField]
  private let body: [UInt8]
  private let access: SessionAccess
  private var redirects = 0

  init(
    _ method: String, _ url: String, _ access: SessionAccess, fields: [HTTPField] = [],
    body: String = ""
  ) {
    self.method = method
    self.url = url
    self.fields = fields
    self.body = Array(body.utf8)
    self.access = access
    first = url
  }

  /// The HTTP request.
  package var http: ServiceRequest {
    var all = fields
    // The token must not reach another server.
    if let token = access.token, URLReference.haveSameOrigin(url, access.endpoint) {
      all.append(HTTPField("Authorization", "Bearer " + token))
    }
    return ServiceRequest(method: method, url: url, fields: all, body: body)
  }

  /// Handles a response; follows redirects that keep the method (RFC 9110 section 15.4).
  package func follow(status: Int, fields: [HTTPField], body: [UInt8]) -> Step {
    let response = SessionResponse(status: status, fields: fields, body: body, url: url)
    guard status == 307 || status == 308 else { return .answered(response) }
    guard let next = response.location else {
      return .failed("\(url) redirects without a usable Location")
    }
    guard redirects < SessionRequest.redirectsMaximum else {
      return .failed("\(first) redirects more than \(SessionRequest.redirectsMaximum) times")
    }
    var again = self
    again.url = next
    again.redirects += 1
    return .again(again)
  }
}

/// The endpoint of a session and its token.
package struct SessionAccess: Hashable, Sendable {
  package var endpoint: String
  /// The bearer token for the endpoint's server (RFC 6750).
  package var token: String?

  package init(endpoint: String, token: String? = nil) {
    self.endpoint = endpoint
    self.token = token
  }

  /// Requests the ICE servers (RFC 9725 section 4.6).
  package var options: SessionRequest { SessionRequest("OPTIONS", endpoint, self) }

  /// Sends an offer.
  package func open(offer: String) -> SessionRequest {
    SessionRequest(
      "POST", endpoint, self,
      fields: [
        HTTPField("Content-Type", SessionRequest.descriptionType),
        HTTPField("Accept", SessionRequest.descriptionType),
      ], body: offer)
  }

  /// Sends an answer to the server's offer.
  package func answer(_ answer: String, session: String) -> SessionRequest {
    SessionRequest(
      "PATCH", session, self, fields: [HTTPField("Content-Type", SessionRequest.descriptionType)],
      body: answer)
  }

  /// Sends candidates of the ICE session with an entity tag, or restarts ICE if `match` is `*`.
  package func patch(_ fragment: String, session: String, match: String?) -> SessionRequest {
    var fields = [HTTPField("Content-Type", SessionRequest.fragmentType)]
    if let match { fields.append(HTTPField("If-Match", match)) }
    return SessionRequest("PATCH", session, self, fields: fields, body: fragment)
  }

  /// Ends the session.
  package func close(session: String) -> SessionRequest {
    SessionRequest("DELETE", session, self)
  }
}
