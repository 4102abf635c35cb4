import JSEP
import Lab
import Media
import SDP
import Secure
import Testing
import Wire

@testable import Peer

struct RunningCallTests {
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 10)

  private func description(_ reply: PeerReply) -> SessionDescription? {
    if case .description(let description) = reply { return description }
    return nil
  }

  private func transceivers(_ call: VirtualCall, _ peer: Int) -> [TransceiverInfo] {
    guard case .transceivers(let all) = call.call(peer, .transceivers) else { return [] }
    return all
  }

  private func frames(_ call: VirtualCall, _ peer: Int, _ transceiver: UInt32) -> Int {
    call.events[peer].count { entry in
      guard case .frame(let frame) = entry.event else { return false }
      return frame.isInbound && frame.transceiver == transceiver && frame.outcome == "decoded"
    }
  }

  @Test func eachOfSeveralTracksReachesItsTransceiver() {
    let call = VirtualCall(seed: 80)
    for kind in [MediaKind.audio, .video, .audio, .video] {
      call.call(
        0,
        .addTrack(
          kind: kind, streamIDs: ["s"],
          source: kind == .audio ? RunningCallTests.tone : RunningCallTests.pattern))
    }
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    for transceiver in UInt32(1)...4 {
      #expect(frames(call, 1, transceiver) > 12, "\(transceiver)")
    }
    #expect(transceivers(call, 1).map(\.mid) == ["0", "1", "2", "3"])
  }

  @Test func sectionsAreAddedStoppedAndReusedWhileMediaFlows() {
    let call = VirtualCall(seed: 81)
    call.call(0, .addTrack(kind: .audio, streamIDs: ["s"], source: RunningCallTests.tone))
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: RunningCallTests.pattern))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    call.call(0, .stopTransceiver(2))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(transceivers(call, 1).map(\.kind) == [.audio])
    // Another video track reuses the stopped section, under a new mid.
    call.call(0, .addTrack(kind: .video, streamIDs: ["t"], source: RunningCallTests.pattern))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    let offer = description(call.call(0, .localDescription))?.sdp ?? ""
    #expect(offer.components("m=") == 2)
    #expect(transceivers(call, 0).map(\.mid) == ["0", "2"])
    let video = transceivers(call, 1).last
    #expect(video?.kind == .video && video?.mid == "2")
    #expect(frames(call, 1, video?.id ?? 0) > 12)
    let audio = call.frames(of: 1, kind: .audio, isInbound: true)
    #expect(audio.dropFirst(5).allSatisfy { $0.outcome == "decoded" })
  }

  @Test func mediaFlowsFromTheProvisionalAnswerOn() {
    let call = VirtualCall(seed: 82)
    call.call(0, .addTrack(kind: .audio, streamIDs: ["s"], source: RunningCallTests.tone))
    call.call(0, .setLocalDescription(nil))
    guard let offer = description(call.call(0, .localDescription)) else { return }
    #expect(call.call(1, .setRemoteDescription(offer)).error == nil)
    let empty = SessionDescription(type: .pranswer, sdp: "")
    #expect(call.call(1, .setLocalDescription(empty)).error == nil)
    guard let early = description(call.call(1, .localDescription)) else { return }
    #expect(early.type == .pranswer)
    #expect(call.call(0, .setRemoteDescription(early)).error == nil)
    call.run(for: .seconds(1))
    #expect(call.state("signaling", of: 0) == "have-remote-pranswer")
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count > 30)
    // In the final answer, the direction is inactive, so sending stops.
    call.call(1, .setDirection(transceiver: 1, .inactive))
    #expect(call.call(1, .setLocalDescription(nil)).error == nil)
    guard let final = description(call.call(1, .localDescription)) else { return }
    #expect(final.type == .answer)
    #expect(call.call(0, .setRemoteDescription(final)).error == nil)
    call.run(for: .milliseconds(300))
    let count = call.frames(of: 0, kind: .audio, isInbound: false).count
    call.run(for: .seconds(1))
    #expect(call.frames(of: 0, kind: .audio, isInbound: false).count == count)
    #expect(call.state("signaling", of: 0) == "stable")
  }

  @Test func descriptionsAreCurrentOrPending() {
    let call = VirtualCall(seed: 83)
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: RunningCallTests.tone))
    func places(_ peer: Int) -> [String] {
      DescriptionSlot.allCases.map {
        description(call.call(peer, .readDescription($0)))?.type.rawValue ?? "-"
      }
    }
    // The columns: current local, pending local, remote, current remote, pending remote.
    #expect(places(0) == ["-", "-", "-", "-", "-"])
    call.call(0, .setLocalDescription(nil))
    #expect(places(0) == ["-", "offer", "-", "-", "-"])
    guard let offer = description(call.call(0, .localDescription)) else { return }
    call.call(1, .setRemoteDescription(offer))
    #expect(places(1) == ["-", "-", "offer", "-", "offer"])
    call.call(1, .setLocalDescription(nil))
    #expect(places(1) == ["answer", "-", "offer", "offer", "-"])
    guard let answer = description(call.call(1, .localDescription)) else { return }
    call.call(0, .setRemoteDescription(answer))
    #expect(places(0) == ["offer", "-", "answer", "answer", "-"])
    #expect(description(call.call(0, .readDescription(.remote))) == answer)
  }

  @Test func anotherPeerTakesOverACall() throws {
    let links = [LinkSettings(), LinkSettings(), LinkSettings()]
    let call = VirtualCall(seed: 84, links: links)
    for peer in 0..<3 {
      call.call(peer, .addTrack(kind: .audio, streamIDs: ["s"], source: RunningCallTests.tone))
    }
    #expect(call.negotiate(from: 0, to: 1) == nil)
    call.run(for: .seconds(2))
    let received = call.frames(of: 0, kind: .audio, isInbound: true).count
    #expect(received > 60)
    // The same session continues with another peer, which has another certificate.
    call.call(0, .restartICE)
    #expect(call.negotiate(from: 0, to: 2) == nil)
    call.run(for: .seconds(4))
    #expect(call.state("connection", of: 0) == "connected")
    #expect(call.state("dtls", of: 2) == "connected")
    #expect(call.frames(of: 2, kind: .audio, isInbound: true).count > 100)
    #expect(call.frames(of: 0, kind: .audio, isInbound: true).count > received + 100)
    let prints = call.events[0].compactMap { entry in
      if case .secured(let transport) = entry.event { return transport.remoteFingerprint }
      return String?.none
    }
    #expect(prints.count == 2 && Set(prints).count == 2)
    #expect(
      call.events[0].stateChanges(of: "dtls") == [
        "connecting", "connected", "connecting", "connected",
      ])
  }

  private static let identities: [([CertificateAlgorithm], SRTPProtection, Bool)] = [
    ([.rsa2048], .aeadAES256GCM, false), ([.ecdsaP256], .aes128CMSHA1_80, true),
    ([.ecdsaP256, .rsa2048], .aeadAES128GCM, true),
  ]

  @Test(arguments: identities)
  func theConfigurationDeterminesCertificatesProfilesAndRole(
    algorithms: [CertificateAlgorithm], profile: SRTPProtection, answersAsClient: Bool
  ) throws {
    var configuration = PeerConfiguration()
    configuration.certificates = algorithms.map {
      PeerCertificate(
        algorithm: $0, seed: [1, 2, 3], createdUnixSeconds: labEpoch / 1_000_000_000,
        lifetimeSeconds: 60)
    }
    configuration.srtpProtections = [profile]
    configuration.answersAsDTLSClient = answersAsClient
    let call = VirtualCall(seed: 85, configurations: [configuration, configuration])
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: RunningCallTests.tone))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    let secured = call.events[1].compactMap { entry in
      if case .secured(let transport) = entry.event { return transport }
      return SecuredTransport?.none
    }
    #expect(secured.map(\.profile) == [profile.rawValue])
    #expect(secured.map(\.role) == [answersAsClient ? "client" : "server"])
    let offer = try SDPDocument(
      parsing: description(call.call(0, .localDescription))?.sdp ?? "")
    let stated = offer.sections[0].fingerprints.map(\.value)
    let expected = try configuration.certificates.map {
      certificateFingerprint(try $0.bytes()).value
    }
    #expect(stated == expected)
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).count > 30)
  }

  @Test func anExpiredCertificateIsReportedWhenItIsNeeded() {
    var configuration = PeerConfiguration()
    configuration.certificates = [
      PeerCertificate(
        algorithm: .ecdsaP256, seed: [1], createdUnixSeconds: 0, lifetimeSeconds: 100)
    ]
    let call = VirtualCall(seed: 86, configurations: [configuration, configuration])
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: RunningCallTests.tone))
    let error = call.call(0, .createOffer(iceRestart: false)).error
    #expect(error?.name == "InvalidAccessError")
    #expect(error?.message.contains("expired") == true)
  }

  @Test func maxBundleOffersWorkBetweenTwoStacks() {
    var configuration = PeerConfiguration()
    configuration.bundlePolicy = .maxBundle
    let call = VirtualCall(seed: 87, configurations: [configuration, configuration])
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: RunningCallTests.tone))
    call.call(0, .addTrack(kind: .video, streamIDs: [], source: RunningCallTests.pattern))
    #expect(call.negotiate() == nil)
    let offer = description(call.call(0, .localDescription))?.sdp ?? ""
    #expect(offer.contains("a=bundle-only") && offer.contains("m=video 0 "))
    call.run(for: .seconds(2))
    #expect(call.frames(of: 1, kind: .video, isInbound: true).count > 10)
  }
}

extension [(at: Instant, event: PeerEvent)] {
  /// Returns the states that a machine entered, in order.
  func stateChanges(of machine: String) -> [String] {
    compactMap { entry in
      guard case .state(let transition) = entry.event, transition.machine == machine else {
        return nil
      }
      return transition.to
    }
  }
}

extension String {
  /// Returns how many times `part` occurs in the string.
  fileprivate func components(_ part: String) -> Int {
    ranges(of: part).count
  }
}
