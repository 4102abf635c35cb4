import Foundation
import Lab
import Testing
import Wire

@testable import Page
@testable import Tape

@Suite struct PageContentTests {
  private func read(_ path: String) throws -> (data: PageData, columns: [UInt8]) {
    var content = PageContent(path: path)
    let reading = try content.read()
    let findings = try PageContent.findings(path: path)
    return (try PageData(reading.object(with: [("findings", findings)])), reading.columns)
  }

  @Test func thePageHasEveryPacketAndFrameOfTheTake() throws {
    try PageSample.withTake { path in
      let (data, columns) = try read(path)
      let take = try TakeFile.openForQueries(path)
      let packets = data.series.filter { $0.what == "packets" }
      let bytes = packets.reduce(Int64(0)) { sum, series in
        let sizes = PageData.numbers(series, "size", in: columns)
        return sum + sizes.reduce(0) { $0 + (series.protocol == "rtp" ? $1 >> 1 : $1) }
      }
      #expect(bytes == (try take.integer("SELECT sum(size) FROM packet_store")))
      #expect(
        Int64(packets.reduce(0) { $0 + $1.count })
          == (try take.integer("SELECT count(*) FROM packet_store")))
      for series in packets {
        let at = PageData.numbers(series, "at", in: columns)
        #expect(at.allSatisfy { (0...700_000).contains($0) } && at == at.sorted())
      }
      let frames = data.series.filter { $0.what == "frames" }
      #expect(
        Int64(frames.reduce(0) { $0 + $1.count })
          == (try take.integer("SELECT count(*) FROM frame_store")))
      #expect(Set(frames.compactMap(\.kind)) == ["audio", "video"])
    }
  }

  @Test func whatIsMissingIsWhatTheViewSays() throws {
    try PageSample.withTake { path in
      let (data, columns) = try read(path)
      let take = try TakeFile.openForQueries(path)
      let lost = data.series.filter { $0.what == "lost" }
      #expect(!lost.isEmpty)
      for series in lost {
        let missing = PageData.numbers(series, "fate", in: columns).filter { $0 != 2 }.count
        let counted = try take.integer(
          """
          SELECT lost FROM loss WHERE peer = \(series.peer ?? 0) AND direction = 'in'
            AND ssrc = \(series.ssrc ?? 0)
          """)
        #expect(Int64(missing) == counted)
      }
      // Video is sent again when it is asked for.
      let fates = lost.flatMap { PageData.numbers($0, "fate", in: columns) }
      #expect(fates.contains(1))
    }
  }

  @Test func statesFollowEachOther() throws {
    try PageSample.withTake { path in
      let (data, _) = try read(path)
      #expect(data.title == "call ↔ callee")
      #expect((5.9...7).contains(data.seconds))
      let connection = data.states.filter { $0[0].number == 1 && $0[1].text == "connection" }
      #expect(connection.map { $0[4].text } == ["connecting", "connected", "closed"])
      #expect(connection[0][3].number == connection[1][2].number)
      let curves = Set(data.series.compactMap(\.of))
      #expect(
        curves.isSuperset(of: ["target", "estimate", "round-trip", "jitter", "level"]),
        "\(curves)")
    }
  }

  @Test func thereIsOneFindingForEachRuleAndPeerAndTheWorstIsFirst() throws {
    try PageSample.withTake { path in
      let findings = try #require(try read(path).data.findings)
      #expect(Set(findings.map(\.rule)).isSuperset(of: ["loss", "loss-at-peer"]))
      #expect(Set(findings.map { "\($0.rule) \($0.peer)" }).count == findings.count)
      #expect(findings.map(\.severity) == findings.map(\.severity).sorted(by: >))
      for (first, second) in zip(findings, findings.dropFirst())
      where first.severity == second.severity {
        #expect(first.seconds >= second.seconds)
      }
    }
  }

  @Test func aTakeThatGrowsIsReadFromWhereItWasLeft() throws {
    let path = PageSample.path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try PageSample.begun(path)
    recorded.run(for: .seconds(3))
    var content = PageContent(path: path)
    let first = try content.read()
    let before = content.packetCount
    recorded.run(for: .seconds(3))
    _ = try recorded.finish()
    let second = try content.read()
    func count(_ reading: PageContent.Reading, _ what: String) throws -> Int {
      try PageData(reading.object(with: [])).series
        .filter { $0.what == what }.reduce(0) { $0 + $1.count }
    }
    #expect(try count(first, "packets") == before)
    #expect(try count(second, "packets") == content.packetCount - before)
    #expect(before > 0 && content.packetCount > before)
    let take = try TakeFile.open(path)
    #expect(
      Int64(content.packetCount) == (try take.integer("SELECT count(*) FROM packet_store")))
    #expect(
      Int64(try count(first, "frames") + count(second, "frames"))
        == (try take.integer("SELECT count(*) FROM frame_store")))
  }

  @Test func everyQueryIsOneStatementThatAnyoneCanRun() throws {
    try PageSample.withTake { path in
      let (data, _) = try read(path)
      let take = try TakeFile.openForQueries(path)
      #expect(Set(PageQuery.all.map(\.name)).count == PageQuery.all.count)
      #expect(data.queries.count == PageQuery.all.count + PageQuery.equivalents.count)
      for (name, sql) in data.queries {
        #expect(!sql.contains(";"))
        var rows = try take.prepare(sql)
        #expect(throws: Never.self, "\(name)") { _ = try rows.step() }
      }
    }
  }
}
