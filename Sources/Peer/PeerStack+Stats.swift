import Flow
import ICE
import JSEP
import Media
import RTP
import Secure
import Stats
import Transport
import Wire

// W3C getStats over what the layers count. Members that do not apply are absent, cumulative ones
// begin at 0; the order of objects and members is fixed.
extension PeerStack {
  /// The stats of everything, or of what a sender or receiver has and refers to.
  func statsReport(of selector: StatsSelector?, codecTimes: [CodecTime]) throws(PeerError)
    -> StatsReport
  {
    let report = statsReport(of: nil as Set<String>?, codecTimes: codecTimes)
    guard let selector else { return report }
    return try report.reachable(from: streamIDs(of: selector))
  }

  /// The stats of everything, or the objects of some types: most cost nothing then.
  func statsReport(of types: Set<String>?, codecTimes: [CodecTime]) -> StatsReport {
    func wants(_ names: String...) -> Bool { types.map { !$0.isDisjoint(with: names) } ?? true }
    var report = StatsReport()
    if wants("peer-connection") { report.objects.append(peerConnectionStats()) }
    if wants("transport") { report.objects.append(transportStats()) }
    if wants("data-channel") { report.objects += dataChannelStats() }
    if wants("certificate") { report.objects += certificateStats() }
    if wants("local-candidate", "remote-candidate") { report.objects += candidateStats() }
    if wants("candidate-pair") { report.objects += pairStats() }
    if wants("codec") { report.objects += codecStats() }
    if wants("media-source") { report.objects += mediaSourceStats() }
    if wants("media-playout") { report.objects += mediaPlayoutStats() }
    if wants("outbound-rtp", "remote-inbound-rtp") {
      for stream in flow.outbound { report.objects += outboundStats(stream, codecTimes) }
    }
    if wants("inbound-rtp", "remote-outbound-rtp") {
      for stream in flow.inbound where !stream.hasEnded {
        report.objects += inboundStats(stream, codecTimes)
      }
    }
    if let types { report.objects.removeAll { !types.contains($0.type) } }
    return report
  }

  /// The ids of the RTP streams of a sender or receiver.
  private func streamIDs(of selector: StatsSelector) throws(PeerError) -> [String] {
    let (number, isSender) =
      switch selector {
      case .sender(let number): (number, true)
      case .receiver(let number): (number, false)
      }
    guard let transceiver = negotiation.transceivers.first(where: { $0.id == number }) else {
      throw PeerError(name: "InvalidAccessError", message: "there is no transceiver \(number)")
    }
    if isSender {
      return flow.outbound.filter { $0.ssrc == transceiver.ssrc }.map(outboundID)
    }
    return flow.inbound.filter { !$0.hasEnded && $0.mid == transceiver.mid }.map(inboundID)
  }

  /// Unix time of an instant in milliseconds.
  func milliseconds(_ instant: Instant) -> Double {
    Double(genesis.wallClock.unixNanoseconds(at: instant) / 1000) / 1000
  }

  func builder(_ type: String, _ id: String) -> StatsBuilder {
    StatsBuilder(id: id, type: type, timestamp: milliseconds(now))
  }

  // MARK: Ids

  var transportID: String { statsNames.id("T", "0") }
  func candidateID(_ candidate: ICECandidate, isLocal: Bool) -> String {
    statsNames.id(isLocal ? "L" : "R", "\(candidate.transport) \(candidate.host) \(candidate.port)")
  }
  func pairID(_ pair: ICEPairReport) -> String { statsNames.id("P", String(pair.id)) }
  func certificateID(isLocal: Bool) -> String { statsNames.id("F", isLocal ? "local" : "remote") }
  func outboundID(_ stream: OutboundStreamCounters) -> String {
    statsNames.id("O", String(stream.ssrc))
  }
  /// A source that begins anew under the same number is another stream.
  func inboundID(_ stream: InboundStreamCounters) -> String {
    statsNames.id("I", "\(stream.ssrc) \(stream.beganAt.nanoseconds)")
  }

  // MARK: Connection and transport

  private func peerConnectionStats() -> StatsObject {
    var stats = builder("peer-connection", statsNames.id("X", "0"))
    stats.set("dataChannelsOpened", data.opened)
    stats.set("dataChannelsClosed", data.closed)
    return stats.build()
  }

  private func transportStats() -> StatsObject {
    var stats = builder("transport", transportID)
    stats.set("packetsSent", transport.counters.packetsSent)
    stats.set("packetsReceived", transport.counters.packetsReceived)
    stats.set("bytesSent", transport.counters.bytesSent)
    stats.set("bytesReceived", transport.counters.bytesReceived)
    stats.set("iceRole", transport.hasRole ? transport.agent.role.rawValue : "unknown")
    stats.set("iceLocalUsernameFragment", transport.agent.localCredentials.usernameFragment)
    stats.set("dtlsState", states.dtls)
    stats.set("iceState", states.iceConnection)
    stats.set("selectedCandidatePairId", transport.agent.pairs.first { $0.selected }.map(pairID))
    if transport.localCertificate != nil {
      stats.set("localCertificateId", certificateID(isLocal: true))
    }
    if let secured = transport.secured {
      stats.set("remoteCertificateId", certificateID(isLocal: false))
      stats.set("tlsVersion", secured.version)
      stats.set("dtlsCipher", secured.cipherSuite)
      stats.set("dtlsRole", transport.dtlsRole?.rawValue)
      stats.set("srtpCipher", secured.profile?.description)
    }
    stats.set("selectedCandidatePairChanges", transport.counters.selectedPairChanges)
    return stats.build()
  }

  private func certificateStats() -> [StatsObject] {
    var objects: [StatsObject] = []
    if let own = transport.localCertificate {
      objects.append(certificate(own, isLocal: true))
    }
    if let secured = transport.secured {
      objects.append(certificate(secured.remoteCertificate, isLocal: false))
    }
    return objects
  }

  private func certificate(_ bytes: [UInt8], isLocal: Bool) -> StatsObject {
    let fingerprint = certificateFingerprint(bytes)
    var stats = builder("certificate", certificateID(isLocal: isLocal))
    stats.set("fingerprint", fingerprint.value)
    stats.set("fingerprintAlgorithm", fingerprint.algorithm)
    stats.set("base64Certificate", base64(bytes))
    return stats.build()
  }

  private func candidateStats() -> [StatsObject] {
    var objects: [StatsObject] = []
    var known: [String] = []
    for pair in transport.agent.pairs {
      for (candidate, isLocal) in [(pair.local, true), (pair.remote, false)] {
        let id = candidateID(candidate, isLocal: isLocal)
        guard !known.contains(id) else { continue }
        known.append(id)
        objects.append(self.candidate(candidate, id: id, isLocal: isLocal))
      }
    }
    return objects
  }

  private func candidate(_ candidate: ICECandidate, id: String, isLocal: Bool) -> StatsObject {
    var stats = builder(isLocal ? "local-candidate" : "remote-candidate", id)
    stats.set("transportId", transportID)
    // The address of a peer-reflexive remote candidate is not the application's to know.
    if isLocal || candidate.kind != .peerReflexive { stats.set("address", "\(candidate.host)") }
    stats.set("port", candidate.port)
    stats.set("protocol", candidate.transport)
    stats.set("candidateType", candidate.kind.rawValue)
    stats.set("priority", candidate.priority)
    if isLocal, let server = transport.agent.server(of: candidate) {
      stats.set("url", server.url)
      if candidate.kind == .relayed { stats.set("relayProtocol", server.transport.rawValue) }
    }
    stats.set("foundation", candidate.foundation)
    stats.set("relatedAddress", candidate.related.map { "\($0.ip)" })
    stats.set("relatedPort", candidate.related?.port)
    stats.set("usernameFragment", usernameFragment(of: candidate, isLocal: isLocal))
    stats.set("tcpType", candidate.extensions.first { $0.name == "tcptype" }?.value)
    return stats.build()
  }

  /// The fragment that the candidate was signaled with, else its side's present one.
  private func usernameFragment(of candidate: ICECandidate, isLocal: Bool) -> String? {
    candidate.extensions.first { $0.name == "ufrag" }?.value
      ?? (isLocal
        ? transport.agent.localCredentials.usernameFragment : transport.remoteUsernameFragment)
  }

  private func pairStats() -> [StatsObject] {
    transport.agent.pairs.map { pair in
      var stats = builder("candidate-pair", pairID(pair))
      stats.set("transportId", transportID)
      stats.set("localCandidateId", candidateID(pair.local, isLocal: true))
      stats.set("remoteCandidateId", candidateID(pair.remote, isLocal: false))
      stats.set("state", pair.state.rawValue)
      stats.set("nominated", pair.nominated)
      stats.set("priority", pair.priority)
      let traffic = pair.remote.address.flatMap {
        transport.traffic.traffic(of: pair.id, pair.base, $0)
      }
      stats.set("packetsSent", traffic?.packetsSent ?? 0)
      stats.set("packetsReceived", traffic?.packetsReceived ?? 0)
      stats.set("bytesSent", traffic?.bytesSent ?? 0)
      stats.set("bytesReceived", traffic?.bytesReceived ?? 0)
      stats.set("lastPacketSentTimestamp", traffic?.lastSent.map(milliseconds))
      stats.set("lastPacketReceivedTimestamp", traffic?.lastReceived.map(milliseconds))
      stats.set("totalRoundTripTime", pair.totalRoundTrip)
      stats.set("currentRoundTripTime", pair.currentRoundTrip)
      if pair.selected {
        stats.set("availableOutgoingBitrate", flow.availableOutgoingBitrate.map { Double($0) })
        stats.set("availableIncomingBitrate", flow.availableIncomingBitrate.map { Double($0) })
      }
      stats.set("requestsReceived", pair.requestsReceived)
      stats.set("requestsSent", pair.requestsSent)
      stats.set("responsesReceived", pair.responsesReceived)
      stats.set("responsesSent", pair.responsesSent)
      stats.set("consentRequestsSent", pair.consentRequestsSent)
      stats.set("packetsDiscardedOnSend", traffic?.packetsDiscarded ?? 0)
      stats.set("bytesDiscardedOnSend", traffic?.bytesDiscarded ?? 0)
      return stats.build()
    }
  }
}

/// Bytes as base64 text (RFC 4648 section 4).
private func base64(_ bytes: [UInt8]) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var text: [UInt8] = []
  text.reserveCapacity((bytes.count + 2) / 3 * 4)
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    var bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    bits <<= UInt32(8 * (3 - group.count))
    for index in 0..<4 {
      let isFilled = index <= group.count
      text.append(isFilled ? alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)] : 0x3d)
    }
  }
  return String(decoding: text, as: UTF8.self)
}
