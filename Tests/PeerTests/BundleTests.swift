import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Stats
import Testing
import Wire

struct BundleTests {
  /// Makes a call with audio, video frames and a data channel; its signaling edits descriptions.
  private func call(
    seed: UInt64, _ policy: BundlePolicy = .maxCompat, edit: (String) -> String = { $0 }
  ) -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.bundlePolicy = policy
    let call = VirtualCall(seed: seed, configurations: [configuration, configuration])
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    #expect(call.negotiate(edit: edit) == nil)
    return call
  }

  private func unbundled(_ sdp: String) -> String {
    sdp.split(separator: "\r\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix("a=group:BUNDLE") }.joined(separator: "\r\n")
  }

  private func stats(_ call: VirtualCall, _ peer: Int, _ type: String) -> [StatsObject] {
    guard case .stats(let report) = call.call(peer, .getStats()) else { return [] }
    return report.objects.filter { $0.type == type }
  }

  private func expectMedia(_ call: VirtualCall) {
    call.run(for: .seconds(2))
    call.send(
      0, DataMessage(channel: 0, isBinary: false, bytes: Array("over its own transport".utf8)))
    call.run(for: .milliseconds(200))
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.state("ice-gathering", of: peer) == "complete")
      #expect(call.state("establishment", of: peer) == "established")
      #expect(call.frames(of: peer, kind: .audio, isInbound: true).count > 70)
      #expect(call.frames(of: peer, kind: .video, isInbound: true).count > 12)
    }
    let messages = call.events[1].filter { entry in
      if case .message = entry.event { return true }
      return false
    }
    #expect(messages.count == 1)
  }

  @Test(arguments: [BundlePolicy.balanced, .maxCompat])
  func withoutBundleEverySectionHasATransport(policy: BundlePolicy) throws {
    let call = call(seed: 1, policy, edit: unbundled)
    expectMedia(call)
    for peer in 0..<2 {
      let transports = stats(call, peer, "transport")
      #expect(transports.count == 3 && Set(transports.map(\.id)).count == 3)
      #expect(transports.allSatisfy { $0["dtlsState"] == .text("connected") })
      #expect(Set(transports.map { $0["selectedCandidatePairId"] }).count == 3)
      // All transports show the same certificate.
      #expect(Set(transports.map { $0["localCertificateId"] }).count == 1)
      #expect(stats(call, peer, "certificate").count == 2)
      let streams = stats(call, peer, "inbound-rtp").map { $0["transportId"] }
      #expect(Set(streams).count == 2)
      let pairs = stats(call, peer, "candidate-pair")
      #expect(Set(pairs.map(\.id)).count == pairs.count && pairs.count >= 3)
      #expect(["dtls", "dtls 2", "dtls 3"].allSatisfy { call.state($0, of: peer) == "connected" })
    }
  }

  @Test(arguments: [BundlePolicy.balanced, .maxCompat, .maxBundle])
  func sectionsJoinTheFirstTransportWhenThePeerBundles(policy: BundlePolicy) {
    let call = call(seed: 2, policy)
    expectMedia(call)
    for peer in 0..<2 {
      #expect(stats(call, peer, "transport").count == 1)
      let isClosed = peer == 0 && policy != .maxBundle
      #expect(call.state("dtls 2", of: peer) == (isClosed ? "closed" : nil))
      // Nothing remains of the removed transports.
      for type in ["candidate-pair", "local-candidate"] {
        #expect(Set(stats(call, peer, type).map { $0["transportId"] }).count == 1)
      }
    }
  }

  /// Returns how long the caller takes to connect when the network loses 30 % of the packets.
  private func connectingTime(seed: UInt64, _ policy: BundlePolicy) -> Interval? {
    var configuration = PeerConfiguration()
    configuration.bundlePolicy = policy
    var link = LinkSettings()
    link.lossPerMille = 300
    let call = VirtualCall(seed: seed, links: [link, link], configurations: [configuration])
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    #expect(call.negotiate() == nil)
    for _ in 0..<300 where call.state("ice-connection", of: 0) != "connected" {
      call.run(for: .milliseconds(10))
    }
    return call.events[0].first { entry in
      guard case .state(let transition) = entry.event else { return false }
      return transition.machine == "ice-connection" && transition.to == "connected"
    }.map { $0.at - Instant.zero }
  }

  @Test(arguments: UInt64(0)..<25) func bundledTransportsTakeNoTime(seed: UInt64) {
    let one = connectingTime(seed: seed, .maxBundle)
    #expect(one != nil)
    #expect(connectingTime(seed: seed, .balanced) == one)
  }

  @Test func balancedGathersForTheFirstSectionOfEachKind() {
    let call = VirtualCall(seed: 9)
    for _ in 0..<2 {
      call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    }
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    call.call(0, .setLocalDescription(nil))
    guard case .description(let offer) = call.call(0, .localDescription) else {
      Issue.record("no offer")
      return
    }
    let sections = offer.sdp.split(separator: "m=").dropFirst()
    #expect(stats(call, 0, "transport").count == 3)
    let marked = sections.map { $0.contains("a=bundle-only") }
    #expect(marked == [false, false, true, true, false])
    #expect(marked == sections.map { !$0.contains("a=candidate") })
  }

  @Test func aCollidingOfferRemovesTheLocalOffersTransports() {
    let call = VirtualCall(seed: 10)
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    for peer in 0..<2 { call.call(peer, .setLocalDescription(nil)) }
    #expect(stats(call, 1, "transport").count == 2)
    guard case .description(let offer) = call.call(0, .localDescription) else {
      Issue.record("no offer")
      return
    }
    #expect(call.call(1, .setRemoteDescription(offer)).error == nil)
    #expect(call.state("signaling", of: 1) == "have-remote-offer")
    #expect(stats(call, 1, "transport").count == 1)
    #expect(call.call(1, .setLocalDescription(nil)).error == nil)
    guard case .description(let answer) = call.call(1, .localDescription) else {
      Issue.record("no answer")
      return
    }
    #expect(call.call(0, .setRemoteDescription(answer)).error == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(stats(call, peer, "transport").count == 1)
    }
  }

  @Test func aPeerMayBundleOnlySomeSections() {
    let call = call(seed: 3) { $0.replacing("a=group:BUNDLE 0 1 2", with: "a=group:BUNDLE 0 2") }
    expectMedia(call)
    for peer in 0..<2 { #expect(stats(call, peer, "transport").count == 2) }
  }

  @Test(arguments: [true, false]) func aLaterExchangeMayBundleSeparateSections(fromFirst: Bool) {
    let call = call(seed: 4, edit: unbundled)
    expectMedia(call)
    let (offerer, answerer) = fromFirst ? (0, 1) : (1, 0)
    #expect(call.negotiate(from: offerer, to: answerer) == nil)
    let before = (0..<2).map { call.frames(of: $0, kind: .video, isInbound: true).count }
    call.run(for: .seconds(2))
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(stats(call, peer, "transport").count == 1)
      #expect(call.frames(of: peer, kind: .video, isInbound: true).count > before[peer] + 10)
    }
    #expect(call.call(0, .createDataChannel(DataChannelInit(label: "anew"))).error == nil)
  }

  @Test func stoppingASectionClosesItsTransport() {
    let call = call(seed: 5, edit: unbundled)
    expectMedia(call)
    call.call(0, .stopTransceiver(1))
    #expect(call.negotiate(edit: unbundled) == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(stats(call, peer, "transport").count == 2)
      #expect(call.state("connection", of: peer) == "connected")
    }
    // A new section gets another transport.
    call.call(
      1, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 300, pauseSeconds: 0)))
    #expect(call.negotiate(from: 1, to: 0, edit: unbundled) == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(stats(call, peer, "transport").count == 3)
      #expect(call.state("connection", of: peer) == "connected")
    }
  }

  @Test func anICERestartRestartsEveryTransport() {
    let call = call(seed: 6, edit: unbundled)
    expectMedia(call)
    let before = stats(call, 0, "transport").map { $0["iceLocalUsernameFragment"] }
    call.call(0, .restartICE)
    #expect(call.negotiate(edit: unbundled) == nil)
    call.run(for: .seconds(2))
    let after = stats(call, 0, "transport").map { $0["iceLocalUsernameFragment"] }
    #expect(Set(before + after).count == 6)
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "connected") }
  }

  @Test func aRollbackClosesTheTransportsOfTheOffer() {
    var configuration = PeerConfiguration()
    configuration.bundlePolicy = .maxCompat
    let call = VirtualCall(seed: 7, configurations: [configuration])
    call.addMedia(videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10))
    call.call(0, .setLocalDescription(nil))
    #expect(stats(call, 0, "transport").count == 2)
    call.call(0, .setLocalDescription(SessionDescription(type: .rollback, sdp: "")))
    #expect(stats(call, 0, "transport").count == 1)
    #expect(call.negotiate(edit: unbundled) == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "connected") }
  }

  @Test func oneFailedTransportFailsTheConnection() {
    let call = call(seed: 8) { sdp in
      // The second section's candidates are unreachable.
      var sections = unbundled(sdp).split(separator: "m=", omittingEmptySubsequences: false)
      sections[2] = Substring(sections[2].replacing(" 10.0.0.", with: " 10.9.9."))
      return sections.joined(separator: "m=")
    }
    call.run(for: .seconds(60))
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "failed") }
  }
}
