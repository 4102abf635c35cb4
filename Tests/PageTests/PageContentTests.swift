import Foundation
import Lab
import Queries
import Testing
import Wire

@testable import Page
@testable import Tape

struct PageContentTests {
  private func read(_ path: String) throws -> (data: PageData, columns: [UInt8]) {
    var content = PageContent(path: path)
    let reading = try content.read()
    let members = try PageContent.examine(path: path).members
    return (try PageData(reading.object(with: members)), reading.columns)
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

  @Test func aLongSeriesHasItsOverviewInFrontAndItsValuesBehindAllOthers() throws {
    try PageSample.withTake { path in
      let (whole, wholeColumns) = try read(path)
      var content = PageContent(path: path)
      let reading = try content.read(shortMaximum: 60)
      let data = try PageData(reading.object(with: []))
      #expect(whole.series.allSatisfy { $0.overview == nil })
      #expect(data.series.map(\.what) == whole.series.map(\.what))
      #expect(data.series.count { $0.overview != nil } >= 6)
      for (series, same) in zip(data.series, whole.series) {
        for name in series.columns.keys {
          #expect(
            PageData.numbers(series, name, in: reading.columns)
              == PageData.numbers(same, name, in: wholeColumns))
        }
        let isLong = series.count > 60 && ["packets", "frames"].contains(series.what)
        #expect((series.overview != nil) == isLong)
        for place in series.columns.values {
          #expect((place[0] >= reading.earlyCount) == isLong)
        }
        guard let overview = series.overview else { continue }
        #expect(overview.values.allSatisfy { $0[0] + $0[1] <= reading.earlyCount })
        let at = PageData.numbers(series, "at", in: reading.columns)
        #expect(bins(overview, "bin", reading) == Array(Set(at.map { $0 / 50_000 })).sorted())
        if series.what == "packets" {
          let size = PageData.numbers(series, "size", in: reading.columns)
          let sizes = size.map { series.protocol == "rtp" ? $0 >> 1 : $0 }
          #expect(bins(overview, "bytes", reading).reduce(0, +) == sizes.reduce(0, +))
        } else {
          let outcomes = PageData.numbers(series, "flags", in: reading.columns).map { $0 >> 1 }
          func count(_ wanted: Int64...) -> Int64 {
            Int64(outcomes.count { wanted.contains($0) })
          }
          #expect(bins(overview, "shown", reading).reduce(0, +) == count(0, 1, 5, 6))
          #expect(bins(overview, "concealed", reading).reduce(0, +) == count(3, 9))
          #expect(bins(overview, "recovered", reading).reduce(0, +) == count(2))
          let measure = PageData.numbers(series, "measure", in: reading.columns)
          #expect(bins(overview, "peak", reading).max() == measure.max())
        }
      }
    }
  }

  private func bins(_ overview: [String: [Int]], _ name: String, _ reading: PageContent.Reading)
    -> [Int64]
  {
    overview[name].map { PageData.numbers(at: $0, in: reading.columns) } ?? []
  }

  @Test func packetsObservedFromOneEndReachTheOther() throws {
    let path = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Captures/observed-firefox.take").path
    let (data, columns) = try read(path)
    let packets = data.series.filter { $0.what == "packets" && $0.protocol == "rtp" }
    #expect(packets.count >= 4)
    for sent in packets where sent.direction == "out" {
      let received = try #require(
        packets.first { $0.direction == "in" && $0.ssrc == sent.ssrc && $0.peer != sent.peer })
      for column in ["at", "size", "sequence", "rtpTime"] {
        #expect(
          PageData.numbers(sent, column, in: columns)
            == PageData.numbers(received, column, in: columns))
      }
    }
    // For each stream, the view `packet` has as many rows as the page has packets.
    let take = try TakeFile.openForQueries(path)
    let rows = try take.prepare(
      "SELECT peer, direction, ssrc, count(*) FROM packet WHERE protocol = 'rtp' GROUP BY 1, 2, 3")
    var counted = 0
    while try rows.step() {
      let (peer, direction, ssrc, count) = rows.values(
        Int.self, String.self, Int64.self, Int.self)
      counted += 1
      #expect(
        packets.first { $0.peer == peer && $0.direction == direction && $0.ssrc == ssrc }?.count
          == count)
    }
    #expect(counted == packets.count)
  }

  @Test func thePagesLossesAreThoseOfTheView() throws {
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
      // Requested video packets are retransmitted.
      let fates = lost.flatMap { PageData.numbers($0, "fate", in: columns) }
      #expect(fates.contains(1))
    }
  }

  @Test func freezesAreThoseOfTheView() throws {
    let path = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Captures/virtual-heavy-loss.take").path
    let (data, _) = try read(path)
    let take = try TakeFile.openForQueries(path)
    let rows = try take.prepare(
      "SELECT peer, track, from_ns, to_ns FROM freeze ORDER BY peer, track, from_ns")
    var expected: [[Double]] = []
    while try rows.step() {
      expected.append([
        Double(rows.integer(0)), Double(rows.integer(1)),
        (Double(rows.integer(2)) / 1e4).rounded() / 1e5,
        (Double(rows.integer(3)) / 1e4).rounded() / 1e5,
      ])
    }
    #expect(expected.count == 3)
    #expect(data.freezes?.map { $0.prefix(4).map(\.number) } == expected)
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

  @Test func aFindingIsACauseWithItsSymptomsAndTheWorstIsFirst() throws {
    try PageSample.withTake { path in
      let findings = try #require(try read(path).data.findings)
      #expect(Set(findings.map(\.rule)).contains("loss"))
      // Both ends are in the take, so the losses in the reports are already known from the
      // receivers.
      #expect(!findings.contains { $0.rule == "loss-at-peer" })
      #expect(!findings.flatMap { $0.symptoms ?? [] }.isEmpty)
      let printed = try TakeFindings(path: path).findings
      #expect(findings.map(\.text) == printed.map(\.text))
      #expect(findings.map(\.severity) == printed.map(\.severity.rawValue))
    }
  }

  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"
  private static let takes =
    ((try? FileManager.default.contentsOfDirectory(atPath: captures)) ?? [])
    .filter { $0.hasSuffix(".take") }.sorted()

  /// The page shows what `retake summary` prints, word for word, and what `retake findings` says
  /// about causes.
  @Test(arguments: takes) func thePageHasTheFiguresOfTheSummary(take: String) throws {
    typealias Object = [String: Any]
    func object(_ json: String) throws -> Object {
      try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? Object)
    }
    let path = Self.captures + take
    let page = try object(try PageContent.examination(path: path))
    let quality = try #require(page["quality"] as? Object)
    let found = try TakeFindings(path: path)
    let summary = try TakeSummary(path: path, findings: found)
    let printed = try object(summary.json)
    let media = try #require(quality["media"] as? [Object])
    let cut = printed["media_cut"] as? Int ?? 0
    #expect(media.count == ((printed["media"] as? [Object])?.count ?? 0) + cut)
    let lines = summary.text(TableLook().wide).split(separator: "\n").map {
      $0.split(separator: " ").joined(separator: " ")
    }
    for one in media.prefix(16) {
      let cells = try #require(one["cells"] as? [String]).filter { !$0.isEmpty }
      #expect(lines.contains(cells.joined(separator: " ")), "\(cells)")
    }
    for (one, other) in zip(media, try #require(printed["media"] as? [Object])) {
      #expect(one["facts"] as? NSDictionary == other as NSDictionary)
    }
    for (one, other) in zip(
      try #require(quality["connections"] as? [Object]),
      try #require(printed["connections"] as? [Object]))
    {
      #expect(one as NSDictionary == other as NSDictionary)
    }
    let findings = try #require(page["findings"] as? [Object])
    #expect(findings.count == found.findings.count)
    for (one, finding) in zip(findings, found.findings) {
      #expect(one["text"] as? String == finding.text)
      #expect(one["side"] as? String == finding.sideWords)
      #expect(one["confidence"] as? String == finding.confidence?.name)
    }
  }

  @Test func whatHappensToSeveralStreamsAtOnceLastsNoLongerThanTheTake() throws {
    try PageSample.withTake { path in
      let data = try read(path).data
      let findings = try #require(data.findings).filter { $0.rule == "loss" }
      #expect(findings.contains { $0.count > 1 })
      for finding in findings { #expect(finding.seconds <= data.seconds) }
    }
  }

  @Test func aConnectionThatWasNeverEstablishedWasNotLostAndItsChannelsDidNotOpen() throws {
    let path = PageSample.path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try PageSample.begun(path)
    for link in recorded.call.network.links.indices {
      recorded.call.network.links[link].lossPerMille = 1000
    }
    recorded.run(for: .seconds(25))
    _ = try recorded.finish()
    let data = try read(path).data
    let rules = try #require(data.findings).flatMap {
      [$0.rule] + ($0.symptoms ?? []).map(\.rule)
    }
    #expect(rules.contains("never-connected") && !rules.contains("disconnected"), "\(rules)")
    #expect(data.channels?.map { $0[4].text } == ["connecting"])
  }

  /// The recorder commits steps while the page reads, so a row and the row that it refers to may be
  /// committed between two queries of one reading.
  @Test func aGrowingTakeIsReadFromThePreviousPosition() throws {
    let path = PageSample.path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try PageSample.begun(path)
    var content = PageContent(path: path)
    var packets: [Int] = []
    var frames = 0
    func read() throws {
      let before = content.packetCount
      let json = try content.read().object(with: [])
      let data = try JSONDecoder().decode(PageSeriesData.self, from: Data(json.utf8))
      func count(_ what: String) -> Int {
        data.series.filter { $0.what == what }.reduce(0) { $0 + $1.count }
      }
      #expect(count("packets") == content.packetCount - before)
      packets.append(content.packetCount - before)
      frames += count("frames")
    }
    // Reads a few packets at a time, because new paths and formats occur early in a call.
    for _ in 0..<24 {
      recorded.run(for: .milliseconds(100))
      try read()
    }
    recorded.run(for: .seconds(3))
    _ = try recorded.finish()
    try read()
    try #require(packets.last ?? 0 > 0)
    let take = try TakeFile.open(path)
    #expect(
      Int64(content.packetCount) == (try take.integer("SELECT count(*) FROM packet_store")))
    #expect(Int64(frames) == (try take.integer("SELECT count(*) FROM frame_store")))
  }

  /// All database connections of one reading see the take at the same moment, even if it grows in
  /// the meantime.
  @Test func aReadingIsConsistent() throws {
    let path = PageSample.path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try PageSample.begun(path)
    recorded.run(for: .seconds(2))
    recorded.flush()
    let before = try counts(path)
    var content = PageContent(path: path)
    let json = try content.read(tell: { what in
      guard what == "what the take holds" else { return }
      recorded.run(for: .seconds(2))
      recorded.flush()
    }).object(with: [])
    let data = try PageData(json)
    func sum(_ what: String) -> Int {
      data.series.filter { $0.what == what }.reduce(0) { $0 + $1.count }
    }
    #expect(try counts(path) != before)
    #expect([sum("packets"), sum("frames"), sum("rtcp")] == before)
    #expect(data.seconds < 2.5)
    // The next reading has everything recorded since.
    let later = try JSONDecoder().decode(
      PageSeriesData.self, from: Data(try content.read().object(with: []).utf8))
    let frames = later.series.filter { $0.what == "frames" }.reduce(0) { $0 + $1.count }
    #expect(before[1] + frames == (try counts(path))[1])
    #expect(content.packetCount == (try counts(path))[0])
    _ = try recorded.finish()
  }

  /// Returns how many packets, frames and reports a page draws from a take.
  private func counts(_ path: String) throws -> [Int] {
    let take = try TakeFile.openForQueries(path)
    return try [
      "SELECT count(*) FROM packet_store", "SELECT count(*) FROM frame_store",
      "SELECT count(*) FROM (\(PageQuery.reports.sql))",
    ].map { Int(try take.integer($0) ?? 0) }
  }

  @Test func aBriefReadingContinuesPacketsFramesAndStates() throws {
    let path = PageSample.path()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recorded = try PageSample.begun(path)
    recorded.run(for: .seconds(2))
    recorded.flush()
    var content = PageContent(path: path)
    _ = try content.read()
    let before = content.packetCount
    recorded.run(for: .seconds(2))
    recorded.flush()
    let brief = try content.readBriefly()
    let json = brief.object(with: [])
    #expect(content.packetCount > before && !json.contains("\"curve\""))
    #expect(json.contains("\"isBrief\":true") && json.contains("\"isComplete\":false"))
    #expect(json.contains("\"what\":\"packets\"") && json.contains("\"what\":\"frames\""))
    _ = try recorded.finish()
    #expect(try content.readBriefly().object(with: []).contains("\"isComplete\":true"))
  }

  @Test func everyQueryIsOneStatementThatAnyoneCanRun() throws {
    try PageSample.withTake { path in
      let (data, _) = try read(path)
      let take = try TakeFile.openForQueries(path)
      #expect(Set(PageQuery.all.map(\.name)).count == PageQuery.all.count)
      #expect(data.queries.count == PageQuery.all.count + PageQuery.equivalents.count)
      for (name, sql) in data.queries {
        #expect(!sql.contains(";"))
        let rows = try take.prepare(sql)
        #expect(throws: Never.self, "\(name)") { _ = try rows.step() }
      }
    }
  }
}
