import FaultyCalls
import Foundation
import Lab
import Media
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Tests faults of middleboxes, servers, signaling and devices, which the first finding must name.
///
/// In similar calls without the faults, no finding may name them.
struct GeneratedFaultTests {
  private func found(
    _ kind: FaultKind, _ seeds: some Sequence<UInt64>, severity: Int? = 500,
    sight: FaultSight? = nil
  ) throws -> TakeFindings {
    let folder = try TakeFolder()
    let path = folder.file("\(kind.rawValue).take")
    // If the fault had too little effect on the call, the next seed is tried.
    for seed in seeds {
      try? FileManager.default.removeItem(atPath: path)
      let plan = FaultPlan(kind, seed: seed, severity: severity, sight: sight)
      if try FaultyCalls.FaultyCall.make(plan, path: path).isTouched { break }
    }
    return try TakeFindings(path: path)
  }

  @Test(arguments: [
    (FaultKind.wrongRoles, "dtls-roles-clash"), (.wrongPassword, "ice-password-wrong"),
    (.wrongMapping, "payload-types-crossed"), (.addressChanges, "address-changed"),
    (.largePacketsLost, "large-packets-lost"), (.channelStaysClosed, "channel-not-open"),
    (.quietMicrophone, "microphone-quiet"), (.brokenMicrophone, "microphone-gaps"),
    (.encoderStops, "encoder-stopped"), (.switchedOff, "media-switched-off"),
  ])
  func theFirstFindingNamesIt(kind: FaultKind, id: String) throws {
    let found = try found(kind, 70..<90, sight: .both)
    #expect(found.findings.first?.id == id, "\(found.text())")
  }

  /// If a path loses packets of every protocol, the first finding is loss, and not the handshake,
  /// the data channel or the media that suffer from it.
  @Test(arguments: [FaultSight.both, .victim], [(0, UInt64(70)), (500, 71), (1_000, 72)])
  func aPathThatLosesMuchOfEverythingIsNamed(
    sight: FaultSight, plan: (severity: Int, seed: UInt64)
  ) throws {
    let found = try found(.lossyPath, [plan.seed], severity: plan.severity, sight: sight)
    #expect(
      ["loss", "loss-burst", "loss-at-peer"].contains(found.findings.first?.id), "\(found.text())")
  }

  /// Calls of the generator whose first finding once named something else, or nothing: a sender
  /// that counts its device's buffer twice after a stall, reports on an old sender report during a
  /// queue, a short queue, video that is all too large, seen by its receiver and by its sender, and
  /// many short stalls.
  @Test(arguments: [
    (FaultKind.peerProcess, UInt64(31_415_095_255), "peer-starved"),
    (.bottleneck, 77_113_232_854, "standing-queue"),
    (.bottleneck, 77_113_233_561, "standing-queue"),
    (.largePacketsLost, 86_420_259_967, "large-packets-lost"),
    (.largePacketsLost, 86_420_259_866, "large-packets-lost"),
    (.largePacketsLost, 5_711_018_547, "large-packets-lost"),
    (.slowProcessor, 86_420_260_472, "process-starved"),
  ])
  func callsThatWereNamedWronglyAreNamed(kind: FaultKind, seed: UInt64, id: String) throws {
    let found = try found(kind, [seed], severity: nil)
    #expect(found.findings.first?.id == id, "\(found.text())")
  }

  /// The path drops large packets, for a while or permanently, and only their sender is recorded.
  @Test(arguments: [UInt64(70), 71]) func aSenderAloneNamesASizeLimit(seed: UInt64) throws {
    let found = try found(.largePacketsLost, [seed], sight: .culprit)
    #expect(found.findings.first?.id == "large-packets-lost", "\(found.text())")
  }

  /// Findings in a take of the receiver alone still name a stream that cannot be decoded, and the
  /// effects of the sender's limits, processor or answer.
  @Test(arguments: [
    (FaultKind.wrongMapping, "video-undecodable"), (.tinyBitrate, "video-held-down"),
    (.maxBitrate, "video-held-down"), (.bandwidthLine, "video-held-down"),
    (.slowProcessor, "media-in-bursts"), (.inactiveDirection, "media-never-came"),
    (.mutedSpeaker, "audio-muted"), (.cameraRepeats, "picture-still"),
  ])
  func aReceiverAloneNamesIt(kind: FaultKind, id: String) throws {
    let found = try found(kind, 70..<90, sight: .victim)
    #expect(found.findings.first?.id == id, "\(found.text())")
  }

  /// Tests harmless calls of which only the receiver is recorded: a sufficient limit, a process
  /// that stops too briefly to matter, a track that is off for a moment, and an end without a
  /// camera.
  @Test(arguments: [true, false]) func aReceiverAloneSeesNothingNearlyTheSame(hasCamera: Bool)
    throws
  {
    let folder = try TakeFolder()
    let chance = Chance(11, "receiver")
    var setup = CallSetup(chance)
    (setup.recorded, setup.cameras) = (1, [hasCamera, true])
    let path = folder.file("receiver.take")
    let driven = try DrivenCall(path: path, seed: 11, setup: setup, chance: chance)
    driven.at(3_000) { $0.limit(.video, of: 0, to: 1_500_000) }
    for place in 0..<20 {
      driven.at(4_000 + place * 200) { $0.call.stall(0, for: .milliseconds(60)) }
    }
    for isOn in [false, true] {
      driven.at(isOn ? 10_500 : 9_000) { $0.setEnabled(.audio, of: 0, isOn) }
    }
    driven.begin()
    driven.run(until: 14_000)
    try driven.finish()
    let found = try TakeFindings(path: path)
    let ids = Set(FindingRule.receiverRules.map(\.id) + ["media-in-bursts"])
    #expect(Set(found.detections.map(\.rule)).isDisjoint(with: ids), "\(found.text())")
  }

  /// A relay whose password changed is lost when its lifetime ends, not at the refusal.
  @Test func aRelayThatRefusesItsRefreshEndsTheCall() throws {
    let found = try found(.relayExpires, 70..<71, sight: .culprit)
    #expect(found.findings.first?.id == "turn-refused", "\(found.text())")
    #expect(found.findings.first?.severity ?? .info >= .high)
  }

  private static let ids: Set = [
    "dtls-roles-clash", "ice-password-wrong", "payload-types-crossed", "video-undecodable",
    "address-changed", "large-packets-lost", "channel-not-open", "microphone-quiet",
    "microphone-gaps", "encoder-stopped",
  ]

  /// Tests harmless calls: a NAT that keeps its mapping, loss independent of packet size, a channel
  /// that opens, a soft voice, and an encoder that its application switches off.
  @Test func similarCallsWithoutFaultsHaveNoFinding() throws {
    let folder = try TakeFolder()
    let chance = Chance(9, "nearly")
    var setup = CallSetup(chance)
    (setup.hidden, setup.hasData) = (0, true)
    let path = folder.file("nearly.take")
    let driven = try DrivenCall(path: path, seed: 9, setup: setup, chance: chance)
    driven.microphones[1] = Microphone(chance, part: 150)
    driven.microphones[1]?.state = .quiet
    driven.at(4_000) { $0.call.network.links[1].lossPerMille = 80 }
    driven.at(9_000) { $0.call.network.links[1].lossPerMille = 0 }
    driven.at(9_500) { driven in
      for isOn in [false, true] {
        driven.at(isOn ? 12_500 : 9_600) {
          $0.replace(.video, of: 0, by: isOn ? .application : nil)
        }
      }
    }
    driven.begin()
    driven.run(until: 15_000)
    try driven.finish()
    let found = try TakeFindings(path: path)
    #expect(Set(found.detections.map(\.rule)).isDisjoint(with: Self.ids), "\(found.text())")
  }

  /// Media that resumes after a hold was not switched off.
  @Test func aHoldThatEndsIsNoFault() throws {
    let folder = try TakeFolder()
    let path = folder.file("hold.take")
    try GoodCall.make(.hold, seed: 12, path: path)
    let found = try TakeFindings(path: path)
    #expect(!found.detections.contains { $0.rule == "media-switched-off" }, "\(found.text())")
  }

  /// An ICE restart changes passwords, and may change paths.
  @Test func aRestartIsNoFault() throws {
    let folder = try TakeFolder()
    let path = folder.file("restart.take")
    try GoodCall.make(.restart, seed: 12, path: path)
    let found = try TakeFindings(path: path)
    #expect(Set(found.detections.map(\.rule)).isDisjoint(with: Self.ids), "\(found.text())")
  }

  // MARK: Similar faults

  /// A path that became longer when a key frame was sent looks like a stalled process, and a queue
  /// that is always full looks like a longer path.
  @Test(arguments: [
    (FaultKind.longDelay, UInt64(204_818_347_454_108), "path-became-longer"),
    (.longDelay, 817_265_992_793_956, "path-became-longer"),
    (.bottleneck, 817_265_992_794_057, "standing-queue"),
    (.jitter, 55_019_449_474_856_180, "high-jitter"),
  ])
  func similarFaultsAreNotConfused(kind: FaultKind, seed: UInt64, id: String) throws {
    let found = try found(kind, [seed], severity: nil)
    #expect(found.findings.first?.id == id, "\(found.text())")
  }

  /// A shared screen sends nothing between two changes, and nobody notices a retransmission that is
  /// a tenth of a second late.
  @Test(arguments: [
    (GoodKind.sharedScreen, UInt64(55_019_449_474_853_255)),
    // A few packets lost close together, in one case in a second with few blocks.
    (.twoSpeakers, 20_261_188_783_402), (.sharedScreen, 20_261_188_783_392),
    (.glare, 20_261_188_783_387), (.discontinuous, 777_003_331_012),
    (.restart, 55_019_449_474_853_259),
  ])
  func aGoodCallStaysGood(kind: GoodKind, seed: UInt64) throws {
    let folder = try TakeFolder()
    let path = folder.file("good.take")
    try GoodCall.make(kind, seed: seed, path: path)
    let found = try TakeFindings(path: path)
    #expect(found.findings.allSatisfy { $0.severity <= .low }, "\(found.text())")
  }
}
