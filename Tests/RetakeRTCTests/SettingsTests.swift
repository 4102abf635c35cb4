import RetakeRTC
import Testing

@Suite(.timeLimit(.minutes(10)), .serialized) struct SettingsTests {
  @Test func aConnectionAcceptsOtherServersAndNothingElse() throws {
    let pair = try LoopbackPair()
    let configuration = pair.caller.configuration
    configuration.iceServers = [RTCIceServer(urlStrings: ["stun:192.0.2.1"])]
    #expect(pair.caller.setConfiguration(configuration))
    #expect(pair.caller.configuration.iceServers.first?.urlStrings == ["stun:192.0.2.1"])
    configuration.iceServers = [RTCIceServer(urlStrings: ["http://192.0.2.1"])]
    #expect(!pair.caller.setConfiguration(configuration))
    let bundled = pair.caller.configuration
    bundled.bundlePolicy = .maxBundle
    #expect(!pair.caller.setConfiguration(bundled))
    let continual = pair.caller.configuration
    continual.continualGatheringPolicy = .gatherContinually
    #expect(!pair.caller.setConfiguration(continual))
    pair.caller.close()
    #expect(!pair.caller.setConfiguration(pair.caller.configuration))
    pair.callee.close()
  }

  @Test func bitRatesHaveAnOrder() throws {
    let pair = try LoopbackPair()
    let caller = pair.caller
    #expect(caller.setBweMinBitrateBps(nil, currentBitrateBps: nil, maxBitrateBps: 500_000))
    #expect(caller.setBweMinBitrateBps(50_000, currentBitrateBps: 100_000, maxBitrateBps: nil))
    #expect(!caller.setBweMinBitrateBps(600_000, currentBitrateBps: nil, maxBitrateBps: nil))
    #expect(!caller.setBweMinBitrateBps(-1, currentBitrateBps: nil, maxBitrateBps: nil))
    caller.close()
    pair.callee.close()
  }

  @Test func aCertificateIsShownByEveryConnectionThatHasIt() async throws {
    let certificate = try #require(
      RTCCertificate.generate(withParams: ["name": "ECDSA", "expires": 100_000]))
    #expect(certificate.certificate.hasPrefix("-----BEGIN CERTIFICATE-----\n"))
    #expect(RTCCertificate.generate(withParams: ["name": "DSA"]) == nil)
    #expect(RTCCertificate.generate(withParams: ["expires": -1]) == nil)
    let factory = RTCPeerConnectionFactory(session: try LoopbackPair.session())
    let configuration = RTCConfiguration()
    configuration.certificate = certificate
    var fingerprints: [String] = []
    for _ in 0..<2 {
      let connection = try #require(
        factory.peerConnection(with: configuration, constraints: LoopbackPair.none, delegate: nil))
      connection.addTransceiver(of: .audio)
      let offer = try await connection.offer(for: LoopbackPair.none)
      fingerprints += offer.sdp.split(separator: "\r\n").filter { $0.hasPrefix("a=fingerprint") }
        .map(String.init)
      #expect(connection.configuration.certificate === certificate)
      connection.close()
    }
    #expect(fingerprints.count >= 2 && Set(fingerprints).count == 1)
  }

  @Test func statisticsFromBeforeTheStandardHaveTheirNames() async throws {
    let pair = try LoopbackPair()
    let track = pair.factory.audioTrack(withTrackId: "a")
    pair.caller.add(track, streamIds: ["s"])
    try await pair.connect()
    let reports = await legacy(pair.caller, nil)
    let stream = try #require(reports.first { $0.type == "ssrc" })
    #expect(stream.reportId == "ssrc_\(stream.values["ssrc"] ?? "")_send")
    #expect(stream.values["googCodecName"] == "opus" && stream.values["mediaType"] == "audio")
    let path = try #require(reports.first { $0.type == "googCandidatePair" })
    #expect(path.values["googActiveConnection"] == "true")
    #expect(path.values["googLocalCandidateType"] == "local")
    #expect(path.values["googLocalAddress"]?.hasPrefix("127.0.0.1:") == true)
    #expect(reports.contains { $0.type == "remotecandidate" })
    let ofTrack = await legacy(pair.caller, track)
    #expect(ofTrack.contains { $0.type == "ssrc" })
    #expect(await legacy(pair.callee, track).isEmpty)
    pair.caller.close()
    pair.callee.close()
  }

  private func legacy(
    _ connection: RTCPeerConnection, _ track: RTCAudioTrack?
  ) async -> [RTCLegacyStatsReport] {
    await withCheckedContinuation { continuation in
      connection.stats(for: track, statsOutputLevel: .standard) {
        continuation.resume(returning: $0)
      }
    }
  }

  @Test func aCandidateCanBeRemoved() async throws {
    let pair = try LoopbackPair()
    pair.caller.addTransceiver(of: .audio)
    try await pair.negotiate()
    let text = "candidate:7 1 udp 2122260223 192.0.2.9 4711 typ host"
    let candidate = RTCIceCandidate(sdp: text, sdpMLineIndex: 0, sdpMid: "0")
    try await pair.caller.add(candidate)
    #expect(pair.caller.remoteDescription?.sdp.contains(text) == true)
    pair.caller.remove([candidate])
    #expect(pair.caller.remoteDescription?.sdp.contains(text) == false)
    pair.caller.close()
    pair.callee.close()
  }
}
