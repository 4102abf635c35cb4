import Foundation
import Testing

@testable import Tape

/// Tests commands on folders of takes.
struct FolderTests {
  private static let good = "live-loopback"
  private static let bad = "virtual-heavy-loss"

  /// A folder with copies of captures, and a user's cache beside it.
  private struct TakesFolder: Sendable {
    let folder: Folder
    let cache: Folder

    var path: String { folder.path }
    var catalogue: String { folder.file(".retake.catalogue") }

    init(_ names: String...) throws {
      folder = try Folder()
      cache = try Folder()
      for name in names { try add(name, as: name) }
    }

    func add(_ capture: String, as name: String) throws {
      let source = DebugTests.root.appending(path: "Captures/\(capture).take").path
      try? FileManager.default.removeItem(atPath: take(name))
      try FileManager.default.copyItem(atPath: source, toPath: take(name))
    }

    func take(_ name: String) -> String { folder.file("\(name).take") }

    func run(_ arguments: String...) async throws -> Tool.Outcome {
      try await Tool.run(arguments, environment: ["XDG_CACHE_HOME": cache.path])
    }

    func rows(_ arguments: String...) async throws -> [[String: Any]] {
      let outcome = try await Tool.run(
        arguments + ["--json"], environment: ["XDG_CACHE_HOME": cache.path])
      #expect(outcome.status == 0, "\(outcome.errors)")
      let value = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
      return try #require(value as? [[String: Any]])
    }

    /// Returns each take's findings, in the form `virtual-heavy-loss.take loss`.
    func found() async throws -> [String] {
      try await rows("sql", path, "SELECT DISTINCT take, id FROM finding ORDER BY take, id")
        .map { row in
          let name = (row["take"] as? String)?.split(separator: "/").last ?? ""
          return "\(name) \(row["id"] ?? "")"
        }
    }
  }

  // MARK: SQL

  @Test func aQueryIsAnsweredFromACatalogueBesideTheTakes() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    let first = try await takes.found()
    #expect(first.contains("virtual-heavy-loss.take loss"), "\(first)")
    let attributes = try FileManager.default.attributesOfItem(atPath: takes.catalogue)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    // The catalogue is reused while the takes are unchanged.
    let made = try #require(attributes[.systemFileNumber] as? Int)
    #expect(try await takes.found() == first)
    let again = try FileManager.default.attributesOfItem(atPath: takes.catalogue)
    #expect(again[.systemFileNumber] as? Int == made)
    // The catalogue does not count as a take, and no other file is left.
    let names = try FileManager.default.contentsOfDirectory(atPath: takes.path)
    #expect(names.count == 3, "\(names)")
    let listed = try await takes.run("verify", takes.path, "--reports", takes.cache.path)
    #expect(listed.output.contains("2 takes"), "\(listed.output)")
  }

  @Test func aChangedTakeIsReadAgainAndADeletedOneIsForgotten() async throws {
    let takes = try TakesFolder(Self.bad)
    let first = try await takes.found()
    try takes.add(Self.good, as: "new")
    #expect(try await takes.rows("sql", takes.path, "SELECT take FROM take").count == 2)
    // Another recording replaces the take of the same name.
    try takes.add(Self.good, as: Self.bad)
    #expect(try await takes.found() != first)
    try FileManager.default.removeItem(atPath: takes.take("new"))
    let left = try await takes.rows("sql", takes.path, "SELECT take FROM take")
    #expect(left.map { $0["take"] as? String } == [takes.take(Self.bad)])
  }

  @Test func rowsOfEachTakeAreUnitedBehindTheTake() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    let sql = "SELECT count(*) AS n FROM packet"
    let rows = try await takes.rows("sql", takes.path, sql)
    var sum = 0
    for (row, name) in zip(rows, [Self.good, Self.bad]) {
      #expect(row["take"] as? String == takes.take(name))
      let alone = try await takes.rows("sql", takes.take(name), sql)
      #expect(row["n"] as? Int == alone[0]["n"] as? Int)
      sum += row["n"] as? Int ?? 0
    }
    #expect(rows.count == 2)
    let over = try await takes.rows(
      "sql", takes.path, sql, "--over",
      "SELECT sum(n) AS n, count(DISTINCT take) AS takes FROM rows")
    #expect(over[0]["n"] as? Int == sum && over[0]["takes"] as? Int == 2)
    // Several takes named on the command line act as a folder, too; `--each` skips the catalogue.
    let each = try await takes.rows(
      "sql", takes.take(Self.bad), takes.take(Self.good), "SELECT count(*) AS n FROM stream",
      "--each")
    #expect(each.map { $0["take"] as? String } == [takes.take(Self.bad), takes.take(Self.good)])
    let all = try await takes.rows("sql", takes.path, "SELECT count(*) AS n FROM stream")
    #expect(all[0]["n"] as? Int == each.reduce(0) { $0 + ($1["n"] as? Int ?? 0) })
    let table = try await takes.run("sql", takes.path, "SELECT DISTINCT protocol FROM packet")
    // The catalogue's tables about a take can be joined with the take's own tables.
    let joined = "SELECT DISTINCT f.id FROM finding AS f JOIN packet AS p ON p.peer = f.peer"
    let found = try await takes.rows("sql", takes.path, joined)
    #expect(found.contains { $0["id"] as? String == "loss" }, "\(found)")
    let one = try await takes.rows("sql", takes.take(Self.bad), joined)
    #expect(one.count == found.count)
    #expect(table.output.hasPrefix("take") && table.output.contains("live-loopback.take"))
  }

  @Test func invalidQueriesAreRefusedBeforeTakesAreRead() async throws {
    let takes = try TakesFolder(Self.good)
    for (words, reason) in [
      (["SELECT * FROM nowhere"], "no such table: nowhere"),
      (["SELECT 1 AS take FROM packet"], "rename it"),
      (["DELETE FROM packet"], "cannot modify packet"), (["ATTACH 'x' AS y"], "only read"),
      (["SELECT take, size FROM packet"], "use it in --over"),
      (["SELECT 1 FROM packet", "--over", "SELECT nowhere FROM rows"], "no such column: nowhere"),
      (["SELECT peer, peer FROM packet", "--over", "SELECT 1 FROM rows"], "with AS"),
    ] {
      let outcome = try await Tool.run(["sql", takes.path] + words)
      #expect(outcome.status == 64 && outcome.errors.contains(reason), "\(outcome.errors)")
      #expect(outcome.errorLines.count == 1)
    }
    let one = try await takes.run("sql", takes.take(Self.good), "SELECT 1", "--each")
    #expect(one.status == 64 && one.errors.contains("for several takes"))
    let none = try await takes.run("sql", takes.cache.path, "SELECT 1")
    #expect(none.status == 66 && none.errors.contains("there is no take in it"))
  }

  @Test func aBrokenTakeAffectsNoOther() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    _ = try takes.folder.write("broken.take", Data("SQLite format 3\0 and no more".utf8))
    for query in ["SELECT take FROM take", "SELECT count(*) FROM packet"] {
      for _ in 0..<2 {
        let outcome = try await takes.run("sql", takes.path, query, "--csv")
        #expect(outcome.status == 65, "\(query)")
        #expect(outcome.output.split(separator: "\r\n").count == 3, "\(outcome.output)")
        #expect(outcome.errorLines.count == 1 && outcome.errors.contains("broken.take: "))
      }
    }
    let findings = try await takes.run("findings", takes.path, "--json")
    #expect(findings.status == 65)
    let value = try JSONSerialization.jsonObject(with: Data(findings.output.utf8))
    let object = try #require(value as? [String: Any])
    #expect((object["takes"] as? [Any])?.count == 2)
    let unread = try #require(object["unread"] as? [[String: Any]])
    #expect(unread.map { $0["take"] as? String } == [takes.take("broken")])
  }

  @Test func manyProcessesMakeOneCatalogueAtOnce() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    let sql = "SELECT take, id, text FROM finding"
    let runs = try (0..<4).map { _ in try Run(Tool.path, ["sql", takes.path, sql, "--csv"]) }
    var texts: [String] = []
    for run in runs {
      let outcome = try await run.outcome()
      #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
      texts.append(outcome.output)
    }
    #expect(Set(texts).count == 1 && texts[0].contains("loss"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: takes.path).count == 3)
  }

  // MARK: Catalogue file

  @Test func whereNothingCanBeWrittenTheCacheOfTheUserIsUsed() async throws {
    let takes = try TakesFolder(Self.bad)
    // The catalogue's path is a link to a file outside the folder, as another user may have made
    // it.
    let other = try takes.cache.write("other", Data("mine".utf8))
    try FileManager.default.createSymbolicLink(
      atPath: takes.catalogue, withDestinationPath: other)
    let first = try await takes.found()
    #expect(try String(contentsOfFile: other, encoding: .utf8) == "mine")
    let folder = takes.cache.file("retake/catalogues")
    let kept = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(kept.count == 1 && kept[0].hasSuffix(".catalogue"))
    #expect(try await takes.found() == first)
  }

  @Test(arguments: [
    "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry; END",
    "CREATE VIEW take AS SELECT 'x' AS take", "UPDATE origin SET build = 'another'",
    "PRAGMA user_version = 999",
    "UPDATE entry SET stamp = 'x'; UPDATE finding_row SET id = 'invented'",
  ])
  func anUntrustedCatalogueIsRebuilt(sql: String) async throws {
    let takes = try TakesFolder(Self.bad)
    let first = try await takes.found()
    try Takes.alter(takes.catalogue, sql)
    #expect(try await takes.found() == first)
  }

  @Test func aDamagedCatalogueIsRebuilt() async throws {
    let takes = try TakesFolder(Self.bad)
    let first = try await takes.found()
    let size = try Data(contentsOf: takes.folder.url(".retake.catalogue")).count
    try Data(repeating: 7, count: size).write(to: takes.folder.url(".retake.catalogue"))
    #expect(try await takes.found() == first)
  }

  // MARK: Verbs

  @Test func verbsHaveALineOfEachTake() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    let findings = try await takes.run("findings", takes.path)
    #expect(findings.output.contains("virtual-heavy-loss.take"), "\(findings.output)")
    #expect(findings.output.contains("Findings in 1 of 2 takes."), "\(findings.output)")
    let summary = try await takes.run("summary", takes.path)
    #expect(summary.output.contains("none") && summary.output.contains("high: loss"))
    let info = try await takes.run("info", takes.path)
    #expect(info.output.components(separatedBy: "complete").count == 3, "\(info.output)")
    let speakers = try await takes.run("speakers", takes.path)
    #expect(speakers.output.contains("caller/out/1"), "\(speakers.output)")
    // In a folder's list, a take's JSON is the same as the verb's output for that take alone.
    for verb in ["findings", "summary", "speakers", "info"] {
      let all = try await takes.run(verb, takes.path, "--json")
      let one = try await takes.run(verb, takes.take(Self.bad), "--json")
      #expect(all.status == 0 && one.status == 0)
      let object = try JSONSerialization.jsonObject(with: Data(all.output.utf8)) as? [String: Any]
      let list = try #require(object?["takes"] as? [[String: Any]])
      let alone = try #require(
        try JSONSerialization.jsonObject(with: Data(one.output.utf8)) as? [String: Any])
      #expect(list.count == 2)
      #expect(list[1]["take"] as? String == takes.take(Self.bad), "\(verb)")
      let other = list[1].filter { alone[$0.key] != nil }
      #expect(NSDictionary(dictionary: other) == NSDictionary(dictionary: alone), "\(verb)")
    }
  }

  @Test func aScriptLearnsWhichTakesFail() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    for word in ["high", "freeze"] {
      let outcome = try await takes.run("findings", takes.path, "--fail-on", word)
      #expect(outcome.status == 1)
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains("virtual-heavy-loss.take: "))
    }
    #expect(try await takes.run("summary", takes.path, "--fail-on", "critical").status == 0)
  }

  @Test func otherRulesAndPartsReadTheTakesThemselves() async throws {
    let takes = try TakesFolder(Self.good, Self.bad)
    let rules = takes.cache.file("rules.json")
    try #"{"off": ["loss", "loss-burst"]}"#.write(
      toFile: rules, atomically: true, encoding: .utf8)
    let off = try await takes.run("findings", takes.path, "--rules", rules)
    #expect(off.status == 0 && !off.output.contains("Packet loss from"), "\(off.output)")
    // With other rules, no catalogue is written.
    #expect(!FileManager.default.fileExists(atPath: takes.catalogue))
    let part = try await takes.run("findings", takes.path, "--peer", "caller", "--to", "100ms")
    #expect(part.status == 0 && part.output.contains("Nothing seems wrong"), "\(part.output)")
    let nobody = try await takes.run("speakers", takes.path, "--peer", "nobody")
    #expect(nobody.status == 2 && nobody.errors.contains("skipped: "), "\(nobody.errors)")
  }

  // MARK: Two folders

  @Test func foldersAreComparedByTheirTakesResults() async throws {
    let (one, two) = (try TakesFolder(Self.good), try TakesFolder(Self.good))
    let same = try await one.run("diff", one.path, two.path)
    #expect(same.status == 0 && same.output.contains("Nothing differs"), "\(same.output)")
    try two.add(Self.bad, as: "more")
    try two.add(Self.bad, as: Self.good)
    let outcome = try await one.run("diff", one.path, two.path)
    #expect(outcome.status == 1)
    #expect(outcome.output.contains("worse") && outcome.output.contains("2 (100 %)"))
    let align = try await one.run("diff", one.path, two.path, "--align", "wall")
    #expect(align.status == 64 && align.errors.contains("--align"))
    let mixed = try await one.run("diff", one.path, two.take("more"))
    #expect(mixed.status == 64 && mixed.errors.contains("two takes or two folders"))
  }

  @Test func aTakeCountsOnceForARuleAtTwoSeverities() async throws {
    let (one, two) = (try TakesFolder(Self.good), try TakesFolder(Self.bad, "virtual-loss"))
    let severities = try await two.rows(
      "sql", two.path, "SELECT DISTINCT severity FROM finding WHERE id = 'freeze'")
    try #require(severities.count == 2, "\(severities)")
    let outcome = try await one.run("diff", one.path, two.path)
    let line = outcome.output.split(separator: "\n").first { $0.hasPrefix("freeze ") }
    #expect(line?.contains("1 (50 %)") == true, "\(outcome.output)")
  }
}
