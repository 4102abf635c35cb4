import CFiles
import SDP

/// The HTTP interface of `retake record serve`: plain JSON, so that any peer can be scripted.
///
///     GET    /           the page
///     POST   /offer      {sdp, type}, optionally the id   → {id, sdp, type}
///     POST   /mkoffer    nothing, or {id, iceRestart,
///                        add, stop, directions}           → {id, sdp, type}
///     POST   /answer     {id, sdp, type}                  → {}
///     POST   /candidate  {id, candidate, sdpMid, ...}     → {}
///     POST   /bye        {id}                             → {}
///     DELETE /call/ID                                     → {}
///     GET    /calls      running calls, or ?id=ID         → {limit, recording, calls: [{id, ...}]}
///     GET    /page?id=ID the page of the call's take      → HTML
///     GET    /stats      all calls, or ?id=ID             → stats as JSON
///     /whip, /whep       as in `SessionRoutes`
///
/// A call's identifier cannot be guessed: a client that has it may read, change and end the call.
/// Requests about all calls need the server's token; without it, `/calls` lists no calls.
///
/// An offer with a running call's id changes that call.
///
/// Refusals are JSON objects whose `error` is one sentence; refusals of WHIP and WHEP requests, and
/// of requests without a required token, are problem details (RFC 9457).
public struct SignalingRoutes: Sendable {
  private let calls: any CallHandling
  private let page: String
  private let sessions: SessionRoutes?

  /// Creates the routes for calls; the default page lets a browser call.
  public init(calls: any CallHandling, page: String = callPage) {
    self.init(calls: calls, page: page, sessions: nil)
  }

  /// Creates the routes for calls and for WHIP and WHEP sessions.
  package init(calls: any CallHandling, page: String = callPage, sessions: SessionRoutes?) {
    self.calls = calls
    self.page = page
    self.sessions = sessions
  }

  /// Responds to a request about calls or sessions; any other path gets status 404.
  public func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let response = await sessions?.respond(to: request) { return response }
    let methods = methods(of: request.path)
    guard !methods.isEmpty else {
      return .refusal(404, "there is nothing at \(request.path.prefix(100))")
    }
    let method = request.method == "HEAD" ? "GET" : request.method
    guard methods.contains(method) || method == "OPTIONS" else {
      var response = HTTPResponse.refusal(
        405, "\(request.path) supports \(methods.joined(separator: " or "))")
      response.headers.append(("Allow", methods.joined(separator: ", ")))
      return response
    }
    if method == "OPTIONS" { return HTTPResponse(status: 204) }
    do throws(CallRefusal) {
      return try await answer(request)
    } catch {
      return HTTPResponse.refusal(error.kind.status, error.reason).retrying(error)
    }
  }

  private static let callPrefix = "/call/"

  private func methods(of path: String) -> [String] {
    switch path {
    case "/", "/calls", "/stats", "/page": ["GET"]
    case "/offer", "/mkoffer", "/answer", "/candidate", "/bye": ["POST"]
    case _ where path.hasPrefix(SignalingRoutes.callPrefix): ["DELETE"]
    default: []
    }
  }

  private func answer(_ request: HTTPRequest) async throws(CallRefusal) -> HTTPResponse {
    switch request.path {
    case "/": return HTTPResponse(type: "text/html; charset=utf-8", body: Array(page.utf8))
    case "/stats":
      let id = request.query("id")
      if id == nil, let refusal = refusal(of: request) { return refusal }
      return HTTPResponse(json: try await calls.stats(call: id))
    case "/page":
      guard let id = request.query("id") else {
        throw CallRefusal(.badRequest, "/page needs the id of a call, as in /page?id=ID")
      }
      return HTTPResponse(page: try await calls.page(call: id))
    case "/calls":
      var list = await calls.list()
      if let id = request.query("id") {
        list.calls = list.calls.filter { $0.id == id }
      } else if !request.isAuthorized {
        list.calls = []
      }
      return HTTPResponse(json: encodedJSON(list))
    case "/mkoffer": return HTTPResponse(json: encodedJSON(try await makeOffer(request)))
    case "/offer":
      let description = try body(DescriptionBody.self, of: request, "{sdp, type}")
      try description.check(type: "offer")
      guard let id = description.id else {
        return HTTPResponse(json: encodedJSON(try await calls.begin(offer: description.sdp)))
      }
      let answer = try await calls.follow(offer: description.sdp, call: id)
      return HTTPResponse(json: encodedJSON(answer))
    case "/answer":
      let description = try body(DescriptionBody.self, of: request, "{id, sdp, type}")
      try description.check(type: "answer")
      guard let id = description.id else { throw CallRefusal(.badRequest, "the answer has no id") }
      try await calls.accept(answer: description.sdp, call: id)
    case "/candidate":
      let candidate = try body(CandidateBody.self, of: request, "{id, candidate, sdpMid}")
      try await calls.add(candidate.content, call: candidate.id)
    case "/bye":
      try await calls.end(call: body(ByeBody.self, of: request, "{id}").id)
    default:
      try await calls.end(call: String(request.path.dropFirst(SignalingRoutes.callPrefix.count)))
    }
    return HTTPResponse(json: "{}")
  }

  /// Returns the refusal of a request about all calls; nil if the request has the server's token.
  private func refusal(of request: HTTPRequest) -> HTTPResponse? {
    guard !request.isAuthorized else { return nil }
    var response = HTTPResponse.problem(
      401,
      "\(request.path) for all calls needs the token from the address that the recorder prints, as "
        + "Authorization: Bearer TOKEN; \(request.path)?id=ID is for one call")
    response.headers.append(("WWW-Authenticate", "Bearer realm=\"retake\""))
    return response
  }

  private func makeOffer(_ request: HTTPRequest) async throws(CallRefusal) -> CallDescription {
    guard !request.body.isEmpty else { return try await calls.makeOffer() }
    let body = try body(
      OfferBody.self, of: request, "{id, iceRestart, add, stop, directions}, or nothing")
    if let id = body.id { return try await calls.makeOffer(call: id, changing: body.changes) }
    guard body.changes == OfferChanges() else {
      throw CallRefusal(.badRequest, "/mkoffer needs the id of the call to change")
    }
    return try await calls.makeOffer()
  }

  private func body<Body: Decodable>(_ type: Body.Type, of request: HTTPRequest, _ shape: String)
    throws(CallRefusal) -> Body
  {
    guard let body = decodedJSON(type, from: request.body) else {
      throw CallRefusal(.badRequest, "\(request.path) needs a JSON object \(shape)")
    }
    return body
  }
}

extension HTTPResponse {
  /// Creates a response with a take's page, which must load nothing, and which is not cached
  /// because it changes while the take grows.
  fileprivate init(page: String) {
    self.init(type: "text/html; charset=utf-8", body: Array(page.utf8))
    headers.append(("Cache-Control", "no-store"))
    headers.append(
      (
        "Content-Security-Policy",
        // The page for calls has a stricter policy, with its script's hash.
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
          + "img-src data: blob:; media-src blob:"
      ))
  }

  /// Adds a Retry-After field if a retry may succeed (RFC 9110 section 10.2.3).
  func retrying(_ refusal: CallRefusal) -> HTTPResponse {
    var response = self
    if refusal.kind == .busy { response.headers.append(("Retry-After", "5")) }
    return response
  }
}

extension CallRefusal {
  /// The longest accepted description in bytes; it is limited because the take records every
  /// description.
  static let descriptionBytes = 256 << 10

  /// Refuses a description longer than `descriptionBytes`, because no real description is so long.
  static func check(length text: String) throws(CallRefusal) {
    guard text.utf8.count <= descriptionBytes else {
      throw CallRefusal(
        .badRequest, "the description is longer than \(descriptionBytes) bytes")
    }
  }
}

extension CallRefusal.Kind {
  var status: Int {
    switch self {
    case .badRequest: 400
    case .unknownCall: 404
    case .conflict: 409
    case .outdated: 412
    case .unprocessable: 422
    case .unconditional: 428
    case .busy: 503
    case .failure: 500
    }
  }
}

/// A received description; `id` is set for answers and running calls.
private struct DescriptionBody: Decodable {
  var id: String?
  var sdp: String
  var type: String?

  /// Refuses a description that states a different type; many clients state no type.
  func check(type wanted: String) throws(CallRefusal) {
    if let type, type != wanted {
      throw CallRefusal(.badRequest, "the type is \(type.prefix(20)), but \(wanted) is expected")
    }
    if sdp.isEmpty { throw CallRefusal(.badRequest, "the sdp is empty") }
    try CallRefusal.check(length: sdp)
  }
}

/// The changes that a local offer makes; all members are optional.
private struct OfferBody: Decodable {
  var id: String?
  var iceRestart: Bool?
  var add: [String]?
  var stop: [String]?
  var directions: [String: String]?

  var changes: OfferChanges {
    OfferChanges(
      restartsICE: iceRestart ?? false, additions: add ?? [], stops: stop ?? [],
      directions: directions ?? [:])
  }
}

/// A received candidate and its call; a null candidate means that there are no more.
private struct CandidateBody: Decodable {
  let id: String
  let content: CandidateInit?

  private enum CodingKeys: String, CodingKey {
    case id, candidate
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    id = try fields.decode(String.self, forKey: .id)
    let isLast = try fields.decodeIfPresent(String.self, forKey: .candidate) == nil
    content = isLast ? nil : try CandidateInit(from: decoder)
  }
}

private struct ByeBody: Decodable {
  var id: String
}

/// The page from which browsers call: HTML, style and JavaScript in one file that loads nothing.
///
/// Scripts use `window.retake`: `await retake.call({seconds: 5})` returns `{connected, states,
/// stats, ...}`. `#auto` or `?auto` calls immediately. With `{offerer: 'retake'}` (or
/// `?offerer=retake`) the server offers and the browser answers.
public let callPage =
  String(cString: cfiles_call_html())
  .replacing("{{style}}", with: String(cString: cfiles_call_css()), maxReplacements: 1)
  .replacing("{{script}}", with: String(cString: cfiles_call_script()), maxReplacements: 1)
