import Lab
import Media
import Peer
import RTP
import Testing
import Wire

struct SpeakerTests {
  /// Makes two peers; the first sends a tone, and the second sends back what it receives.
  private func echoedCall() throws -> VirtualCall {
    let call = VirtualCall(seed: 3, links: [LinkSettings(), LinkSettings()])
    call.call(
      0,
      .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 0)))
    call.call(1, .addTrack(kind: .audio, streamIDs: ["s"], source: .echo))
    try #require(call.negotiate() == nil)
    return call
  }

  private func sources(_ call: VirtualCall, _ peer: Int) throws -> ReceivedSources {
    guard case .sources(let sources) = call.call(peer, .sources(transceiver: 1)) else {
      Issue.record("there are no sources")
      return ReceivedSources()
    }
    return sources
  }

  private func voices(_ call: VirtualCall, of peer: Int, _ phase: String) -> [SpeakingTrack] {
    call.events[peer].compactMap { entry in
      guard case .speech(let speech) = entry.event, speech.phase == phase else { return nil }
      return speech.track
    }
  }

  @Test func aMixedVoiceIsReportedByItsSourceAndLevel() throws {
    let call = try echoedCall()
    call.run(for: .seconds(3))
    let local = try #require(call.frames(of: 0, kind: .audio, isInbound: false).last)
    let receivedFrame = try #require(
      call.frames(of: 0, kind: .audio, isInbound: true).last { $0.outcome == "decoded" })
    #expect(receivedFrame.contributors.map(\.source) == [local.ssrc])
    #expect(receivedFrame.contributors.first?.level == local.audioLevel)
    // The reported speaker is the contributing voice, not the mix.
    let voice = SpeakingTrack(transceiver: 1, isInbound: true, contributor: local.ssrc)
    #expect(voices(call, of: 0, "began").contains(voice))
    #expect(
      !voices(call, of: 0, "began").contains(SpeakingTrack(transceiver: 1, isInbound: true)))
    let reported = try sources(call, 0)
    #expect(reported.contributing.map(\.source) == [local.ssrc])
    let level = try #require(reported.contributing.first?.audioLevel)
    #expect((0.15...0.2).contains(level))
    #expect(reported.synchronization.map(\.source) == [receivedFrame.ssrc])
    #expect(reported.synchronization.first?.rtpTimestamp == receivedFrame.rtpTime)
    // The second peer's audio is unmixed.
    #expect(try sources(call, 1).contributing.isEmpty)
  }

  @Test func sourcesAreForgottenAfterTenSeconds() throws {
    let call = try echoedCall()
    call.run(for: .seconds(2))
    call.call(0, .replaceSource(transceiver: 1, nil))
    call.run(for: .seconds(8))
    #expect(try sources(call, 1).synchronization.count == 1)
    call.run(for: .seconds(4))
    #expect(try sources(call, 1) == ReceivedSources())
  }

  @Test func sourcesOfAMissingTrackAreRefused() throws {
    let call = try echoedCall()
    #expect(call.call(0, .sources(transceiver: 9)).error?.name == "InvalidAccessError")
  }

  @Test func theLoudestAreReportedAtTheRequestedInterval() throws {
    let call = try echoedCall()
    call.run(for: .seconds(2))
    let begin = call.now
    call.call(1, .observeLoudest(LoudestSettings(count: 5, intervalMilliseconds: 500)))
    call.run(for: .seconds(3))
    call.call(0, .replaceSource(transceiver: 1, nil))
    call.run(for: .seconds(3))
    let reported = call.events[1].compactMap { entry -> (Instant, [SpeakerVolume])? in
      guard case .loudestSpeakers(let volumes) = entry.event else { return nil }
      return (entry.at, volumes)
    }
    let loud = reported.filter { !$0.1.isEmpty }
    #expect((6...9).contains(loud.count))
    #expect(loud.first.map { $0.0 - begin <= .milliseconds(520) } == true)
    for (_, volumes) in loud.dropFirst().prefix(5) {
      #expect(volumes.map(\.track.isInbound).sorted { !$0 && $1 } == [false, true])
      #expect(volumes.allSatisfy { (-17 ... -13).contains($0.decibels) })
    }
    // Silence is reported once, although no more packets arrive that could report it.
    #expect(reported.filter { $0.1.isEmpty }.count == 1)
    #expect(reported.last?.1.isEmpty == true)
    call.call(1, .observeLoudest(nil))
    let count = reported.count
    call.call(0, .replaceSource(transceiver: 1, .tone(hertz: 440, pauseSeconds: 0)))
    call.run(for: .seconds(2))
    let after = call.events[1].filter {
      if case .loudestSpeakers = $0.event { true } else { false }
    }
    #expect(after.count == count)
  }

  @Test func aSpeakerGetsASlotAndLosesItWithTheSlots() throws {
    let call = try echoedCall()
    call.call(1, .limitAudioSlots(2))
    call.run(for: .seconds(2))
    let track = SpeakingTrack(transceiver: 1, isInbound: true)
    func changes() -> [Bool] {
      call.events[1].compactMap { entry in
        guard case .audioSlot(track, let isHeld) = entry.event else { return nil }
        return isHeld
      }
    }
    #expect(changes() == [true])
    call.call(1, .limitAudioSlots(nil))
    #expect(changes() == [true, false])
    // Local audio needs no slot.
    let local = call.events[1].filter {
      if case .audioSlot(let other, _) = $0.event { !other.isInbound } else { false }
    }
    #expect(local.isEmpty)
  }

  @Test func anExemptSpeakerNeedsNoSlot() throws {
    let call = try echoedCall()
    call.call(1, .limitAudioSlots(1))
    call.run(for: .seconds(1))
    func changes() -> [Bool] {
      call.events[1].compactMap { entry in
        guard case .audioSlot(_, let isHeld) = entry.event else { return nil }
        return isHeld
      }
    }
    #expect(changes() == [true])
    call.call(1, .exemptFromAudioSlots(transceiver: 1, true))
    call.run(for: .seconds(1))
    #expect(changes() == [true, false])
    call.call(1, .exemptFromAudioSlots(transceiver: 1, false))
    call.run(for: .seconds(1))
    #expect(changes() == [true, false, true])
  }

  @Test func speechEndsWithTheConnection() throws {
    let call = try echoedCall()
    call.run(for: .seconds(2))
    call.call(1, .close)
    #expect(voices(call, of: 1, "ended").count == voices(call, of: 1, "began").count)
    #expect(Set(voices(call, of: 1, "ended").map(\.isInbound)) == [false, true])
  }
}
