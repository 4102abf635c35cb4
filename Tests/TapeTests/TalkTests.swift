import Lab
import Media
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Tests each participant's share of a conversation, in views and in `retake speakers`.
struct TalkTests {
  /// Speech on one peer's own track, in milliseconds.
  typealias Said = (peer: Int, from: Int, to: Int)

  /// Makes a take of two peers, `anna` and `ben`, with this speech, which they hear from each
  /// other.
  private func take(_ folder: TakeFolder, _ said: [Said], hears: Bool = true) throws -> String {
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    var rows: [String] = []
    func add(_ peer: Int, _ direction: String, _ from: Int, _ to: Int) {
      rows.append(
        "(\((1_000 + rows.count) << 16), \(peer), 0, 1, '\(direction)', NULL, 'ended', "
          + "\(from)000000, \(to)000000, 100, -3000)")
    }
    for speech in said {
      add(speech.peer, "out", speech.from, speech.to)
      // The network adds a delay.
      if hears { add(3 - speech.peer, "in", speech.from + 40, speech.to + 40) }
    }
    let tracks = [(1, "out", 11), (1, "in", 22), (2, "out", 22), (2, "in", 11)].enumerated().map {
      "(\((900 + $0) << 16), \($1.0), 0, 1, '0', 'audio', '\($1.1)', \($1.2), 'opus', 111, "
        + "48000, 0)"
    }
    try folder.alter(
      path,
      """
      DELETE FROM speech; DELETE FROM level; DELETE FROM track; DELETE FROM peer;
      INSERT INTO peer (row, peer, at_ns, label, role, seed, wall_clock_ns, configuration)
        VALUES (65536, 1, 0, 'anna', '', x'', 0, '{}'), (65537, 2, 0, 'ben', '', x'', 0, '{}');
      INSERT INTO track VALUES \(tracks.joined(separator: ", "));
      INSERT INTO level VALUES (65540, 1, 100000000, 1, 'out', 1, 4800, 9, 9, 40, 1),
        (65541, 1, 20000000000, 1, 'out', 1, 4800, 9, 9, 40, 1);
      \(rows.isEmpty ? "" : "INSERT INTO speech VALUES " + rows.joined(separator: ", ") + ";")
      """)
    return path
  }

  private func rows(_ path: String, _ sql: String) throws -> [String] {
    var text = ""
    try SQLConsole.run(path: path, sql: sql, format: .csv) { text += $0 }
    return text.split(separator: "\r\n").dropFirst().map(String.init)
  }

  @Test func aVoiceSentAndReceivedIsOneParticipant() throws {
    let folder = try TakeFolder()
    let path = try take(folder, [(1, 1_000, 4_000), (2, 5_000, 6_000)])
    #expect(
      try rows(path, "SELECT person, from_ns, to_ns FROM person_speech ORDER BY from_ns")
        == ["anna,1000000000,4000000000", "ben,5000000000,6000000000"])
    let talk = try SpeakerTimeline(path: path).talk
    #expect(talk.people.map(\.name) == ["anna", "ben"])
    #expect(talk.people.map(\.speakingNanoseconds) == [3_000_000_000, 1_000_000_000])
    #expect(talk.share(of: talk.people[0]) == 0.75)
    // From 0 to 20 s, the two never speak at the same time.
    #expect(talk.silentNanoseconds == 16_000_000_000 && talk.overlapNanoseconds == 0)
  }

  /// The times at which the two participants speak, in milliseconds, and the expected number of
  /// interruptions.
  struct Overlap: Sendable {
    let anna: Range<Int>
    let ben: Int
    let benEnds: Int
    let count: Int
  }

  private static let overlaps: [Overlap] = [
    Overlap(anna: 1_000..<5_000, ben: 4_000, benEnds: 8_000, count: 1),
    Overlap(anna: 1_000..<5_000, ben: 4_000, benEnds: 5_900, count: 0),
    Overlap(anna: 3_600..<5_000, ben: 4_000, benEnds: 8_000, count: 0),
    Overlap(anna: 1_000..<7_100, ben: 4_000, benEnds: 9_000, count: 0),
    Overlap(anna: 1_000..<4_200, ben: 4_000, benEnds: 8_000, count: 0),
    Overlap(anna: 1_000..<9_000, ben: 4_000, benEnds: 5_000, count: 0),
    Overlap(anna: 1_000..<5_000, ben: 5_000, benEnds: 8_000, count: 0),
  ]

  /// Tests interruptions, and overlaps that do not count as interruptions.
  ///
  /// An overlap does not count if it ends too soon, if the first speaker had hardly started or
  /// continues, or if a turn only ends a little late.
  @Test(arguments: overlaps)
  func aSpeakerWhoContinuesWhenTheOtherFallsSilentInterrupts(_ each: Overlap) throws {
    let folder = try TakeFolder()
    let path = try take(
      folder, [(1, each.anna.lowerBound, each.anna.upperBound), (2, each.ben, each.benEnds)])
    let count = each.count
    let talk = try SpeakerTimeline(path: path).talk
    #expect(talk.interruptions.count == count)
    let told = try rows(path, "SELECT person, interrupted, at_ns FROM interruption")
    #expect(told == (count == 1 ? ["ben,anna,4000000000"] : []))
    #expect(talk.people.first { $0.name == "anna" }?.interrupted == count)
  }

  /// The views and the totals of `retake speakers` are computed separately, and agree.
  @Test func viewsAndTotalsAgree() throws {
    let folder = try TakeFolder()
    let said: [Said] = [
      (1, 500, 3_000), (2, 2_500, 6_000), (1, 5_000, 5_300), (1, 7_000, 9_000), (2, 7_000, 8_000),
      (2, 12_000, 12_400), (1, 12_100, 16_000),
    ]
    let path = try take(folder, said)
    let talk = try SpeakerTimeline(path: path).talk
    let shares = try rows(
      path,
      """
      SELECT person, turns, CAST(round(seconds * 1000) AS INTEGER),
        CAST(round(alone_seconds * 1000) AS INTEGER),
        CAST(round(overlap_seconds * 1000) AS INTEGER), round(share, 6), interruptions, interrupted
      FROM talk_share ORDER BY person
      """)
    let counted = talk.people.sorted { $0.name < $1.name }.map { person in
      "\(person.name),\(person.turns),\(person.speakingNanoseconds / 1_000_000),"
        + "\(person.aloneNanoseconds / 1_000_000),\(person.overlapNanoseconds / 1_000_000),"
        + "\((talk.share(of: person) * 1e6).rounded() / 1e6),\(person.interruptions),"
        + "\(person.interrupted)"
    }
    #expect(shares == counted)
    #expect(
      try rows(path, "SELECT sum(to_ns - from_ns) FROM silence") == ["\(talk.silentNanoseconds)"])
    #expect(
      try rows(path, "SELECT sum(to_ns - from_ns) FROM overlap") == ["\(talk.overlapNanoseconds)"])
    #expect(
      try rows(path, "SELECT sum(to_ns - from_ns) FROM talk")
        == ["\(talk.toNanoseconds - talk.fromNanoseconds)"])
  }

  /// A participant on two connections, one of which replaces the other.
  @Test func aParticipantOnTwoConnectionsIsOne() throws {
    let folder = try TakeFolder()
    let path = try take(folder, [], hears: false)
    try folder.alter(
      path,
      """
      DELETE FROM carriage; DELETE FROM presence;
      INSERT INTO presence VALUES (655360, 3, 0, 1, 'id-1', 'Carla', 0, 1),
        (655361, 3, 0, 2, 'id-2', 'Carla', 0, 1);
      INSERT INTO carriage VALUES (655362, 1, 0, 3, 1, NULL, 'audio', 'in', 1, '', 1),
        (655363, 2, 0, 3, 1, NULL, 'audio', 'in', 1, '', 1),
        (655364, 2, 0, 3, 2, NULL, 'audio', 'in', 5, '', 1);
      INSERT INTO speech VALUES
        (\(1_000 << 16), 1, 0, 1, 'in', NULL, 'ended', 1000000000, 3000000000, 9, -300),
        (\(1_001 << 16), 2, 0, 1, 'in', NULL, 'ended', 2500000000, 4000000000, 9, -300),
        (\(1_002 << 16), 2, 0, 5, 'in', NULL, 'ended', 9000000000, 9500000000, 9, -300);
      """)
    #expect(
      try rows(path, "SELECT person, from_ns, to_ns FROM person_speech ORDER BY from_ns")
        == ["Carla (id-1),1000000000,4000000000", "Carla (id-2),9000000000,9500000000"])
  }

  @Test func theChartHasARowForEachParticipant() throws {
    let folder = try TakeFolder()
    let path = try take(folder, [(1, 1_000, 10_000), (2, 9_000, 15_000)])
    let lines = try SpeakerTimeline(path: path).text(TableLook(columns: 80))
      .split(separator: "\n", omittingEmptySubsequences: false)
    try #require(lines.count > 5)
    #expect(lines[0].hasPrefix("who   0.000") && lines[0].contains("20.000"))
    #expect(lines[2].hasPrefix("anna") && lines[2].contains("█") && lines[2].contains("·"))
    #expect(lines[3].hasPrefix("ben") && lines[3].contains("40 %"))
    #expect(lines[4] == "Of 20.000 s nobody spoke for 6.000 s, several spoke at once for 1.000 s.")
    #expect(lines[..<4].allSatisfy { $0.count <= 80 })
    // Pipes and --wide get a cell per quarter of a second.
    let wide = try SpeakerTimeline(path: path).text()
    #expect(wide.split(separator: "\n")[2].count { "█▄·".contains($0) } == 80)
    #expect(!wide.unicodeScalars.contains { (0xfdd0...0xfdd3).contains($0.value) })
  }

  @Test func aPartOfATakeIsCutAtItsEnds() throws {
    let folder = try TakeFolder()
    let path = try take(folder, [(1, 1_000, 10_000), (2, 9_000, 15_000)])
    var selection = TakeSelection()
    selection.fromNanoseconds = 5_000_000_000
    selection.toNanoseconds = 12_000_000_000
    let talk = try SpeakerTimeline(path: path, selection: selection).talk
    #expect(talk.people.map(\.speakingNanoseconds) == [5_000_000_000, 3_000_000_000])
    #expect(talk.silentNanoseconds == 0 && talk.overlapNanoseconds == 1_000_000_000)
    selection.peers = [2]
    // The second peer hears both participants.
    #expect(try SpeakerTimeline(path: path, selection: selection).talk.people.count == 2)
  }
}
