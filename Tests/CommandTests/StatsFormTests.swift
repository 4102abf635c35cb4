import Foundation
import Testing

/// Tests the other formats of `stats`: a series of samples, and the room SDKs' format.
struct StatsFormTests {
  private func object(_ text: some StringProtocol) throws -> [String: Any] {
    try #require(
      try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
  }

  @Test func aSeriesHasEverySampleOnALine() async throws {
    let made = try await Takes.lossyCall()
    let series = try await Tool.run("stats", made.path, "--series")
    #expect(series.status == 0, "\(series.errors)")
    let lines = series.output.split(separator: "\n")
    #expect(Int64(lines.count) == (try Takes.number(made.path, "SELECT count(*) FROM stat")))
    var last = 0.0
    for line in lines {
      let sample = try object(line)
      let at = try #require(sample["at"] as? Double)
      #expect(at >= last)
      last = at
      #expect(["caller", "callee"].contains(sample["peer"] as? String))
      #expect(sample["id"] is String && sample["type"] is String)
      #expect(sample["timestamp"] is Double)
    }
  }

  @Test func aSeriesOfOneTypeHasEveryMemberOnALine() async throws {
    let made = try await Takes.lossyCall()
    let csv = try await Tool.run("stats", made.path, "--series", "--type", "inbound-rtp", "--csv")
    #expect(csv.status == 0, "\(csv.errors)")
    let rows = csv.output.split(whereSeparator: \.isNewline).map {
      $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
    #expect(rows.first == ["seconds", "peer", "type", "id", "member", "value"])
    #expect(rows.dropFirst().allSatisfy { $0[2] == "inbound-rtp" })
    let received = rows.filter { $0[4] == "packetsReceived" }.compactMap { Int64($0[5]) }
    let sum = try Takes.number(
      made.path,
      "SELECT sum(members ->> '$.packetsReceived') FROM stat WHERE type = 'inbound-rtp'")
    #expect(received.reduce(0, +) == sum && sum > 100)
  }

  @Test func aSeriesOfATypeThatIsNotThereIsAnError() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("stats", made.path, "--series", "--type", "certificat")
    #expect(outcome.status == 64 && outcome.errors.contains("did you mean certificate?"))
  }

  @Test func roomSDKsGetAReportOfEachDirection() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("stats", made.path, "--sdk")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let peers = try object(outcome.output)
    #expect(Set(peers.keys) == ["caller", "callee"])
    for peer in peers.values {
      let reports = try #require(peer as? [String: [String: Any]])
      #expect(Set(reports.keys) == ["local", "remote"])
      for (direction, own, other) in [
        ("local", "outbound-rtp", "inbound-rtp"), ("remote", "inbound-rtp", "outbound-rtp"),
      ] {
        let report = try #require(reports[direction])
        #expect(report["timeStamp"] is Double)
        let statistics = try #require(report["statistics"] as? [String: [String: Any]])
        let types = statistics.values.compactMap { $0["type"] as? String }
        #expect(types.filter { $0 == own }.count == 2 && !types.contains(other))
        for (id, entry) in statistics {
          #expect(entry["id"] as? String == id)
          #expect(entry["timeStamp"] is Double && entry["values"] is [String: Any])
        }
      }
    }
  }

  @Test(arguments: [
    ["--sdk", "--series"], ["--csv"], ["--sdk", "--type", "codec"], ["--series", "--at", "1"],
    ["--problems", "--series"], ["--sampled"], ["--at", "-1"],
  ])
  func formsThatContradictEachOtherAreRefused(options: [String]) async throws {
    let made = try await Takes.lossyCall()
    #expect(try await Tool.run(["stats", made.path] + options).status == 64)
  }

  @Test func theSchemaListsTheMembersOfStats() async throws {
    let schema = try await Tool.run("sql", "--schema")
    #expect(schema.output.contains("-- inbound-rtp (audio)"))
    #expect(schema.output.contains("-- transport\n"))
    let tail = schema.output.split(separator: "\n").suffix(40)
    #expect(tail.allSatisfy { $0.hasPrefix("--") && $0.count <= 400 })
  }
}
