package import Peer
import Wire

/// One request by a WHIP or WHEP client (RFC 9725, draft-ietf-wish-whep), including redirects.
package struct SessionRequest: Hashable, Sendable {
  /// How a request continues after a response.
  package enum Step: Hashable, Sendable {
    /// Repeat the request at another URL.
    case again(SessionRequest)
    case answered(SessionResponse)
    /// The request failed; the reason is a sentence.
    case failed(String)
  }

  package static let redirectsMaximum = 5
  package static let descriptionType = "application/sdp"
  package static let fragmentType = "application/trickle-ice-sdpfrag"

  package let method: String
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

  package var http: ServiceRequest {
    var all = fields
    // Another server must not see the token.
    if let token = access.token, URLReference.haveSameOrigin(url, access.endpoint) {
      all.append(HTTPField("Authorization", "Bearer " + token))
    }
    return ServiceRequest(method: method, url: url, fields: all, body: body)
  }

  /// Handles a response; follows redirects that preserve the method (RFC 9110 section 15.4).
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

/// A session's endpoint and token.
package struct SessionAccess: Hashable, Sendable {
  package var endpoint: String
  /// The bearer token for the endpoint's server (RFC 6750); nil if there is none.
  package var token: String?

  package init(endpoint: String, token: String? = nil) {
    self.endpoint = endpoint
    self.token = token
  }

  /// A request for the ICE servers (RFC 9725 section 4.6).
  package var options: SessionRequest { SessionRequest("OPTIONS", endpoint, self) }

  package func open(offer: String) -> SessionRequest {
    SessionRequest(
      "POST", endpoint, self,
      fields: [
        HTTPField("Content-Type", SessionRequest.descriptionType),
        HTTPField("Accept", SessionRequest.descriptionType),
      ], body: offer)
  }

  /// Creates a request with an answer to the server's offer.
  package func answer(_ answer: String, session: String) -> SessionRequest {
    SessionRequest(
      "PATCH", session, self, fields: [HTTPField("Content-Type", SessionRequest.descriptionType)],
      body: answer)
  }

  /// Creates a request with candidates for the ICE session whose entity tag is `match`, or with an
  /// ICE restart if `match` is `*`.
  package func patch(_ fragment: String, session: String, match: String?) -> SessionRequest {
    var fields = [HTTPField("Content-Type", SessionRequest.fragmentType)]
    if let match { fields.append(HTTPField("If-Match", match)) }
    return SessionRequest("PATCH", session, self, fields: fields, body: fragment)
  }

  /// Creates the DELETE request that ends a session.
  package func close(session: String) -> SessionRequest {
    SessionRequest("DELETE", session, self)
  }
}

// MARK: - SessionResponse

/// A response to a WHIP or WHEP client.
package struct SessionResponse: Hashable, Sendable {
  package var status: Int
  package var fields: [HTTPField]
  package var body: [UInt8]
  /// The URL that responded, after any redirects; `Location` is relative to it.
  package var url: String

  package init(status: Int, fields: [HTTPField], body: [UInt8], url: String) {
    self.status = status
    self.fields = fields
    self.body = body
    self.url = url
  }

  /// A session that the server created, with its description.
  package struct Opening: Hashable, Sendable {
    /// The URL for further requests about the session.
    package var session: String
    /// The ICE session's entity tag, including quotes; nil if the server does not support
    /// fragments.
    package var entityTag: String?
    /// The server's answer, or its own offer.
    package var description: String
    package var isCounterOffer: Bool
  }

  package var isGood: Bool { (200..<300).contains(status) }
  package var text: String { String(decoding: body, as: UTF8.self) }
  package var entityTag: String? { field("ETag") }
  package var iceServers: [ICEServerConfiguration] { LinkField.iceServers(field("Link") ?? "") }

  /// The URL in the `Location` field (RFC 9110 section 10.2.2); nil if it is missing or invalid.
  package var location: String? {
    field("Location").flatMap { URLReference(url).resolving($0)?.text }
  }

  /// Whether the server does not accept candidates (RFC 9725 section 4.3.1).
  ///
  /// This is not a failure, because the server also learns addresses from checks.
  package var refusesCandidates: Bool { [405, 415, 422, 501].contains(status) }

  /// The number of seconds to wait before retrying (RFC 9110 section 10.2.3); nil unless a busy
  /// server (status 503 or 429) states it.
  package var retrySeconds: Int64? {
    status == 503 || status == 429 ? field("Retry-After").flatMap { Int64($0) } : nil
  }

  /// Returns a field's value, or nil if the field is absent; several values are joined as a list.
  package func field(_ name: String) -> String? {
    let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  private var isDescription: Bool {
    let type = (field("Content-Type") ?? "").prefix { $0 != ";" && $0 != " " }
    return type.lowercased() == SessionRequest.descriptionType && !body.isEmpty
  }

  /// Returns the session that an offer created.
  /// - Parameter takesOffers: whether the server may respond with an offer of its own (WHEP only).
  /// - Throws: `SessionRefusal` if no session was created.
  package func opening(takesOffers: Bool, hasToken: Bool) throws(SessionRefusal) -> Opening {
    let isCounterOffer = takesOffers && status == 406 && isDescription
    guard status == 201 || isCounterOffer else { throw refusal(hasToken: hasToken) }
    guard isDescription else {
      throw SessionRefusal(
        "\(url) answered with status 201 but without application/sdp", status: status)
    }
    guard let location else {
      throw SessionRefusal("\(url) gave no usable Location of the session", status: status)
    }
    return Opening(
      session: location, entityTag: entityTag, description: text, isCounterOffer: isCounterOffer)
  }

  /// Returns the fragment in the response to an ICE restart.
  package func restart(hasToken: Bool) throws(SessionRefusal) -> String {
    guard status == 200, !body.isEmpty else { throw refusal(hasToken: hasToken) }
    return text
  }

  /// Returns the error for a refused request, with the reason as a sentence.
  package func refusal(hasToken: Bool) -> SessionRefusal {
    let hint =
      switch status {
      case 401, 403: hasToken ? "; check --token" : "; give a token with --token"
      default: ""
      }
    let told = sentence.map { ": \($0)" } ?? ""
    return SessionRefusal("\(url) answered with status \(status)\(told)\(hint)", status: status)
  }

  /// The server's explanation, from the members `detail` or `title` (RFC 9457) or `error` of a JSON
  /// body, or else from a text body.
  package var sentence: String? {
    if let words = JSONValue(text: text), case .object = words {
      for name in ["detail", "title", "error"] {
        if let text = words[name]?.text { return text }
      }
    }
    let line = text.prefix(200).split(whereSeparator: \.isNewline).joined(separator: " ")
    let isPage = (field("Content-Type") ?? "").lowercased().hasPrefix("text/html")
    return line.isEmpty || isPage ? nil : line
  }
}

/// The reason that a server refused a WHIP or WHEP request.
package struct SessionRefusal: Error, Hashable, Sendable {
  package var reason: String
  package var status: Int

  init(_ reason: String, status: Int) {
    self.reason = reason
    self.status = status
  }
}
