import Foundation
import Testing

/// Tests what a first-time user sees.
struct UsageTests {
  @Test(arguments: [
    [], ["record"], ["record", "demo"], ["record", "serve"], ["record", "call"], ["replay"],
    ["record", "whip"], ["record", "whep"],
    ["info"], ["timeline"], ["stats"], ["sql"], ["export"], ["speakers"], ["page"], ["debug"],
    ["whatif"], ["diff"], ["verify"], ["pin"], ["minimise"], ["upgrade"], ["merge"],
    ["redact"], ["bundle"],
  ])
  func helpShowsAnExample(verb: [String]) async throws {
    let outcome = try await Tool.run(verb + ["--help"])
    #expect(outcome.status == 0)
    let lines = outcome.output.split(separator: "\n")
    let example = "retake " + (verb.isEmpty ? ["record"] : verb).joined(separator: " ")
    #expect(lines.contains { $0.drop { $0 == " " }.hasPrefix(example + " ") }, "no example")
    #expect(outcome.errors.isEmpty)
  }

  @Test(arguments: [
    (["fly"], "fly"),
    (["record", "demo", "--loss", "101"], "--loss"),
    (["record", "demo", "--size", "huge"], "--size"),
    (["record", "demo", "--rate", "0"], "--rate"),
    (["record", "demo", "--video-codec", "av1"], "vp8 or vp9 or"),
    (["record", "demo", "--video-codec", "h263"], "'av1'"),
    (["record", "demo", "--seconds", "0"], "--seconds"),
    (["record", "demo", "--bind", "localhost"], "--bind"),
    (["record", "demo", "--bind", "203.0.113.9"], "127.0.0.1"),
    (["record", "serve", "--listen", "8080"], "--listen"),
    (["record", "serve", "--send", "song.mp3"], "song.mp3"),
    (["record", "call", "http://127.0.0.1:9", "--send", "echo", "--send", "pattern"], "combined"),
    (["record", "call", "http://127.0.0.1:9", "--frame-rate", "25"], "--frame-rate"),
    (["record", "call"], "<url>"),
    (["record", "call", "ftp://127.0.0.1"], "ftp://127.0.0.1"),
    (["record", "whip"], "<url>"),
    (["record", "whip", "ftp://127.0.0.1"], "ftp://127.0.0.1"),
    (["record", "whip", "http://127.0.0.1:9", "--send", "echo"], "--send echo"),
    (["record", "whep", "http://127.0.0.1:9", "--token", "a b"], "--token"),
    (["record", "whep", "http://127.0.0.1:9", "--restart-ice", "-1"], "--restart-ice"),
    (["record", "serve", "--token", ""], "--token"),
    (["record", "serve", "--calls", "0"], "--calls"),
    (["record", "serve", "--connect-within", "nan"], "--connect-within"),
    (["record", "serve", "--allow-host", "http://a"], "--allow-host"),
    (["record", "serve", "--allow-origin", "app.example"], "--allow-origin"),
    (["record", "serve", "--tell-ice-server", "192.0.2.1"], "--tell-ice-server"),
    (["record", "serve", "--certificate", "a.pem"], "--key"),
    (["replay"], "<take>"),
    (["replay", "a.take", "--until", "soon"], "--until"),
    (["replay", "a.take", "b.take"], "b.take"),
    (["stats", "a.take", "--at", "-1"], "--at"),
    (["sql", "a.take"], "query"),
    (["sql", "a.take", "SELECT 1", "--format", "xml"], "--format"),
    (["export", "a.take"], "--pcap"),
    (["export", "a.take", "--media", "m", "--rate", "0"], "--rate"),
  ])
  func wrongArgumentsAreReportedInOneSentence(arguments: [String], word: String) async throws {
    let outcome = try await Tool.run(arguments)
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    let first = try #require(outcome.errorLines.first)
    #expect(first.contains(word), "\(first)")
    #expect(outcome.errorLines.count == 1)
  }

  @Test(arguments: [
    ["replay", "FILE"], ["info", "FILE"], ["timeline", "FILE"], ["stats", "FILE"],
    ["page", "FILE", "--out", "FILE.html"], ["speakers", "FILE"], ["debug", "FILE", "-c", "state"],
    ["whatif", "FILE", "--jitter-buffer", "600"], ["diff", "FILE", "FILE"], ["pin", "FILE"],
    ["minimise", "FILE"], ["redact", "FILE", "--out", "FILE.new"],
    ["bundle", "FILE", "--out", "FILE.zip"],
    ["upgrade", "FILE", "--out", "FILE.new"], ["merge", "FILE", "FILE"],
    ["sql", "FILE", "SELECT 1"], ["export", "FILE", "--pcap", "x.pcap"],
    ["export", "FILE", "--media", "x"], ["record", "serve", "--send", "FILE.wav"],
    ["record", "call", "http://127.0.0.1:9", "--send", "FILE.y4m"],
    ["record", "whip", "http://127.0.0.1:9", "--send", "FILE.y4m"],
  ])
  func aMissingFileIsNamed(arguments: [String]) async throws {
    let folder = try Folder()
    let missing = folder.file("none")
    let outcome = try await Tool.run(arguments.map { $0.replacing("FILE", with: missing) })
    #expect(outcome.status == 66)
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains(missing), "\(outcome.errors)")
    #expect(outcome.output.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test func aWrongQueryIsWrongUsage() async throws {
    let made = try await Takes.lossyCall()
    for (query, word) in [
      ("SELECT nothing FROM state", "nothing"), ("DELETE FROM state", "only read"),
      ("SELECT 1; SELECT 2", "one at a time"), ("", "empty"),
    ] {
      let outcome = try await Tool.run("sql", made.path, query)
      #expect(outcome.status == 64, "\(query)")
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains(word), "\(outcome.errors)")
    }
  }

  @Test func aPeerThatIsNotThereIsReportedWithThoseThatAre() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    for option in ["--pcap", "--media"] {
      let outcome = try await Tool.run("export", made.path, option, folder.file("x"), "--peer", "9")
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("1 (caller), 2 (callee)"), "\(outcome.errors)")
    }
  }

  @Test func statsOfAnUnknownTypeAreReportedWithTheKnownOnes() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("stats", made.path, "--type", "inbound")
    #expect(outcome.status == 64 && outcome.output.isEmpty)
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains("inbound-rtp"))
  }

  @Test func anExistingFileIsNeverOverwritten() async throws {
    let folder = try Folder()
    let path = try folder.write("there.take", "precious".utf8)
    let made = try await Takes.lossyCall()
    for arguments in [
      ["record", "demo", "--out", path], ["record", "demo", "--seed", "1", "--out", path],
      ["record", "serve", "--listen", "127.0.0.1:0", "--out", path],
      ["record", "call", "http://127.0.0.1:9", "--out", path],
      ["record", "whep", "http://127.0.0.1:9", "--out", path],
      ["export", made.path, "--pcap", path],
    ] {
      let outcome = try await Tool.run(arguments)
      #expect(outcome.status == 74, "\(arguments)")
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains("\(path) exists already"))
    }
    #expect(try Data(contentsOf: folder.url("there.take")) == Data("precious".utf8))
  }

  @Test func aMissingFolderIsNamed() async throws {
    let folder = try Folder()
    let path = folder.file("none/call.take")
    let outcome = try await Tool.run("record", "demo", "--seed", "1", "--out", path)
    #expect(outcome.status == 74)
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains(path), "\(outcome.errors)")
  }

  @Test(arguments: ["call", "whip", "whep"])
  func nobodyToCallIsReportedAndLeavesNothing(verb: String) async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let outcome = try await Tool.run("record", verb, "http://127.0.0.1:9/offer", "--out", path)
    #expect(outcome.status == 74)
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains("127.0.0.1:9"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test func theTableOfClientSDKsIsNamed() async throws {
    let outcome = try await Tool.run("sdk")
    #expect(outcome.output.contains("swift run sdk-table") && outcome.output.hasSuffix(".\n"))
    #expect(outcome.output.split(separator: "\n").count == 1 && outcome.status == 0)
  }
}
