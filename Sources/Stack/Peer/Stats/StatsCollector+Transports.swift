import Flow
import ICE
import Secure
import Stats
import Wire

// Stats for transports: one object for each, with its pairs, candidates and certificates.
extension StatsCollector {
  // MARK: Ids

  private func candidateID(_ candidate: ICECandidate, _ bundle: Bundle, isLocal: Bool) -> String {
    names.id(
      isLocal ? "L" : "R", "\(candidate.transport) \(candidate.host) \(candidate.port)",
      of: bundle.number)
  }

  private func pairID(_ pair: ICEPairReport) -> String { names.id("P", String(pair.id)) }

  private func certificateID(_ bundle: Bundle, isLocal: Bool) -> String {
    func bytes(_ bundle: Bundle) -> [UInt8]? {
      isLocal
        ? bundle.transport.localCertificate : bundle.transport.secured?.remoteCertificate
    }
    let own = bytes(bundle)
    let first = bundles.all.first { bytes($0) == own } ?? bundle
    return names.id("F", isLocal ? "local" : "remote", of: first.number)
  }

  // MARK: Objects

  func transportStats(_ bundle: Bundle) -> StatsObject {
    var stats = builder("transport", transportID(bundle.number))
    stats.set("packetsSent", bundle.transport.counters.packetsSent)
    stats.set("packetsReceived", bundle.transport.counters.packetsReceived)
    stats.set("bytesSent", bundle.transport.counters.bytesSent)
    stats.set("bytesReceived", bundle.transport.counters.bytesReceived)
    stats.set(
      "iceRole", bundle.transport.hasRole ? bundle.transport.agent.role.rawValue : "unknown")
    stats.set("iceLocalUsernameFragment", bundle.transport.agent.localCredentials.usernameFragment)
    stats.set("dtlsState", bundle.dtlsState.rawValue)
    stats.set("iceState", bundle.iceState.rawValue)
    stats.set(
      "selectedCandidatePairId",
      bundle.transport.agent.pairs.first { $0.selected }.map { pairID($0) })
    if bundle.transport.localCertificate != nil {
      stats.set("localCertificateId", certificateID(bundle, isLocal: true))
    }
    if let secured = bundle.transport.secured {
      stats.set("remoteCertificateId", certificateID(bundle, isLocal: false))
      stats.set("tlsVersion", secured.version)
      stats.set("dtlsCipher", secured.cipherSuite)
      stats.set("dtlsRole", bundle.transport.dtlsRole?.rawValue)
      stats.set("srtpCipher", secured.profile?.description)
    }
    stats.set("selectedCandidatePairChanges", bundle.transport.counters.selectedPairChanges)
    return stats.build()
  }

  /// Returns the objects for the local certificates, and for the remote certificates with their
  /// issuers.
  ///
  /// A certificate that several transports share has a single object.
  func certificateStats() -> [StatsObject] {
    var objects: [StatsObject] = []
    for bundle in bundles.all {
      for (bytes, isLocal) in [
        (bundle.transport.localCertificate, true),
        (bundle.transport.secured?.remoteCertificate, false),
      ] {
        guard let bytes else { continue }
        let id = certificateID(bundle, isLocal: isLocal)
        guard !objects.contains(where: { $0.id == id }) else { continue }
        let issuers = isLocal ? [] : issuers(of: bundle)
        let ids = issuers.indices.map {
          names.id("F", "issuer \($0)", of: bundle.number)
        }
        objects.append(certificate(bytes, id, issuer: ids.first))
        for (index, issuer) in issuers.enumerated() {
          let next = index + 1 < ids.count ? ids[index + 1] : nil
          objects.append(certificate(issuer, ids[index], issuer: next))
        }
      }
    }
    return objects
  }

  /// Returns the certificates that the remote peer sent after its own; each issued the previous one
  /// (RFC 5246 section 7.4.2).
  private func issuers(of bundle: Bundle) -> [[UInt8]] {
    isComplete ? bundle.transport.secured?.remoteIssuers ?? [] : []
  }

  private func certificate(_ bytes: [UInt8], _ id: String, issuer: String?) -> StatsObject {
    let texts = names.certificates.texts(of: bytes)
    var stats = builder("certificate", id)
    stats.set("fingerprint", texts.fingerprint.value)
    stats.set("fingerprintAlgorithm", texts.fingerprint.algorithm)
    stats.set("base64Certificate", texts.base64)
    stats.set("issuerCertificateId", issuer)
    return stats.build()
  }

  func candidateStats(_ bundle: Bundle) -> [StatsObject] {
    var objects: [StatsObject] = []
    var known: [String] = []
    for pair in bundle.transport.agent.pairs {
      for (candidate, isLocal) in [(pair.local, true), (pair.remote, false)] {
        let id = candidateID(candidate, bundle, isLocal: isLocal)
        guard !known.contains(id) else { continue }
        known.append(id)
        // A reflexive or relayed candidate is on the network through which its packets are sent.
        let network = isLocal && isComplete ? bundles.networkType(of: pair.base.ip) : nil
        objects.append(
          self.candidate(candidate, bundle, id: id, isLocal: isLocal, network: network))
      }
    }
    return objects
  }

  private func candidate(
    _ candidate: ICECandidate, _ bundle: Bundle, id: String, isLocal: Bool, network: NetworkType?
  ) -> StatsObject {
    var stats = builder(isLocal ? "local-candidate" : "remote-candidate", id)
    stats.set("transportId", transportID(bundle.number))
    // Applications must not learn a peer-reflexive remote candidate's address.
    if isLocal || candidate.kind != .peerReflexive { stats.set("address", "\(candidate.host)") }
    stats.set("port", candidate.port)
    stats.set("protocol", candidate.transport)
    stats.set("candidateType", candidate.kind.rawValue)
    stats.set("networkType", network?.rawValue)
    stats.set("priority", candidate.priority)
    if isLocal, let server = bundle.transport.agent.server(of: candidate) {
      stats.set("url", server.url)
      if candidate.kind == .relayed { stats.set("relayProtocol", server.transport.rawValue) }
    }
    stats.set("foundation", candidate.foundation)
    stats.set("relatedAddress", candidate.related.map { "\($0.ip)" })
    stats.set("relatedPort", candidate.related?.port)
    stats.set("usernameFragment", usernameFragment(of: candidate, bundle, isLocal: isLocal))
    stats.set("tcpType", candidate.extensions.first { $0.name == "tcptype" }?.value)
    return stats.build()
  }

  /// Returns the username fragment that was signaled with the candidate, or else the current
  /// fragment of the peer that it belongs to; nil if both are unknown.
  private func usernameFragment(
    of candidate: ICECandidate, _ bundle: Bundle, isLocal: Bool
  ) -> String? {
    candidate.extensions.first { $0.name == "ufrag" }?.value
      ?? (isLocal
        ? bundle.transport.agent.localCredentials.usernameFragment
        : bundle.transport.remoteUsernameFragment)
  }

  func pairStats(_ bundle: Bundle) -> [StatsObject] {
    bundle.transport.agent.pairs.map { pair in
      var stats = builder("candidate-pair", pairID(pair))
      stats.set("transportId", transportID(bundle.number))
      stats.set("localCandidateId", candidateID(pair.local, bundle, isLocal: true))
      stats.set("remoteCandidateId", candidateID(pair.remote, bundle, isLocal: false))
      stats.set("state", pair.state.rawValue)
      stats.set("nominated", pair.nominated)
      stats.set("priority", pair.priority)
      let traffic = pair.remote.address.flatMap {
        bundle.transport.traffic.traffic(of: pair.id, pair.base, $0)
      }
      stats.set("packetsSent", traffic?.sent.packets ?? 0)
      stats.set("packetsReceived", traffic?.received.packets ?? 0)
      stats.set("bytesSent", traffic?.sent.bytes ?? 0)
      stats.set("bytesReceived", traffic?.received.bytes ?? 0)
      stats.set("lastPacketSentTimestamp", traffic?.sent.last.map { milliseconds($0) })
      stats.set("lastPacketReceivedTimestamp", traffic?.received.last.map { milliseconds($0) })
      stats.set("totalRoundTripTime", pair.totalRoundTrip)
      stats.set("currentRoundTripTime", pair.currentRoundTrip)
      if pair.selected {
        let flow = bundle.flow
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

// MARK: - CertificateTexts

/// A cache of certificates in the form that stats show.
///
/// All reports contain the same few certificates, and hashing and encoding one takes longer than
/// most of a report.
final class CertificateTexts {
  struct Texts {
    let fingerprint: CertificateFingerprint
    let base64: String
  }

  private var known: [(certificate: [UInt8], texts: Texts)] = []

  /// The maximum number of cached certificates.
  private static let limit = 8

  /// Returns the fingerprint and the base64 form of a certificate in DER.
  func texts(of certificate: [UInt8]) -> Texts {
    for index in known.indices where known[index].certificate == certificate {
      return known[index].texts
    }
    let texts = Texts(
      fingerprint: certificateFingerprint(certificate), base64: base64(certificate))
    if known.count == CertificateTexts.limit { known.removeFirst() }
    known.append((certificate, texts))
    return texts
  }
}

/// Encodes bytes as base64 (RFC 4648 section 4).
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
