import FaultyCalls
import Foundation
import JSEP
import Lab
import Media
import Peer
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Tests rules about what participants hear and see, with a call in which each rule fires, and with
/// a similar call in which each effect is intended.
struct PerceptionRuleTests {
  private static let ids = Set(FindingRule.perceptionRules.map(\.id))

  private func setup(_ chance: Chance) -> CallSetup {
    var setup = CallSetup(chance)
    setup.offerer = 0
    for link in 0..<2 { setup.links[link] = LinkSettings() }
    return setup
  }

  private func call(
    _ folder: TakeFolder, _ name: String, seconds: Int,
    change: (inout CallSetup) -> Void = { _ in }, arrange: (DrivenCall) -> Void
  ) throws -> TakeFindings {
    let chance = Chance(5, "rules")
    var setup = setup(chance)
    change(&setup)
    let path = folder.file("\(name).take")
    let driven = try DrivenCall(path: path, seed: 5, setup: setup, chance: chance)
    arrange(driven)
    driven.begin()
    driven.run(until: seconds * 1_000)
    try driven.finish()
    return try TakeFindings(path: path)
  }

  private func expect(
    _ found: TakeFindings, _ id: String, peer: Int64, _ seconds: ClosedRange<Double>,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let all = found.detections.filter { $0.rule == id }
    let hits = all.filter {
      $0.peer == peer && abs(Double($0.fromNanoseconds) / 1e9 - seconds.lowerBound) <= 0.8
        && abs(Double($0.toNanoseconds) / 1e9 - seconds.upperBound) <= 1.6
    }
    #expect(!hits.isEmpty, "\(id) at \(seconds): \(all)", sourceLocation: sourceLocation)
  }

  @Test func insertedFaultsAreFound() throws {
    let folder = try TakeFolder()
    let found = try call(folder, "bad", seconds: 27) { driven in
      func camera(_ state: Camera.State, _ from: Int, _ to: Int) {
        driven.at(from) { $0.cameras[0]?.state = state }
        driven.at(to) { $0.cameras[0]?.state = .good }
      }
      camera(.stopped, 4_000, 7_000)
      camera(.stuck, 8_500, 13_000)
      camera(.black, 14_500, 17_500)
      driven.microphones[1]?.state = .silent
      driven.at(4_000) { $0.microphones[0]?.state = .clipped }
      driven.at(14_000) { $0.microphones[0]?.state = .good }
      driven.at(19_000) { $0.limit(.video, of: 0, to: 60_000) }
      driven.at(24_500) { $0.prefer("VP9", of: 0) }
    }
    expect(found, "camera-stopped", peer: 1, 4...7)
    expect(found, "camera-repeats", peer: 1, 8.5...13)
    expect(found, "camera-black", peer: 1, 14.5...17.5)
    expect(found, "microphone-without-signal", peer: 2, 0...27)
    expect(found, "encoder-capped", peer: 1, 19...27)
    #expect(found.detections.contains { $0.rule == "clipped-microphone" && $0.peer == 1 })
    #expect(found.detections.contains { $0.rule == "codec-changed" && $0.direction == .inbound })
    // The receiver's detection is part of the same finding.
    #expect(found.findings.count { $0.id == "camera-black" } == 1, "\(found.text())")
  }

  @Test func intendedInputIsNotAFault() throws {
    let folder = try TakeFolder()
    let found = try call(folder, "meant", seconds: 24) { driven in
      // A camera that the user switches off, or removes.
      driven.at(4_000) { $0.replace(.video, of: 1, by: nil) }
      driven.at(8_000) { $0.replace(.video, of: 1, by: .application) }
      driven.at(12_000) { $0.setEnabled(.video, of: 1, false) }
      driven.at(15_000) { $0.setEnabled(.video, of: 1, true) }
      // An unchanging screen, with frames repeated or not.
      driven.at(0) { $0.hint(.text, of: 0) }
      driven.at(4_000) { $0.cameras[0]?.state = .stuck }
      driven.at(9_000) { $0.cameras[0]?.state = .stopped }
      driven.at(13_000) { $0.cameras[0]?.state = .good }
      // A microphone that is muted, and one that is loud.
      driven.microphones[1]?.state = .silent
      driven.at(0) { $0.setEnabled(.audio, of: 1, false) }
      driven.microphones[0] = Microphone(driven.chance, gain: 25)
      driven.at(2_000) { $0.microphones[0]?.state = .clipped }
      // A sufficient limit.
      driven.at(16_000) { $0.limit(.video, of: 0, to: 1_500_000) }
    }
    let wrong = found.detections.filter {
      Self.ids.contains($0.rule)
        && ($0.severity ?? FindingRule.named($0.rule)?.severity ?? .high) > .low
    }
    #expect(wrong.isEmpty, "\(wrong)")
    let named: Set = [
      "camera-stopped", "camera-black", "microphone-without-signal", "clipped-microphone",
      "encoder-capped", "codec-changed", "simulcast-layer-ended", "audio-video-apart",
      "key-frame-requests-unanswered",
    ]
    #expect(Set(found.detections.map(\.rule)).isDisjoint(with: named), "\(found.text())")
  }

  @Test func aCameraIsBlackWhileTheMicrophoneIsMuted() throws {
    let folder = try TakeFolder()
    let found = try call(folder, "muted", seconds: 10) { driven in
      driven.at(3_500) { $0.setEnabled(.audio, of: 0, false) }
      driven.at(4_000) { $0.cameras[0]?.state = .black }
      driven.at(7_000) { $0.cameras[0]?.state = .good }
      driven.at(8_000) { $0.setEnabled(.audio, of: 0, true) }
    }
    expect(found, "camera-black", peer: 1, 4...7)
    expect(found, "camera-black", peer: 2, 4...7)
  }

  @Test(arguments: [
    (FaultKind.audioVideoApart, "audio-video-apart"), (.layerEnds, "simulcast-layer-ended"),
    (.requestsUnanswered, "key-frame-requests-unanswered"), (.bandwidthLine, "encoder-capped"),
  ])
  func generatedFaultsAreFound(kind: FaultKind, id: String) throws {
    let folder = try TakeFolder()
    let path = folder.file("fault.take")
    var isTouched = false
    // If the fault had too little effect on the call, the next seed is tried.
    for seed: UInt64 in 3..<9 where !isTouched {
      try? FileManager.default.removeItem(atPath: path)
      let plan = FaultPlan(
        kind, seed: seed, severity: kind == .requestsUnanswered ? 1_000 : 400)
      isTouched = try FaultyCalls.FaultyCall.make(plan, path: path).isTouched
    }
    #expect(isTouched)
    let found = try TakeFindings(path: path)
    #expect(found.findings.first?.id == id, "\(found.text())")
  }

  @Test func layersAllSentAndRequestsAnsweredAreNoFault() throws {
    let folder = try TakeFolder()
    let takes = VirtualCall.accepting("q;h;f")
    let found = try call(folder, "layers", seconds: 9) { (setup: inout CallSetup) in
      setup.cameras = [true, false]
      setup.encodings = [
        RTPEncoding(rid: "q", scaleResolutionDownBy: 4),
        RTPEncoding(rid: "h", scaleResolutionDownBy: 2), RTPEncoding(rid: "f"),
      ]
      setup.edit = { place, sdp in place == 1 ? takes(sdp) : sdp }
    } arrange: { driven in
      // A gap in the video, and a keyframe request that is answered.
      driven.at(5_000) { $0.call.network.links[0].lossPerMille = 1_000 }
      driven.at(5_600) { $0.call.network.links[0].lossPerMille = 0 }
    }
    let ids = Set(found.detections.map(\.rule))
    #expect(
      ids.isDisjoint(with: ["simulcast-layer-ended", "key-frame-requests-unanswered"]),
      "\(found.text())")
  }
}
