import Foundation
import Testing

/// Secrets are passed where no other user sees them, and are never printed.
struct SecretTests {
  private static let options: [[String]] = [
    ["record", "serve", "--token"], ["record", "whip", "http://127.0.0.1:1/", "--token"],
    ["record", "whep", "http://127.0.0.1:1/", "--token"], ["record", "serve", "--room-secret"],
    ["record", "room", "ws://127.0.0.1:1/", "--room", "r", "--token"],
    ["record", "room", "ws://127.0.0.1:1/", "--room", "r", "--secret"],
    ["record", "janus", "ws://127.0.0.1:1/", "--room", "r", "--pin"],
    ["record", "janus", "ws://127.0.0.1:1/", "--room", "r", "--api-secret"],
    ["record", "sora", "ws://127.0.0.1:1/", "--channel", "r", "--metadata"],
    ["record", "sora", "ws://127.0.0.1:1/", "--channel", "r", "--set"],
    ["record", "demo", "--ice-server"], ["record", "serve", "--tell-ice-server"],
    ["import", "none.pcap", "--out", "none.take", "--srtp-key"],
  ]

  /// Every option for a secret can read the secret from a file or the environment, and its help
  /// says so.
  @Test(arguments: options) func eachMayStandInAFileOrTheEnvironment(words: [String]) async throws {
    let option = try #require(words.last)
    let missing = try await Tool.run(words + ["@/none/such"])
    #expect(missing.status == 64, "\(missing)")
    #expect(missing.errors.contains("/none/such: the secret cannot be read: No such file"))
    let unset = try await Tool.run(words + ["env:RETAKE_NONE_SUCH"])
    #expect(unset.status == 64 && unset.errors.contains("RETAKE_NONE_SUCH, which is not set"))
    let help = try await Tool.run(Array(words.prefix(words[0] == "import" ? 1 : 2)) + ["--help"])
    let text = help.output.split { " \n".contains($0) }.joined(separator: " ")
    let place = try #require(text.range(of: "\(option) <"))
    #expect(text[place.upperBound...].prefix(600).contains("@FILE reads it from a file"))
  }

  @Test func aRefusedFilesContentIsNotPrinted() async throws {
    let folder = try Folder()
    let file = try folder.write("token", "no token: PASSWORD\n".utf8)
    let outcome = try await Tool.run("record", "serve", "--token", "@" + file)
    #expect(outcome.status == 64 && !outcome.errors.contains("PASSWORD"), "\(outcome)")
  }

  @Test func aKeyInAFileDecryptsItsCall() async throws {
    let folder = try Folder()
    let key = String(repeating: "ab", count: 30)
    let file = try folder.write("key", "ssrc:1=\(key)\r\n".utf8)
    for word in ["@" + file, "env:RETAKE_TEST_KEY"] {
      let outcome = try await Tool.run(
        ["import", folder.file("none"), "--out", folder.file("a.take"), "--srtp-key", word],
        environment: ["RETAKE_TEST_KEY": key])
      // The key was read; only the capture is missing.
      #expect(outcome.status == 66, "\(outcome)")
    }
  }

  @Test func passwordsOfServersAreHidden() async throws {
    let folder = try Folder()
    for (name, password) in [("a", "PASSWORD"), ("b", "PASSW0RD")] {
      // The address has the form that real calls use; nothing needs to answer there.
      _ = try await Tool.run(
        "record", "demo", "--seconds", "0.2", "--bind", "127.0.0.1", "--ice-server",
        "turn:user:\(password)@127.0.0.1:9", "--out", folder.file("\(name).take"))
    }
    _ = try await Tool.run(
      "record", "demo", "--seconds", "0.2", "--bind", "127.0.0.1", "--out", folder.file("c.take"))
    let (a, b, c) = (folder.file("a.take"), folder.file("b.take"), folder.file("c.take"))
    for arguments in [
      ["diff", a, b], ["diff", a, b, "--json"], ["diff", a, c], ["diff", c, b, "--json"],
      ["info", a], ["info", a, "--json"], ["timeline", a], ["debug", a, "-c", "show"],
      ["debug", a, "-c", "next", "-c", "show", "-c", "steps", "--json"],
      ["replay", a, "--until", "step:3"], ["replay", a, "--until", "step:3", "--json"],
    ] {
      let outcome = try await Tool.run(arguments)
      let all = outcome.output + outcome.errors
      #expect(!all.contains("PASSWORD") && !all.contains("PASSW0RD"), "\(arguments): \(all)")
    }
    let diff = try await Tool.run("diff", a, b, "--json")
    #expect(diff.output.contains("with different secrets"), "\(diff.output)")
  }
}
