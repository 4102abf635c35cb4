import Lab
import Media
import Testing
import Wire

@testable import Queries
@testable import Tape

struct SpeakerTests {
  /// Records a call in which the caller speaks for two and a half seconds, then the callee for
  /// three.
  private func turns(_ folder: TakeFolder) throws -> String {
    let call = try FaultyCall(folder, seed: 1, audio: .application, hasVideo: false)
    call.talk(1000, speaker: nil)
    call.talk(2500, speaker: 0)
    call.talk(1000, speaker: nil)
    call.talk(3000, speaker: 1)
    call.talk(500, speaker: nil)
    try call.finish()
    return call.path
  }

  @Test func turnsAreReportedAsBothSidesHaveThem() throws {
    let folder = try TakeFolder()
    let timeline = try SpeakerTimeline(path: try turns(folder))
    let names = timeline.participants.map(\.name)
    #expect(
      names.sorted() == ["callee/in/1", "callee/out/1", "caller/in/1", "caller/out/1"])
    let told = timeline.speeches.map { speech in
      (
        names[speech.participant], speech.fromNanoseconds / 1_000_000,
        (speech.toNanoseconds - speech.fromNanoseconds) / 1_000_000
      )
    }
    try #require(told.count == 4)
    #expect(Set(told[..<2].map(\.0)) == ["caller/out/1", "callee/in/1"])
    #expect(Set(told[2...].map(\.0)) == ["callee/out/1", "caller/in/1"])
    for (index, (_, from, length)) in told.enumerated() {
      let (begin, duration): (Int64, Int64) = index < 2 ? (1000, 2500) : (4500, 3000)
      #expect((begin...begin + 250).contains(from))
      #expect((duration - 60...duration + 60).contains(length))
    }
    for participant in timeline.participants {
      #expect(participant.loudestDecibels == -12)
      #expect(participant.loudestPercent == 80)
    }
  }

  @Test func thePeersAgreeWhoDominated() throws {
    let folder = try TakeFolder()
    let timeline = try SpeakerTimeline(path: try turns(folder))
    for peer: Int64 in 1...2 {
      let order = timeline.dominances.map { timeline.participants[$0.participant] }
        .filter { $0.peer == peer }.map(\.direction)
      #expect(order == (peer == 1 ? ["out", "in"] : ["in", "out"]))
    }
    for dominance in timeline.dominances {
      let speech = try #require(
        timeline.speeches.first { $0.participant == dominance.participant })
      let delay = dominance.fromNanoseconds - speech.fromNanoseconds
      #expect((0...950_000_000).contains(delay))
    }
  }

  @Test func speechFollowsTheTakesBlocks() throws {
    let folder = try TakeFolder()
    let path = try turns(folder)
    // Applies the rule again, to the frames instead of the peer's own reports.
    let rows = try csv(
      path,
      """
      WITH loud AS (
        SELECT peer, track, direction, at_ns, audio_level, at_ns - lag(at_ns) OVER (
          PARTITION BY peer, track, direction ORDER BY row) AS pause
        FROM frame WHERE kind = 'audio' AND audio_level <= 47
      ), numbered AS (
        SELECT *, sum(coalesce(pause, 1e9) > 5e8) OVER (
          PARTITION BY peer, track, direction ORDER BY at_ns) AS speech FROM loud
      )
      SELECT peer, track, direction, min(at_ns), max(at_ns) + 20000000, round(-avg(audio_level), 1)
      FROM numbered GROUP BY peer, track, direction, speech
      """)
    #expect(rows.count == 4)
    let view = "SELECT peer, track, direction, from_ns, to_ns, dbov FROM speaker"
    #expect(try csv(path, view).sorted() == rows.sorted())
    let timeline = try SpeakerTimeline(path: path)
    #expect(timeline.text().contains("caller/out/1  speaks"))
    #expect(timeline.json.contains("\"what\":\"dominates\""))
  }

  @Test func speechWithoutAnEndIsKnownToTheSecond() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 1, audio: .application, hasVideo: false)
    call.talk(1000, speaker: nil)
    call.talk(2500, speaker: 0)
    // The recorder dies before the call ends.
    _ = try call.recorded.cutOff()
    let rows = try csv(
      call.path, "SELECT seconds FROM speaker WHERE participant = 'caller/out/1'")
    let seconds = try #require(rows.first.flatMap { Double($0) })
    #expect((1.5...2.5).contains(seconds))
  }

  private func csv(_ path: String, _ sql: String) throws -> [String] {
    var rows = ""
    try SQLConsole.run(path: path, sql: sql, format: .csv) { rows += $0 }
    return rows.split(separator: "\r\n").dropFirst().map(String.init)
  }

  @Test func aTakeWithoutAudioHasNoSpeakers() throws {
    let folder = try TakeFolder()
    let timeline = try SpeakerTimeline(path: try folder.record([]))
    #expect(timeline.text() == "There is no audio in this take.\n")
    #expect(
      timeline.json
        == """
        {"participants":[],
        "times":[],
        "people":[],
        "turns":[],
        "interruptions":[],
        "talk":{"from_ns":0,"to_ns":0,"silent_ns":0,"overlap_ns":0}}
        """)
  }
}
