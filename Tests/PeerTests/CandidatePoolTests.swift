import ICE
import JSEP
import Lab
import Media
import SDP
import Testing
import Wire

@testable import Peer

/// Tests candidates that are gathered before a description needs them (W3C iceCandidatePoolSize).
struct CandidatePoolTests {
  private func call(pool: UInt8?) -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.iceServers = [ICEServerConfiguration(urls: ["stun:198.51.100.1:3478"])]
    configuration.iceCandidatePoolSize = pool
    return VirtualCall(seed: 9, configurations: [configuration])
  }

  private func candidates(_ call: VirtualCall) -> [String] {
    call.events[0].compactMap { entry in
      if case .localCandidate(let candidate?) = entry.event { return candidate.candidate }
      return nil
    }
  }

  @Test func aPoolGathersEarlyAndReportsWithTheDescription() {
    let pooled = call(pool: 1)
    var asked = 0
    pooled.onDatagram = { peer, datagram in
      if peer == 0, datagram.remote.port == 3478 { asked += 1 }
    }
    pooled.run(for: .seconds(1))
    #expect(asked > 0)
    #expect(candidates(pooled).isEmpty && pooled.state("ice-gathering", of: 0) == nil)
    pooled.call(
      0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 440, pauseSeconds: 0)))
    #expect(pooled.call(0, .setLocalDescription(nil)).error == nil)
    #expect(pooled.state("ice-gathering", of: 0) == "gathering")
    // A call without a pool has as many candidates; the pool's are reported all at once, with the
    // description's credentials.
    let plain = call(pool: nil)
    plain.run(for: .seconds(1))
    plain.call(
      0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 440, pauseSeconds: 0)))
    #expect(plain.call(0, .setLocalDescription(nil)).error == nil)
    #expect(!candidates(pooled).isEmpty && candidates(pooled).count == candidates(plain).count)
    guard case .description(let description) = pooled.call(0, .localDescription) else {
      Issue.record("there is no description")
      return
    }
    let fragment = description.sdp.split(separator: "\r\n").first { $0.hasPrefix("a=ice-ufrag:") }
    let name = fragment.map { String($0.dropFirst(12)) } ?? "?"
    #expect(candidates(pooled).allSatisfy { $0.contains("ufrag \(name)") })
    #expect(candidates(pooled).allSatisfy { description.sdp.contains($0) })
  }

  /// If a server never answers, a description does not wait again after the pool has waited for it.
  @Test func aPoolIsCompleteAfterWaitingForItsServers() {
    let pooled = call(pool: 1)
    pooled.run(for: .seconds(60))
    pooled.call(
      0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 440, pauseSeconds: 0)))
    #expect(pooled.call(0, .setLocalDescription(nil)).error == nil)
    #expect(pooled.state("ice-gathering", of: 0) == "complete")
  }

  /// A silent peer counts as disconnected after the configured time.
  @Test(arguments: [(1_500 as UInt32?, 2.5), (nil, 8.0)])
  func theReceivingTimeoutDeterminesSilence(timeout: UInt32?, seconds: Double) {
    var configuration = PeerConfiguration()
    configuration.iceReceivingTimeoutMilliseconds = timeout
    let call = VirtualCall(seed: 11, configurations: [configuration, configuration])
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    #expect(call.state("connection", of: 0) == "connected")
    call.network.passes = { _, _ in false }
    call.run(for: Interval(nanoseconds: Int64((seconds - 1.5) * 1e9)))
    #expect(call.state("connection", of: 0) == "connected")
    call.run(for: .seconds(2))
    #expect(call.state("connection", of: 0) == "disconnected")
  }

  @Test func aCallWithPoolsConnects() {
    var configuration = PeerConfiguration()
    configuration.iceCandidatePoolSize = 2
    let call = VirtualCall(seed: 10, configurations: [configuration, configuration])
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    call.run(for: .seconds(1))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "connected") }
    #expect(call.videoFramesReceived.allSatisfy { $0 > 3 })
  }
}
