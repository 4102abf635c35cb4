import Testing
import Wire

@testable import Media

struct AudioSlotsTests {
  private let loud = AudioLevel(dbov: -30)
  private let quiet = AudioLevel(dbov: -80)

  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  @Test func slotHoldersAreListedEvenWhenSilent() {
    var slots = AudioSlots(count: 2)
    #expect(slots.observe(quiet, of: 1, at: at(0)) == [])
    #expect(slots.levels.isEmpty)
    #expect(slots.observe(loud, of: 1, at: at(20)) == [.subscribed(1)])
    #expect(slots.observe(quiet, of: 1, at: at(5000)) == [])
    #expect(slots.levels.map(\.participant) == [1])
    #expect(slots.levels.map(\.percent) == [0])
    #expect(slots.observe(loud, of: 1, at: at(5020)) == [])
    #expect(slots.levels.map(\.percent) == [50])
  }

  @Test func aSpeakerGetsTheSlotOfTheLongestSilentHolder() {
    var slots = AudioSlots(count: 2)
    _ = slots.observe(loud, of: 1, at: at(0))
    _ = slots.observe(loud, of: 2, at: at(400))
    // A speaker never loses a slot in the middle of a sentence.
    #expect(slots.observe(loud, of: 3, at: at(450)) == [])
    #expect(slots.observe(loud, of: 3, at: at(550)) == [.unsubscribed(1), .subscribed(3)])
    #expect(slots.levels.map(\.participant) == [3, 2])
    #expect(slots.observe(quiet, of: 1, at: at(2000)) == [])
    #expect(slots.remove(2) == [.unsubscribed(2)])
    #expect(slots.remove(2) == [])
    #expect(slots.observe(loud, of: 1, at: at(2100)) == [.subscribed(1)])
  }

  @Test func fourSpeakersHaveSlotsByDefault() {
    var slots = AudioSlots()
    for participant in 1...5 { _ = slots.observe(loud, of: participant, at: at(0)) }
    #expect(slots.levels.map(\.participant) == [1, 2, 3, 4])
  }
}
