import Foundation
import Testing

/// Compares the results of `--peer`, `--from`, `--to` and `--lane` with SQL.
struct SelectionTests {
  private func list(_ arguments: String...) async throws -> [[String: Any]] {
    let outcome = try await Tool.run(arguments)
    #expect(outcome.status == 0, "\(outcome.errors)")
    return try #require(
      try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]])
  }

  private func number(_ value: Any?) -> Int64 { (value as? NSNumber)?.int64Value ?? -1 }

  @Test func aTimelineShowsWhatIsSelected() async throws {
    let path = try await Takes.lossyCall().path
    let all = try await list("timeline", path, "--json")
    let states = try await list("timeline", path, "--json", "--lane", "state", "--lane", "pair")
    #expect(
      states.count == all.count { ["state", "pair"].contains($0["lane"] as? String) })
    #expect(states.count > 4 && states.count < all.count)
    for peer in ["2", "callee"] {
      let own = try await list("timeline", path, "--json", "--peer", peer)
      #expect(!own.isEmpty && own.allSatisfy { number($0["peer"]) == 2 })
      #expect(own.count == all.count { number($0["peer"]) == 2 })
    }
    for (from, to, range) in [
      ("0.5", "1s", Int64(500_000_000)...1_000_000_000),
      ("80ms", "0.1min", 80_000_000...6_000_000_000),
    ] {
      let part = try await list("timeline", path, "--json", "--from", from, "--to", to)
      #expect(!part.isEmpty && part.allSatisfy { range.contains(number($0["at_ns"])) })
      #expect(part.count == all.count { range.contains(number($0["at_ns"])) })
    }
  }

  @Test func stepsAreTimes() async throws {
    let path = try await Takes.lossyCall().path
    let step = try Takes.number(
      path, "SELECT step FROM state WHERE machine = 'connection' AND to_state = 'connected' LIMIT 1"
    )
    let at = try Takes.number(path, "SELECT at_ns FROM state WHERE step = \(step) LIMIT 1")
    let part = try await list("timeline", path, "--json", "--from", "step:\(step)")
    #expect(part.map { number($0["at_ns"]) }.min() == at)
    let one = try await list(
      "timeline", path, "--json", "--from", "step:\(step)", "--to", "step:\(step)")
    #expect(!one.isEmpty && one.allSatisfy { number($0["at_ns"]) == at })
    let count = try Takes.number(path, "SELECT steps FROM ending")
    let last = try await Tool.run("timeline", path, "--to", "step:\(count)")
    #expect(last.status == 0)
    let beyond = try await Tool.run("timeline", path, "--to", "step:\(count + 1)")
    #expect(beyond.status == 64 && beyond.errors.contains("the take has \(count)"))
  }

  @Test(arguments: [["timeline"], ["speakers"], ["stats", "--problems"]])
  func aBeginningAfterTheEndOfTheTakeIsReportedWithThatEnd(verb: [String]) async throws {
    let path = try await Takes.lossyCall().path
    let outcome = try await Tool.run(verb + [path, "--from", "500s"])
    #expect(outcome.status == 2 && outcome.errors.contains("it ends before that, at "))
  }

  @Test func statisticsAfterTheEndAreThoseOfTheEnd() async throws {
    let path = try await Takes.lossyCall().path
    let outcome = try await Tool.run("stats", path, "--at", "99", "--sampled")
    #expect(outcome.status == 0 && outcome.errors.contains("it ends before --at"))
  }

  @Test(arguments: [
    ["timeline"], ["speakers"], ["stats", "--series"], ["export", "--pcap", "/dev/null"],
  ])
  func endsThatAreReversedAreRefused(verb: [String]) async throws {
    let path = try await Takes.lossyCall().path
    for (from, to) in [("2", "1.5s"), ("step:9", "step:3"), ("step:900", "1ms")] {
      let outcome = try await Tool.run(
        [verb[0], path] + verb.dropFirst() + ["--from", from, "--to", to])
      #expect(outcome.status == 64 && outcome.errorLines.count == 1, "\(outcome)")
      #expect(outcome.errors.contains("--from \(from) is later than --to \(to)"))
    }
  }

  @Test func statsAreThoseOfTheSelection() async throws {
    let path = try await Takes.lossyCall().path
    let report = try await Tool.run("stats", path, "--peer", "caller", "--json")
    let peers = try JSONSerialization.jsonObject(with: Data(report.output.utf8)) as? [String: Any]
    #expect(peers?.keys.sorted() == ["caller"])
    let series = try await Tool.run(
      "stats", path, "--series", "--peer", "2", "--from", "1", "--to", "2s")
    let samples = try series.output.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    let count = try Takes.number(
      path,
      "SELECT count(*) FROM stat WHERE peer = 2 AND at_ns BETWEEN 1000000000 AND 2000000000")
    #expect(count > 0 && samples.count == count)
    #expect(samples.allSatisfy { $0["peer"] as? String == "callee" })
    let heavy = DebugTests.root.appending(path: "Captures/virtual-heavy-loss.take").path
    let all = try await list("stats", heavy, "--problems", "--json")
    let own = try await list("stats", heavy, "--problems", "--json", "--peer", "1")
    #expect(own.count == all.count { number($0["peer"]) == 1 } && own.count < all.count)
    let begin = try #require(all.map { number($0["from_ns"]) }.max())
    let late = try await list(
      "stats", heavy, "--problems", "--json", "--from", "\(Double(begin) / 1e9)")
    // Losses and other sums are counted only from `--from` on, and may then be too small for a
    // rule.
    #expect(!late.isEmpty && late.count <= all.count { number($0["to_ns"]) >= begin })
    #expect(late.allSatisfy { number($0["to_ns"]) >= begin })
    let misplaced = try await Tool.run("stats", path, "--from", "1")
    #expect(misplaced.status == 64 && misplaced.errors.contains("--series"))
  }

  @Test func speechIsCutAtTheEndsOfTheSelection() async throws {
    let path = try await Takes.lossyCall().path
    let outcome = try await Tool.run(
      "speakers", path, "--json", "--peer", "caller", "--from", "0.8", "--to", "1.6")
    let found = try #require(
      try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
    let participants = try #require(found["participants"] as? [[String: Any]])
    #expect(!participants.isEmpty && participants.allSatisfy { number($0["peer"]) == 1 })
    #expect(participants.allSatisfy { number($0["heard_ns"]) <= 900_000_000 })
    #expect(participants.allSatisfy { number($0["speaking_ns"]) <= 800_000_000 })
    let times = try #require(found["times"] as? [[String: Any]])
    let touching = try Takes.number(
      path,
      """
      SELECT count(*) FROM speaker
      WHERE peer = 1 AND from_ns <= 1600000000 AND to_ns >= 800000000
      """)
    #expect(touching > 0 && times.count { $0["what"] as? String == "speaks" } == touching)
    let range = Int64(800_000_000)...1_600_000_000
    #expect(
      times.allSatisfy {
        range.contains(number($0["from_ns"])) && range.contains(number($0["to_ns"]))
      })
  }

  @Test func anExportHasThePacketsOfTheSelection() async throws {
    let (path, folder) = (try await Takes.lossyCall().path, try Folder())
    for options in [[], ["--clear"]] {
      let file = folder.file("part\(options.count).pcap")
      let all = folder.file("all\(options.count).pcap")
      let whole = try await Tool.run(
        ["export", path, "--pcap", all, "--peer", "callee"] + options)
      let part = try await Tool.run(
        ["export", path, "--pcap", file, "--peer", "callee", "--from", "1", "--to", "2s"] + options)
      #expect(part.status == 0, "\(part.errors)")
      func count(_ outcome: Tool.Outcome) -> Int64 {
        outcome.output.split(separator: " ").dropLast().last.flatMap { Int64($0) } ?? -1
      }
      #expect(count(part) > 10 && count(part) < count(whole), "\(part.output) \(whole.output)")
      guard options.isEmpty else { continue }
      let packets = try Takes.number(
        path,
        "SELECT count(*) FROM packet WHERE peer = 2 AND at_ns BETWEEN 1000000000 AND 2000000000")
      #expect(count(part) == packets)
    }
    let media = try await Tool.run(
      "export", path, "--media", folder.file("m"), "--peer", "1", "--from", "1.5", "--to", "2")
    #expect(media.status == 0, "\(media.errors)")
    for line in media.output.split(separator: "\n") {
      let begin = line.split(separator: " ").compactMap { Double($0) }.last ?? 0
      #expect((1.5...2).contains(begin), "\(line)")
    }
  }
}
