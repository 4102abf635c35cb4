import JSEP
import Lab
import Media
import SDP
import Stats
import Testing
import Wire

@testable import Peer

/// Muting, volume and track events in calls between two stacks.
struct TrackCallTests {
  private static let loud = MediaSource.tone(hertz: 440, pauseSeconds: 0)

  /// Makes a call in which the first peer sends audio and video, with all notices.
  static func call(
    seed: UInt64, notices: [PeerNotice]? = PeerNotice.all, videoFrames: MediaSource? = nil
  ) -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.notices = notices
    let call = VirtualCall(seed: seed, configurations: [configuration, configuration])
    call.keepsMedia = true
    call.addMedia(audio: loud, videoFrames: videoFrames, from: [0])
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    return call
  }

  private func changes(_ call: VirtualCall, _ peer: Int) -> [TrackChange] {
    call.events[peer].compactMap {
      if case .trackChanged(let change) = $0.event { change } else { nil }
    }
  }

  private func later(
    _ call: VirtualCall, _ peer: Int, _ kind: MediaKind, isInbound: Bool,
    for interval: Interval = .seconds(1)
  ) -> ArraySlice<FrameRecord> {
    let before = call.frames(of: peer, kind: kind, isInbound: isInbound).count
    call.run(for: interval)
    return call.frames(of: peer, kind: kind, isInbound: isInbound)[before...]
  }

  // MARK: Sending

  @Test func aDisabledTrackSendsSilenceWhileRTPFlows() throws {
    let call = Self.call(seed: 60)
    let muting = PeerCall.setEnabled(transceiver: 1, isInbound: false, isEnabled: false)
    #expect(call.call(0, muting).error == nil)
    let sent = later(call, 0, .audio, isInbound: false)
    #expect((49...51).contains(sent.count))
    #expect(sent.allSatisfy { $0.audioLevel == 127 && !$0.isVoice && $0.energy == 0 })
    // The level is sent in the header extension, and the decoded audio is silent.
    let received = later(call, 1, .audio, isInbound: true)
    #expect(received.count >= 49)
    #expect(received.allSatisfy { $0.audioLevel == 127 || $0.outcome != "decoded" })
    #expect(received.dropFirst(5).allSatisfy { $0.peak < 8 })
    // A call that changes nothing causes no report.
    call.call(0, muting)
    #expect(changes(call, 0).map(\.kind) == [.disabled])
    guard case .trackState(let state) = call.call(0, .trackState(transceiver: 1, isInbound: false))
    else { return #expect(Bool(false), "no state") }
    #expect(state == TrackState(isEnabled: false))
    call.call(0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: true))
    #expect(later(call, 0, .audio, isInbound: false).allSatisfy { ($0.audioLevel ?? 127) < 30 })
    #expect(changes(call, 0).map(\.kind) == [.disabled, .enabled])
    let times = call.frames(of: 0, kind: .audio, isInbound: false).map(\.rtpTime)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 960 })
  }

  /// Blocks are 20 ms long, but the application may deliver audio in other pieces.
  ///
  /// Audio captured while the track was disabled must not become part of a later block.
  @Test func audioFromTheMutedTimeIsNotSentLater() throws {
    let call = VirtualCall(seed: 61)
    call.addMedia(audio: .application, from: [0])
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    let samples = [Int16](repeating: 9_000, count: 2_000)
    func speak(_ count: Int) {
      let block = AudioBlock(samples: Array(samples.prefix(count)), channels: 1)
      call.step(0, .captured(transceiver: 1, .audio(block)))
    }
    func sent() -> [UInt16] { call.frames(of: 0, kind: .audio, isInbound: false).map(\.peak) }
    speak(960 + 480)
    call.call(0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: false))
    speak(480 + 960 + 480)
    call.call(0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: true))
    speak(480)
    // The third block's first half was captured while the track was disabled.
    #expect(sent().prefix(3) == [9_000, 0, 0])
    #expect(sent().count == 4 && sent()[3] == 9_000)
    let record = try #require(call.frames(of: 0, kind: .audio, isInbound: false).last)
    #expect(record.energy == 480 * 9_000 * 9_000)
  }

  @Test func aDisabledVideoTrackSendsBlackVideoFrames() throws {
    let call = Self.call(
      seed: 62, videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 15))
    let colours = try #require(videoFrame(later(call, 1, .video, isInbound: true).last))
    #expect(Set(colours.samples.prefix(64 * 48)).count > 8)
    call.call(0, .setEnabled(transceiver: 2, isInbound: false, isEnabled: false))
    let shown = later(call, 1, .video, isInbound: true)
    #expect(shown.count >= 13)
    let black = try #require(videoFrame(shown.last))
    #expect(black.width == 64 && black.samples.prefix(64 * 48).allSatisfy { $0 < 24 })
    #expect(black.samples.dropFirst(64 * 48).allSatisfy { (124...132).contains($0) })
    call.call(0, .setEnabled(transceiver: 2, isInbound: false, isEnabled: true))
    let again = try #require(videoFrame(later(call, 1, .video, isInbound: true).last))
    #expect(again.samples.prefix(64 * 48).contains { $0 > 100 })
  }

  private func videoFrame(_ frame: FrameRecord?) -> I420Buffer? {
    if case .videoFrame(let videoFrame) = frame?.decoded { videoFrame } else { nil }
  }

  @Test func aTrackMayBeginDisabled() {
    let call = VirtualCall(seed: 63)
    call.call(
      0, .addTrack(kind: .audio, streamIDs: ["s"], source: Self.loud, isEnabled: false))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    let sent = call.frames(of: 0, kind: .audio, isInbound: false)
    #expect(sent.count > 30 && sent.allSatisfy { $0.audioLevel == 127 })
    // Replacing the source creates a new track, which starts enabled.
    call.call(0, .replaceSource(transceiver: 1, .tone(hertz: 880, pauseSeconds: 0)))
    #expect(later(call, 0, .audio, isInbound: false).allSatisfy { $0.audioLevel != 127 })
    call.call(0, .replaceSource(transceiver: 1, Self.loud, isEnabled: false))
    #expect(later(call, 0, .audio, isInbound: false).allSatisfy { $0.audioLevel == 127 })
  }

  @Test func missingTracksCannotBeMuted() {
    let call = Self.call(seed: 64)
    func error(_ request: PeerCall) -> String? { call.call(1, request).error?.name }
    func muting(_ transceiver: UInt32) -> PeerCall {
      .setEnabled(transceiver: transceiver, isInbound: false, isEnabled: false)
    }
    #expect(error(muting(9)) == "InvalidAccessError")
    // The second peer only receives.
    #expect(error(muting(1)) == "InvalidStateError")
    #expect(error(.trackState(transceiver: 1, isInbound: false)) == "InvalidStateError")
    #expect(error(.setVolume(transceiver: 1, volume: .nan)) == "RangeError")
    #expect(error(.stopTransceiver(1)) == nil)
    #expect(error(.setVolume(transceiver: 1, volume: 1)) == "InvalidStateError")
  }

  // MARK: Receiving

  @Test func aVolumeScalesBeforeLevelDigestAndStatistics() throws {
    let call = Self.call(seed: 65)
    func energy() throws -> Double {
      let frames = later(call, 1, .audio, isInbound: true, for: .milliseconds(500))
      return try #require(frames.last.map { Double($0.energy) })
    }
    let plain = try energy()
    #expect(call.call(1, .setVolume(transceiver: 1, volume: 0.5)).error == nil)
    #expect(abs(try energy() / plain - 0.25) < 0.02)
    // An out-of-range volume is clamped, and samples that become too loud are clipped.
    call.call(1, .setVolume(transceiver: 1, volume: 400))
    #expect(volume(call) == 10)
    let loud = later(call, 1, .audio, isInbound: true, for: .milliseconds(200))
    #expect(loud.last?.peak == 32_768 || loud.last?.peak == 32_767)
    #expect(try energy() < plain * 100)
    call.call(1, .setVolume(transceiver: 1, volume: -3))
    #expect(volume(call) == 0)
    #expect(try energy() == 0)
    // The volume is kept while the track is disabled, and applies again afterwards.
    call.call(1, .setVolume(transceiver: 1, volume: 0.5))
    call.call(1, .setEnabled(transceiver: 1, isInbound: true, isEnabled: false))
    #expect(try energy() == 0)
    call.call(1, .setVolume(transceiver: 1, volume: 2))
    #expect(try energy() == 0)
    #expect(volume(call) == 2)
    call.call(1, .setEnabled(transceiver: 1, isInbound: true, isEnabled: true))
    #expect(abs(try energy() / plain - 4) < 0.2)
  }

  private func volume(_ call: VirtualCall) -> Double? {
    guard case .trackState(let state) = call.call(1, .trackState(transceiver: 1, isInbound: true))
    else { return nil }
    return state.volume
  }

  @Test func aDisabledReceivedTrackIsSilentButStillCounted() throws {
    let call = Self.call(
      seed: 66, videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 15))
    for transceiver: UInt32 in 1...2 {
      call.call(1, .setEnabled(transceiver: transceiver, isInbound: true, isEnabled: false))
    }
    let received = later(call, 1, .audio, isInbound: true)
    #expect(received.count >= 49)
    #expect(received.allSatisfy { $0.energy == 0 && $0.audioLevel != 127 })
    guard case .audio(let block) = received.last?.decoded else {
      return #expect(Bool(false), "no audio")
    }
    #expect(block.samples.count == 960 && block.samples.allSatisfy { $0 == 0 })
    let shown = later(call, 1, .video, isInbound: true)
    #expect(shown.count >= 13)
    #expect(shown.allSatisfy { videoFrame($0)?.samples.prefix(64 * 48).max() == 16 })
    guard case .stats(let report) = call.call(1, .getStats()) else { return }
    let inbound = try #require(
      report.objects.first { $0.type == "inbound-rtp" && $0["kind"] == .text("audio") })
    #expect(inbound["audioLevel"] == .number(0))
    #expect(changes(call, 1).filter { $0.kind == .disabled }.map(\.transceiver) == [1, 2])
  }

  // MARK: Events

  @Test func receivedTracksAreMutedUnmutedAndEndWithReasons() {
    let call = Self.call(seed: 67)
    func trackEvents() -> [String] {
      changes(call, 1).filter(\.isInbound).map { "\($0.kind) \($0.reason?.rawValue ?? "")" }
    }
    #expect(trackEvents() == ["unmute media"])
    call.call(0, .removeTrack(transceiver: 1))
    #expect(call.negotiate() == nil)
    call.run(for: .milliseconds(200))
    #expect(trackEvents() == ["unmute media", "mute removed"])
    call.call(0, .addTrack(kind: .audio, streamIDs: ["s"], source: Self.loud))
    #expect(call.negotiate() == nil)
    call.run(for: .milliseconds(500))
    call.call(0, .close)
    call.run(for: .milliseconds(500))
    call.call(1, .close)
    // The new track gets another transceiver, because the first transceiver has already sent.
    let transceivers = changes(call, 1).filter(\.isInbound).map(\.transceiver)
    let ends = ["unmute media", "mute goodbye", "ended closed", "ended closed"]
    #expect(trackEvents().dropFirst(2) == ends[...])
    #expect(Set(transceivers.suffix(2)) == [1, 2])
  }

  @Test func aStoppedTransceiverEndsItsTrack() {
    let call = Self.call(seed: 68)
    call.call(0, .stopTransceiver(1))
    #expect(call.negotiate() == nil)
    let end = TrackChange(transceiver: 1, isInbound: true, kind: .ended, reason: .stopped)
    #expect(changes(call, 1).last == end)
  }

  private func ends(_ call: VirtualCall, _ peer: Int) -> [ConnectionEnd] {
    call.events[peer].compactMap {
      if case .connectionEnded(let end) = $0.event { end } else { nil }
    }
  }

  @Test func closeReasonsNameTheEndThatClosed() {
    let call = Self.call(seed: 69)
    call.call(0, .close)
    call.run(for: .milliseconds(300))
    #expect(ends(call, 0) == [.application])
    #expect(ends(call, 1) == [.peer])
    call.call(1, .close)
    call.call(1, .close)
    #expect(ends(call, 1) == [.peer, .application])
  }

  /// Bundling closes the transports that sections leave, but not the connection.
  @Test(arguments: [true, nil])
  func aTransportThatBundlingLeavesEndsNoConnection(ignoresUnusedTransports: Bool?) {
    var configuration = PeerConfiguration()
    configuration.notices = PeerNotice.all
    configuration.ignoresUnusedTransports = ignoresUnusedTransports
    let call = VirtualCall(seed: 71, configurations: [configuration, configuration])
    call.addMedia(
      audio: Self.loud, videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(call.state("dtls 2", of: 0) == "closed")
    #expect(call.state("connection", of: 0) == "connected")
    // Older takes replay with the end that they recorded.
    #expect(ends(call, 0) == (ignoresUnusedTransports == true ? [] : [.peer]))
    call.call(1, .close)
    call.run(for: .milliseconds(300))
    #expect(ends(call, 0) == [.peer])
  }

  /// A genesis without these notices, as in older takes, reports nothing, so those takes replay
  /// identically.
  @Test func nothingIsReportedUnlessGenesisRequestsIt() {
    for notices in [nil, [PeerNotice(rawValue: "of-later")]] {
      let call = Self.call(seed: 70, notices: notices)
      call.step(0, .interfaces([]))
      call.call(0, .close)
      call.run(for: .milliseconds(300))
      call.call(1, .close)
      let trackEvents = (call.events[0] + call.events[1]).filter {
        switch $0.event {
        case .trackChanged, .candidatesRemoved, .gatheringError, .selectedPair, .connectionEnded:
          true
        default: false
        }
      }
      #expect(trackEvents.isEmpty)
    }
  }
}
