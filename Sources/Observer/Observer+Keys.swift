import RTP
import Secure
import Wire

// Keys, whenever they come.
extension Observer {
  /// Takes further bytes of a key log: whatever waits for its secrets goes on.
  mutating func take(keyLog bytes: [UInt8]) {
    let news = Set(keys.append(bytes))
    guard !news.isEmpty else { return }
    for index in transports.indices {
      guard let facts = transports[index].dtls.facts, news.contains(facts.clientRandom) else {
        continue
      }
      dtlsEvents.removeAll(keepingCapacity: true)
      transports[index].dtls.retry(keys.log, into: &dtlsEvents)
      handleDTLSEvents(index, transports[index].selectedPath ?? transports[index].firstPath ?? 0)
      transports[index].media.renewAttempts()
      probeWaiting(index)
    }
  }

  /// Takes a key that somebody gave.
  mutating func take(_ key: SRTPKey) {
    guard keys.add(key) else { return }
    for index in transports.indices {
      transports[index].media.renewAttempts()
      probeWaiting(index)
    }
  }

  /// Gives on all that waits: no more keys will come.
  mutating func stopWaiting() {
    keys.stopWaiting()
    for index in transports.indices { releaseWaiting(index, isOver: true) }
  }

  /// Tells of keys that were given and fit nothing, unless others opened what there is.
  mutating func reportUnusedKeys() {
    guard keys.unusedCount > 0, !keys.hasOthers else { return }
    tell(.unusedKey, by: UInt64(keys.unusedCount), detail: "SRTP keys that open no packet")
  }

  /// Opens what both ends send from now on with what DTLS agreed on.
  mutating func install(_ profile: SRTPProfile, _ keys: [[UInt8]], _ index: Int) {
    guard let suite = SRTPSuite(profile), keys.count == 2 else { return }
    for end in 0..<2 {
      guard let receiver = try? SRTPReceiver(suite, key: keys[end]) else { return }
      transports[index].media.add(receiver, for: end)
    }
    self.keys.useThoseOfDTLS()
    emit(
      .keys(
        ObservedKeys(
          transport: index + 1, end: nil, suite: suite, source: .dtls,
          waitingPackets: transports[index].media.waiting.count)))
    releaseWaiting(index)
  }

  /// Tries the keys that may be for a packet.
  mutating func probe(_ packet: borrowing WaitingPacket, _ index: Int) {
    guard transports[index].media.mayProbe(packet.from) else { return }
    // Where the server's choice was not seen, it is one of the client's offers.
    if let facts = transports[index].dtls.facts, !facts.profileIsKnown {
      for profile in facts.offeredProfiles {
        guard let suite = SRTPSuite(profile),
          let pair = transports[index].dtls.srtpKeys(profile, keys.log)
        else { continue }
        let key = SRTPKey(suites: [suite], bytes: pair[packet.from])
        if transports[index].media.probe(copy packet, [key]) != nil {
          return install(profile, pair, index)
        }
      }
    }
    var candidates: [(key: SRTPKey, source: ObservedKeys.Source)] = []
    if let number = transports[index].descriptions[packet.from] {
      candidates += descriptionTable.entries[number].srtpKeys.map { ($0, .description) }
    }
    candidates += keys.given.filter { fits($0.scope, packet) }.map { ($0, .given) }
    for (key, source) in candidates {
      guard let (receiver, suite) = transports[index].media.probe(copy packet, [key]) else {
        continue
      }
      transports[index].media.add(receiver, for: packet.from)
      keys.use(key, isGiven: source == .given)
      emit(
        .keys(
          ObservedKeys(
            transport: index + 1, end: packet.from, suite: suite, source: source,
            waitingPackets: transports[index].media.waiting.count)))
      releaseWaiting(index)
      return
    }
  }

  private func fits(_ scope: SRTPKey.Scope, _ packet: borrowing WaitingPacket) -> Bool {
    switch scope {
    case .any: return true
    case .ssrc(let ssrc):
      let offset = packet.isRTCP ? 4 : 8
      return packet.bytes.count >= offset + 4
        && packet.bytes.span.bytes.uint32(at: offset) == ssrc
    case .source(let ip, let port):
      let address = table.paths[packet.path].pair.addresses[packet.from]
      return address.ip == ip && port ?? address.port == address.port
    }
  }

  /// Tries keys on the packets that wait, the first of each source.
  func waitingSamples(_ index: Int) -> [WaitingPacket] {
    transports[index].media.waiting.firstOfEachSource(limit: 16)
  }

  private mutating func probeWaiting(_ index: Int) {
    for packet in waitingSamples(index)
    where !transports[index].media.hasKeys(packet.from) {
      probe(packet, index)
    }
  }
}
