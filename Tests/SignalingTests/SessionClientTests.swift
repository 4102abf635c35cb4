import Seeded
import Synchronization
import Testing

@testable import Signaling

struct SessionClientTests {
  /// A server with scripted answers, and the requests that it got.
  final class Script: Sendable {
    private let requests = Mutex<[HTTPRequest]>([])
    private let answers: @Sendable (HTTPRequest) -> HTTPResponse

    init(_ answers: @escaping @Sendable (HTTPRequest) -> HTTPResponse) { self.answers = answers }

    var asked: [HTTPRequest] { requests.withLock { $0 } }

    func listen() async throws -> HTTPServer {
      try await HTTPServer.listen(host: "127.0.0.1", port: 0) { request in
        self.requests.withLock { $0.append(request) }
        return self.answers(request)
      }
    }
  }

  static func answer(
    _ status: Int, _ type: String? = nil, _ body: String = "", _ fields: [(String, String)] = []
  ) -> HTTPResponse {
    var response = HTTPResponse(status: status, type: type, body: Array(body.utf8))
    response.headers += fields.map { (name: $0.0, value: $0.1) }
    return response
  }

  static func begun(_ location: String) -> HTTPResponse {
    answer(201, "application/sdp", "answer", [("Location", location), ("ETag", "\"t1\"")])
  }

  @Test func aSessionRunsFromOfferToEnd() async throws {
    let script = Script { request in
      switch (request.method, request.header("If-Match")) {
      case ("POST", _): Self.begun("session/7")
      case ("PATCH", "*"):
        Self.answer(200, "application/trickle-ice-sdpfrag", "theirs", [("ETag", "\"t2\"")])
      case ("PATCH", _): Self.answer(204)
      default: Self.answer(200)
      }
    }
    let server = try await script.listen()
    let client = SessionClient(
      .whip, endpoint: server.url + "/a/whip?room=1", token: BearerToken("s3cret"),
      http: .patient)
    var session = try await client.open(offer: "offer")
    #expect(session.url == server.url + "/a/session/7")
    #expect(session.description == "answer" && !session.isCounterOffer)
    #expect(try await client.add(fragment: "one", to: session))
    #expect(try await client.restart(fragment: "ours", of: &session) == "theirs")
    #expect(session.entityTag == "\"t2\"")
    #expect(try await client.add(fragment: "two", to: session))
    try await client.close(session)
    await server.shutdown()
    let lines = script.asked.map { request in
      let match = request.header("If-Match").map { " \($0)" } ?? ""
      let body = String(decoding: request.body, as: UTF8.self)
      return "\(request.method) \(request.path)\(match) \(body)"
    }
    #expect(
      lines == [
        "POST /a/whip offer", "PATCH /a/session/7 \"t1\" one", "PATCH /a/session/7 * ours",
        "PATCH /a/session/7 \"t2\" two", "DELETE /a/session/7 ",
      ])
    #expect(script.asked.allSatisfy { $0.header("Authorization") == "Bearer s3cret" })
    #expect(script.asked[0].mediaType == "application/sdp")
    #expect(script.asked[1].mediaType == "application/trickle-ice-sdpfrag")
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var answer: HTTPResponse
    var reason: String

    init(_ description: String, _ answer: HTTPResponse, _ reason: String) {
      testDescription = description
      self.answer = answer
      self.reason = reason
    }
  }

  static let refusals = [
    Refusal(
      "problem", HTTPResponse.problem(422, "no codec in common"),
      "status 422: no codec in common"),
    Refusal("text", answer(400, "text/plain", "bad\r\nthing"), "status 400: bad thing"),
    Refusal("page", answer(404, "text/html", "<html>"), "/whip answered with status 404"),
    Refusal("token", answer(401), "give a token with --token"),
    Refusal("status 200", answer(200, "application/sdp", "answer"), "status 200"),
    Refusal("no description", answer(201, "text/plain", "x"), "without application/sdp"),
    Refusal("no location", answer(201, "application/sdp", "x"), "no usable Location"),
    Refusal(
      "counter-offer to a publisher",
      answer(406, "application/sdp", "offer", [("Location", "/s")]), "status 406"),
    Refusal("redirect to nowhere", answer(307), "redirects without a usable Location"),
    Refusal(
      "endless redirects", answer(307, nil, "", [("Location", "/whip")]), "more than 5 times"),
  ]

  @Test(arguments: refusals) func aRefusalIsOneSentence(_ row: Refusal) async throws {
    let script = Script { _ in row.answer }
    let server = try await script.listen()
    let client = SessionClient(.whip, endpoint: server.url + "/whip", http: .patient)
    do throws(HTTPError) {
      _ = try await client.open(offer: "offer")
      Issue.record("the offer was taken")
    } catch {
      #expect(error.reason.contains(row.reason), "\(error.reason)")
      #expect(error.reason.contains(server.url))
      #expect(!error.reason.contains("\n"))
    }
    await server.shutdown()
  }

  @Test func aPlayerAcceptsACounterOffer() async throws {
    let script = Script { request in
      request.method == "POST"
        ? Self.answer(406, "application/sdp", "their offer", [("Location", "/s/1")])
        : Self.answer(204)
    }
    let server = try await script.listen()
    let client = SessionClient(.whep, endpoint: server.url + "/whep", http: .patient)
    let session = try await client.open(offer: "offer")
    #expect(session.isCounterOffer && session.description == "their offer")
    try await client.answer("our answer", in: session)
    await server.shutdown()
    #expect(script.asked[1].method == "PATCH" && script.asked[1].mediaType == "application/sdp")
  }

  @Test(arguments: [307, 308]) func redirectsKeepTheRequestButNotTheTokenElsewhere(status: Int)
    async throws
  {
    let goal = Script { _ in Self.begun("/there/1") }
    let other = try await goal.listen()
    let place = other.url + "/elsewhere"
    let script = Script { request in
      Self.answer(status, nil, "", [("Location", request.path == "/whip" ? "next" : place)])
    }
    let server = try await script.listen()
    let client = SessionClient(
      .whip, endpoint: server.url + "/whip", token: BearerToken("s3cret"), http: .patient)
    let session = try await client.open(offer: "offer")
    #expect(session.url == other.url + "/there/1")
    #expect(script.asked.map(\.path) == ["/whip", "/next"])
    #expect(script.asked.allSatisfy { $0.header("Authorization") == "Bearer s3cret" })
    #expect(goal.asked.map(\.method) == ["POST"])
    #expect(String(decoding: goal.asked[0].body, as: UTF8.self) == "offer")
    #expect(goal.asked[0].header("Authorization") == nil)
    await server.shutdown()
    await other.shutdown()
  }

  @Test(arguments: [405, 415, 422, 501]) func aServerMayRefuseCandidates(status: Int) async throws {
    let script = Script { request in
      request.method == "POST" ? Self.begun("/s") : Self.answer(status)
    }
    let server = try await script.listen()
    let client = SessionClient(.whip, endpoint: server.url + "/whip", http: .patient)
    let session = try await client.open(offer: "offer")
    #expect(try await client.add(fragment: "one", to: session) == false)
    await server.shutdown()
  }

  @Test func iceServersAreReadFromLinks() async throws {
    let script = Script { _ in
      Self.answer(
        204, nil, "",
        [
          ("Link", "<stun:stun.example.net>; rel=\"ice-server\", <https://a/b,c>; rel=help"),
          (
            "Link",
            "<turn:turn.example.net?transport=udp>; rel=\"other ice-server\"; "
              + "username=\"a;\\\"b\"; credential=\"p,w\"; credential-type=\"password\""
          ),
        ])
    }
    let server = try await script.listen()
    let servers = try await SessionClient(.whip, endpoint: server.url, http: .patient).iceServers()
    #expect(
      servers == [
        LinkedICEServer(uri: "stun:stun.example.net"),
        LinkedICEServer(
          uri: "turn:turn.example.net?transport=udp", username: "a;\"b", credential: "p,w"),
      ])
    await server.shutdown()
  }

  @Test func anyTextMayBeALink() {
    var random = SeededGenerator(seed: 5)
    let sample = Array(
      "<turn:a>; rel=\"ice-server\"; username=\"x\\\"y\", <stun:b>;rel=ice-server".utf8)
    var found = 0
    for _ in 0..<20_000 {
      var bytes = sample
      for _ in 0..<(1 + random.next() % 4) {
        let position = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 3 {
        case 0: bytes[position] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: position)
        default: bytes.insert(bytes[Int(random.next() % UInt64(bytes.count))], at: position)
        }
      }
      let servers = LinkedICEServer.all(inField: String(decoding: bytes, as: UTF8.self))
      #expect(servers.count <= 32)
      found += servers.count
    }
    #expect(found > 1000, "the damage must leave something to find")
  }
}
