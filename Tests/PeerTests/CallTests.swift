import ICE
import JSEP
import Lab
import Media
import Peer
import SDP
import Tape
import Testing
import Wire

struct CallTests {
  /// Makes a call between two peers that both send a tone and, by default, a small pattern.
  static func call(
    seed: UInt64, link: LinkSettings = LinkSettings(), seconds: Int64,
    videoFrames: MediaSource? = .pattern(width: 160, height: 120, framesPerSecond: 15)
  ) -> VirtualCall {
    let call = VirtualCall(seed: seed, links: [link, link])
    call.addMedia(videoFrames: videoFrames)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(seconds))
    return call
  }

  @Test func aCallConnectsAndCarriesMediaInBothDirections() {
    let call = CallTests.call(seed: 1, seconds: 4)
    for peer in 0..<2 {
      #expect(call.state("signaling", of: peer) == "stable")
      #expect(call.state("ice-gathering", of: peer) == "complete")
      #expect(["connected", "completed"].contains(call.state("ice-connection", of: peer)))
      #expect(call.state("dtls", of: peer) == "connected")
      #expect(call.state("connection", of: peer) == "connected")
      let audio = call.frames(of: peer, kind: .audio, isInbound: true)
      let video = call.frames(of: peer, kind: .video, isInbound: true)
      #expect(audio.count > 150)
      #expect(audio.filter { $0.outcome == "decoded" }.count > 140)
      #expect(video.count > 40)
      #expect(video.allSatisfy { $0.outcome == "decoded" && $0.width == 160 && $0.height == 120 })
    }
  }

  @Test func theConnectionIsUpWithin300MillisecondsOverA10MillisecondPath() throws {
    let call = CallTests.call(seed: 2, seconds: 1)
    let first = call.events[0].first { entry in
      guard case .state(let transition) = entry.event else { return false }
      return transition.machine == "connection" && transition.to == "connected"
    }
    let connected = try #require(first)
    #expect(connected.at < Instant.zero + .milliseconds(300))
  }

  @Test func videoRecoversFromLoss() {
    var link = LinkSettings()
    link.lossPerMille = 50
    link.jitter = .milliseconds(15)
    let call = CallTests.call(seed: 3, link: link, seconds: 6)
    for peer in 0..<2 {
      let sent = call.frames(of: 1 - peer, kind: .video, isInbound: false).count
      let shown = call.frames(of: peer, kind: .video, isInbound: true).count
      #expect(Double(shown) > 0.9 * Double(sent))
      let audio = call.frames(of: peer, kind: .audio, isInbound: true)
      #expect(audio.contains { $0.outcome != "decoded" })
      #expect(audio.count > 250)
    }
  }

  @Test func stepsDependOnlyOnTheSeed() {
    func trace(_ seed: UInt64) -> [String] {
      var lines: [String] = []
      let call = VirtualCall(seed: seed) { step in
        var line = "\(step.actor) \(step.at.nanoseconds) \(step.entropyDrawn)"
        line += " \(step.deadline?.nanoseconds ?? -1)"
        for case .datagram(let datagram) in step.peerOutputs { line += " \(datagram.bytes)" }
        lines.append(line)
      }
      call.call(
        0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 300, pauseSeconds: 0)))
      call.negotiate()
      call.run(for: .seconds(1))
      return lines
    }
    let first = trace(4)
    #expect(first.count > 100)
    #expect(first == trace(4))
    #expect(first != trace(5))
  }

  @Test func aRunningCallIsRenegotiated() {
    let call = VirtualCall(seed: 6)
    call.call(
      0, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 0)))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count > 30)
    #expect(call.frames(of: 0, kind: .audio, isInbound: true).isEmpty)

    // The answerer now adds video and offers it.
    call.call(
      1,
      .addTrack(
        kind: .video, streamIDs: ["t"],
        source: .pattern(width: 96, height: 64, framesPerSecond: 10)))
    #expect(call.negotiate(from: 1, to: 0) == nil)
    call.run(for: .seconds(2))
    #expect(call.frames(of: 0, kind: .video, isInbound: true).count > 10)

    // The offerer puts its audio on hold.
    let before = call.frames(of: 1, kind: .audio, isInbound: true).count
    call.call(0, .setDirection(transceiver: 1, .inactive))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count < before + 30)
    #expect(call.state("connection", of: 0) == "connected")
  }

  @Test func anEchoIsReceived() {
    let call = VirtualCall(seed: 7)
    call.call(
      0,
      .addTrack(
        kind: .video, streamIDs: ["s"],
        source: .pattern(width: 160, height: 120, framesPerSecond: 15)))
    call.call(0, .setLocalDescription(nil))
    guard case .description(let offer) = call.call(0, .localDescription) else {
      Issue.record("there is no offer")
      return
    }
    #expect(call.call(1, .setRemoteDescription(offer)).error == nil)
    call.call(1, .setDirection(transceiver: 1, .sendrecv))
    call.call(1, .replaceSource(transceiver: 1, .echo))
    #expect(call.call(1, .setLocalDescription(nil)).error == nil)
    guard case .description(let answer) = call.call(1, .localDescription) else {
      Issue.record("there is no answer")
      return
    }
    #expect(call.call(0, .setRemoteDescription(answer)).error == nil)
    call.run(for: .seconds(3))
    #expect(call.frames(of: 0, kind: .video, isInbound: true).count > 25)
  }

  @Test func aReplacedSourceContinuesTheMediaTime() throws {
    let call = CallTests.call(seed: 12, seconds: 2)
    call.call(
      0,
      .replaceSource(
        transceiver: 2, .pattern(width: 96, height: 64, framesPerSecond: 15)))
    call.call(0, .replaceSource(transceiver: 1, .tone(hertz: 300, pauseSeconds: 0)))
    call.run(for: .seconds(2))
    for kind in [MediaKind.audio, .video] {
      let times = call.frames(of: 0, kind: kind, isInbound: false).map(\.rtpTime)
      #expect(times.count > 50)
      #expect(times == times.sorted())
      #expect(Set(times).count == times.count)
    }
    let shown = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(try #require(shown.last).width == 96)
    let received = call.frames(of: 1, kind: .audio, isInbound: true)
    #expect(received.filter { $0.outcome == "decoded" }.count > 180)
  }

  @Test func closingReachesThePeer() {
    let call = CallTests.call(seed: 8, seconds: 1)
    call.call(0, .close)
    #expect(call.state("connection", of: 0) == "closed")
    call.run(for: .seconds(1))
    #expect(call.state("dtls", of: 1) == "closed")
    #expect(call.call(0, .createAnswer).error?.name == "InvalidStateError")
  }

  @Test func aSilentPathDisconnectsAndFails() {
    let call = CallTests.call(seed: 9, seconds: 1, videoFrames: nil)
    call.network.links[0].lossPerMille = 1000
    call.network.links[1].lossPerMille = 1000
    call.run(for: .seconds(12))
    #expect(call.state("connection", of: 0) == "disconnected")
    call.run(for: .seconds(40))
    #expect(call.state("connection", of: 0) == "failed")
  }

  @Test func iceRestartKeepsTheCall() {
    let call = CallTests.call(seed: 10, seconds: 1)
    call.call(0, .restartICE)
    #expect(call.negotiate() == nil)
    let before = call.frames(of: 1, kind: .audio, isInbound: true).count
    call.run(for: .seconds(2))
    #expect(call.state("connection", of: 0) == "connected")
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count > before + 80)
  }
}
