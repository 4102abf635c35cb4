import SDP
import Synchronization
import Testing

@testable import Signaling

/// Sessions that record their requests.
final class ScriptedSessions: SessionHandling {
  private let asked = Mutex<[String]>([])
  var log: [String] { asked.withLock { $0 } }

  private func note(_ text: String) { asked.withLock { $0.append(text) } }

  func open(_ kind: SessionProtocol, offer: String) async throws(CallRefusal) -> OpenedSession {
    note("\(kind.rawValue) offer \(offer)")
    switch offer {
    case "busy": throw CallRefusal(.busy, "all lines are in use")
    case "useless": throw CallRefusal(.unprocessable, "the offer sends nothing")
    case "broken": throw CallRefusal(.failure, "no disk")
    default: return OpenedSession(id: "s1", answer: "answer to \(offer)", entityTag: "t1")
    }
  }

  func apply(
    _ fragment: SDPFragment, text: String, to id: String, of kind: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession? {
    let words =
      switch match {
      case .none: "unconditional"
      case .any: "*"
      case .tags(let tags): tags.joined(separator: "+")
      }
    note("\(kind.rawValue) patch \(id) \(words) \(fragment.candidates.count)")
    if id != "s1" { throw CallRefusal(.unknownCall, "there is no such session") }
    switch match {
    case .none: throw CallRefusal(.unconditional, "the request needs If-Match")
    case .any: return RestartedSession(fragment: "a=ice-ufrag:next\r\n", entityTag: "t2")
    case .tags(let tags):
      guard tags.contains("t1") else { throw CallRefusal(.outdated, "another ICE session") }
      return nil
    }
  }

  func close(_ id: String, of kind: SessionProtocol) async throws(CallRefusal) {
    note("\(kind.rawValue) close \(id)")
    if id != "s1" { throw CallRefusal(.unknownCall, "there is no such session") }
  }
}

struct SessionRoutesTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var request: String
    var fields: [String] = []
    var body = ""
    var status: Int
    /// The body, or a part of the problem's detail.
    var response = ""
    /// Fields that the response must have.
    var has: [String] = []
    /// The requests made to the sessions.
    var asked: [String] = []
    var testDescription: String { "\(request) \(fields) \(body.prefix(30))" }
  }

  static let sdp = "Content-Type: application/sdp"
  static let fragmentType = "Content-Type: application/trickle-ice-sdpfrag"
  static let fragment =
    "m=audio 9 RTP/AVP 0\r\na=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 5 typ host\r\n"

  static let opening = [
    Case(
      request: "POST /whip", fields: [sdp], body: "x", status: 201, response: "answer to x",
      has: [
        "Location: /whip/s1", "ETag: \"t1\"", "Content-Type: application/sdp",
        "Accept-Patch: application/trickle-ice-sdpfrag",
        "Link: <stun:192.0.2.7:3478>; rel=\"ice-server\"",
        "Link: <turn:192.0.2.7?transport=tcp>; rel=\"ice-server\"; username=\"me\";"
          + " credential=\"a\\\"b\\\\c\"; credential-type=\"password\"",
      ], asked: ["whip offer x"]),
    Case(
      request: "POST /whep", fields: ["content-type: Application/SDP; charset=utf-8"], body: "x",
      status: 201, response: "answer to x", has: ["Location: /whep/s1"], asked: ["whep offer x"]),
    Case(
      request: "POST /whip/?key=1", fields: [sdp, "Accept: application/*;q=0.5"], body: "x",
      status: 201, response: "answer to x", asked: ["whip offer x"]),
    Case(
      request: "POST /whip", fields: [sdp, "Accept: text/html, application/json"], body: "x",
      status: 406, response: "which Accept excludes"),
    Case(
      request: "POST /whip", fields: [sdp, "Accept: */*, application/sdp;q=0"], body: "x",
      status: 406, response: "which Accept excludes"),
    Case(
      request: "POST /whip", fields: ["Content-Type: application/json"], body: "{}", status: 415,
      response: "must be application/sdp, not application/json",
      has: ["Accept-Post: application/sdp", "Content-Type: application/problem+json"]),
    Case(request: "POST /whip", body: "x", status: 415, response: "not of an unnamed type"),
    Case(
      request: "POST /whip", fields: [sdp], status: 400, response: "the offer is empty"),
    Case(
      request: "POST /whip", fields: [sdp], body: "\u{fffd}", status: 400,
      response: "the body is not UTF-8 text"),
    Case(
      request: "POST /whip", fields: [sdp], body: "useless", status: 422,
      response: "the offer sends nothing", asked: ["whip offer useless"]),
    Case(
      request: "POST /whip", fields: [sdp], body: "busy", status: 503,
      response: "all lines are in use", has: ["Retry-After: 5"], asked: ["whip offer busy"]),
    Case(
      request: "POST /whip", fields: [sdp], body: "broken", status: 500, response: "no disk",
      asked: ["whip offer broken"]),
    Case(
      request: "OPTIONS /whip", status: 204,
      has: [
        "Accept-Post: application/sdp", "Allow: POST, OPTIONS",
        "Link: <stun:192.0.2.7:3478>; rel=\"ice-server\"",
      ]),
    Case(
      request: "GET /whep", status: 405, response: "/whep supports POST",
      has: ["Allow: POST, OPTIONS"]
    ),
    Case(request: "PUT /whip", status: 405, response: "/whip supports POST"),
    Case(request: "PATCH /whip", fields: [fragmentType], body: fragment, status: 405),
  ]

  static let going = [
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType, "If-Match: \"t1\""], body: fragment,
      status: 204, asked: ["whip patch s1 t1 1"]),
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType, "If-Match: \"t0\", \"t1\""], body: fragment,
      status: 204, asked: ["whip patch s1 t0+t1 1"]),
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType, "If-Match: W/\"t1\""], body: fragment,
      status: 412, response: "another ICE session", asked: ["whip patch s1  1"]),
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType, "If-Match: \"t0\""], body: fragment,
      status: 412, response: "another ICE session", asked: ["whip patch s1 t0 1"]),
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType], body: fragment, status: 428,
      response: "needs If-Match", asked: ["whip patch s1 unconditional 1"]),
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType, "If-Match: *"], body: fragment, status: 200,
      response: "a=ice-ufrag:next\r\n", has: ["ETag: \"t2\"", fragmentType],
      asked: ["whip patch s1 * 1"]),
    Case(
      request: "PATCH /whip/s1", fields: [fragmentType, "If-Match: *"], body: "v=0\r\n",
      status: 400, response: "line 1: v= does not belong into a fragment"),
    Case(
      request: "PATCH /whip/s1", fields: [sdp, "If-Match: *"], body: "v=0\r\n", status: 415,
      has: ["Accept-Patch: application/trickle-ice-sdpfrag"]),
    Case(
      request: "PATCH /whep/s2", fields: [fragmentType, "If-Match: *"], body: fragment,
      status: 404, response: "there is no such session", asked: ["whep patch s2 * 1"]),
    Case(request: "DELETE /whip/s1", status: 200, asked: ["whip close s1"]),
    Case(
      request: "DELETE /whep/s2", status: 404, response: "there is no such session",
      asked: ["whep close s2"]),
    Case(
      request: "OPTIONS /whip/s1", status: 204,
      has: [
        "Accept-Patch: application/trickle-ice-sdpfrag", "Allow: PATCH, DELETE, OPTIONS",
      ]),
    Case(
      request: "GET /whip/s1", status: 405, response: "/whip/s1 supports PATCH or DELETE",
      has: ["Allow: PATCH, DELETE, OPTIONS"]),
    Case(request: "POST /whep/s1", fields: [sdp], body: "x", status: 405),
    Case(request: "POST /whips", status: 404),
    Case(request: "POST /whipped/s1", status: 404),
  ]

  private static func request(_ row: Case) -> HTTPRequest {
    let words = row.request.split(separator: " ")
    let fields = row.fields.map { field in
      let parts = field.split(separator: ": ", maxSplits: 1)
      return (name: String(parts[0]), value: String(parts[1]))
    }
    let body = row.body == "\u{fffd}" ? [0xff] : Array(row.body.utf8)
    return HTTPRequest(
      method: String(words[0]), target: String(words[1]), headers: fields, body: body)
  }

  private static let servers = [
    LinkedICEServer(uri: "stun:192.0.2.7:3478"),
    LinkedICEServer(
      uri: "turn:192.0.2.7?transport=tcp", username: "me", credential: "a\"b\\c"),
  ]

  /// The server's output can be parsed by the client.
  @Test func linkHeadersOfServersAreParsed() async throws {
    let routes = SessionRoutes(sessions: ScriptedSessions(), iceServers: Self.servers)
    let request = HTTPRequest(method: "OPTIONS", target: "/whip", headers: [], body: [])
    let response = try #require(await routes.respond(to: request))
    #expect(LinkedICEServer.all(in: response) == Self.servers)
  }

  @Test(arguments: opening + going) func answers(_ row: Case) async {
    let sessions = ScriptedSessions()
    let routes = SignalingRoutes(
      calls: ScriptedCalls(),
      sessions: SessionRoutes(sessions: sessions, iceServers: Self.servers))
    let response = await routes.respond(to: Self.request(row))
    #expect(response.status == row.status)
    if response.status < 300 {
      #expect(response.text == row.response)
    } else {
      #expect(response.sentence?.contains(row.response) == true, "\(response.text)")
    }
    for field in row.has {
      #expect(response.headers.contains { "\($0.name): \($0.value)" == field }, "\(field)")
    }
    #expect(sessions.log == row.asked)
  }

  // MARK: Tokens

  @Test(arguments: ["", "a b", "a\r\nX: y", "é", "a,b"])
  func wrongTokensAreRefused(text: String) { #expect(BearerToken(text) == nil) }
}
