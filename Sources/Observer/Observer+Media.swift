import RTP
import Secure
import Wire

// Handles RTP and RTCP, encrypted or not.
extension Observer {
  mutating func receiveMedia(
    _ tuple: FiveTuple, _ bytes: consuming [UInt8], _ isTruncated: Bool, isRTCP: Bool,
    _ isRelayed: Bool
  ) {
    guard let (path, from) = table.find(tuple) else {
      return tryOut(tuple, bytes, isTruncated, isRelayed)
    }
    guard count(bytes, on: path, from: from, isRelayed: isRelayed) else { return }
    let index = table.paths[path].transportIndex
    recordMedia(on: path, from: from, isMedia: true)
    connectByMedia(index, path, from)
    let packet = WaitingPacket(
      bytes: bytes, path: path, from: from, isRTCP: isRTCP, at: now, ecn: mark)
    if isTruncated {
      countUnseen(.truncated, transport: index + 1)
      return deliver(packet, index, isClear: false)
    }
    receive(packet, index)
  }

  /// Connects ends that are still checking once media flows in both directions, or on a path with a
  /// successful check.
  private mutating func connectByMedia(_ index: Int, _ path: Int, _ from: Int) {
    transports[index].hasSentMedia[from] = true
    guard transports[index].checks.isChecking else { return }
    let pair = table.paths[path].pair
    guard transports[index].hasSentMedia[1 - from] || pair.hasSucceeded[0] || pair.hasSucceeded[1]
    else { return }
    emit(transports[index].checks.connectByMedia(at: now), index)
  }

  /// Examines packets on an unknown path until they prove to be RTP.
  private mutating func tryOut(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    guard !table.isIgnored(tuple) else { return ignore() }
    let packet = Probation.Packet(
      tuple: tuple, bytes: bytes, isTruncated: isTruncated, at: now, ecn: mark)
    switch probation.examine(packet) {
    case .notYet: break
    case .ignored:
      table.ignore(tuple)
      ignore()
    case .call(let packets):
      guard let (path, _) = placeUnannounced(tuple, isRelayed) else {
        table.ignore(tuple)
        return ignore()
      }
      countUnseen(.lateStart, transport: table.paths[path].pair.transport)
      receive(packets, isRelayed)
    }
  }

  /// Processes packets that waited, each at its capture time.
  mutating func receive(_ packets: [Probation.Packet], _ isRelayed: Bool) {
    let present = (now, mark)
    for packet in packets {
      time.move(to: packet.at)
      mark = packet.ecn
      receive(packet.tuple, packet.bytes, isTruncated: packet.isTruncated, isRelayed: isRelayed)
    }
    time.move(to: present.0)
    mark = present.1
  }

  /// Decrypts a packet, or queues it until its key is known.
  private mutating func receive(_ packet: consuming WaitingPacket, _ index: Int) {
    if transports[index].media.hasKeys(packet.from) {
      return open(packet, index)
    }
    // With DTLS, media is encrypted with the keys that it negotiates (RFC 5764 section 4.1).
    let isOpen = !packet.isRTCP || transports[index].media.protection == .unknown
    if isOpen, transports[index].media.mayBeClear, transports[index].dtls.facts == nil {
      let shown = transports[index].media.look(
        at: packet.bytes.span.bytes, isRTCP: packet.isRTCP, from: packet.from)
      if shown == .clear { showClear(index) } else if shown == .protected { settle(index, shown) }
    }
    if transports[index].media.protection == .unknown, isClearBySettings(index) {
      settle(index, .clear)
    }
    switch transports[index].media.protection {
    case .clear: deliver(packet, index, isClear: true)
    case .unknown, .protected:
      probe(packet, index)
      if transports[index].media.hasKeys(packet.from) { return open(packet, index) }
      // A transport whose media may be unencrypted is undecided for a few packets only, so these
      // wait even if no keys are awaited.
      guard keys.areAwaited || transports[index].media.isUndecided else {
        if transports[index].media.waiting.count > 0 { releaseWaiting(index, isOver: true) }
        return deliver(packet, index, isClear: false)
      }
      keys.hold(bytes: packet.bytes.count)
      transports[index].media.waiting.append(packet)
      while transports[index].media.waiting.count > settings.waitingPacketsMaximum
        || keys.holdsTooMuch,
        let oldest = transports[index].media.waiting.popFirst()
      {
        keys.release(bytes: oldest.bytes.count)
        countUnseen(.waitingOverflow, transport: index + 1)
        deliver(oldest, index, isClear: false)
      }
    }
  }

  /// Sets whether a transport's media is encrypted, unless that is already known.
  mutating func settle(_ index: Int, _ protection: MediaOpener.Protection) {
    guard transports[index].media.protection == .unknown else { return }
    transports[index].media.settle(protection)
    if protection == .clear { releaseWaiting(index) }
  }

  /// Handles packets that proved to be unencrypted, even if descriptions say otherwise.
  mutating func showClear(_ index: Int) {
    guard transports[index].media.mayBeClear else { return }
    transports[index].media.showClear()
    releaseWaiting(index)
  }

  /// Decrypts a packet with the available keys, and reports it.
  private mutating func open(_ packet: consuming WaitingPacket, _ index: Int) {
    var packet = packet
    let size = packet.bytes.count
    let (from, isRTCP) = (packet.from, packet.isRTCP)
    if Self.isCryptex(packet) { return deliver(packet, index, isClear: false) }
    // A failed attempt overwrites the bytes, which another key may still decrypt.
    let sealed = mayChangeKey(index, from) ? packet.bytes : nil
    switch transports[index].media.open(&packet.bytes, from: from, isRTCP: isRTCP) {
    case .opened: deliver(packet, index, isClear: true, wireSize: size)
    case .repeated: countRepeated(packet, index)
    case .refused:
      if let sealed {
        packet.bytes = sealed
        if probe(packet, index) { return open(packet, index) }
      }
      countUnseen(.notOpened, transport: index + 1)
      deliver(packet, index, isClear: false)
    case .noKey: deliver(packet, index, isClear: false)
    }
  }

  /// Returns whether header extensions are encrypted in a way that libsrtp2 does not support.
  ///
  /// libsrtp2 authenticates such packets, but then decrypts them wrongly (RFC 9335 section 6.2).
  static func isCryptex(_ packet: borrowing WaitingPacket) -> Bool {
    guard !packet.isRTCP else { return false }
    let header = try? RTPHeader(parsing: packet.bytes.span.bytes, isProtected: true)
    return header?.hasEncryptedElements == true
  }

  /// Processes waiting packets that can be decrypted now, or that need no key.
  mutating func releaseWaiting(_ index: Int, isOver: Bool = false) {
    var waiting = transports[index].media.removeWaiting()
    while let packet = waiting.popFirst() {
      let isReady =
        isOver || transports[index].media.protection == .clear
        || transports[index].media.hasKeys(packet.from)
      guard isReady else {
        transports[index].media.waiting.append(packet)
        continue
      }
      keys.release(bytes: packet.bytes.count)
      if transports[index].media.hasKeys(packet.from) {
        open(packet, index)
      } else {
        deliver(packet, index, isClear: transports[index].media.protection == .clear)
      }
    }
  }
}

extension SRTPKey {
  /// Returns whether a packet has the key's identifier (MKI), or may have none because the key has
  /// none.
  ///
  /// The identifier precedes the authentication tag, or ends the packet if the tag is a part of the
  /// ciphertext (RFC 3711 section 3.1, RFC 7714 section 8.1).
  fileprivate func isNamed(in packet: borrowing WaitingPacket) -> Bool {
    guard !identifier.isEmpty else { return true }
    return suites.contains { suite in
      let tag = packet.isRTCP ? suite.controlTagLength : suite.tagLength
      let rest = packet.bytes.dropLast(suite.isAEAD ? 0 : tag)
      return rest.suffix(identifier.count).elementsEqual(identifier)
    }
  }
}

extension RTPHeader {
  /// Whether the header extensions are encrypted, which either of two profile values signals (RFC
  /// 9335 section 5).
  var hasEncryptedElements: Bool {
    extensionProfile == 0xc0de || extensionProfile == 0xc2de
  }
}

// MARK: - DTLS

// Handles DTLS: associations, their states, and the keys and SCTP packets that they yield.
extension Observer {
  /// Returns whether a datagram begins with a ClientHello or a fragment of one (RFC 6347 section
  /// 4.2).
  static func beginsAssociation(_ bytes: [UInt8]) -> Bool {
    bytes.count > 25 && bytes[0] == 22 && bytes[1] == 0xfe && bytes[13] == 1
  }

  mutating func receiveDTLS(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    var found = table.find(tuple)
    if found == nil {
      // If checks were not captured, a ClientHello that offers SRTP begins a call.
      guard Self.beginsAssociation(bytes), !isTruncated else { return ignore() }
      let packet = CallGate.Admitted(
        tuple: tuple, bytes: bytes, isTruncated: false, at: now, ecn: mark)
      guard case .call(let packets) = helloTrials.consider(packet) else { return ignore() }
      found = placeUnannounced(tuple, isRelayed)
      if found != nil, packets.count > 1 { return receive(waited: packets, isRelayed: isRelayed) }
      if found == nil { return ignore() }
    }
    guard let (path, from) = found,
      count(bytes, on: path, from: from, isRelayed: isRelayed)
    else { return }
    let index = table.paths[path].transportIndex
    transports[index].recordBeginning()
    recordMedia(on: path, from: from, isMedia: false)
    guard !isTruncated else { return countUnseen(.truncated, transport: index + 1) }
    settle(index, .protected)
    dtlsEvents.removeAll(keepingCapacity: true)
    transports[index].dtls.receive(bytes, from: from, keys.log, into: &dtlsEvents)
    handleDTLSEvents(index, path)
  }

  /// Handles the events that a DTLS datagram caused.
  mutating func handleDTLSEvents(_ index: Int, _ path: Int) {
    var events: [DTLSFollower.Event] = []
    swap(&events, &dtlsEvents)
    for event in events {
      switch event {
      case .facts(let facts):
        emit(.handshake(transport: index + 1, facts))
        moveDTLS(index, facts.client, to: .connecting)
        if facts.serverRandom != nil { moveDTLS(index, 1 - facts.client, to: .connecting) }
        if let profile = facts.profile, SRTPSuite(profile) == nil {
          countUnseen(
            .unsupported, transport: index + 1, detail: "SRTP profile \(profile.rawValue)")
        }
      case .connected:
        for end in 0..<2 { moveDTLS(index, end, to: .connected) }
      case .srtpKeys(let profile, let keys): install(profile, keys, index)
      case .data(let from, let bytes):
        emit(
          .packet(
            ObservedPacket(
              kind: .sctp, transport: index + 1, from: from,
              pair: table.paths[path].pair.number, at: now, bytes: bytes, isClear: true,
              wireSize: bytes.count)))
      case .alert(let end, let description): receiveAlert(description, index, end)
      }
    }
  }

  /// Handles an alert (RFC 8446 section 6): close_notify closes the end, and any other alert means
  /// that it failed.
  private mutating func receiveAlert(_ description: UInt8?, _ index: Int, _ end: Int) {
    let state = transports[index].dtlsStates.state(after: description, of: end)
    moveDTLS(index, end, to: state)
    if state == .closed { emit(transports[index].checks.close(end), index) }
  }

  private mutating func moveDTLS(_ index: Int, _ end: Int, to state: DTLSTransportState) {
    guard let old = transports[index].dtlsStates.move(end, to: state) else { return }
    emit(
      .state(
        ObservedState(
          transport: index + 1, end: end, machine: "dtls", from: old.rawValue, to: state.rawValue))
    )
  }
}

// MARK: - Keys

// Handles keys, which may arrive at any time.
extension Observer {
  /// Adds bytes of a key log and processes whatever was waiting for its secrets.
  mutating func add(keyLog bytes: [UInt8]) {
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

  mutating func add(_ key: SRTPKey) {
    guard keys.add(key) else { return }
    for index in transports.indices {
      transports[index].media.renewAttempts()
      probeWaiting(index)
    }
  }

  /// Releases all waiting packets, because no more keys will arrive.
  mutating func stopWaiting() {
    keys.stopWaiting()
    for index in transports.indices { releaseWaiting(index, isOver: true) }
  }

  /// Reports supplied keys that decrypted nothing, unless there were keys from another source.
  mutating func reportUnusedKeys() {
    guard keys.unusedCount > 0, !keys.hasOthers else { return }
    countUnseen(.unusedKey, by: UInt64(keys.unusedCount), detail: "SRTP keys that open no packet")
  }

  /// Decrypts both ends' packets from now on with the keys negotiated by DTLS.
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

  /// Returns whether an end may change to another key: one that was supplied, or one in its
  /// description.
  ///
  /// An SDES line may have several keys (RFC 4568 section 6.1), and a new offer may change them.
  private func mayChangeKey(_ index: Int, _ end: Int) -> Bool {
    guard settings.followsKeys else { return false }
    let number = transports[index].descriptions[end]
    return !keys.given.isEmpty
      || number.map { !descriptionTable.entries[$0].srtpKeys.isEmpty } ?? false
  }

  /// Tries the keys whose scope includes a packet; returns whether one of them fits.
  @discardableResult
  mutating func probe(_ packet: borrowing WaitingPacket, _ index: Int) -> Bool {
    guard transports[index].media.mayProbe(packet.from) else { return false }
    // The server's choice, if unseen, is one of the client's offers.
    if let facts = transports[index].dtls.facts, !facts.profileIsKnown {
      for profile in facts.offeredProfiles {
        guard let suite = SRTPSuite(profile),
          let pair = transports[index].dtls.srtpKeys(profile, keys.log)
        else { continue }
        let key = SRTPKey(suites: [suite], bytes: pair[packet.from])
        if transports[index].media.probe(
          copy packet, [key], findsIdentifiers: settings.findsIdentifiers) != nil
        {
          install(profile, pair, index)
          return true
        }
      }
    }
    var candidates: [(key: SRTPKey, source: ObservedKeys.Source)] = []
    if let number = transports[index].descriptions[packet.from] {
      candidates += descriptionTable.entries[number].srtpKeys.map { ($0, .description) }
    }
    candidates += keys.given.filter { fits($0.scope, packet) }.map { ($0, .given) }
    for (key, source) in candidates {
      guard !settings.followsKeys || key.isNamed(in: packet) else { continue }
      guard
        let (receiver, suite) = transports[index].media.probe(
          copy packet, [key], findsIdentifiers: settings.findsIdentifiers)
      else { continue }
      transports[index].media.add(receiver, for: packet.from)
      keys.use(key, isGiven: source == .given)
      emit(
        .keys(
          ObservedKeys(
            transport: index + 1, end: packet.from, suite: suite, source: source,
            waitingPackets: transports[index].media.waiting.count)))
      releaseWaiting(index)
      return true
    }
    return false
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

  /// Returns waiting packets to try keys on: the first one of each source, at most 16.
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
