import NIOCore
import Signaling
import Testing

/// Tests a server's token as a cookie of its page, and its protection against guessing.
@Suite(.timeLimit(.minutes(10))) struct SecretTests {
  private func server(_ rules: AccessRules = AccessRules()) async throws -> HTTPServer {
    try await HTTPServer.listen(host: "127.0.0.1", port: 0, access: rules) { request in
      HTTPResponse(type: "text/plain", body: Array("\(request.isAuthorized)".utf8))
    }
  }

  private func ask(_ server: HTTPServer, _ request: String, _ fields: String...) async throws
    -> String
  {
    let lines =
      ["\(request) HTTP/1.1", "Host: localhost"] + fields + ["Connection: close", "", ""]
    return try await RawClient(port: server.port).exchange(lines.joined(separator: "\r\n"))
  }

  @Test func thePageTurnsTheTokenIntoACookieThatNoScriptReads() async throws {
    let server = try await server()
    let bearer = "Authorization: Bearer \(server.token.text)"
    let answer = try await ask(server, "POST /cookie", "Content-Length: 0", bearer)
    #expect(answer.hasPrefix("HTTP/1.1 204"))
    let cookie = "retake-\(server.port)=\(server.token.text)"
    #expect(answer.contains("Set-Cookie: \(cookie); Path=/; HttpOnly; SameSite=Strict\r\n"))
    #expect(try await ask(server, "GET /x", "Cookie: a=b; \(cookie)").hasSuffix("true"))
    #expect(try await ask(server, "GET /x", bearer).hasSuffix("true"))
    // A token of another server on this host is not valid here.
    let other = "retake-1=\(server.token.text)"
    for field in ["Cookie: \(other)", "Cookie: \(cookie)0", "X: y", bearer + "0"] {
      #expect(try await ask(server, "GET /x", field).hasSuffix("false"), "\(field)")
      let refused = try await ask(server, "POST /cookie", "Content-Length: 0", field)
      #expect(refused.hasPrefix("HTTP/1.1 401") && !refused.contains("Set-Cookie"), "\(field)")
    }
    await server.shutdown()
  }

  @Test func guessesAreSlowedAndFinallyIgnored() async throws {
    let token = try #require(BearerToken("guessable"))
    let server = try await server(AccessRules(token: token))
    let begin = ContinuousClock.now
    let answers = await withTaskGroup(of: String.self) { group in
      for number in 0..<80 {
        group.addTask {
          (try? await self.ask(server, "GET /x", "Authorization: Bearer \(number)")) ?? ""
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(begin.duration(to: .now) > .milliseconds(500))
    // A burst of twenty guesses is answered at once, and more guesses after a delay of up to a
    // second.
    #expect(answers.count { $0.hasPrefix("HTTP/1.1 401") } >= 25)
    #expect(answers.contains { $0.hasPrefix("HTTP/1.1 429") && $0.contains("Retry-After: 5") })
    #expect(answers.allSatisfy { $0.hasPrefix("HTTP/1.1 401") || $0.hasPrefix("HTTP/1.1 429") })
    await server.shutdown()
  }
}
