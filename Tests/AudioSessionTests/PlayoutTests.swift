import AudioSession
import Lab
import Media
import Testing
import Wire

/// Tests the path of received audio to the device.
struct PlayoutTests {
  private func playing(_ type: AudioIOType = .notSpecified) -> VirtualAudioSession {
    let session = VirtualAudioSession()
    session.locked(.setIOType(type))
    session.call(.openConnection(1, sends: true, receives: true))
    session.clear()
    return session
  }

  private func block(_ value: Int16, _ frames: Int = 960, channels: Int = 1) -> AudioBlock {
    AudioBlock(samples: Array(repeating: value, count: frames * channels), channels: channels)
  }

  @Test func withoutATransportTheDevicePlaysSilence() {
    let session = VirtualAudioSession()
    session.receive(block(5), on: 1)
    session.pull(3)
    #expect(session.played.map(\.units) == [3] && session.played[0].tracks == 0)
    #expect(session.played[0].block.samples == Array(repeating: 0, count: 1_440))
    #expect(session.snapshot.counters.silentUnits == 3)
  }

  @Test func blocksOfTracksAreMixedInOrder() {
    let session = playing()
    session.receive(block(100), on: 1)
    session.receive(block(32_760, 240), on: 2)
    session.pull()
    session.pull()
    session.pull()
    #expect(session.played.map(\.tracks) == [2, 1, 0])
    #expect(session.played.map(\.index) == [0, 1, 2])
    let first = session.played[0].block.samples
    #expect(first[0] == 32_767 && first[239] == 32_767 && first[240] == 100 && first[479] == 100)
    #expect(session.played[1].block.samples == Array(repeating: 100, count: 480))
    #expect(session.snapshot.counters.silentUnits == 1)
  }

  @Test func channelsMatchTheRoute() {
    let session = playing()
    session.receive(
      AudioBlock(samples: (0..<1_920).map { $0.isMultiple(of: 2) ? 10 : 20 }, channels: 2), on: 1)
    session.pull()
    #expect(session.played[0].block.samples == Array(repeating: 15, count: 480))
    session.handle(
      .routeChanged(
        .newDeviceAvailable, AudioRoute(renderFormat: AudioFormat(channels: 2))))
    session.receive(block(7), on: 1)
    session.pull()
    #expect(session.played[1].block.channels == 2)
    #expect(session.played[1].block.samples == Array(repeating: 7, count: 960))
  }

  @Test func atMostASecondIsQueuedForTheDevice() {
    let session = playing()
    for value in 0..<100 { session.receive(block(Int16(value)), on: 1) }
    #expect(session.snapshot.counters.overflowedFrames == 48_000)
    session.pull()
    #expect(session.played[0].block.samples[0] == 50)
    session.receive(AudioBlock(blank: .max, channels: 1), on: 1)
    session.pull(.max)
    session.pull(.min)
    #expect(session.played.map(\.units) == [1, 200, 1])
  }

  /// With a shared clock, input waits for the output of the same period.
  @Test func anAggregatedDeviceServesOutputFirst() {
    let samples = PCMChunk(samples: Array(repeating: 3, count: 480))
    let apart = playing()
    apart.deliver(samples, from: .unit)
    #expect(apart.blocks.count == 1)
    let together = playing(.aggregated)
    #expect(together.deliver(samples, from: .unit) == nil)
    #expect(together.blocks.isEmpty)
    together.pull()
    #expect(together.blocks.count == 1 && together.played.count == 1)
    // A device that stops requesting output does not delay its input.
    for _ in 0..<5 { together.deliver(samples, from: .unit) }
    #expect(together.blocks.count == 6)
  }
}
