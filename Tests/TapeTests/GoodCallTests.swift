import JSEP
import Lab
import Media
import Peer
import SCTP
import Testing
import Wire

@testable import Queries
@testable import Tape

/// In the usual calls without faults, rules report at most low-severity findings.
struct GoodCallTests {
  enum Kind: String, CaseIterable {
    case pausesOfTheSender, sharedScreen, hold, heldByTheOtherSide, recvonly, restart, glare
    case twoSpeakers, muted, microphoneTakenAway, audioOnly, dataOnly, cameraOff
    case unreachableCandidate
  }

  @Test(arguments: Kind.allCases)
  func nothingIsWrongInAGoodCall(kind: Kind) throws {
    let folder = try TakeFolder()
    let path = folder.file("good.take")
    let recorded = try RecordedVirtualCall(
      path: path, seed: 77, links: [LinkSettings(), LinkSettings()], labels: ["caller", "callee"])
    run(kind, recorded)
    _ = try recorded.finish()
    let found = try TakeFindings(path: path)
    for problem in found.detections {
      let severity = problem.severity ?? FindingRule.named(problem.rule)?.severity ?? .medium
      #expect(
        severity <= .low,
        "\(kind): \(problem.rule) of \(problem.peer), \(problem.evidence)")
    }
    switch kind {
    case .microphoneTakenAway: #expect(found.detections.map(\.rule) == ["audio-paused"])
    // A camera that is off sends nothing, so nothing is missing.
    case .cameraOff: #expect(found.detections.map(\.rule) == ["video-paused"])
    // If a screen seldom changes, `freezeCount` includes its pauses, but findings do not call them
    // freezes.
    case .sharedScreen:
      #expect(
        found.detections.allSatisfy { $0.rule == "video-paused" && $0.severity == .info },
        "\(found.detections)")
    default: #expect(found.detections.isEmpty, "\(kind): \(found.detections)")
    }
  }

  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let camera = MediaSource.pattern(width: 96, height: 64, framesPerSecond: 15)

  private func run(_ kind: Kind, _ recorded: RecordedVirtualCall) {
    let call = recorded.call
    switch kind {
    case .pausesOfTheSender:
      call.addMedia(audio: .application)
      call.negotiate()
      for turn in 0..<4 { talk(call, milliseconds: 12_000, speaker: turn % 2, pausing: 20) }
    case .unreachableCandidate:
      // With an unreachable address on another network, checks continue for a while.
      call.addMedia(audio: Self.tone)
      call.negotiate { text in
        text.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
          line.hasPrefix("a=candidate:")
            ? line + "\r\na=candidate:77 1 udp 2113937151 10.9.9.9 9 typ host" : String(line)
        }.joined(separator: "\r\n")
      }
      recorded.run(for: .seconds(12))
    case .sharedScreen:
      call.addMedia(audio: Self.tone, videoFrames: .application, from: [0])
      call.negotiate()
      show(call, frames: 20, every: 100)
      // The screen does not change for a while, and then rarely.
      recorded.run(for: .seconds(4))
      show(call, frames: 4, every: 1_500)
    case .hold:
      call.addMedia(audio: Self.tone, videoFrames: Self.camera)
      call.negotiate()
      recorded.run(for: .seconds(3))
      for direction in [TransceiverDirection.inactive, .sendrecv] {
        for transceiver: UInt32 in 1...2 {
          call.call(0, .setDirection(transceiver: transceiver, direction))
        }
        call.negotiate()
        recorded.run(for: .seconds(6))
      }
    case .heldByTheOtherSide:
      // Hold music: one side continues to send and no longer receives.
      call.addMedia(audio: Self.tone)
      call.negotiate()
      recorded.run(for: .seconds(3))
      for direction in [TransceiverDirection.sendonly, .sendrecv] {
        call.call(0, .setDirection(transceiver: 1, direction))
        call.negotiate()
        recorded.run(for: .seconds(6))
      }
    case .recvonly:
      for kind in [MediaKind.audio, .video] {
        call.call(
          0, .addTransceiver(kind: kind, direction: .recvonly, streamIDs: [], source: nil))
      }
      call.addMedia(audio: Self.tone, videoFrames: Self.camera, from: [1])
      call.negotiate()
      recorded.run(for: .seconds(6))
    case .restart:
      call.addMedia(audio: Self.tone, videoFrames: Self.camera)
      call.negotiate()
      for _ in 0..<4 {
        recorded.run(for: .seconds(2))
        call.call(0, .restartICE)
        call.negotiate()
      }
      recorded.run(for: .seconds(2))
    case .glare:
      call.addMedia(audio: Self.tone, videoFrames: Self.camera)
      call.negotiate()
      recorded.run(for: .seconds(2))
      call.call(0, .setLocalDescription(nil))
      call.call(1, .setLocalDescription(nil))
      // The polite peer rolls its offer back.
      guard case .description(let offer) = call.call(1, .localDescription) else { return }
      call.call(0, .setRemoteDescription(offer))
      call.call(0, .setLocalDescription(nil))
      guard case .description(let answer) = call.call(0, .localDescription) else { return }
      call.call(1, .setRemoteDescription(answer))
      recorded.run(for: .seconds(4))
    case .twoSpeakers:
      call.addMedia(audio: .application)
      call.negotiate()
      // With a noise gate, a listener sends digital silence.
      for turn in 0..<4 { talk(call, milliseconds: 8_000, speaker: turn % 2) }
    case .muted:
      call.addMedia(audio: Self.tone, videoFrames: Self.camera)
      call.negotiate()
      recorded.run(for: .seconds(2))
      for transceiver: UInt32 in 1...2 {
        call.call(0, .setEnabled(transceiver: transceiver, isInbound: false, isEnabled: false))
      }
      recorded.run(for: .seconds(12))
      call.call(0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: true))
      recorded.run(for: .seconds(2))
    case .microphoneTakenAway:
      call.addMedia(audio: Self.tone)
      call.negotiate()
      recorded.run(for: .seconds(3))
      call.call(0, .replaceSource(transceiver: 1, nil))
      recorded.run(for: .seconds(5))
      call.call(0, .replaceSource(transceiver: 1, Self.tone))
      recorded.run(for: .seconds(2))
    case .cameraOff:
      call.addMedia(audio: Self.tone, videoFrames: Self.camera)
      call.negotiate()
      recorded.run(for: .seconds(3))
      call.call(0, .replaceSource(transceiver: 2, nil))
      recorded.run(for: .seconds(7))
      call.call(0, .replaceSource(transceiver: 2, Self.camera))
      recorded.run(for: .seconds(2))
    case .audioOnly:
      call.addMedia(audio: Self.tone)
      call.negotiate()
      recorded.run(for: .seconds(5))
    case .dataOnly:
      call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
      call.negotiate()
      recorded.run(for: .seconds(5))
    }
  }

  /// Captures audio at both peers: loud, or digital silence.
  ///
  /// - Parameter pausing: one of this many blocks of silence is sent, as with DTX.
  private func talk(
    _ call: VirtualCall, milliseconds: Int64, speaker: Int, pausing: Int64 = 1
  ) {
    for block in 0..<(milliseconds / 20) {
      for peer in 0..<2 where peer == speaker || block % pausing == 0 {
        let amplitude: Int16 = peer == speaker ? 8000 : 0
        let samples = (0..<960).map { $0 / 48 % 2 == 0 ? amplitude : -amplitude }
        call.step(
          peer, .captured(transceiver: 1, .audio(AudioBlock(samples: samples, channels: 1))))
      }
      call.run(for: .milliseconds(20))
    }
  }

  /// Captures video frames of a screen at the first peer.
  private func show(_ call: VirtualCall, frames: Int, every milliseconds: Int64) {
    for frame in 0..<frames {
      let grey = UInt8(truncatingIfNeeded: frame * 40)
      let samples = [UInt8](repeating: grey, count: 96 * 64 * 3 / 2)
      call.step(
        0,
        .captured(
          transceiver: 2, .videoFrame(I420Buffer(width: 96, height: 64, samples: samples))))
      call.run(for: .milliseconds(milliseconds))
    }
  }
}
