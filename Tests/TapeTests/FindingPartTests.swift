import FaultyCalls
import Foundation
import Testing

@testable import Queries
@testable import Tape

/// If part of a take is selected, the findings' figures are about that part, or state the time that
/// they cover.
struct FindingPartTests {
  private static func selection(_ from: Int64, _ to: Int64) -> TakeSelection {
    var selection = TakeSelection()
    (selection.fromNanoseconds, selection.toNanoseconds) = (from, to)
    return selection
  }

  @Test func aFigureOfAnotherTimeThanThePartSaysItsTime() throws {
    let folder = try TakeFolder()
    let call = try TapeTests.FaultyCall(folder, seed: 4)
    call.run(1500)
    call.run(4000, losing: [0, 1])
    call.run(3000)
    try call.finish()
    let (from, to): (Int64, Int64) = (2_500_000_000, 3_500_000_000)
    let found = try TakeFindings(path: call.path, selection: Self.selection(from, to))
    let beyond = found.detections.filter { $0.fromNanoseconds < from || $0.toNanoseconds > to }
    #expect(!beyond.isEmpty)
    for one in beyond {
      #expect(one.evidence.contains(" (from ") && one.evidence.hasSuffix(" s)"), "\(one)")
    }
    // Nobody misses more than a second of media in a second.
    #expect(found.detections.contains { $0.impact.harmSeconds > 0.9 })
    for one in found.detections { #expect(one.impact.harmSeconds < 1.01, "\(one)") }
    #expect(found.looked.hasSuffix(" from 2.500 to 3.500 s"), "\(found.looked)")
    // For the whole call, no time needs to be stated.
    let whole = try TakeFindings(path: call.path)
    #expect(!whole.detections.contains { $0.evidence.contains(" (from ") })
  }

  @Test(arguments: [
    (NetworkScene.duplicates, "duplicates"), (.reordered, "reordering"),
    (.lossWithoutRepair, "no-repair"),
  ])
  func thePacketsThatARuleCountsAreThoseOfThePart(scene: NetworkScene, id: String) throws {
    let folder = try TakeFolder()
    let path = try scene.record(in: folder)
    // Lowers the rule's limits, so that few packets in a part suffice.
    var rules = FindingRule.all
    let place = try #require(rules.firstIndex { $0.id == id })
    rules[place].moved = ["least_packets": 1, "least_share": 0]
    func found(_ from: Int64, _ to: Int64) throws -> [Detection] {
      try TakeFindings(path: path, selection: Self.selection(from, to), rules: rules).detections
        .filter { $0.rule == id }
    }
    func sum(_ found: [Detection]) -> Int64 { found.reduce(0) { $0 + $1.impact.count } }
    let all = try found(.min, .max)
    let from = try #require(all.map(\.fromNanoseconds).min())
    let to = try #require(all.map(\.toNanoseconds).max())
    let middle = (from + to) / 2
    let halves = [sum(try found(0, middle)), sum(try found(middle + 1, to))]
    let whole = sum(all)
    #expect(halves.allSatisfy { $0 > 0 && $0 < whole }, "\(halves) of \(whole)")
    // A packet that is missing where the two halves meet is counted in neither half.
    #expect(abs(halves[0] + halves[1] - whole) <= 4, "\(halves) of \(whole)")
  }

  @Test func statisticsSayHowManyPacketsWereRefused() throws {
    let folder = try TakeFolder()
    let path = folder.file("fault.take")
    for seed: UInt64 in 70..<80 {
      try? FileManager.default.removeItem(atPath: path)
      let plan = FaultPlan(.corruptPackets, seed: seed, severity: 700, sight: .victim)
      if try FaultyCalls.FaultyCall.make(plan, path: path).isTouched { break }
    }
    let connection = try TakeFile.openForQueries(path)
    let counted = try #require(
      try connection.integer("SELECT sum(packets_refused) FROM stream WHERE direction = 'in'"))
    let doubled = try #require(
      try connection.integer(
        """
        SELECT at_ns FROM event WHERE type = 'refused' AND detail ->> '$.reason' LIKE 'auth%'
        ORDER BY row DESC LIMIT 1
        """))
    func refusal() throws -> Detection {
      try #require(
        try TakeFindings(path: path).detections.first {
          $0.rule == "srtp-refused" && $0.evidence.contains("authentication")
        })
    }
    let exact = try refusal()
    #expect(exact.impact.count == counted && counted > 0, "\(exact.evidence), \(counted)")
    #expect(exact.evidence.hasPrefix("\(counted) packets that came were refused"))
    #expect(exact.toNanoseconds >= doubled)
    // Without statistics, the evidence states only two bounds of the number.
    try folder.alter(path, "DELETE FROM stat")
    let bounds = try refusal()
    let numbers = bounds.evidence.split(separator: " ").compactMap { Int64($0) }
    #expect(bounds.toNanoseconds == doubled && numbers.count >= 2, "\(bounds.evidence)")
    #expect(numbers[0] <= counted && counted <= numbers[1], "\(bounds.evidence), \(counted)")
    #expect(numbers[1] == 2 * numbers[0] - 1)
  }

  @Test func aServiceWithoutVideoIsNoFault() throws {
    let folder = try TakeFolder()
    let captures = FileManager.default.currentDirectoryPath + "/Captures/"
    let audio = try TakeFindings(path: captures + "janus-audiobridge-retake-offers.take").detections
    let refused = audio.filter { $0.rule == "section-rejected" && $0.kind == "video" }
    #expect(refused.count == 1 && refused.allSatisfy { $0.severity == .low })
    #expect(refused.allSatisfy { $0.evidence.contains("it may do no video at all") })
    // The peer that refuses this video does support video.
    let found = try TakeFindings(path: NetworkScene.rejectedSection.record(in: folder)).detections
    let video = found.filter { $0.rule == "section-rejected" }
    #expect(!video.isEmpty && video.allSatisfy { $0.severity == .medium })
  }

  // MARK: The text

  @Test func sentencesAreReadInAHundredColumns() throws {
    let path = FileManager.default.currentDirectoryPath + "/Captures/virtual-heavy-loss.take"
    let found = try TakeFindings(path: path)
    let summary = try TakeSummary(path: path, findings: found)
    // A connection's first line is below the take's line, and indented.
    #expect(summary.text(named: "a.take").contains("\n  caller with callee: "))
    for text in [found.text(), summary.text(named: "a.take")] {
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      for line in lines { #expect(line.count <= 100, "\(line)") }
      // A symptom's continuation lines are indented to align with its text.
      let place = try #require(lines.firstIndex { $0.contains("-> Freeze, ") })
      let indent = try #require(lines[place].firstRange(of: "-> ")?.upperBound)
      let column = lines[place].distance(from: lines[place].startIndex, to: indent)
      let next = lines[place + 1]
      #expect(next.prefix { $0 == " " }.count == column, "\(next)")
    }
    let wide = found.text(TableLook().wide).split(separator: "\n")
    #expect(wide.count { $0.contains("[") && $0.hasSuffix("]") } == found.rows.count)
  }

  @Test func aTimelineHasTheValuesOfASendersParameters() throws {
    let folder = try TakeFolder()
    let path = folder.file("fault.take")
    _ = try FaultyCalls.FaultyCall.make(
      FaultPlan(.maxBitrate, seed: 7, severity: 700, sight: .culprit), path: path)
    let timeline = try Timeline(path: path)
    let words = timeline.entries.map { timeline.words($0) }
    #expect(
      words.contains {
        $0.hasPrefix("setParameters: transceiver ") && $0.contains(", maxBitrate ")
          && $0.contains(" bit/s")
      }, "\(words.filter { $0.contains("setParam") })")
  }
}
