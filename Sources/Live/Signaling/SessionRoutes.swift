import SDP

/// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep) endpoints and their sessions.
///
///     POST    /whip      an offer              → 201 with the answer, Location, ETag and Link
///     OPTIONS /whip                            → 204 with Accept-Post
///     PATCH   /whip/ID   candidates            → 204
///     PATCH   /whip/ID   new ICE parameters    → 200 with the local ones, ETag
///     DELETE  /whip/ID                         → 200
///
/// Refusals are problem details (RFC 9457).
package struct SessionRoutes: Sendable {
  private let sessions: any SessionHandling
  private let iceServers: [LinkedICEServer]

  /// Creates the routes for sessions; the ICE servers are sent to every client.
  package init(sessions: any SessionHandling, iceServers: [LinkedICEServer] = []) {
    self.sessions = sessions
    self.iceServers = iceServers
  }

  private static let descriptionType = "application/sdp"

  /// An endpoint, or one of its sessions.
  private struct Place {
    var kind: SessionProtocol
    /// The session's identifier; nil for the endpoint itself.
    var id: String?

    init?(_ path: String) {
      for kind in SessionProtocol.allCases {
        if path == kind.path || path == kind.path + "/" {
          self.kind = kind
          return
        }
        guard path.hasPrefix(kind.path + "/") else { continue }
        self.kind = kind
        id = String(path.dropFirst(kind.path.count + 1))
        return
      }
      return nil
    }

    var methods: [String] { id == nil ? ["POST"] : ["PATCH", "DELETE"] }
    /// The field that lists accepted media types.
    var accepts: (name: String, value: String) {
      id == nil
        ? ("Accept-Post", SessionRoutes.descriptionType) : ("Accept-Patch", SDPFragment.mediaType)
    }
  }

  /// Responds to a request for an endpoint or a session; returns nil for any other path.
  package func respond(to request: HTTPRequest) async -> HTTPResponse? {
    guard let place = Place(request.path) else { return nil }
    if request.method == "OPTIONS" { return options(place) }
    guard place.methods.contains(request.method) else {
      var response = HTTPResponse.problem(
        405, "\(request.path) supports \(place.methods.joined(separator: " or "))")
      response.headers.append(("Allow", (place.methods + ["OPTIONS"]).joined(separator: ", ")))
      return response
    }
    do throws(CallRefusal) {
      guard let id = place.id else { return try await open(place, request) }
      if request.method == "PATCH" { return try await patch(place, id, request) }
      try await sessions.close(id, of: place.kind)
      return HTTPResponse(status: 200)
    } catch {
      return HTTPResponse.problem(error.kind.status, error.reason).retrying(error)
    }
  }

  private func options(_ place: Place) -> HTTPResponse {
    var response = HTTPResponse(status: 204)
    response.headers = [
      ("Allow", (place.methods + ["OPTIONS"]).joined(separator: ", ")), place.accepts,
    ]
    if place.id == nil { response.headers += links }
    return response
  }

  /// One field per ICE server (RFC 9725 section 4.6).
  private var links: [(name: String, value: String)] {
    iceServers.map { ("Link", $0.field) }
  }

  // MARK: Sessions

  private func open(_ place: Place, _ request: HTTPRequest) async throws(CallRefusal)
    -> HTTPResponse
  {
    if let refusal = refuseType(of: request, unless: SessionRoutes.descriptionType, place) {
      return refusal
    }
    guard request.accepts(SessionRoutes.descriptionType) else {
      return .problem(406, "the answer is \(SessionRoutes.descriptionType), which Accept excludes")
    }
    let offer = try text(of: request)
    guard !offer.isEmpty else { throw CallRefusal(.badRequest, "the offer is empty") }
    let session = try await sessions.open(place.kind, offer: offer)
    var response = HTTPResponse(
      status: 201, type: SessionRoutes.descriptionType, body: Array(session.answer.utf8))
    response.headers += [
      ("Location", "\(place.kind.path)/\(session.id)"), ("ETag", "\"\(session.entityTag)\""),
      ("Accept-Patch", SDPFragment.mediaType),
    ]
    response.headers += links
    return response
  }

  private func patch(_ place: Place, _ id: String, _ request: HTTPRequest)
    async throws(CallRefusal) -> HTTPResponse
  {
    if let refusal = refuseType(of: request, unless: SDPFragment.mediaType, place) {
      return refusal
    }
    let text = try text(of: request)
    let fragment: SDPFragment
    do throws(SDPError) {
      fragment = try SDPFragment(parsing: text)
    } catch {
      throw CallRefusal(.badRequest, "the fragment cannot be read: \(error.description)")
    }
    let restarted = try await sessions.apply(
      fragment, text: text, to: id, of: place.kind, match: try match(request))
    guard let restarted else { return HTTPResponse(status: 204) }
    var response = HTTPResponse(
      type: SDPFragment.mediaType, body: Array(restarted.fragment.utf8))
    response.headers.append(("ETag", "\"\(restarted.entityTag)\""))
    return response
  }

  // MARK: Request fields

  private func refuseType(of request: HTTPRequest, unless type: String, _ place: Place)
    -> HTTPResponse?
  {
    let given = request.mediaType
    guard given != type else { return nil }
    var response = HTTPResponse.problem(
      415, "the body must be \(type), not \(given.isEmpty ? "of an unnamed type" : given)")
    response.headers.append(place.accepts)
    return response
  }

  private func text(of request: HTTPRequest) throws(CallRefusal) -> String {
    guard let text = String(validating: request.body, as: UTF8.self) else {
      throw CallRefusal(.badRequest, "the body is not UTF-8 text")
    }
    try CallRefusal.check(length: text)
    return text
  }

  private func match(_ request: HTTPRequest) throws(CallRefusal) -> SessionMatch {
    guard let field = request.header("If-Match") else { return .none }
    if field == "*" { return .any }
    var tags: [String] = []
    for part in field.split(separator: ",") {
      let tag = part.trimmed
      // A weak tag never matches (RFC 9110 section 13.1.1).
      if tag.hasPrefix("W/\"") { continue }
      // Some clients send the tag without quotes.
      let isQuoted = tag.count >= 2 && tag.hasPrefix("\"") && tag.hasSuffix("\"")
      tags.append(isQuoted ? String(tag.dropFirst().dropLast()) : String(tag))
    }
    return .tags(tags)
  }
}

extension HTTPResponse {
  /// Creates a refusal as problem details (RFC 9457): the status and a sentence.
  package static func problem(_ status: Int, _ sentence: String) -> HTTPResponse {
    HTTPResponse(
      status: status, type: "application/problem+json",
      body: Array(encodedJSON(Problem(detail: sentence, status: status)).utf8))
  }
}

/// The members of problem details that are used here.
private struct Problem: Encodable {
  var detail: String
  var status: Int
}

extension HTTPRequest {
  /// Returns a header field's value; several values are joined as a list (RFC 9110 section 5.3).
  package func header(_ name: String) -> String? {
    let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  /// The body's media type in lower case, without parameters.
  package var mediaType: String {
    guard let field = header("Content-Type") else { return "" }
    return (field.split(separator: ";").first ?? "").trimmed.lowercased()
  }

  /// Returns whether the client accepts a media type (RFC 9110 section 12.5.1).
  package func accepts(_ type: String) -> Bool {
    guard let field = header("Accept"), !field[...].trimmed.isEmpty else { return true }
    let family = type.prefix { $0 != "/" } + "/*"
    var best: (specificity: Int, isTaken: Bool)?
    for part in field.lowercased().split(separator: ",") {
      let words = part.split(separator: ";").map(\.trimmed)
      guard let range = words.first,
        let specificity = [Substring("*/*"), family, Substring(type)].firstIndex(of: range)
      else { continue }
      let weight = words.dropFirst().first { $0.hasPrefix("q=") }?.dropFirst(2)
      let isTaken = weight.map { Double($0) != 0 } ?? true
      if specificity >= best?.specificity ?? 0 { best = (specificity, isTaken) }
    }
    return best?.isTaken ?? false
  }
}

extension Substring {
  /// The text without leading and trailing spaces and tabs.
  var trimmed: Substring {
    var rest = self
    while let first = rest.first, first == " " || first == "\t" { rest = rest.dropFirst() }
    while let last = rest.last, last == " " || last == "\t" { rest = rest.dropLast() }
    return rest
  }
}
