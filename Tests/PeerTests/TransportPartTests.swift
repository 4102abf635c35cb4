import ICE
import JSEP
import Secure
import Testing
import Wire

@testable import Peer

/// Tests each part of a transport separately.
struct TransportPartTests {
  private let entropy = Entropy(seed: [3]).stream("ice")
  private let local = SocketAddress(IPAddress(ipv4: 1), port: 1000)
  private let remote = SocketAddress(IPAddress(ipv4: 2), port: 2000)

  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func candidate(_ last: UInt32, transport: String = "udp") -> ICECandidate {
    ICECandidate(
      foundation: "1", transport: transport, priority: 9, host: .address(IPAddress(ipv4: last)),
      port: 9, kind: .host)
  }

  private func parameters(
    _ fragment: String, client: Bool? = true, fingerprint: String = "00"
  ) -> RemoteTransport {
    RemoteTransport(
      usernameFragment: fragment, password: "secret", isLite: false,
      fingerprints: [CertificateFingerprint(algorithm: "sha-256", value: fingerprint)]
        .compactMap(\.self),
      localIsDTLSClient: client, candidates: [], endOfCandidates: false)
  }

  // MARK: Path

  @Test func aLimitedNumberOfHandshakeMessagesWaitsForAPath() {
    var path = TransportPath()
    for number in 0..<20 { path.hold([UInt8(number)]) }
    #expect(path.removeHeld() == (0..<16).map { [UInt8($0)] })
    #expect(path.removeHeld().isEmpty)
  }

  @Test func aRestartedPathIsOldUntilTheNextSelection() {
    var path = TransportPath()
    path.select(local, remote, isRelayed: true)
    #expect(path.isRelayed && !path.isOld)
    path.restart()
    #expect(path.isOld && path.inUse?.remote == remote)
    path.select(remote, local, isRelayed: false)
    #expect(!path.isOld && !path.isRelayed && path.inUse?.local == remote)
  }

  // MARK: Gathering

  @Test func gatheringWaitsForTheAddresses() {
    var gathering = LocalGathering()
    #expect(gathering.begin(.new) == nil)
    let address = IPAddress(ipv4: 7)
    guard case .gather([address])? = gathering.learn([address], .new) else {
      Issue.record("gathering was wanted and does not begin")
      return
    }
    // Once gathering has started, more addresses are only reported, and nothing restarts.
    guard case .interfaces([])? = gathering.learn([], .gathering) else {
      Issue.record("a change of the addresses is not reported")
      return
    }
    #expect(gathering.begin(.gathering) == nil)
  }

  @Test func unexpectedAddressesStartNoGathering() {
    var gathering = LocalGathering()
    #expect(gathering.learn([IPAddress(ipv4: 7)], .new) == nil)
    guard case .gather? = gathering.begin(.new) else {
      Issue.record("gathering does not begin")
      return
    }
  }

  @Test func aRestartForgetsCandidatesAndGathersAgain() {
    var gathering = LocalGathering()
    _ = gathering.learn([IPAddress(ipv4: 7)], .new)
    gathering.store(candidate(1, transport: "tcp"))
    // A media section's address must be a UDP one, so a TCP address is never its default.
    #expect(gathering.defaultAddress == nil && gathering.candidates.count == 1)
    gathering.store(candidate(2))
    gathering.store(candidate(3))
    #expect(gathering.defaultAddress?.ip == IPAddress(ipv4: 2))
    gathering.store(nil)
    #expect(gathering.isComplete && gathering.begin(.complete) == nil)
    gathering.restart()
    #expect(!gathering.isComplete && gathering.candidates.isEmpty)
    #expect(gathering.defaultAddress == nil && gathering.begin(.gathering) != nil)
  }

  // MARK: Generations

  @Test func aWantedRestartIsOffered() throws {
    var restart = LocalRestart(entropy)
    restart.want(.new)
    restart.prepare()
    // Without an offer, there is nothing to restart.
    #expect(restart.next == nil)
    restart.want(.complete)
    restart.prepare()
    let next = try #require(restart.next)
    restart.prepare()
    #expect(restart.next == next)
    #expect(restart.begin(offered: "a=ice-ufrag:other\r\n") == nil && restart.next == next)
    #expect(restart.begin(offered: "a=ice-ufrag:\(next.usernameFragment)\r\n") == next)
    restart.prepare()
    #expect(restart.next == nil)
  }

  @Test func answeringARemoteRestartSatisfiesTheLocalOne() {
    var restart = LocalRestart(entropy)
    restart.want(.complete)
    restart.prepare()
    let offered = restart.next
    #expect(restart.answer() != offered && restart.next == nil)
    restart.prepare()
    #expect(restart.next == nil)
  }

  @Test func newRemoteCredentialsAreARestartUnlessTheyAnswerOne() {
    var peer = PeerParameters()
    #expect(peer.apply(parameters("a"), answersLocalOffer: false) == .credentials)
    let isNews = [peer.describe("c1"), peer.describe("c1"), peer.describe("c2")]
    #expect(isNews == [true, false, true])
    #expect(peer.apply(parameters("a"), answersLocalOffer: false) == .sameGeneration)
    #expect(peer.apply(nil, answersLocalOffer: false) == .sameGeneration)
    #expect(peer.described == nil && peer.usernameFragment == "a")
    #expect(peer.apply(parameters("b"), answersLocalOffer: false) == .restart)
    let isKnown = !peer.describe("c1")
    #expect(!isKnown)
    #expect(peer.apply(parameters("c"), answersLocalOffer: true) == .credentials)
  }

  @Test func signaledCandidatesAreLimited() {
    var peer = PeerParameters()
    let count = (0..<300).count { peer.signal("c\($0)") }
    #expect(count == 200)
    peer.restart()
    let hasRoom = peer.signal("c")
    #expect(hasRoom)
  }

  // MARK: Keys

  @Test func anAssociationRestartsOnlyForOtherFingerprints() {
    let dtls = StandInDTLS()
    var keys = keys(dtls)
    #expect(keys.begin(with: parameters("a", client: nil), pathIsOld: false) == nil)
    guard case .start(.client, _)? = keys.begin(with: parameters("a"), pathIsOld: false) else {
      Issue.record("the association does not begin")
      return
    }
    #expect(keys.role == .client)
    dtls.state = .connecting
    #expect(keys.begin(with: parameters("b", client: false), pathIsOld: false) == nil)
    let other = parameters("b", client: false, fingerprint: "01")
    // The old path still leads to the peer with the old certificate.
    #expect(keys.begin(with: other, pathIsOld: true) == nil && keys.role == .client)
    guard case .restart(.server, other.fingerprints)? = keys.begin(with: other, pathIsOld: false)
    else {
      Issue.record("other fingerprints begin no other association")
      return
    }
    #expect(keys.role == .server)
  }

  @Test func outputsProducedDuringDrainingGoToTheDrainer() {
    let dtls = StandInDTLS()
    dtls.outputs = [.state(.connecting), .state(.connected)]
    var keys = keys(dtls)
    let isFirst = keys.step(.deadline, at: .zero)
    _ = keys.next()
    let isSecond = keys.step(.deadline, at: .zero)
    #expect(isFirst && !isSecond)
    var count = 0
    while keys.next() != nil { count += 1 }
    #expect(count == 3)
  }

  private func keys(_ dtls: StandInDTLS) -> TransportKeys {
    TransportKeys(
      entropy: entropy, wallClock: WallClock(unixNanosecondsAtZero: 0), certificates: [],
      profiles: [], security: StandInSecurity(dtls: dtls))
  }

  // MARK: Traffic

  @Test func trafficIsReportedToICETwiceASecond() {
    var ledger = TrafficLedger()
    let areReported = [0, 499, 500, 999, 1000].map { ledger.reportsReceived(at: at($0)) }
    #expect(areReported == [true, false, true, false, true])
    let isSentReported = ledger.reportsSent(at: at(1))
    #expect(isSentReported)
  }

  @Test func trafficCountsForTheNewestPairWithItsAddresses() {
    var ledger = TrafficLedger()
    ledger.count(10, isInbound: true, local, remote, at: at(1))
    ledger.begin(1, local, remote)
    ledger.count(20, isInbound: false, local, remote, at: at(2))
    ledger.begin(2, local, remote)
    ledger.count(30, isInbound: true, local, remote, at: at(3))
    ledger.countDiscarded(packets: -1, bytes: 5, local, remote)
    #expect(ledger.total.bytesReceived == 40 && ledger.total.packetsSent == 1)
    #expect(ledger.traffic(of: 1, local, remote)?.sent.bytes == 20)
    let newest = ledger.traffic(of: 2, local, remote)
    #expect(newest?.received.bytes == 30 && newest?.received.last == at(3))
    #expect(newest?.packetsDiscarded == 0 && newest?.bytesDiscarded == 5)
  }
}

/// An association with scripted outputs.
private final class StandInDTLS: DTLSTransporting {
  var state = DTLSTransportState.new
  var outputs: [DTLSTransport.Output] = []
  let fingerprints: [CertificateFingerprint] = []
  let certificates: [[UInt8]] = []
  let deadline: Instant? = nil

  func another(entropy: EntropyStream) throws(SecureError) -> any DTLSTransporting { self }

  func step(
    _ input: DTLSTransport.Input, at now: Instant, into outbox: inout Outbox<DTLSTransport.Output>
  ) {
    for output in outputs { outbox.append(output) }
  }
}

private struct StandInSecurity: SecurityFactory {
  let dtls: StandInDTLS

  func transport(
    entropy: EntropyStream, wallClock: WallClock, certificates: [PeerCertificate],
    profiles: [SRTPProtection]
  ) throws(SecureError) -> any DTLSTransporting { dtls }

  func protection(_ result: DTLSResult) throws(SecureError) -> SRTPContext? { nil }
}
