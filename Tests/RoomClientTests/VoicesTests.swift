import Foundation
import Live
import Media
import Peer
import Replay
import Room
import RoomClient
import Synchronization
import Tape
import Testing

/// Tests Retake's own rooms with more speakers than slots.
@Suite(.timeLimit(.minutes(10))) struct VoicesTests {
  /// A participant whose voice is switched on and off.
  private final class Person: Sendable {
    let room: Room
    let ear = Ear()
    let source = AudioSource()
    let media: LocalMedia
    private let speaks = Mutex(false)
    private let task: Mutex<Task<Void, Never>?> = Mutex(nil)
    /// The most voices heard at once.
    let most = Mutex(0)

    init(_ name: String, _ meeting: Meeting, hertz: Double, occupants: Int? = 4) {
      var config = RoomConfig()
      (config.displayName, config.audioOccupants) = (name, occupants)
      room = Room(
        meeting.rooms, config: config, session: meeting.clients, label: name, delegate: ear)
      var options = LocalMediaOptions()
      options.hasVideo = false
      media = LocalMedia(video: nil, audio: source, options: options)
      let tone = ToneGenerator(hertz: Int(hertz), pauseSeconds: 0)
      let made = Task.detached { [weak self] in
        let clock = ContinuousClock()
        let began = clock.now
        var number: Int64 = 0
        while !Task.isCancelled {
          try? await clock.sleep(until: began + .milliseconds(20 * number))
          guard let self else { return }
          let block =
            self.speaks.withLock({ $0 })
            ? tone.block(at: number * 960, frameCount: 960, channels: 1)
            : AudioBlock(samples: Array(repeating: 0, count: 960), channels: 1)
          self.source.deliver(block)
          let count = self.room.getAudioOccupants().count
          self.most.withLock { $0 = max($0, count) }
          number += 1
        }
      }
      task.withLock { $0 = made }
    }

    var id: String { room.localParticipant.id }
    func speak(_ isSpeaking: Bool) { speaks.withLock { $0 = isSpeaking } }
    func end() async {
      task.withLock { $0?.cancel() }
      await room.disconnect()
    }
  }

  @Test func fourOfEightVoicesOccupyAndTheyAreThoseWhoSpeak() async throws {
    let meeting = try await Meeting()
    let people = (0..<8).map {
      Person("p\($0)", meeting, hertz: 300 + 50 * Double($0))
    }
    for person in people {
      try await person.room.publish(person.media)
      try await person.room.connect(roomId: "room-1")
      try await person.ear.hear("localPublished")
    }
    for person in people {
      try await until("everybody's audio") {
        person.room.remoteParticipants.values.count { !$0.audios.isEmpty } == 7
      }
    }
    let ids = people.map(\.id)
    for group in [0..<4, 4..<8, 0..<4] {
      for (place, person) in people.enumerated() { person.speak(group.contains(place)) }
      let speakers = Set(group.map { ids[$0] })
      for (place, person) in people.enumerated() {
        try await until("the voices that speak, at \(ids[place])") {
          speakers.subtracting([ids[place]])
            .isSubset(of: Set(person.room.getAudioOccupants()))
        }
      }
      // Two seconds are long enough to be recognized in the take.
      let begin = ContinuousClock.now
      try await until("two seconds of speech") { begin.duration(to: .now) > .seconds(2) }
    }
    for person in people {
      #expect(person.most.withLock { $0 } == 4)
      #expect(person.room.getAudioLevels().keys.allSatisfy { $0 != person.id })
    }
    for person in people { await person.end() }
    try await meeting.end()
    try expectSpeakers(of: meeting)
    let report = try Replayer(
      path: meeting.path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }

  /// Expects that every participant heard speaking did speak at that time, as the take of that
  /// participant's connection shows.
  private func expectSpeakers(of meeting: Meeting) throws {
    let take = try TakeFile.openForQueries(meeting.path)
    // The milliseconds from the start of speech at the speaker to its start at the listener.
    let distances = """
      WITH who AS (
        SELECT carrier.id, speaker.direction, speaker.from_ns, speaker.to_ns
        FROM speaker JOIN participant_track AS carrier
          ON carrier.peer = speaker.peer AND carrier.track = speaker.track
          AND carrier.direction = speaker.direction
        WHERE speaker.to_ns > carrier.from_ns AND speaker.from_ns < carrier.to_ns)
      SELECT (SELECT min(abs(heard.from_ns - spoken.from_ns)) / 1000000 FROM who AS spoken
        WHERE spoken.direction = 'out' AND spoken.id = heard.id) AS distance
      FROM who AS heard WHERE heard.direction = 'in' ORDER BY distance
      """
    let rows = try take.prepare(distances)
    var found: [Int64] = []
    while try rows.step() { found.append(rows.integer(0)) }
    // Each of the eight participants hears three or four others in each of three rounds.
    #expect(found.count >= 8 * 3 * 3)
    // The exact milliseconds depend on the machine; `VoiceSelectionTests` checks 300 ms in virtual
    // time.
    #expect((found.last ?? .max) < 60_000, "\(found)")
  }

  @Test func alwaysOnAudioIsSentBesidesTheSelectedVoices() async throws {
    let meeting = try await Meeting()
    let people = (0..<4).map {
      Person("p\($0)", meeting, hertz: 300 + 50 * Double($0), occupants: 1)
    }
    people[1].media.audio?.alwaysOn = true
    for person in people {
      try await person.room.publish(person.media)
      try await person.room.connect(roomId: "room-1")
      try await person.ear.hear("localPublished")
    }
    let listener = people[0]
    let always = people[1].id
    // Always-on audio is received even before anyone speaks.
    try await until("the one that is always on") {
      listener.room.getAudioOccupants() == [always]
    }
    people[2].speak(true)
    try await until("a voice") {
      listener.room.getAudioOccupants() == [always, people[2].id].sorted()
    }
    // The always-on voice is heard in addition to the one voice that has a slot.
    people[1].speak(true)
    try await until("both at once") {
      let levels = listener.room.getAudioLevels()
      return (levels[always] ?? 0) > 0 && (levels[people[2].id] ?? 0) > 0
    }
    people[1].speak(false)
    people[2].speak(false)
    people[3].speak(true)
    try await until("the next voice") {
      listener.room.getAudioOccupants() == [always, people[3].id].sorted()
    }
    people[1].media.audio?.alwaysOn = false
    try await until("one of the few") { listener.room.getAudioOccupants() == [people[3].id] }
    for person in people { await person.end() }
    try await meeting.end()
  }

  @Test func aListenerThatRequestsAllVoicesReceivesAll() async throws {
    let meeting = try await Meeting()
    let people = (0..<3).map {
      Person("p\($0)", meeting, hertz: 300, occupants: $0 == 0 ? nil : 1)
    }
    for person in people {
      try await person.room.publish(person.media)
      try await person.room.connect(roomId: "room-1")
      try await person.ear.hear("localPublished")
      person.speak(true)
    }
    try await until("all") { people[0].room.getAudioOccupants().count == 2 }
    try await until("one") { people[1].room.getAudioOccupants().count == 1 }
    #expect(people[1].most.withLock { $0 } == 1)
    for person in people { await person.end() }
    try await meeting.end()
  }
}
