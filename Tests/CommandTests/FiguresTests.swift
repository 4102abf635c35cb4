import Foundation
import Testing

/// A figure has the same value wherever a user reads it: in the summary, in the findings, in SQL
/// and in the catalogue.
struct FiguresTests {
  private typealias Object = [String: Any]

  private static let captures = DebugTests.root.appending(path: "Captures").path

  private static func takes(_ verb: String) async throws -> [String: Object] {
    let outcome = try await Tool.run(verb, captures, "--json")
    try #require(outcome.status == 0, "\(outcome.errors)")
    let value = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
    let takes = try #require((value as? Object)?["takes"] as? [Object])
    return Dictionary(uniqueKeysWithValues: takes.map { (text($0["take"]), $0) })
  }

  private static func rows(_ sql: String, _ options: String...) async throws -> [Object] {
    let outcome = try await Tool.run(["sql", captures, sql, "--json"] + options)
    try #require(outcome.status == 0, "\(outcome.errors)")
    let value = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
    return try #require(value as? [Object])
  }

  private static func text(_ value: Any?) -> String { value as? String ?? "" }

  /// A number to four digits after the point; `nil` if there is none.
  private static func number(_ value: Any?) -> String {
    guard let number = value as? NSNumber else { return "nil" }
    return "\((number.doubleValue * 1e4).rounded() / 1e4)"
  }

  private static func list(_ object: Object?, _ name: String) -> [Object] {
    object?[name] as? [Object] ?? []
  }

  private static func name(_ one: Object) -> String {
    ["take", "peer", "direction", "ssrc"].map { "\(one[$0] ?? "")" }.joined(separator: " ")
  }

  private func expectSame(
    _ one: Object?, _ other: Object?, _ members: [String], _ what: String
  ) {
    for member in members {
      #expect(
        Self.number(one?[member]) == Self.number(other?[member]), "\(what): \(member)")
    }
  }

  @Test func aStreamHasTheSameFiguresInTheSummaryTheCatalogueAndSQL() async throws {
    let summaries = try await Self.takes("summary")
    let quality = try await Self.rows("SELECT * FROM quality")
    let streams = try await Self.rows(
      """
      SELECT take, peer, direction, ssrc, sum(packets) AS packets,
        min(packets_lost) AS packets_lost, max(packets_lost) AS most_lost,
        max(loss_share) AS loss_share,
        max(packets_refused) AS packets_refused, count(*) AS kinds,
        max(bits_per_second) AS bits_per_second
      FROM stream GROUP BY take, peer, direction, ssrc
      """)
    let losses = try await Self.rows("SELECT * FROM loss")
    func byName(_ rows: [Object]) -> [String: Object] {
      Dictionary(rows.map { (Self.name($0), $0) }, uniquingKeysWith: { first, _ in first })
    }
    let (qualities, stream, loss) = (byName(quality), byName(streams), byName(losses))
    #expect(summaries.count >= 40)
    var (compared, sent) = (0, 0)
    for (take, summary) in summaries {
      for var one in Self.list(summary, "media") where one["ssrc"] != nil {
        one["take"] = take
        let name = Self.name(one)
        // Zero is left out of the summary's JSON.
        for member in ["freezes", "frozen_ns", "packets_refused"] where one[member] == nil {
          one[member] = 0
        }
        expectSame(
          one, qualities[name],
          [
            "packets", "packets_lost", "loss_share", "packets_refused", "bits_per_second",
            "freezes", "frozen_ns", "concealed_share", "level_dbov", "track", "width",
          ], name)
        let row = try #require(stream[name], "\(name)")
        expectSame(one, row, ["packets", "packets_lost", "loss_share"], name)
        if "\(row["kinds"] ?? "")" == "1" { expectSame(one, row, ["bits_per_second"], name) }
        #expect(Self.number(row["packets_lost"]) == Self.number(row["most_lost"]), "\(name)")
        let isSent = Self.text(one["direction"]) == "out"
        #expect(
          Self.number(one["packets_lost"])
            == Self.number(loss[name]?[isSent ? "reported_lost" : "lost"]), "\(name)")
        if !isSent { expectSame(one, row, ["packets_refused"], name) }
        compared += 1
        sent += isSent && one["packets_lost"] != nil ? 1 : 0
      }
    }
    #expect(compared >= 100 && sent >= 20, "\(compared), \(sent)")
  }

  @Test func aCallHasTheSameFiguresInTheSummaryTheCatalogueAndSQL() async throws {
    let (summaries, infos) = (try await Self.takes("summary"), try await Self.takes("info"))
    let takes = try await Self.rows("SELECT * FROM take")
    let connections = try await Self.rows("SELECT * FROM connection")
    var trips: [Object] = []
    for view in ["round_trip", "media_round_trip"] {
      trips += try await Self.rows(
        "SELECT peer, max(round_trip_ms) AS most FROM \(view) GROUP BY peer", "--each")
    }
    for row in takes {
      let take = Self.text(row["take"])
      let summary = try #require(summaries[take])
      expectSame(row, summary, ["duration_ns"], take)
      expectSame(infos[take], summary, ["duration_ns"], take)
      let media = Self.list(summary, "media")
      func values(_ member: String) -> [Double] {
        media.compactMap { ($0[member] as? NSNumber)?.doubleValue }
      }
      let worst: Object = [
        "loss_share": values("loss_share").max() as Any,
        "concealed_share": values("concealed_share").max() as Any,
        "packets_lost": values("packets_lost").reduce(0, +),
        "packets_refused": values("packets_refused").reduce(0, +),
        "freezes": values("freezes").reduce(0, +),
      ]
      expectSame(row, worst, Array(worst.keys), take)
      for one in Self.list(summary, "connections") {
        let isHere: (Object) -> Bool = {
          Self.text($0["take"]) == take && Self.number($0["peer"]) == Self.number(one["peer"])
        }
        let known = try #require(connections.first(where: isHere), "\(take)")
        expectSame(one, known, ["connected_ns", "pair_changes"], take)
        let longest = (one["longest_round_trip_ns"] as? NSNumber).map { $0.doubleValue / 1e6 }
        #expect(
          Self.number(longest) == Self.number(known["longest_round_trip_ms"]), "\(take)")
        let most = trips.filter(isHere).compactMap { ($0["most"] as? NSNumber)?.doubleValue }
        #expect(Self.number(longest) == Self.number(most.max()), "\(take)")
      }
    }
    #expect(takes.count == summaries.count && takes.count >= 40)
  }

  /// Compares all findings, including those that participants did not notice.
  @Test func aFindingSaysTheSameOfItsCauseEverywhere() async throws {
    let (summaries, found) = (try await Self.takes("summary"), try await Self.takes("findings"))
    let rows = try await Self.rows("SELECT * FROM finding")
    let takes = try await Self.rows("SELECT * FROM take")
    var sides: Set<String> = []
    var confidences: Set<String> = []
    for (take, object) in found {
      let findings = Self.list(object, "findings")
      let stored = rows.filter { Self.text($0["take"]) == take && $0["parent"] is NSNull }
      #expect(stored.count == findings.count, "\(take)")
      for (finding, row) in zip(findings, stored) {
        for member in ["id", "severity", "side", "side_name", "confidence", "reservation", "text"] {
          #expect(Self.text(finding[member]) == Self.text(row[member]), "\(take): \(member)")
        }
        let confidence = Self.text(finding["confidence"])
        #expect(["certain", "likely", "possible"].contains(confidence), "\(take)")
        let reservation = Self.text(finding["reservation"])
        #expect(
          Self.text(finding["text"]).contains("(\(confidence)") == (confidence != "certain"),
          "\(take)")
        #expect(confidence != "certain" || reservation.isEmpty, "\(take): \(reservation)")
        sides.insert(Self.text(finding["side_name"]))
        confidences.insert(confidence)
      }
      let short = Self.list(summaries[take], "findings")
      for (finding, one) in zip(findings, short) {
        for member in ["id", "severity", "side", "side_name", "confidence"] {
          #expect(Self.text(finding[member]) == Self.text(one[member]), "\(take): \(member)")
        }
      }
      let row = try #require(takes.first { Self.text($0["take"]) == take })
      #expect(Self.text(row["side"]) == Self.text(findings.first?["side_name"]), "\(take)")
      #expect(Self.text(row["confidence"]) == Self.text(findings.first?["confidence"]), "\(take)")
      // Each freeze is reported by a finding, or as the symptom of one.
      let freezes = rows.filter {
        Self.text($0["take"]) == take
          && ["freeze", "video-stopped"].contains(Self.text($0["id"]))
      }
      let times = freezes.reduce(0) { $0 + (($1["count"] as? NSNumber)?.intValue ?? 0) }
      let counted = Self.list(summaries[take], "media")
        .reduce(0) { $0 + (($1["freezes"] as? NSNumber)?.intValue ?? 0) }
      #expect(times == counted, "\(take): freezes")
    }
    #expect(sides.contains("network") && confidences.contains("certain"))
  }

  /// A row's own confidence takes precedence over its rule's.
  @Test func aRuleOfOnesOwnStatesItsSideAndConfidence() async throws {
    let folder = try Folder()
    func run(_ rule: String, _ options: String...) async throws -> Tool.Outcome {
      let file = folder.file("rules.json")
      let sql = "SELECT 1 AS peer, 0 AS from_ns, 9 AS to_ns, 'seen' AS evidence"
      let text = rule.replacing("SQL", with: sql)
      try "{\"rules\": [\(text)]}".write(toFile: file, atomically: true, encoding: .utf8)
      let take = Self.captures + "/virtual-loss.take"
      return try await Tool.run(["findings", take, "--rules", file] + options)
    }
    let said = try await run(
      #"{"id": "own", "sql": "SQL", "side": "receiver", "confidence": "possible"}"#, "--wide")
    #expect(said.output.contains("seen at caller: seen (possible"), "\(said.output)\(said.errors)")
    #expect(said.output.split(separator: "\n").contains { $0.contains("  caller   own") })
    let row = try await run(
      #"{"id": "own", "sql": "SQL, 'likely' AS confidence", "confidence": "certain"}"#, "--json")
    #expect(row.output.contains(#""confidence":"likely""#))
    let silent = try await run(#"{"id": "own", "sql": "SQL"}"#, "--wide")
    #expect(silent.output.contains("seen at caller: seen [own]\n"))
    for (member, words) in [
      (#""side": "moon""#, "moon is not a side; give network, server, "),
      (#""confidence": "sure""#, "sure is not a confidence; give certain, likely or possible"),
    ] {
      let refused = try await run(#"{"id": "own", "sql": "SQL", \#(member)}"#)
      #expect(refused.status != 0 && refused.errors.contains(words), "\(refused.errors)")
    }
  }
}
