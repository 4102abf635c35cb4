import ICE
import Observer
import Peer
import Secure
import Stats
import Wire

/// The transports and candidate pairs of observed calls, as each end's statistics describe them.
///
/// A pair counts media and data, as W3C specifies. Handshakes and connectivity checks do not add to
/// these counts.
struct ObservedTransports {
  private struct Transport {
    var number: Int
    var call: Int
    var usernameFragments: [String?]
    var ice: [String] = ["new", "new"]
    var roles: [String] = ["unknown", "unknown"]
    var dtls: [String] = ["new", "new"]
    var handshake: DTLSFacts?
    var candidates: [ObservedCandidate] = []
    /// The indexes of the transport's pairs in `ObservedTransports.pairs`.
    var pairs: [Int] = []
    var selected: Int?
    var selectedChanges = 0
  }

  private struct Pair {
    var seen: ObservedPair
    /// The number of packets, by the end that sent them.
    var packets: [UInt64] = [0, 0]
    var bytes: [UInt64] = [0, 0]
    var last: [Instant?] = [nil, nil]
  }

  private var transports: [Transport] = []
  private var pairs: [Pair] = []
  /// The indexes of transports by their number.
  private var transportPlaces: [Int: Int] = [:]
  /// The indexes of the transports in each call.
  private var placesOfCall: [Int: [Int]] = [:]
  private var pairPlaces: [Int: Int] = [:]

  /// The maximum numbers of pairs and candidates per transport in a report; otherwise checks from
  /// one new address after another would make reports longer and longer.
  private static let pairsMaximum = 32
  private static let candidatesMaximum = 32
  /// The maximum number of transports per call in a report.
  private static let transportsMaximum = 64

  // MARK: Traffic

  mutating func handle(_ output: Observer.Output) {
    switch output {
    case .transport(let transport): learn(transport)
    case .state(let state): learn(state)
    case .candidate(let candidate): learn(candidate)
    case .pair(let pair), .checked(let pair): learn(pair)
    case .handshake(let number, let facts):
      if let place = transportPlaces[number] { transports[place].handshake = facts }
    case .packet(let packet): count(packet)
    case .call, .carried, .keys, .stream, .extensions, .description, .coverage: break
    }
  }

  private mutating func learn(_ transport: ObservedTransport) {
    guard let place = transportPlaces[transport.number] else {
      transportPlaces[transport.number] = transports.count
      placesOfCall[transport.call, default: []].append(transports.count)
      transports.append(
        Transport(
          number: transport.number, call: transport.call,
          usernameFragments: transport.usernameFragments))
      return
    }
    let before = transports[place].call
    if before != transport.call {
      placesOfCall[before]?.removeAll { $0 == place }
      let list = placesOfCall[transport.call] ?? []
      placesOfCall[transport.call, default: []]
        .insert(place, at: list.firstIndex { $0 > place } ?? list.count)
    }
    transports[place].call = transport.call
    transports[place].usernameFragments = transport.usernameFragments
  }

  private mutating func learn(_ state: ObservedState) {
    guard let place = transportPlaces[state.transport] else { return }
    switch state.machine {
    case "ice-connection": transports[place].ice[state.end] = state.to
    case "ice-role": transports[place].roles[state.end] = state.to
    case "dtls": transports[place].dtls[state.end] = state.to
    default: break
    }
  }

  private mutating func learn(_ candidate: ObservedCandidate) {
    guard let place = transportPlaces[candidate.transport] else { return }
    let known = transports[place].candidates.firstIndex {
      $0.end == candidate.end && $0.address == candidate.address
    }
    if let known {
      transports[place].candidates[known] = candidate
    } else if transports[place].candidates.count < Self.candidatesMaximum {
      transports[place].candidates.append(candidate)
    }
  }

  private mutating func learn(_ pair: ObservedPair) {
    guard let transport = transportPlaces[pair.transport] else { return }
    let place = pairPlaces[pair.number] ?? pairs.count
    if place == pairs.count {
      pairPlaces[pair.number] = place
      pairs.append(Pair(seen: pair))
      if transports[transport].pairs.count < Self.pairsMaximum {
        transports[transport].pairs.append(place)
      }
    }
    pairs[place].seen = pair
    if pair.isSelected, transports[transport].selected != place {
      transports[transport].selected = place
      transports[transport].selectedChanges += 1
    }
  }

  private mutating func count(_ packet: ObservedPacket) {
    guard let place = pairPlaces[packet.pair] else { return }
    pairs[place].packets[packet.from] += 1
    pairs[place].bytes[packet.from] += UInt64(packet.wireSize)
    pairs[place].last[packet.from] = packet.at
  }

  // MARK: Statistics

  /// Returns the transports of a call as stats objects of one end, each with its pairs, candidates
  /// and certificates.
  ///
  /// - Parameter peer: the end's peer number, which the objects' ids contain.
  func objects(
    ofCall call: Int, end: Int, peer: UInt32, at now: Instant, _ wallClock: WallClock
  ) -> [StatsObject] {
    let side = Side(end: end, peer: peer, now: now, wallClock: wallClock)
    var objects: [StatsObject] = []
    for place in placesOfCall[call, default: []].prefix(Self.transportsMaximum) {
      let transport = transports[place]
      objects.append(side.transport(transport, pairs))
      objects += side.certificates(transport)
      objects += transport.candidates.map { side.candidate($0, transport) }
      objects += transport.pairs.map { side.pair(pairs[$0]) }
    }
    return objects
  }

  /// One end's view of a transport at a certain time.
  private struct Side {
    var end: Int
    var peer: UInt32
    var now: Instant
    var wallClock: WallClock

    private func id(_ prefix: String, _ key: some CustomStringConvertible) -> String {
      "\(prefix)\(peer)-\(key)"
    }

    private func builder(_ type: String, _ id: String) -> StatsBuilder {
      StatsBuilder(id: id, type: type, timestamp: wallClock.milliseconds(at: now))
    }

    private func candidateID(_ transport: Int, _ address: SocketAddress, of side: Int) -> String {
      id(side == end ? "L" : "R", "\(transport)-\(address)")
    }

    func transport(_ transport: Transport, _ pairs: [Pair]) -> StatsObject {
      var stats = builder("transport", id("T", transport.number))
      let own = transport.pairs.map { pairs[$0] }
      stats.set("packetsSent", own.reduce(0) { $0 + $1.packets[end] })
      stats.set("packetsReceived", own.reduce(0) { $0 + $1.packets[1 - end] })
      stats.set("bytesSent", own.reduce(0) { $0 + $1.bytes[end] })
      stats.set("bytesReceived", own.reduce(0) { $0 + $1.bytes[1 - end] })
      stats.set("iceRole", transport.roles[end])
      stats.set("iceLocalUsernameFragment", transport.usernameFragments[end])
      stats.set("dtlsState", transport.dtls[end])
      stats.set("iceState", transport.ice[end])
      stats.set(
        "selectedCandidatePairId", transport.selected.map { id("P", pairs[$0].seen.number) })
      if let facts = transport.handshake {
        for side in 0..<2 where facts.fingerprints[side] != nil {
          stats.set(
            side == end ? "localCertificateId" : "remoteCertificateId",
            certificateID(transport, side))
        }
        // webrtc-stats specifies four hexadecimal digits.
        stats.set(
          "tlsVersion",
          facts.version.map { hexadecimal([UInt8($0 >> 8), UInt8($0 & 255)]).uppercased() })
        stats.set("dtlsCipher", facts.cipherSuite?.name)
        stats.set("dtlsRole", facts.client == end ? "client" : "server")
        stats.set("srtpCipher", facts.profileName)
      }
      stats.set("selectedCandidatePairChanges", transport.selectedChanges)
      return stats.build()
    }

    private func certificateID(_ transport: Transport, _ side: Int) -> String {
      id("F", "\(side == end ? "local" : "remote")-\(transport.number)")
    }

    func certificates(_ transport: Transport) -> [StatsObject] {
      (0..<2).compactMap { side in
        guard let fingerprint = transport.handshake?.fingerprints[side] else { return nil }
        var stats = builder("certificate", certificateID(transport, side))
        stats.set("fingerprint", fingerprint.value)
        stats.set("fingerprintAlgorithm", fingerprint.algorithm)
        return stats.build()
      }
    }

    func candidate(_ candidate: ObservedCandidate, _ transport: Transport) -> StatsObject {
      var stats = builder(
        candidate.end == end ? "local-candidate" : "remote-candidate",
        candidateID(candidate.transport, candidate.address, of: candidate.end))
      stats.set("transportId", id("T", candidate.transport))
      stats.set("address", "\(candidate.address.ip)")
      stats.set("port", candidate.address.port)
      stats.set("protocol", "\(candidate.transportProtocol)")
      stats.set("candidateType", candidate.kind?.rawValue)
      stats.set("priority", candidate.priority)
      stats.set("foundation", candidate.foundation)
      stats.set("usernameFragment", transport.usernameFragments[candidate.end])
      return stats.build()
    }

    func pair(_ pair: Pair) -> StatsObject {
      let seen = pair.seen
      var stats = builder("candidate-pair", id("P", seen.number))
      stats.set("transportId", id("T", seen.transport))
      stats.set(
        "localCandidateId", candidateID(seen.transport, seen.addresses[end], of: end))
      stats.set(
        "remoteCandidateId", candidateID(seen.transport, seen.addresses[1 - end], of: 1 - end))
      stats.set("state", seen.hasSucceeded[end] ? "succeeded" : "in-progress")
      stats.set("nominated", seen.isNominated)
      stats.set("packetsSent", pair.packets[end])
      stats.set("packetsReceived", pair.packets[1 - end])
      stats.set("bytesSent", pair.bytes[end])
      stats.set("bytesReceived", pair.bytes[1 - end])
      stats.set(
        "lastPacketSentTimestamp", pair.last[end].map { wallClock.milliseconds(at: $0) })
      stats.set(
        "lastPacketReceivedTimestamp", pair.last[1 - end].map { wallClock.milliseconds(at: $0) })
      stats.set("currentRoundTripTime", seen.roundTrips[end])
      stats.set("totalRoundTripTime", seen.totalRoundTrips[end].seconds)
      stats.set("requestsReceived", seen.requests[1 - end])
      stats.set("requestsSent", seen.requests[end])
      stats.set("responsesReceived", seen.responses[1 - end])
      stats.set("responsesSent", seen.responses[end])
      return stats.build()
    }
  }
}

extension DTLSFacts {
  /// The profile's IANA name, or its SDES name if it has no IANA name; nil if the profile is
  /// unknown.
  var profileName: String? {
    guard let profile else { return nil }
    return SRTPProtection(profile)?.rawValue ?? SRTPSuite(profile)?.rawValue
  }
}
