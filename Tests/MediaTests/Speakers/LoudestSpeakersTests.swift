import Media
import Testing
import Wire

struct LoudestSpeakersTests {
  private func run(
    _ settings: LoudestSpeakers.Settings = LoudestSpeakers.Settings(), seconds: Int64,
    _ levels: (Int64) -> [(id: Int, dbov: Int)]
  ) -> [LoudestSpeakers.Output] {
    var machine = LoudestSpeakers(settings: settings)
    var outbox = Outbox<LoudestSpeakers.Output>()
    for packet in 0..<(seconds * 50) {
      // Packets arrive 5 ms after each multiple of 20 ms.
      let now = Instant.zero + .milliseconds(packet * 20 + 5)
      while let due = machine.deadline, due < now {
        machine.step(.deadline, at: due, into: &outbox)
      }
      for (id, dbov) in levels(packet) {
        machine.step(.level(AudioLevel(dbov: dbov), of: id), at: now, into: &outbox)
      }
    }
    let end = Instant.zero + .seconds(seconds + 10)
    while let due = machine.deadline, due <= end { machine.step(.deadline, at: due, into: &outbox) }
    #expect(machine.deadline == nil)
    return outbox.drain()
  }

  private func volume(_ id: Int, _ dbov: Int) -> LoudestSpeakers.Volume {
    LoudestSpeakers.Volume(id: id, level: AudioLevel(dbov: dbov))
  }

  @Test func speakersAreOrderedByLoudnessThenByJoining() {
    var settings = LoudestSpeakers.Settings()
    settings.maxEntries = 3
    let events = run(settings, seconds: 1) { _ in [(4, -50), (3, -20), (2, -50), (1, -60)] }
    #expect(events == [.loudest([volume(3, -20), volume(4, -50), volume(2, -50)]), .silence])
  }

  @Test func levelsAreAveragedAndRounded() {
    let events = run(seconds: 1) { packet in [(1, packet % 2 == 0 ? -20 : -41)] }
    #expect(events == [.loudest([volume(1, -31)]), .silence])
  }

  @Test func quietAndRareSpeakersDoNotCount() {
    let events = run(seconds: 3) { packet in
      [(1, -90)] + (packet % 10 == 0 ? [(2, -10)] : [])
    }
    #expect(events == [])
  }

  @Test func silenceIsReportedOnce() {
    let events = run(seconds: 6) { packet in [(1, packet < 50 || packet >= 250 ? -20 : -127)] }
    #expect(events == [.loudest([volume(1, -20)]), .silence, .loudest([volume(1, -20)]), .silence])
  }

  @Test(arguments: [(Interval.zero, 4), (.milliseconds(500), 2), (.seconds(60), 1)])
  func theIntervalStaysInItsBounds(interval: Interval, reports: Int) {
    var settings = LoudestSpeakers.Settings()
    settings.interval = interval
    let events = run(settings, seconds: 1) { _ in [(1, -20)] }
    #expect(events.filter { $0 != .silence }.count == reports)
  }
}
