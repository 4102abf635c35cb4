import Testing

@testable import Queries
@testable import Tape

/// Tests which participant's media a track carries, according to the room views.
struct ParticipantViewTests {
  private func rows(_ path: String, _ sql: String) throws -> [String] {
    var text = ""
    try SQLConsole.run(path: path, sql: sql, format: .csv) { text += $0 }
    return text.split(separator: "\r\n").dropFirst().map(String.init)
  }

  /// A server mixes two participants into one track; one joins later, and one leaves earlier.
  @Test func speechInAMixHasNoParticipant() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    let speech = [2, 12, 22].enumerated().map { index, second in
      "(\((60 + index) << 16), 1, 0, 7, 'in', NULL, 'ended', \(second)000000000, "
        + "\(second + 2)000000000, 100, -3000)"
    }
    try folder.alter(
      path,
      """
      DELETE FROM speech; DELETE FROM carriage; DELETE FROM presence; DELETE FROM ending;
      INSERT INTO ending VALUES (1, 30000000000, x'');
      INSERT INTO presence VALUES (655360, 2, 0, 1, 'anna', '', 0, 1), (655361, 2, 0, 2, 'ben', '',
        0, 1);
      INSERT INTO carriage VALUES
        (655362, 1, 0, 2, 1, NULL, 'audio', 'in', 7, '', 1),
        (720896, 1, 10000000000, 2, 2, NULL, 'audio', 'in', 7, '', 1),
        (786432, 1, 20000000000, 2, 1, NULL, 'audio', 'in', 7, '', 0);
      INSERT INTO speech VALUES \(speech.joined(separator: ","));
      """)
    #expect(
      try rows(path, "SELECT from_ns / 1000000000, id FROM participant_speaker ORDER BY from_ns")
        == ["2,anna", "12,", "22,ben"])
    #expect(
      try rows(
        path,
        "SELECT id, from_ns / 1000000000, to_ns / 1000000000 FROM participant_track ORDER BY id")
        == ["anna,0,20", "ben,10,30"])
  }

  @Test func undecodedMediaIsNotReportedAsMissing() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    try folder.alter(path, "DELETE FROM level; DELETE FROM speech; DELETE FROM track")
    #expect(try SpeakerTimeline(path: path).text() == "There is no audio in this take.\n")
    try folder.alter(
      path,
      """
      INSERT INTO coverage (row, actor, at_ns, peer, from_ns, to_ns, what, reason)
        VALUES (131070, 1, 0, NULL, 0, 1, 'no-keys', '17')
      """)
    #expect(try SpeakerTimeline(path: path).text().contains("17 packets not decrypted, "))
    try folder.alter(
      path,
      """
      INSERT INTO format
        (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice)
        VALUES (1, 786432, 1, 2, 'audio', 'in', 'pcmu', 7, 'not decoded', 1, 0)
      """)
    #expect(try SpeakerTimeline(path: path).text().contains("was not decoded (pcmu)"))
  }
}
