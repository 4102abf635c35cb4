import Foundation
import Testing

extension LiveTests {
  /// The pages that `record serve` offers: the call page, and each take's page.
  struct RecorderPageTests {
    private struct Answer {
      var status: Int
      var head: String
      var body: String
    }

    private func get(_ url: String, _ options: String...) async throws -> Answer {
      let text = try await Run("/usr/bin/curl", ["-s", "-i"] + options + [url]).outcome().output
      let parts = text.replacing("\r\n", with: "\n").components(separatedBy: "\n\n")
      let status = try #require(Int(text.dropFirst("HTTP/1.1 ".count).prefix(3)), "\(text)")
      return Answer(
        status: status, head: parts[0], body: parts.dropFirst().joined(separator: "\n\n"))
    }

    /// Makes a call, and returns the identifier that the recorder lists for it.
    ///
    /// - Parameter known: earlier calls, which may still be listed.
    private func call(
      _ run: Run, _ url: String, _ folder: Folder, _ name: String, after known: [String] = []
    ) async throws -> String {
      // The call is listed only while it runs, so it runs until it was found.
      let made = try Run(
        Tool.path,
        [
          "record", "call", url + "/offer", "--bind", "127.0.0.1", "--out", folder.file(name),
        ])
      var id = ""
      let end = ContinuousClock.now + .seconds(120)
      while id.isEmpty, ContinuousClock.now < end {
        let list = try await get(url + "/calls", "-H", LiveTests.bearer(run)).body
        let ids = list.components(separatedBy: #""id":""#).dropFirst().map {
          String($0.prefix { $0 != "\"" })
        }
        id = ids.first { !known.contains($0) } ?? ""
      }
      made.send(SIGINT)
      // It may end before it connected.
      let call = try await made.outcome()
      #expect(!call.wasKilled && !id.isEmpty, "\(call.errors)")
      return id
    }

    private func end(_ run: Run) async throws {
      run.send(SIGINT)
      #expect(try await run.outcome().status == 0)
    }

    /// Returns the data in a take's page, from which the page's script draws.
    private func data(_ page: Answer) throws -> [String: Any] {
      let begin = try #require(page.body.range(of: "type=\"application/json\""))
      let rest = page.body[begin.upperBound...].drop { $0 != ">" }.dropFirst()
      let text = rest[..<(try #require(rest.range(of: "</script>"))).lowerBound]
      return try #require(
        try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    /// Returns a call's page and its peers' labels, once the take has them: recorded rows are
    /// written with a short delay.
    private func page(_ url: String, call id: String) async throws
      -> (answer: Answer, isComplete: Bool?, labels: [String?])
    {
      let end = ContinuousClock.now + .seconds(180)
      while true {
        let answer = try await get(url + "/page?id=\(id)")
        let data = try data(answer)
        let peers = try #require(data["peers"] as? [[String: Any]])
        if peers.isEmpty, ContinuousClock.now < end { continue }
        return (answer, data["isComplete"] as? Bool, peers.map { $0["label"] as? String })
      }
    }

    @Test func eachCallInAFolderHasAPageOfItsTake() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve("--out", folder.file("takes/"))
      let list = try await get(url + "/calls")
      #expect(list.body.contains("\"recording\":\"takes\""), "\(list.body)")
      var ids: [String] = []
      for name in ["a.take", "b.take"] {
        ids.append(try await call(run, url, folder, name, after: ids))
      }
      for (number, id) in zip(1...2, ids) {
        let (page, _, labels) = try await page(url, call: id)
        #expect(page.status == 200 && page.body.hasPrefix("<!doctype html>"))
        #expect(page.head.contains("Content-Type: text/html"))
        #expect(page.head.contains("Cache-Control: no-store"))
        #expect(page.head.contains("Content-Security-Policy: default-src 'none'"))
        #expect(labels == ["call \(number)"])
      }
      let none = try await get(url + "/page?id=call-3")
      #expect(none.status == 404 && none.body.contains("there is no take of call call-3"))
      try await end(run)
    }

    @Test func theOneTakeHasAPageWhileItIsRecorded() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve("--out", folder.file("all.take"))
      #expect((try await get(url + "/calls")).body.contains("\"recording\":\"all.take\""))
      let id = try await call(run, url, folder, "a.take")
      let page = try await page(url, call: id)
      #expect(page.isComplete == false && page.labels.count == 1)
      try await end(run)
      try await Takes.expectIdentical(folder.file("all.take"))
    }

    @Test func thePageOfATakeRequiresTheSameAccess() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve(
        "--out", folder.file("a.take"), "--token", "s3cret")
      let page = url + "/page?id=call-1"
      for address in [page, url + "/calls"] {
        #expect((try await get(address)).status == 401)
        #expect((try await get(address, "-H", "Host: evil.example")).status == 421)
        #expect((try await get(address, "-H", "Origin: https://evil.example")).status == 403)
      }
      // The call page itself is public, and shows nothing from the file.
      let open = try await get(url + "/")
      #expect(open.status == 200 && !open.body.contains("a.take"))
      let known = try await get(page, "-H", "Authorization: Bearer s3cret")
      #expect(known.status == 404)
      try await end(run)
    }
  }
}
