import Media
import Testing
import Wire

@testable import Queries
@testable import Tape

@Suite struct SpeakerTests {
  /// The caller speaks for two and a half seconds, then the callee for three.
  private func turns(_ folder: TakeFolder) throws -> String {
    let call = try FaultyCall(folder, seed: 1, sound: .application, hasVideo: false)
    call.talk(1000, speaker: nil)
    call.talk(2500, speaker: 0)
    call.talk(1000, speaker: nil)
    call.talk(3000, speaker: 1)
    call.talk(500, speaker: nil)
    try call.finish()
    return call.path
  }

  @Test func turnsAreToldAsBothSidesHaveThem() throws {
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
      #expect((0...900_000_000).contains(delay))
    }
  }

  @Test func theViewTellsTheSameAsTheCode() throws {
    let folder = try TakeFolder()
    let path = try turns(folder)
    let timeline = try SpeakerTimeline(path: path)
    let expected = timeline.speeches.map { speech in
      "\(timeline.participants[speech.participant].name),\(speech.fromNanoseconds),"
        + "\(speech.toNanoseconds)"
    }
    var rows = ""
    try SQLConsole.run(
      path: path, sql: "SELECT participant, from_ns, to_ns FROM speaker", format: .csv
    ) { rows += $0 }
    #expect(
      rows.split(separator: "\r\n").dropFirst().map(String.init).sorted() == expected.sorted())
    #expect(timeline.text.contains("caller/out/1  speaks"))
    #expect(timeline.json.contains("\"what\":\"dominates\""))
  }

  @Test func theLivePeerTellsTheSameDominantSpeakers() throws {
    let folder = try TakeFolder()
    let path = try turns(folder)
    let timeline = try SpeakerTimeline(path: path)
    for peer: Int64 in 1...2 {
      var rows = ""
      try SQLConsole.run(
        path: path,
        sql: """
          SELECT coalesce(detail ->> '$.direction', 'nobody'), at_ns / 1000000 FROM event
          WHERE type = 'speaker' AND peer = \(peer) ORDER BY row
          """, format: .csv
      ) { rows += $0 }
      let told = rows.split(separator: "\r\n").dropFirst().map { $0.split(separator: ",") }
      let expected = timeline.dominances.filter {
        timeline.participants[$0.participant].peer == peer
      }
      let names = told.map { String($0[0]) }.filter { $0 != "nobody" }
      #expect(names == expected.map { timeline.participants[$0.participant].direction })
      for (line, dominance) in zip(told.filter { $0[0] != "nobody" }, expected) {
        let late = (Int64(line[1]) ?? 0) - dominance.fromNanoseconds / 1_000_000
        #expect((0...40).contains(late), "\(line)")
      }
    }
  }

  @Test func aTakeWithoutSoundHasNoSpeakers() throws {
    let folder = try TakeFolder()
    let timeline = try SpeakerTimeline(path: try folder.record([]))
    #expect(timeline.text == "There is no sound in this take.\n")
    #expect(timeline.json == "{\"participants\":[],\n\"times\":[]}")
  }
}
