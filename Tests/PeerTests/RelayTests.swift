import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Testing
import Wire

/// Calls through a relay: peers 0 and 3 are the ends, peer 1 is the leg that 0 sees, and peer 2 is
/// the leg that 3 sees.
struct RelayTests {
  private static let leg: PeerConfiguration = {
    var leg = PeerConfiguration()
    leg.relays = true
    return leg
  }()

  private static func call(
    seed: UInt64, ends: PeerConfiguration = PeerConfiguration(), link: LinkSettings = LinkSettings()
  ) -> VirtualCall {
    let call = VirtualCall(
      seed: seed, links: [link, LinkSettings(), LinkSettings(), link],
      configurations: [ends, leg, leg, ends])
    call.otherLegs = [1: 2, 2: 1]
    return call
  }

  private static func negotiate(_ call: VirtualCall, from offerer: Int = 0) -> PeerError? {
    offerer == 0
      ? call.negotiate(from: 0, over: (1, 2), to: 3) : call.negotiate(from: 3, over: (2, 1), to: 0)
  }

  private static func description(_ call: VirtualCall, _ peer: Int) throws -> SDPDocument {
    guard case .description(let description) = call.call(peer, .localDescription) else {
      return try #require(nil)
    }
    return try SDPDocument(parsing: description.sdp)
  }

  /// Returns a description without the lines that start with `beginning`.
  private static func without(_ beginning: String, _ sdp: String) -> String {
    sdp.split(separator: "\r\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix(beginning) }.joined(separator: "\r\n")
  }

  @Test func mediaAndDataCrossBothLegs() throws {
    let call = Self.call(seed: 1)
    call.addMedia(
      videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10), from: [0, 3])
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    #expect(Self.negotiate(call) == nil)
    call.run(for: .seconds(2))
    for (sender, receiver) in [(0, 3), (3, 0)] {
      #expect(call.frames(of: receiver, kind: .audio, isInbound: true).count > 70)
      let sent = call.frames(of: sender, kind: .video, isInbound: false)
      let received = call.frames(of: receiver, kind: .video, isInbound: true)
      #expect(received.count > 12)
      #expect(received.map(\.bytes) == sent.prefix(received.count).map(\.bytes))
    }
    call.send(0, DataMessage(channel: 0, isBinary: false, bytes: Array("through both".utf8)))
    call.run(for: .milliseconds(200))
    #expect(
      call.messages(of: 3) == [
        DataMessage(channel: 0, isBinary: false, bytes: Array("through both".utf8))
      ])
    for peer in 0..<4 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.state("signaling", of: peer) == "stable")
    }
  }

  @Test func onlyTheTransportDiffersBetweenTheLegs() throws {
    let call = Self.call(seed: 2)
    call.addMedia(
      videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10), from: [0, 3])
    #expect(Self.negotiate(call) == nil)
    let transportAttributes: Set<String> = [
      "ice-ufrag", "ice-pwd", "fingerprint", "candidate", "end-of-candidates", "setup",
      "ice-options", "rtcp",
    ]
    func lines(_ document: SDPDocument) -> [[String]] {
      document.sections.map { section in
        section.lines.compactMap { line in
          guard case .attribute(let attribute) = line else { return nil }
          return transportAttributes.contains(attribute.name.rawValue) ? nil : line.text
        }
      }
    }
    // Leg 2 shows what 0 offered, and leg 1 shows what 3 answered.
    let (offer, shown) = (try Self.description(call, 0), try Self.description(call, 2))
    #expect(lines(offer) == lines(shown))
    #expect(offer.origin == shown.origin && offer.bundles == shown.bundles)
    let (answer, answered) = (try Self.description(call, 3), try Self.description(call, 1))
    #expect(lines(answer) == lines(answered))
    for (end, leg) in [(offer, shown), (answer, answered)] {
      #expect(end.sections[0].iceUsernameFragment != leg.sections[0].iceUsernameFragment)
      #expect(end.sections[0].fingerprints != leg.sections[0].fingerprints)
      #expect(Set(end.sections[0].candidates).isDisjoint(with: leg.sections[0].candidates))
      #expect(!leg.sections[0].candidates.isEmpty)
    }
  }

  @Test(arguments: [0, 3])
  func eitherEndMayStartTheSecondExchange(offerer: Int) {
    let call = Self.call(seed: 3)
    call.addMedia(from: [0, 3])
    #expect(Self.negotiate(call) == nil)
    call.run(for: .seconds(1))
    call.addMedia(
      audio: .tone(hertz: 300, pauseSeconds: 0),
      videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10), from: [offerer])
    #expect(Self.negotiate(call, from: offerer) == nil)
    call.run(for: .seconds(2))
    #expect(call.frames(of: 3 - offerer, kind: .video, isInbound: true).count > 12)
    // The DTLS association continues: no peer connects a second time.
    for peer in 0..<4 {
      let states = call.events[peer].compactMap { entry -> String? in
        guard case .state(let state) = entry.event, state.machine == "dtls" else { return nil }
        return state.to
      }
      #expect(states == ["connecting", "connected"])
    }
  }

  @Test(arguments: [0, 3])
  func anICERestartAffectsOnlyItsLeg(end: Int) {
    let call = Self.call(seed: 4)
    call.addMedia(from: [0, 3])
    #expect(Self.negotiate(call) == nil)
    call.run(for: .seconds(1))
    let before = call.frames(of: 3 - end, kind: .audio, isInbound: true).count
    call.call(end, .restartICE)
    #expect(Self.negotiate(call, from: end) == nil)
    call.run(for: .seconds(2))
    #expect(call.frames(of: 3 - end, kind: .audio, isInbound: true).count > before + 90)
    for peer in 0..<4 { #expect(call.state("connection", of: peer) == "connected") }
  }

  @Test func unbundledSectionsHaveSeparateTransports() {
    let call = Self.call(seed: 5)
    call.addMedia(
      videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 10), from: [0, 3])
    let error = call.negotiate(from: 0, over: (1, 2), to: 3) { Self.without("a=group:BUNDLE", $0) }
    #expect(error == nil)
    call.run(for: .seconds(2))
    for peer in [0, 3] {
      #expect(call.frames(of: peer, kind: .audio, isInbound: true).count > 70)
      #expect(call.frames(of: peer, kind: .video, isInbound: true).count > 12)
    }
    for peer in 0..<4 { #expect(call.state("dtls 2", of: peer) == "connected") }
  }

  @Test func whatARelayCannotCarryIsNamedAndRefused() throws {
    let call = Self.call(seed: 6)
    call.addMedia(from: [0])
    call.call(0, .setLocalDescription(nil))
    guard case .description(var offer) = call.call(0, .localDescription) else { return }
    let whole = offer.sdp
    offer.sdp = Self.without("a=rtcp-mux", whole)
    let error = try #require(call.call(1, .setRemoteDescription(offer)).error)
    #expect(error.message.contains("a=rtcp-mux"))
    // The same leg continues with a description that it can carry.
    offer.sdp = whole
    #expect(call.call(1, .setRemoteDescription(offer)).error == nil)
  }

  @Test func lossOnOnePathIsRepairedByTheEnds() {
    var link = LinkSettings()
    link.lossPerMille = 50
    let call = Self.call(seed: 7, link: link)
    call.addMedia(
      videoFrames: .pattern(width: 64, height: 48, framesPerSecond: 20), from: [0, 3])
    #expect(Self.negotiate(call) == nil)
    call.run(for: .seconds(4))
    for peer in [0, 3] {
      #expect(call.frames(of: peer, kind: .video, isInbound: true).count > 55)
    }
  }
}
