import Foundation
import Room
import Signaling
import Testing
import Wire

/// Text from other parties reaches the terminal as plain text only, in every verb.
struct HostileTextTests {
  /// Sequences that set the title and colours and clear the screen, their C1 forms, and characters
  /// that reverse, hide or break text.
  static let nasty =
    "\u{1b}]0;pwned\u{7}\u{1b}[31mred\u{1b}[2J\u{9b}32mc1\u{9d}0;t\u{9c}\u{85}\u{202e}rtl\u{2066}"
    + "\u{200b}\u{feff}\u{2028}\u{2029}\u{7f}\u{8}\r\u{e0041}"
    // U+FDD0, which marks the start of a colour inside the process.
    + String(decoding: [0xef, 0xb7, 0x90], as: UTF8.self)

  /// The takes of a room server and of a participant who met a remote participant with hostile
  /// names.
  struct Takes: Sendable {
    var folder: Folder
    var server: String
    var visitor: String
    /// What the server printed during the recording.
    var said: String
  }

  private static let made = Task { try await make() }

  private static func make() async throws -> Takes {
    let folder = try Folder()
    let (server, visitor) = (folder.file("server.take"), folder.file("visitor.take"))
    let (serving, url) = try await LiveTests.serve(
      "--rooms", "--out", server, "--label", nasty)
    let rooms = "ws" + url.dropFirst("http".count) + "/rooms"
    let visiting = try Run(
      "/bin/sh",
      [
        "-c",
        // The command's standard input stays open, so that the command reports events.
        "mkfifo \(folder.file("pipe")) && exec 3<>\(folder.file("pipe")) && "
          + "exec \"$0\" record room \(rooms) --room talk --commands --bind 127.0.0.1 "
          + "--out \(visitor) <&3", Tool.path,
      ])
    let socket = try await WebSocket.connect(to: rooms, subprotocols: ["retake-room"])
    try await socket.send(
      .text(
        JSONText.object([
          ("type", .text("join")), ("room", .text("talk")), ("role", .text("both")),
          ("name", .text("name" + nasty)), ("participant", .text("id" + nasty)),
          ("metadata", .text(nasty)),
        ]).text))
    // Waits until the other participant has joined.
    var isThere = false
    while !isThere, case .text(let text)? = await socket.receive() {
      isThere = text.contains("\"entered\"") || text.contains("\"retake\"")
    }
    for text in [
      JSONText.object([
        ("type", .text("message")), ("request", .integer(1)), ("text", .text("chat" + nasty)),
      ]),
      JSONText.object([
        ("type", .text("offer")), ("request", .integer(2)), ("sdp", .text("v=0" + nasty)),
        (
          "media",
          .list([
            .object([
              ("mid", .text("0")), ("local", .integer(1)), ("kind", .text("audio")),
              ("value", .text(nasty)),
            ])
          ])
        ),
      ]),
    ] { try await socket.send(.text(text.text)) }
    try await visiting.waitForErrors(with: "chat")
    await socket.close()
    visiting.send(SIGINT)
    let visited = try await visiting.outcome()
    serving.send(SIGINT)
    let served = try await serving.outcome()
    try #require(visited.status == 0 && served.status == 0, "\(visited) \(served)")
    return Takes(
      folder: folder, server: server, visitor: visitor,
      said: visited.output + visited.errors + served.output + served.errors)
  }

  /// Returns the invisible and control characters in text, except line ends, tabs and the sequences
  /// that Retake itself writes to a terminal.
  static func shapeless(_ text: String) -> [String] {
    // A terminal replaces each line feed by its own line end.
    var rest = text.replacing("\r\r\n", with: "\n")
    for own in ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[m", "\r\u{1b}[K"] {
      rest = rest.replacing(own, with: "")
    }
    return shapelessOnPaper(rest)
  }

  /// Returns the invisible and control characters in output that did not go to a terminal.
  static func shapelessOnPaper(_ text: String) -> [String] {
    text.replacing("\r\n", with: "\n").unicodeScalars
      .filter { !PrintableText.isPlain($0) && $0 != "\n" && $0 != "\t" }
      .map { String($0.value, radix: 16) }
  }

  @Test func hostileTextIsPrintedEscaped() async throws {
    let takes = try await Self.made.value
    #expect(Self.shapelessOnPaper(takes.said).isEmpty, "\(takes.said)")
    #expect(takes.said.contains("chat\\u{1b}]0;pwned\\u{7}"))
  }

  /// Verbs with placeholders: `SERVER` and `VISITOR` for the takes, `NEW` for a new file.
  private static let verbs = [
    "info SERVER", "info VISITOR --json", "timeline SERVER", "timeline VISITOR",
    "timeline VISITOR --json", "stats SERVER", "stats SERVER --json", "stats SERVER --series",
    "stats SERVER --series --csv", "stats SERVER --sdk", "stats SERVER --problems",
    "speakers SERVER", "sql SERVER 'SELECT * FROM peer'", "sql VISITOR 'SELECT * FROM actor'",
    "sql VISITOR 'SELECT * FROM event'", "sql VISITOR 'SELECT * FROM event' --csv",
    "sql VISITOR 'SELECT * FROM event' --json", "sql SERVER 'SELECT * FROM peer' --csv",
    "sql SERVER 'SELECT * FROM take' --csv", "sql SERVER 'SELECT NASTY'",
    "sql SERVER \"SELECT 1 AS 'NASTY'\" --csv", "sql SERVER \"SELECT 1 AS 'NASTY'\" --json",
    "sql SERVER \"SELECT 1 AS 'NASTY'\"", "replay SERVER", "replay VISITOR --json",
    "replay SERVER --until step:3", "replay VISITOR --until step:5 --json", "verify SERVER VISITOR",
    "verify SERVER --json", "diff SERVER VISITOR", "diff VISITOR SERVER --json",
    "debug SERVER -c 'seek end' -c show -c steps -c stats", "debug VISITOR -c 'seek end' -c show",
    "debug VISITOR --json -c 'seek end' -c show -c 'steps 50'",
    "debug VISITOR -c 'seek end' -c 'steps 50'", "debug VISITOR -c NASTY", "pin SERVER --force",
    "upgrade VISITOR --out NEW", "whatif SERVER --jitter-buffer 100",
    "whatif SERVER --drop 'packet rtp NASTY'", "merge SERVER VISITOR", "minimise SERVER --out NEW",
    "export SERVER --pcap NEW", "export SERVER --pcap NEW --peer 'idNASTY up'",
    "export SERVER --media NEW", "export VISITOR --pcapng NEW", "export SERVER --pcap NEWNASTY",
    "page VISITOR --out NEWNASTY", "info NASTY", "timeline SERVER --lane NASTY",
    "timeline SERVER --peer NASTY", "stats SERVER --type NASTY", "import NASTY --out NEW",
    "record whip http://127.0.0.1:1/NASTY", "NASTY", "info SERVER --NASTY", "open NASTY",
    "record demo --ice-server NASTY", "record room ws://127.0.0.1:1/ --room NASTY",
    "import NASTY --out NEW --sdp NASTY", "import NASTY --out NEW --srtp-key @NASTY",
    "record serve --token env:NASTY", "record serve --certificate NASTY --key NASTY",
    "record demo --send NASTY.y4m", "record demo --label NASTY --seed 1 --seconds 0.1 --out NEW",
  ]

  @Test(arguments: verbs) func nothingButTextIsPrinted(verb: String) async throws {
    let (takes, new) = (try await Self.made.value, try Folder())
    func quoted(_ word: String) -> String { "'\(word)'" }
    let line =
      verb.replacing("SERVER", with: quoted(takes.server))
      .replacing("VISITOR", with: quoted(takes.visitor))
      .replacing("NEW", with: new.file("new")).replacing("NASTY", with: Self.inShell(verb))
    let outcome = try await Tool.shell("cd '\(new.path)' && \"$RETAKE\" \(line)")
    #expect(!outcome.wasKilled && outcome.status < 128, "\(outcome)")
    let found = Self.shapelessOnPaper(outcome.output + outcome.errors)
    #expect(found.isEmpty, "\(found) in \(outcome)")
    let isJSON = verb.contains("--json") && outcome.status < 2 && !verb.hasPrefix("debug")
    if isJSON {
      #expect(throws: Never.self) {
        try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
      }
    }
  }

  /// Quotes the hostile text for a shell, unless the verb already has quotes around it.
  private static func inShell(_ verb: String) -> String {
    verb.contains("'NASTY") || verb.contains("NASTY'") || verb.contains("NASTY up'")
      ? nasty : "'\(nasty)'"
  }

  @Test(arguments: [
    "info SERVER", "timeline VISITOR", "stats SERVER", "sql VISITOR 'SELECT * FROM event'",
    "sql VISITOR 'SELECT * FROM event' --csv", "replay VISITOR --until step:9", "verify SERVER",
    "diff SERVER VISITOR", "info NASTY",
  ]) func aTerminalReceivesOnlyRetakesControlSequences(verb: String) async throws {
    let takes = try await Self.made.value
    let words = verb.split(separator: "'").enumerated().flatMap { index, part in
      index % 2 == 1 ? [String(part)] : part.split(separator: " ").map { String($0) }
    }.map { word in
      switch word {
      case "SERVER": takes.server
      case "VISITOR": takes.visitor
      case "NASTY": Self.nasty
      default: word
      }
    }
    let run = try TerminalRun(words, environment: ["PAGER": "cat"])
    _ = try await run.end()
    let found = Self.shapeless(run.screen)
    #expect(found.isEmpty, "\(found) in \(run.screen)")
  }

  @Test func aServerThatRefusesIsQuoted() async throws {
    let body = "no" + Self.nasty
    let server = try await HTTPServer.listen(host: "127.0.0.1", port: 0, identity: nil) { _ in
      .refusal(403, body)
    }
    for verb in ["whip", "whep", "call"] {
      let outcome = try await Tool.run(
        "record", verb, "http://127.0.0.1:\(server.port)/x", "--bind", "127.0.0.1", "--out",
        try Folder().file("a.take"))
      #expect(outcome.status != 0 && !outcome.wasKilled, "\(outcome)")
      let found = Self.shapelessOnPaper(outcome.output + outcome.errors)
      #expect(found.isEmpty, "\(found) in \(outcome)")
    }
    await server.shutdown()
  }
}
