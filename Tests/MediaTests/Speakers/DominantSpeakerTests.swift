import Media
import Testing
import Wire

struct DominantSpeakerTests {
  @Test func aSwitchIsReportedHalfASecondAfterTheOtherBegan() {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 30), (2, 30)])
    room.talk(from: 1000, to: 4000, [(1, 100), (2, 30)])
    room.talk(from: 4000, to: 6000, [(1, 30), (2, 100)])
    room.run(to: 6000)
    #expect(
      room.changes == [.init(milliseconds: 0, speaker: 1), .init(milliseconds: 4500, speaker: 2)])
  }

  @Test func aLouderInterrupterDoesNotTakeOver() {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 30), (2, 30)])
    room.talk(from: 1000, to: 3000, [(1, 95), (2, 30)])
    room.talk(from: 3000, to: 8000, [(1, 95), (2, 110)])
    #expect(room.changes == [.init(milliseconds: 0, speaker: 1)])
  }

  @Test func aCoughIsTooShortToDominate() {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 30), (2, 30)])
    room.talk(from: 1000, to: 3000, [(1, 100), (2, 30)])
    room.talk(from: 3000, to: 3200, [(1, 30), (2, 120)])
    room.talk(from: 3200, to: 6000, [(1, 100), (2, 30)])
    #expect(room.dominant == 1)
    #expect(room.changes.count == 1)
  }

  @Test(arguments: [(79, false), (80, true), (127, true)])
  func speechMustExceedALevelOfEighty(loudness: Int, isHeard: Bool) {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 0), (2, 20)])
    room.talk(from: 1000, to: 4000, [(1, 0), (2, loudness)])
    #expect(room.dominant == (isHeard ? 2 : 1))
  }

  @Test func steadyNoiseIsTheFloorAndNotSpeech() {
    var room = Room()
    // Noise that is loud enough for the gate but never above its own noise floor.
    room.talk(from: 0, to: 5000, [(1, 0), (2, 100)])
    #expect(room.changes == [.init(milliseconds: 0, speaker: 1)])
  }

  @Test func theFloorRisesAfterFifteenSeconds() {
    var room = Room()
    // The noise floor is 60, so 85 counts as speech until the floor has risen.
    room.talk(from: 0, to: 20, [(1, 0), (2, 60)])
    room.talk(from: 20, to: 15_000, [(1, 0), (2, 85)])
    #expect(room.dominant == 2)
    room.talk(from: 15_000, to: 40_000, [(1, 0), (2, 85)])
    // The floor has risen to 77, so the former speech counts as background noise.
    room.apply(.level(AudioLevel(dbov: 110 - 127), of: 1), at: 40_000)
    room.talk(from: 40_000, to: 41_000, [(1, 30), (2, 85)])
    room.talk(from: 41_000, to: 43_000, [(1, 100), (2, 85)])
    #expect(room.dominant == 1)
  }

  @Test func theOrderOfJoiningDecidesWhoIsNominated() {
    for order in [[5, 3, 9], [9, 5, 3], [3, 9, 5]] {
      var room = Room()
      for speaker in order { room.apply(.joined(speaker), at: 10) }
      room.run(to: 1000)
      #expect(room.dominant == order[0])
    }
  }

  @Test func amongEqualChallengersTheFirstToJoinWins() {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 100), (7, 30), (4, 30)])
    room.talk(from: 1000, to: 3000, [(1, 30), (7, 100), (4, 100)])
    #expect(room.dominant == 7)
  }

  @Test func withoutPacketsALevelFallsSilent() {
    var room = Room()
    room.talk(from: 0, to: 2000, [(1, 100), (2, 30)])
    // The first participant stops sending, as with discontinuous transmission.
    room.talk(from: 2000, to: 4000, [(2, 100)])
    #expect(room.dominant == 2)
  }

  @Test func silenceIsReportedWhenRequested() {
    var settings = DominantSpeaker.Settings()
    settings.silenceTimeout = .milliseconds(900)
    var room = Room(settings: settings)
    room.talk(from: 0, to: 1000, [(1, 0), (2, 30)])
    #expect(room.changes == [])
    room.talk(from: 1000, to: 3000, [(1, 0), (2, 100)])
    room.talk(from: 3000, to: 8000, [(1, 0), (2, 30)])
    #expect(room.changes.map(\.speaker) == [2, nil])
    // The speaker is dropped after a second of history plus the timeout, at the next decision.
    #expect(room.changes.last.map { (3900...5400).contains($0.milliseconds) } == true)
    room.run(to: 60_000)
    #expect(room.deadline == nil)
  }

  @Test func aLeavingParticipantIsNoLongerTheSpeaker() {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 100), (2, 30)])
    room.apply(.left(1), at: 1000)
    #expect(room.dominant == nil)
    room.talk(from: 1000, to: 2000, [(2, 30)])
    #expect(room.dominant == 2)
  }

  @Test func nothingIsDueInALongSilence() {
    var room = Room()
    room.talk(from: 0, to: 1000, [(1, 100), (2, 30)])
    room.run(to: 10_000)
    #expect(room.deadline == nil)
    // A jump of a century takes no time to process, and a participant silent for over an hour is
    // forgotten.
    room.apply(.level(.silence, of: 1), at: 3_155_760_000_000)
    #expect(room.dominant == 1)
  }

  @Test func aLateDriverCatchesUp() {
    var prompt = Room()
    var late = Room()
    for room in 0..<2 {
      var target = room == 0 ? prompt : late
      target.talk(from: 0, to: 2000, [(1, 100), (2, 30)])
      target.talk(from: 2000, to: 3000, [(1, 30), (2, 100)])
      if room == 0 { target.run(to: 5000) }
      target.step(.deadline, at: .zero + .milliseconds(5000))
      if room == 0 { prompt = target } else { late = target }
    }
    #expect(prompt.dominant == 2)
    #expect(late.dominant == prompt.dominant)
    #expect(late.changes == prompt.changes)
  }

  @Test func theSameLevelsNameTheSameSpeakers() {
    func run(_ seed: UInt64) -> [Room.Change] {
      let chance = Entropy(seed: (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) })
        .stream("levels")
      var room = Room()
      var at: Int64 = 0
      for _ in 0..<400 {
        let speaker = Int(chance.integer(below: 4))
        let loudness = 60 + Int(chance.integer(below: 60))
        let length = Int64(chance.integer(below: 1500))
        room.talk(from: at, to: at + length, [(speaker, loudness), ((speaker + 1) % 4, 30)])
        at += length
      }
      return room.changes
    }
    #expect(run(1) == run(1))
    #expect(run(1) != run(2))
    #expect(run(1).count > 20)
  }

  @Test func anyInputAtAnyTimeIsAccepted() {
    let chance = Entropy(seed: [9]).stream("inputs")
    var settings = DominantSpeaker.Settings()
    settings.silenceTimeout = .seconds(2)
    settings.decisionInterval = .zero
    var room = Room(settings: settings)
    var now: Int64 = .min
    for _ in 0..<20_000 {
      let id = Int(chance.integer(below: 6))
      let input: DominantSpeaker.Input =
        switch chance.integer(below: 8) {
        case 0: .joined(id)
        case 1: .left(id)
        case 2: .deadline
        default: .level(AudioLevel(dbov: -Int(chance.integer(below: 200))), of: id)
        }
      room.step(input, at: Instant(nanoseconds: now))
      let (next, overflow) = now.addingReportingOverflow(
        1 << Int64(chance.integer(below: chance.integer(below: 50) == 0 ? 63 : 27)))
      now = overflow ? .max : next
    }
    #expect(room.changes.count > 1)
  }
}
