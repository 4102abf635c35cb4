import ICE
import JSEP
import Lab
import Media
import Peer
import SCTP
import SDP
import Secure
import Stats
import Testing
import Wire

struct StatsMemberTests {
  private typealias Members = [String: Set<String>]

  /// The configuration that a session of this version records, with complete statistics.
  private static var configuration: PeerConfiguration {
    var configuration = PeerConfiguration()
    configuration.hasCompleteStatistics = true
    return configuration
  }

  private static let both = [configuration, configuration]

  private func collect(_ call: VirtualCall, in members: inout Members) {
    for peer in 0..<2 {
      let times = [(1, true), (2, true), (2, false)].map {
        CodecTime(transceiver: $0, isInbound: $1, nanoseconds: 1_000_000)
      }
      guard case .stats(let report) = call.call(peer, .getStats(codecTimes: times)) else {
        Issue.record("getStats returned no report")
        return
      }
      for object in report.objects {
        for member in object.members { checkSize(of: member) }
        checkAlways(object)
        var name = object.type
        if let entry = StatsMembers.all.first(where: { $0.type == object.type }), entry.kind != nil,
          case .text(let kind)? = object["kind"]
        {
          name += " \(kind)"
        }
        members[name, default: []].formUnion(object.members.map(\.name))
      }
    }
  }

  /// Expects the members that the table says are always present.
  private func checkAlways(_ object: StatsObject) {
    var kind: String?
    if case .text(let text)? = object["kind"] { kind = text }
    let entry = StatsMembers.all.first {
      $0.type == object.type && ($0.kind == nil || $0.kind == kind)
    }
    for member in entry?.members ?? [] where member.when == "always" {
      #expect(object[member.name] != nil, "\(object.type) \(kind ?? "") without \(member.name)")
    }
  }

  /// Expects a member's value to be plausible for a call of a few seconds: a bit rate is at least 1
  /// kbit/s, and nothing is tiny or huge.
  private func checkSize(of member: StatsMember) {
    guard case .number(let value) = member.value, value != 0 else { return }
    #expect((1e-9...1e16).contains(value.magnitude), "\(member.name) is \(value)")
    if member.name.hasSuffix("Bitrate") { #expect(value >= 1_000, "\(member.name) is \(value)") }
  }

  /// Makes a call with every feature, over a lossy path.
  private func lossyCall() -> VirtualCall {
    var link = LinkSettings()
    link.lossPerMille = 30
    link.delay = .milliseconds(20)
    let call = VirtualCall(seed: 5, links: [link, link], configurations: StatsMemberTests.both)
    call.marking = { _ in .ect1 }
    call.addMedia(videoFrames: .pattern(width: 160, height: 120, framesPerSecond: 15))
    call.call(0, .createDataChannel(DataChannelInit(label: "d")))
    call.negotiate()
    call.run(for: .seconds(8))
    return call
  }

  /// Makes an audio call over a TURN server.
  private func relayedCall() -> VirtualCall {
    var configuration = StatsMemberTests.configuration
    configuration.iceServers = [
      ICEServerConfiguration(
        urls: ["turn:203.0.113.1:3478?transport=udp"], username: "user", credential: "password")
    ]
    configuration.iceTransportPolicy = .relay
    let call = VirtualCall(
      seed: 6, links: [LinkSettings(), LinkSettings()],
      configurations: [configuration, configuration])
    call.network.server = SocketAddress("203.0.113.1:3478").map { VirtualTURNServer(address: $0) }
    call.addMedia()
    call.negotiate(gatheringTime: .milliseconds(200))
    call.run(for: .seconds(2))
    return call
  }

  /// Makes a call whose feedback is REMB, as with peers that lack transport-wide feedback.
  private func rembCall() throws -> VirtualCall {
    let call = VirtualCall(
      seed: 7, links: [LinkSettings(), LinkSettings()], configurations: StatsMemberTests.both)
    call.addMedia(videoFrames: .pattern(width: 160, height: 120, framesPerSecond: 15))
    try #require(call.call(0, .setLocalDescription(nil)).error == nil)
    for (from, to) in [(0, 1), (1, 0)] {
      guard case .description(var description) = call.call(from, .localDescription) else {
        Issue.record("there is no description")
        return call
      }
      description.sdp =
        description.sdp.split(separator: "\r\n")
        .filter { !$0.contains("transport-cc") && !$0.contains("transport-wide") }
        .joined(separator: "\r\n") + "\r\n"
      try #require(call.call(to, .setRemoteDescription(description)).error == nil)
      if to == 1 { try #require(call.call(1, .setLocalDescription(nil)).error == nil) }
    }
    call.run(for: .seconds(4))
    return call
  }

  /// Makes a call in which each peer receives two issuer certificates after the other peer's own.
  private func issuedCall() -> VirtualCall {
    let call = VirtualCall(
      seed: 9, configurations: StatsMemberTests.both, security: IssuedSecurity(issuers: [[1], [2]]))
    call.addMedia()
    call.negotiate()
    call.run(for: .seconds(1))
    return call
  }

  @Test func aChainOfCertificatesIsReportedLinkByLink() throws {
    guard case .stats(let report) = issuedCall().call(0, .getStats()) else { return }
    let transport = try #require(report.objects.first { $0.type == "transport" })
    var chain: [StatsObject] = []
    var next = transport["remoteCertificateId"]
    while case .text(let id)? = next {
      let object = try #require(report.objects.first { $0.id == id })
      chain.append(object)
      next = object["issuerCertificateId"]
    }
    #expect(chain.map { $0["base64Certificate"] }.dropFirst() == [.text("AQ=="), .text("Ag==")])
    #expect(Set(chain.map(\.id)).count == 3)
    // The local certificate is self-signed.
    let localCertificate = report.objects.first { transport["localCertificateId"] == .text($0.id) }
    #expect(localCertificate != nil && localCertificate?["issuerCertificateId"] == nil)
  }

  @Test func aCandidateReportsItsNetworkType() throws {
    guard case .stats(let report) = issuedCall().call(0, .getStats()) else { return }
    let local = report.objects.filter { $0.type == "local-candidate" }
    #expect(!local.isEmpty && local.allSatisfy { $0["networkType"] == .text("ethernet") })
    let remote = report.objects.filter { $0.type == "remote-candidate" }
    #expect(!remote.isEmpty && remote.allSatisfy { $0["networkType"] == nil })
  }

  /// Every fourth audio packet arrives with CE, the others with ECT(1).
  @Test func packetsAreCountedByTheirECNMarks() throws {
    let call = VirtualCall(seed: 10, configurations: StatsMemberTests.both)
    var count = (ect1: UInt64(0), ce: UInt64(0))
    call.marking = { bytes in
      guard bytes.count > 12, (128..<192).contains(bytes[0]), !(64..<96).contains(bytes[1] & 127)
      else { return .notCapable }
      let isCongested = bytes[3] % 4 == 0
      if isCongested { count.ce += 1 } else { count.ect1 += 1 }
      return isCongested ? .congestionExperienced : .ect1
    }
    call.addMedia()
    call.negotiate()
    call.run(for: .seconds(2))
    var reported = (ect1: UInt64(0), ce: UInt64(0), all: UInt64(0))
    for peer in 0..<2 {
      guard case .stats(let report) = call.call(peer, .getStats()) else { return }
      for object in report.objects where object.type == "inbound-rtp" {
        reported.ect1 += object.count("packetsReceivedWithEct1")
        reported.ce += object.count("packetsReceivedWithCe")
        reported.all += object.count("packetsReceived")
      }
      for object in report.objects where object.type == "outbound-rtp" {
        #expect(object["packetsSentWithEct1"] == .integer(0))
      }
    }
    #expect(reported.ce == count.ce && reported.ect1 == count.ect1)
    #expect(reported.ce > 20 && reported.all == reported.ce + reported.ect1)
  }

  @Test func withoutReadingMarksNoneAreCounted() throws {
    let call = VirtualCall(seed: 10, configurations: StatsMemberTests.both)
    call.addMedia()
    call.negotiate()
    call.run(for: .seconds(1))
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    let inbound = try #require(report.objects.first { $0.type == "inbound-rtp" })
    #expect(inbound["packetsReceivedWithCe"] == nil && inbound["packetsReceivedWithEct1"] == nil)
  }

  /// A signal that alternates between 0.5 and 0 has an RMS of 0.5 divided by the square root of
  /// two.
  @Test func bothAudioLevelsAreReported() throws {
    let call = VirtualCall(seed: 11, configurations: StatsMemberTests.both)
    call.addMedia(audio: .application)
    call.negotiate()
    for _ in 0..<50 {
      let samples = (0..<960).map { $0 % 48 < 24 ? Int16(16_384) : 0 }
      call.step(0, .captured(transceiver: 1, .audio(AudioBlock(samples: samples, channels: 1))))
      call.run(for: .milliseconds(20))
    }
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    let source = try #require(report.objects.first { $0.type == "media-source" })
    guard case .number(let level)? = source["audioLevel"],
      case .number(let peak)? = source["peakAudioLevel"]
    else {
      Issue.record("a level is missing")
      return
    }
    #expect((0.35...0.36).contains(level) && (0.49...0.51).contains(peak), "\(level), \(peak)")
  }

  /// Older takes must replay as they were recorded, so their peers report only the members that
  /// existed at that time.
  @Test func olderTakesReportTheirOriginalMembers() throws {
    let call = VirtualCall(seed: 12)
    call.addMedia()
    call.negotiate()
    call.run(for: .seconds(1))
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    let names = Set(report.objects.flatMap { $0.members.map(\.name) })
    #expect(
      names.isDisjoint(with: [
        "peakAudioLevel", "networkType", "issuerCertificateId", "packetsSentWithEct1",
        "packetsReceivedWithCe",
      ]))
    let inbound = try #require(report.objects.first { $0.type == "inbound-rtp" })
    #expect(inbound["retransmittedPacketsReceived"] == .integer(0))
  }

  @Test func reportsHaveTheMembersInTheTable() throws {
    var found: Members = [:]
    collect(lossyCall(), in: &found)
    collect(relayedCall(), in: &found)
    collect(try rembCall(), in: &found)
    collect(
      SimulcastTests.call(seconds: 1, configuration: StatsMemberTests.configuration), in: &found)
    collect(issuedCall(), in: &found)
    for entry in StatsMembers.all {
      let name = entry.type + (entry.kind.map { " \($0)" } ?? "")
      let removed = found.removeValue(forKey: name)
      let members = try #require(removed, "\(name)")
      #expect(members.subtracting(entry.given).isEmpty, "\(name) has more than the table")
      // A virtual call has no TCP connections.
      let less = Set(entry.given).subtracting(members).subtracting(["tcpType"])
      #expect(less.isEmpty, "\(name) has less than the table")
      #expect(members.isDisjoint(with: entry.missing.flatMap(\.members)), "\(name)")
    }
    #expect(found.isEmpty)
  }

  @Test func noMemberIsBothReportedAndMissing() {
    for entry in StatsMembers.all {
      let all = entry.given + entry.missing.flatMap(\.members)
      #expect(Set(all).count == all.count, "\(entry.type) \(entry.kind ?? "")")
    }
    #expect(Set(StatsMembers.all.map(\.type)).count == 14)
  }

  @Test func packetsTheSystemRefusedAreCountedOnTheirPair() throws {
    let call = VirtualCall(seed: 8, links: [LinkSettings(), LinkSettings()])
    call.addMedia()
    call.negotiate()
    call.run(for: .seconds(1))
    // The peer's event about the candidate pair contains the pair's addresses.
    var ends: (local: SocketAddress, remote: SocketAddress)?
    for (_, event) in call.events[0] {
      guard case .candidatePair(let pair) = event, let remote = pair.remote.address else {
        continue
      }
      ends = (pair.base, remote)
    }
    let pairEnds = try #require(ends)
    call.step(
      0,
      .sendFailed(
        SendFailure(
          local: pairEnds.local, remote: pairEnds.remote, code: 1, packets: 3, bytes: 3000)))
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    let pair = try #require(report.objects.first { $0.type == "candidate-pair" })
    #expect(pair["packetsDiscardedOnSend"] == .integer(3))
    #expect(pair["bytesDiscardedOnSend"] == .integer(3000))
  }

  @Test func aRelayedCandidateNamesItsServer() throws {
    guard case .stats(let report) = relayedCall().call(0, .getStats()) else { return }
    let relay = try #require(
      report.objects.first { $0.type == "local-candidate" && $0["url"] != nil })
    #expect(relay["url"] == .text("turn:203.0.113.1:3478?transport=udp"))
    #expect(relay["relayProtocol"] == .text("udp"))
    #expect(relay["candidateType"] == .text("relay"))
  }
}

extension StatsObject {
  fileprivate func count(_ member: String) -> UInt64 {
    if case .integer(let value)? = self[member] { UInt64(max(0, value)) } else { 0 }
  }
}

/// The security libraries, with issuer certificates after each peer's own certificate.
private struct IssuedSecurity: SecurityFactory {
  let issuers: [[UInt8]]

  func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting {
    IssuedTransport(
      try LibrarySecurity().transport(
        entropy: entropy, wallClock: wallClock, certificates: certificates, profiles: profiles),
      issuers)
  }

  func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext? {
    try LibrarySecurity().protection(result)
  }
}

private final class IssuedTransport: DTLSTransporting {
  private let inside: any DTLSTransporting
  private let issuers: [[UInt8]]
  private var outputs = Outbox<DTLSTransport.Output>()

  init(_ inside: any DTLSTransporting, _ issuers: [[UInt8]]) {
    self.inside = inside
    self.issuers = issuers
  }

  var fingerprints: [CertificateFingerprint] { inside.fingerprints }
  var certificates: [[UInt8]] { inside.certificates }
  var state: DTLSTransportState { inside.state }
  var deadline: Instant? { inside.deadline }

  func another(entropy: EntropyStream) throws(SecureError) -> any DTLSTransporting {
    IssuedTransport(try inside.another(entropy: entropy), issuers)
  }

  func step(
    _ input: DTLSTransport.Input, at now: Instant, into outbox: inout Outbox<DTLSTransport.Output>
  ) {
    inside.step(input, at: now, into: &outputs)
    while let output = outputs.next() {
      guard case .established(var result) = output else {
        outbox.append(output)
        continue
      }
      result.remoteIssuers = issuers
      outbox.append(.established(result))
    }
  }
}
