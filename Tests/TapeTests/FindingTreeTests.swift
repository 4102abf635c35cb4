import Lab
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Causes are listed above their symptoms, and one fault is one finding.
struct FindingTreeTests {
  @Test func aGapIsOneFindingWithItsSymptoms() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 3)
    call.run(2000)
    call.run(600, losing: [0])
    call.run(2400)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    let first = try #require(found.findings.first)
    #expect(first.id == "loss-burst")
    #expect(first.subject == "from caller to callee")
    #expect(first.severity == .high)
    #expect(first.ids.contains("freeze"), "\(first.ids)")
    #expect(first.impact.frozenSeconds > 0.5)
    // Both ends' views of the freeze form one finding.
    #expect(found.findings.count == 1, "\(found.findings.map(\.text))")
    // Stream numbers are only for programs.
    let numbers = found.detections.compactMap(\.ssrc).map { String($0) }
    #expect(!numbers.isEmpty)
    #expect(!found.findings.contains { finding in numbers.contains { finding.text.contains($0) } })
  }

  /// A moment in which the process did not run is not the cause of seconds of concealed audio.
  @Test(arguments: [true, false]) func aShortStopDoesNotExplainWhatLossCaused(loses: Bool) throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 5)
    if loses { call.call.network.links[0].lossPerMille = 250 }
    call.run(1000)
    call.call.stall(1, for: .milliseconds(260))
    call.run(260)
    call.run(8000)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    let stop = try #require(found.findings.first { $0.id == "process-starved" })
    let concealed = found.detections.filter {
      $0.rule == "concealed-audio" && $0.impact.concealedSeconds > 1
    }
    #expect(concealed.isEmpty == !loses)
    if loses {
      #expect(found.findings.first?.id == "loss", "\(found.text())")
      #expect(found.findings.first?.ids.contains("concealed-audio") == true)
      #expect(stop.impact.concealedSeconds < 1)
    }
  }

  @Test func bothWaysAreTwoFindingsWhereBothLose() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 8)
    for link in 0..<2 { call.call.network.links[link].lossPerMille = 120 }
    call.run(6000)
    try call.finish()
    let found = try TakeFindings(path: call.path)
    let losses = found.findings.filter { $0.id == "loss" }
    #expect(Set(losses.map(\.subject)) == ["from caller to callee", "from callee to caller"])
    #expect(!found.findings.contains { $0.id == "loss-at-peer" })
    #expect(!found.findings.contains { $0.id == "concealed-audio" || $0.id == "freeze" })
  }

  @Test func possiblyIntendedFindingsAreLast() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func rule(_ id: String, _ severity: FindingSeverity, from: Int, to: Int, _ more: String = "")
      -> FindingRule
    {
      FindingRule(
        id: id, severity: severity, title: id, scope: .end,
        sql: "SELECT 1 AS peer, \(from) AS from_ns, \(to) AS to_ns, 'x' AS evidence\(more)")
    }
    let rules = [
      rule("long-and-meant", .low, from: 0, to: 90_000_000_000, ", 90.0 AS without_media_s"),
      rule("short", .medium, from: 0, to: 1_000_000_000),
      rule("costly", .medium, from: 0, to: 4_000_000_000, ", 4.0 AS frozen_s"),
      rule("nothing-came-about", .critical, from: 0, to: 1),
    ]
    #expect(
      try TakeFindings(path: path, rules: rules).findings.map(\.id)
        == ["nothing-came-about", "costly", "short", "long-and-meant"])
  }

  @Test func guardsAndLinksAreNoFindings() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func found(_ second: Int) throws -> [[String]] {
      func rule(
        _ id: String, at: Int, causes: [String] = [], silentUnder: [String] = [],
        isLink: Bool = false
      ) -> FindingRule {
        FindingRule(
          id: id, severity: .medium, title: id, scope: .end, causes: causes,
          silentUnder: silentUnder, isLink: isLink,
          sql: """
            SELECT 1 AS peer, \(at)000000000 AS from_ns, \(at + 1)000000000 AS to_ns,
              'x' AS evidence
            """)
      }
      let rules = [
        rule("cause", at: 1), rule("link", at: 2, causes: ["cause"], isLink: true),
        rule("symptom", at: second, causes: ["link"]),
        rule("other", at: 1, silentUnder: ["cause"]),
      ]
      return try TakeFindings(path: path, rules: rules).findings.map(\.ids)
    }
    #expect(try found(3) == [["cause", "link", "symptom"]])
    // Nine seconds later, the symptom is a separate finding.
    #expect(try found(12) == [["cause", "link"], ["symptom"]])
  }

  @Test func everyCauseIsARule() {
    let ids = Set(FindingRule.all.map(\.id))
    for rule in FindingRule.all {
      #expect(Set(rule.allCauses + rule.silentUnder).isSubset(of: ids), "\(rule.id)")
      for threshold in rule.thresholds { #expect(!threshold.source.isEmpty, "\(rule.id)") }
      #expect(!rule.title.isEmpty && !rule.title.contains("ssrc"))
    }
  }

  /// Packets that only arrive late do not count as lost, neither in a burst nor in the second in
  /// which they were missing.
  @Test func packetsThatArriveLateAreNotLost() {
    func read(_ numbers: [Int64]) -> CallFacts.Stream {
      var stream = CallFacts.Stream(peer: 1, direction: .inbound, ssrc: 7, first: 0, last: 0)
      for (place, number) in numbers.enumerated() {
        stream.add(
          PacketSight(
            row: Int64(place), at: Int64(place) * 20_000_000, peer: 1, direction: .inbound, ssrc: 7,
            payloadType: 96, isMarked: true, sequence: number, rtpTime: number * 1800, size: 100),
          interval: 100_000_000)
      }
      stream.finish(Int64(numbers.count) * 20_000_000, interval: 100_000_000)
      return stream
    }
    let all = Array<Int64>(1...100)
    // Packets 20 to 26 arrive only after packet 76.
    let late = read(all.filter { !(20...26).contains($0) && $0 < 77 } + (20...26) + (77...100))
    #expect(late.lost == 0 && late.bursts.isEmpty && late.reordered == 7)
    #expect(late.buckets.allSatisfy { $0.lost == 0 && $0.holes == 0 })
    // Nine packets are missing, and the fifth of them arrives late, which leaves two runs of four.
    let part = read(all.filter { !(20...28).contains($0) }.prefix(40) + [24] + (50...100))
    #expect(part.lost == 8 && part.bursts.map(\.missing) == [4, 4])
    #expect(part.bursts.map(\.first) == [20, 25])
    #expect(part.buckets.reduce(0) { $0 + Int($1.lost) } == 8)
    // The first packets that were sent arrive after later ones, and the second one never.
    let early = read([5, 6, 3, 4, 1] + (7...100))
    #expect(early.expected == 100 && early.lost == 1 && early.reordered == 3)
    #expect(read([5, 6, 3, 4, 1, 2] + (7...100)).lost == 0)
    let lost = read(all.filter { !(20...28).contains($0) })
    #expect(lost.lost == 9 && lost.bursts.map(\.missing) == [9])
  }
}
