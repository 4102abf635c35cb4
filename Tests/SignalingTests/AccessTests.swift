import NIOCore
import NIOPosix
import Signaling
import TLS
import Testing

/// Tests access control: requests that a browser sends for another site's page are rejected before
/// they have any effect.
@Suite(.timeLimit(.minutes(10))) struct AccessTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var request: String
    var fields: [String]
    var status: Int
    var rules = AccessRules()

    var testDescription: String { "\(request) \(fields.joined(separator: ", "))" }

    init(_ request: String, _ fields: [String], _ status: Int, _ rules: AccessRules = .init()) {
      (self.request, self.fields, self.status, self.rules) = (request, fields, status, rules)
    }
  }

  /// Returns an answer's status line and fields; `PORT` in a field stands for the server's port.
  private static func answer(
    _ row: Case, host: String = "127.0.0.1", identity: TLSIdentity? = nil
  ) async throws -> String {
    let server = try await HTTPServer.listen(host: host, port: 0, access: row.rules) { request in
      HTTPResponse(type: "text/plain", body: Array("handled \(request.path)".utf8))
    }
    let fields = row.fields.map { $0.replacing("PORT", with: "\(server.port)") }
    let lines = ["\(row.request) HTTP/1.1"] + fields + ["Connection: close", "", ""]
    let answer = try await RawClient(port: server.port).exchange(lines.joined(separator: "\r\n"))
    await server.shutdown()
    return answer
  }

  private static func check(_ row: Case, host: String = "127.0.0.1") async throws {
    let answer = try await Self.answer(row, host: host)
    #expect(answer.hasPrefix("HTTP/1.1 \(row.status) "), "\(answer)")
    #expect(answer.contains("handled") == (row.status == 200))
  }

  private static let named = AccessRules(hosts: ["recorder.example", "10.9.8.7"])
  private static let open = AccessRules(origins: ["https://app.example", "http://a.example:81"])

  // MARK: Host names

  @Test(arguments: [
    Case("GET /stats", ["Host: 127.0.0.1:PORT"], 200),
    Case("GET /stats", ["Host: 127.0.0.1"], 200),
    Case("GET /stats", ["Host: localhost:9"], 200),
    Case("GET /stats", ["Host: LOCALHOST."], 200),
    Case("GET /stats", ["Host: retake.localhost"], 200),
    Case("GET /stats", ["Host: [::1]:PORT"], 200),
    Case("GET /stats", ["Host: 127.8.9.10"], 200),
    Case("GET /stats", ["Host: recorder.example:PORT"], 200, named),
    Case("GET /stats", ["Host: Recorder.Example."], 200, named),
    Case("GET /stats", ["Host: 10.9.8.7"], 200, named),
    Case("GET /stats", ["Host: recorder.example"], 421),
    Case("GET /", ["Host: evil.example:PORT"], 421),
    Case("GET /stats", ["Host: 10.9.8.7"], 421),
    Case("GET /stats", ["Host: localhost.evil.example"], 421),
    Case("GET /stats", ["Host: 127.0.0.1.evil.example"], 421),
    Case("GET /stats", ["Host: recorder.example.evil"], 421, named),
    Case("POST /offer", ["Host: evil.example", "Content-Length: 0"], 421),
    Case("GET /stats", [], 400),
    Case("GET /stats", ["Host: localhost", "Host: localhost"], 400),
    Case("GET /stats", ["Host: localhost:x"], 400),
    Case("GET /stats", ["Host: "], 400),
  ]) func aServerAnswersOnlyUnderItsNames(row: Case) async throws { try await Self.check(row) }

  @Test func theListenNameIsAccepted() async throws {
    let server = try await HTTPServer.listen(host: "localhost", port: 0) { _ in HTTPResponse() }
    #expect(try await HTTPClient.patient.get("http://localhost:\(server.port)/").status == 200)
    await server.shutdown()
  }

  // MARK: Origins

  @Test(arguments: [
    Case("POST /offer", ["Host: localhost:PORT", "Origin: http://localhost:PORT"], 200),
    Case("POST /offer", ["Host: LocalHost:PORT", "Origin: HTTP://localhost:PORT"], 200),
    Case("POST /offer", ["Host: localhost", "Origin: http://localhost:80"], 200),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: https://app.example"], 200, open),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: http://A.example:81"], 200, open),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: http://a.example"], 403, open),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: http://app.example"], 403, open),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: http://localhost:1"], 403),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: http://127.0.0.1:PORT"], 403),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: https://localhost:PORT"], 403),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: https://evil.example"], 403),
    Case("GET /", ["Host: localhost:PORT", "Origin: https://evil.example"], 403),
    Case("POST /offer", ["Host: localhost:PORT", "Origin: null"], 403),
    Case("OPTIONS /offer", ["Host: localhost:PORT", "Origin: https://evil.example"], 403),
    // Requests without an Origin, as images and links make them.
    Case("GET /stats", ["Host: localhost", "Sec-Fetch-Site: same-origin"], 200),
    Case("GET /", ["Host: localhost", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"], 200),
    Case(
      "GET /", ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], 200),
    Case("GET /stats", ["Host: localhost", "Sec-Fetch-Site: cross-site"], 403),
    Case("GET /page?id=call-1", ["Host: localhost", "Sec-Fetch-Site: same-origin"], 200),
    Case("GET /page?id=call-1", ["Host: evil.example"], 421),
    Case(
      "GET /page?id=call-1",
      ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], 403),
    Case(
      "GET /stats", ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"],
      403),
    Case(
      "GET /", ["Host: localhost", "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"], 403),
  ]) func pagesOfOtherOriginsAreRejected(row: Case) async throws { try await Self.check(row) }

  @Test func aPageThatMayCallCanReadTheAnswer() async throws {
    let row = Case("GET /whip", ["Host: localhost", "Origin: https://app.example"], 200, Self.open)
    let answer = try await Self.answer(row)
    #expect(answer.contains("Access-Control-Allow-Origin: https://app.example\r\n"))
    #expect(answer.contains("Vary: Origin\r\n"))
    for field in ["Location", "ETag", "Link", "Retry-After"] { #expect(answer.contains(field)) }
    let asked = try await Self.answer(
      Case(
        "OPTIONS /whip",
        [
          "Host: localhost", "Origin: https://app.example",
          "Access-Control-Request-Private-Network: true",
        ], 200, Self.open))
    for word in ["PATCH", "DELETE", "If-Match", "Authorization", "Private-Network: true"] {
      #expect(asked.contains(word))
    }
  }

  @Test func rejectedRequestsGetNoData() async throws {
    for rules in [AccessRules(), Self.open] {
      for origin in ["Origin: https://evil.example", "X: y"] {
        let answer = try await Self.answer(Case("GET /", ["Host: localhost", origin], 200, rules))
        #expect(!answer.contains("Access-Control"))
      }
    }
  }

  // MARK: Tokens

  @Test(arguments: [
    ("POST /whip", "Bearer s3cret", 200), ("POST /whip", "bearer  s3cret", 200),
    ("POST /whip", "", 401), ("POST /whip", "Bearer", 401), ("POST /whip", "Bearer s3creT", 401),
    ("POST /whip", "Bearer s3cret2", 401), ("POST /whip", "Basic s3cret", 401),
    ("PATCH /whip/s1", "", 401), ("DELETE /whip/s1", "", 401), ("DELETE /whip/s1", "Bearer x", 401),
    ("DELETE /whip/s1", "Bearer s3cret", 200), ("POST /mkoffer", "", 401), ("GET /stats", "", 401),
    ("GET /stats", "Bearer s3cret", 200), ("GET /", "", 200), ("POST /", "", 401),
    ("GET /page?id=call-1", "", 401), ("GET /page?id=call-1", "Bearer s3cret", 200),
    ("OPTIONS /whip", "", 200), ("OPTIONS /offer", "", 200),
  ])
  func aTokenIsRequiredExceptForThePage(request: String, field: String, status: Int) async throws {
    let token = try #require(BearerToken("s3cret"))
    let fields = ["Host: localhost"] + (field.isEmpty ? [] : ["Authorization: \(field)"])
    let row = Case(request, fields, status, AccessRules(token: token))
    try await Self.check(row)
    guard status == 401 else { return }
    let answer = try await Self.answer(row)
    #expect(answer.contains("WWW-Authenticate: Bearer realm=\"retake\""))
  }

  @Test func loopbackWantsNoTokenOfAllAndAllElseDoes() async throws {
    let near = try await HTTPServer.listen(host: "127.0.0.1", port: 0) { _ in HTTPResponse() }
    #expect(!near.wantsToken)
    await near.shutdown()
    let far = try await HTTPServer.listen(host: "0.0.0.0", port: 0) { _ in HTTPResponse() }
    #expect(far.wantsToken)
    let token = far.token
    #expect(token.text.count == 32)
    let url = "http://127.0.0.1:\(far.port)"
    #expect(try await HTTPClient.patient.get(url + "/stats").status == 401)
    let told = [(name: "Authorization", value: "Bearer \(token.text)")]
    #expect(try await HTTPClient.patient.send("GET", url + "/stats", headers: told).status == 200)
    await far.shutdown()
    let other = try await HTTPServer.listen(host: "0.0.0.0", port: 0) { _ in HTTPResponse() }
    #expect(other.token != far.token)
    await other.shutdown()
  }
}
