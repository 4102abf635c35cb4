import Foundation
import Testing

/// Every verb's JSON matches the catalogue's schema exactly.
struct JSONFormTests {
  private static let path = DebugTests.root.appending(
    path: "Sources/Products/Retake/Retake.docc/Resources/output.schema.json"
  ).path

  private static func capture(_ name: String) -> String {
    DebugTests.root.appending(path: "Captures/\(name).take").path
  }

  private func schema() throws -> JSONSchema { try JSONSchema(path: Self.path) }

  /// Runs a command and parses its output: one value, or one per line.
  private func values(
    _ arguments: [String], isByLine: Bool = false, status: Int32 = 0
  ) async throws -> [Any] {
    let outcome = try await Tool.run(arguments)
    #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
    let texts = isByLine ? outcome.output.split(separator: "\n") : [outcome.output[...]]
    return try texts.map {
      try JSONSerialization.jsonObject(with: Data($0.utf8), options: .fragmentsAllowed)
    }
  }

  private func expect(_ values: [Any], _ definition: String) throws {
    #expect(!values.isEmpty, "\(definition)")
    let schema = try schema()
    for value in values {
      let misses = schema.misses(of: value, definition)
      #expect(misses.isEmpty, "\(misses.prefix(5).joined(separator: "\n"))")
    }
  }

  /// Pairs each definition with the command lines whose output it defines.
  ///
  /// `TAKE` is a call over a bad network, `ROOM` and `SEEN` are captures, `FOLDER` has both, `NEW`
  /// is a missing file.
  @Test(arguments: [
    ("info", "info TAKE --json"), ("info", "info ROOM --json"), ("info", "info SEEN --json"),
    ("timeline", "timeline TAKE --json"), ("timeline", "timeline ROOM --json"),
    ("stats", "stats TAKE --json"), ("stats", "stats SEEN --json"),
    ("sdk_stats", "stats TAKE --sdk"),
    ("problems", "stats TAKE --problems --json"), ("findings", "findings TAKE --json"),
    ("findings", "findings SEEN --json"), ("summary", "summary TAKE --json"),
    ("summary", "summary ROOM --json"), ("summary", "summary SEEN --json"),
    ("speakers", "speakers TAKE --json"),
    ("speakers", "speakers SEEN --json"), ("rows", "sql TAKE --json|SELECT * FROM state LIMIT 5"),
    ("replay", "replay TAKE --skip-codecs --json"),
    ("replay", "replay TAKE --skip-codecs --json --until 1s"),
    ("replay", "replay ROOM --skip-codecs --json --until 1s"),
    ("whatif", "whatif TAKE --jitter-buffer 300 --json"), ("verify", "verify TAKE SEEN --json"),
    ("upgrade", "upgrade SEEN --out NEW --json"),
    ("redact", "redact SEEN --out NEW --json"), ("bundle", "bundle SEEN --out NEW --json"),
    ("merge", "merge TAKE TAKE --first-peer 1 --second-peer 2 --json"),
    ("record", "record demo --seed 1 --seconds 0.2 --size 32x32 --json --out NEW"),
    ("record", "record demo --seconds 0.2 --size 32x32 --json --out NEW"),
    ("findings_folder", "findings FOLDER --json"), ("summary_folder", "summary FOLDER --json"),
    ("speakers_folder", "speakers FOLDER --json"), ("info_folder", "info FOLDER --json"),
    ("rows", "sql FOLDER --json|SELECT * FROM state LIMIT 5"),
    ("rows", "sql FOLDER --json|SELECT * FROM frame LIMIT 5"),
    ("diff_folders", "diff FOLDER FOLDER --json"),
    ("export", "export TAKE --pcap NEW --json"), ("export", "export TAKE --media NEW --json"),
    ("export", "export TAKE --format webm --out NEW --json"),
    ("export", "export TAKE --format rtcstats --out NEW --json"),
    ("page", "page TAKE --no-media --json --out NEW"), ("sdk", "sdk --json"),
  ])
  func aResultHasTheFormOfItsVerb(definition: String, line: String) async throws {
    let folder = try Folder()
    let take = try await Takes.lossyCall().path
    let parts = line.split(separator: "|").map { String($0) }
    let words = parts[0].split(separator: " ").map { word in
      switch word {
      case "TAKE": take
      case "ROOM": Self.capture("janus-room")
      case "SEEN": Self.capture("observed-clear-vp8")
      case "NEW": folder.file("new")
      case "FOLDER": folder.path
      default: String(word)
      }
    }
    if line.contains("FOLDER") {
      for name in ["janus-room", "observed-clear-vp8"] {
        try FileManager.default.copyItem(
          atPath: Self.capture(name), toPath: folder.file("\(name).take"))
      }
    }
    try expect(try await values(words + parts.dropFirst()), definition)
  }

  @Test func linesHaveTheFormOfTheirVerb() async throws {
    let take = try await Takes.lossyCall().path
    try expect(try await values(["stats", take, "--series"], isByLine: true), "series_line")
    for path in [take, Self.capture("janus-room")] {
      let commands = [
        "seek 1s", "steps 3", "show", "stats", "break packet rtp", "break", "next", "watch", "mark",
        "next 5", "diff", "help", "seek packet rtp ssrc=1",
      ].flatMap { ["-c", $0] }
      let answers = try await values(
        ["debug", path, "--json"] + commands, isByLine: true, status: 2)
      try expect(answers, "debug_answer")
    }
  }

  @Test func importedCapturesHaveTheFormOfTheirVerb() async throws {
    let folder = try Folder()
    let take = try await Takes.lossyCall().path
    let pcap = folder.file("call.pcap")
    #expect(try await Tool.run("export", take, "--pcap", pcap, "--peer", "1").status == 0)
    let one = try await values(["import", pcap, "--out", folder.file("one.take"), "--json"])
    try expect(one, "import")
    let report = folder.file("report.json")
    try #"{"A":{"type":"codec","timestamp":1700000000000,"payloadType":111}}"#
      .write(toFile: report, atomically: true, encoding: .utf8)
    try expect(
      try await values(["import", report, "--out", folder.file("report.take"), "--json"]),
      "import_reported")
    try expect(
      try await values(["import", pcap, "--out", folder.path + "/calls/", "--json"]), "import_calls"
    )
  }

  @Test func differencesHaveTheFormOfTheirVerb() async throws {
    let folder = try Folder()
    let take = try await Takes.lossyCall().path
    let other = Self.capture("virtual-loss")
    try expect(try await values(["diff", take, take, "--json"]), "diff")
    let different = try await values(["diff", take, other, "--json"], status: 1)
    try expect(different, "diff")
    // Session totals have no time.
    let differences = (different.first as? [String: Any])?["differences"] as? [[String: Any]] ?? []
    #expect(differences.contains { $0["kind"] as? String == "frames" })
    for difference in differences {
      #expect((difference["at_ns"] as? Int64 ?? 0) < 60_000_000_000, "\(difference)")
    }
    let pinned = folder.file("pinned.take")
    try FileManager.default.copyItem(atPath: other, toPath: pinned)
    try expect(try await values(["pin", pinned, "--json"]), "pin")
    // A datagram with one changed byte is another input, and the stack's answer changes with it.
    let altered = folder.file("altered.take")
    try FileManager.default.copyItem(atPath: take, toPath: altered)
    try Takes.alter(altered, "UPDATE packet_store SET size = size WHERE row = -1")
    try expect(try await values(["verify", altered, "--json"]), "verify")
  }

  // MARK: Schema

  /// Names are lower case with underscores.
  ///
  /// Exceptions are deprecated names, W3C names, and names in the stack's own state, which the
  /// schema does not list.
  @Test func namesHaveOneForm() throws {
    let schema = try schema()
    var count = 0
    func look(_ schema: [String: Any], _ place: String) {
      for (name, property) in schema["properties"] as? [String: [String: Any]] ?? [:] {
        count += 1
        if property["deprecated"] as? Bool != true {
          #expect(
            name.range(of: "^[a-z][a-z0-9_]*$", options: .regularExpression) != nil,
            "\(place).\(name)")
          #expect(!name.hasSuffix("_ms") && !name.hasSuffix("_seconds"), "\(place).\(name)")
          #expect(!(property["description"] as? String ?? "").isEmpty, "\(place).\(name)")
        }
        look(property, "\(place).\(name)")
      }
      for key in ["items", "additionalProperties"] {
        if let inner = schema[key] as? [String: Any] { look(inner, place) }
      }
      for choice in schema["anyOf"] as? [[String: Any]] ?? [] { look(choice, place) }
    }
    for (name, definition) in schema.definitions { look(definition, name) }
    #expect(count > 150)
  }
}
