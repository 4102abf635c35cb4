import Foundation
import Testing

/// Records calls between two stacks in one process, and replays them in separate processes.
struct DemoTests {
  private func expectIdentical(_ outcome: Tool.Outcome) {
    #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    #expect(outcome.output.contains(": identical: "))
    #expect(outcome.errors.isEmpty)
  }

  @Test func aLiveCallReplaysIdentical() async throws {
    let folder = try Folder()
    let path = folder.file("live.take")
    let recorded = try await Tool.run(
      "record", "demo", "--seconds", "2", "--size", "160x120", "--rate", "10", "--label", "hello",
      "--out", path)
    #expect(recorded.status == 0, "\(recorded.errors)")
    #expect(recorded.output.split(separator: "\n").count == 1)
    expectIdentical(try await Tool.run("replay", path))
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
    #expect(mode as? Int == 0o600)
    for peer in 1...2 {
      for kind in ["audio", "video"] {
        let frames = try Takes.number(
          path,
          "SELECT count(*) FROM frame WHERE peer = \(peer) AND kind = '\(kind)' "
            + "AND direction = 'in' AND outcome = 'decoded'")
        #expect(frames > 5, "peer \(peer) received \(frames) \(kind) frames")
      }
    }
    for verb in ["info", "timeline", "stats"] {
      let text = try await Tool.run(verb, path)
      #expect(text.status == 0 && text.output.contains("caller"), "\(verb): \(text.errors)")
      let json = try await Tool.run(verb, path, "--json")
      #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(json.output.utf8)) }
    }
    #expect(try await Tool.run("info", path).output.contains("hello"))
    let page = path + ".html"
    defer { try? FileManager.default.removeItem(atPath: page) }
    let written = try await Tool.run("page", path, "--out", page)
    #expect(written.status == 0 && written.output.hasPrefix("\(page): "), "\(written.errors)")
    #expect(try String(contentsOfFile: page, encoding: .utf8).contains("\"caller\""))
    let pageMode = try FileManager.default.attributesOfItem(atPath: page)[.posixPermissions]
    #expect(pageMode as? Int == 0o600)
    let nowhere = try await Tool.run("page", path, "--out", "/nowhere/call.html")
    #expect(nowhere.status == 74 && nowhere.errorLines.count == 1, "\(nowhere.errors)")
  }

  @Test func tagsAreInTheTakeAndItsCopies() async throws {
    let folder = try Folder()
    let path = folder.file("tagged.take")
    let words = ["--seconds", "1", "--seed", "3", "--size", "64x64", "--tag"]
    let recorded = try await Tool.run(
      ["record", "demo", "--out", path] + words + ["site=berlin", "--tag", "build=42=a"])
    #expect(recorded.status == 0, "\(recorded.errors)")
    expectIdentical(try await Tool.run("replay", path))
    #expect(try await Tool.run("info", path).output.contains("build=42=a, site=berlin"))
    let copy = folder.file("copy.take")
    #expect(try await Tool.run("upgrade", path, "--out", copy).status == 0)
    for take in [path, copy] {
      let rows = try await Tool.run("sql", take, "SELECT key, value FROM tag ORDER BY key", "--csv")
      let lines = rows.output.split(whereSeparator: \.isNewline)
      #expect(lines == ["key,value", "build,42=a", "site,berlin"], "\(rows.errors)")
      let json = try await Tool.run("info", take, "--json").output
      #expect(json.contains(#""tags":{"build":"42=a","site":"berlin"}"#))
    }
    let both = try await Tool.run(
      "sql", folder.path, "SELECT count(*) FROM tag WHERE key = 'site'", "--csv")
    #expect(both.output.split(whereSeparator: \.isNewline) == ["count(*)", "2"], "\(both.errors)")
    let refused = try await Tool.run(["record", "demo", "--out", path] + words + ["Site"])
    #expect(refused.status == 64 && refused.errors.contains("--tag"), "\(refused.errors)")
  }

  @Test(arguments: [
    [:], ["SWIFT_DETERMINISTIC_HASHING": "1"],
    ["TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"],
    ["HOME": "/nowhere", "TMPDIR": "/tmp"],
  ])
  func theSurroundingsOfAReplayDoNotMatter(environment: [String: String]) async throws {
    let made = try await Takes.lossyCall()
    expectIdentical(try await Tool.run("replay", made.path, environment: environment))
  }

  @Test(.enabled(if: Tool.has("faketime"))) func theDateOfAReplayDoesNotMatter() async throws {
    let made = try await Takes.lossyCall()
    expectIdentical(
      try await Tool.shell("faketime '2031-05-06 07:08:09' \"$RETAKE\" replay '\(made.path)'"))
  }

  @Test func theCodecsMayBeSkipped() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("replay", made.path, "--skip-codecs")
    expectIdentical(outcome)
    #expect(outcome.output.contains("codecs skipped"))
  }

  @Test func aReplayStopsAtTheRequestedPlace() async throws {
    let made = try await Takes.lossyCall()
    let step = try await Tool.run("replay", made.path, "--until", "step:100")
    expectIdentical(step)
    #expect(step.output.contains("99 steps") && step.output.contains("before step 100"))
    expectIdentical(try await Tool.run("replay", made.path, "--until", "1.5s"))
  }

  @Test func theSameSeedGivesTheSameTake() async throws {
    let first = try await Takes.lossyCall()
    let again = try await Takes.virtual(
      "--loss", "5", "--delay", "40", "--jitter", "20", "--seed", "7")
    let other = try await Takes.virtual(
      "--loss", "5", "--delay", "40", "--jitter", "20", "--seed", "8")
    let digest = "SELECT digest FROM ending"
    #expect(try Takes.bytes(first.path, digest) == Takes.bytes(again.path, digest))
    #expect(try Takes.bytes(first.path, digest) != Takes.bytes(other.path, digest))
  }

  @Test func aTakeWithoutMediaIsSmallerAndReplaysIdentical() async throws {
    let made = try await Takes.virtual("--seed", "3", "--no-media-copy")
    let whole = try await Takes.virtual("--seed", "3")
    expectIdentical(try await Tool.run("replay", made.path))
    let kept = "SELECT count(*) FROM frame WHERE bytes IS NOT NULL"
    #expect(try Takes.number(made.path, kept) == 0)
    #expect(try Takes.number(whole.path, kept) > 0)
    #expect(
      try Data(contentsOf: URL(filePath: made.path)).count
        < Data(contentsOf: URL(filePath: whole.path)).count)
    expectIdentical(try await Tool.run("replay", made.path, "--skip-codecs"))
  }

  @Test(.enabled(if: Tool.has("sqlite3"))) func plainSQLiteReadsATake() async throws {
    let made = try await Takes.lossyCall()
    let plain = try await Tool.shell(
      "sqlite3 '\(made.path)' 'select at_ns, machine, from_state, to_state from state'")
    #expect(plain.status == 0 && plain.errors.isEmpty)
    #expect(plain.output.contains("|dtls|connecting|connected"), "\(plain.output)")
    let counted = try await Tool.shell(
      "sqlite3 '\(made.path)' 'select protocol, count(*) from packet group by protocol'")
    for name in ["stun", "dtls", "rtp", "rtcp"] { #expect(counted.output.contains("\(name)|")) }
  }

  @Test func queriesPrintTablesLinesAndObjects() async throws {
    let made = try await Takes.lossyCall()
    let query = "SELECT peer, label FROM peer ORDER BY peer"
    let table = try await Tool.run("sql", made.path, query)
    #expect(table.output.split(separator: "\n").count == 4)
    let lines = try await Tool.run("sql", made.path, query, "--format", "csv")
    #expect(lines.output == "peer,label\r\n1,caller\r\n2,callee\r\n")
    let objects = try await Tool.run("sql", made.path, query, "--json")
    #expect(objects.output.contains("{\"peer\":1,\"label\":\"caller\"}"))
    let schema = try await Tool.run("sql", "--schema")
    #expect(schema.output.contains("CREATE TABLE take ("))
  }
}
