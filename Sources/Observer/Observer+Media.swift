import Decryption
import RTP
import Secure
import Wire

// RTP and RTCP, in the clear or not.
extension Observer {
  /// How many streams a transport may have; more sources than that are made up.
  private static let streamsMaximum = 1024
  /// With how many streams a retransmission is compared.
  private static let repairedMaximum = 64

  /// A packet of RTP or RTCP.
  mutating func receiveMedia(
    _ tuple: FiveTuple, _ bytes: consuming [UInt8], _ isTruncated: Bool, isRTCP: Bool,
    _ isRelayed: Bool
  ) {
    guard let (path, from) = table.find(tuple) else {
      return tryOut(tuple, bytes, isTruncated, isRelayed)
    }
    guard count(bytes, on: path, from: from, isRelayed: isRelayed) else { return }
    let index = table.paths[path].transportIndex
    let packet = WaitingPacket(
      bytes: bytes, path: path, from: from, isRTCP: isRTCP, at: now)
    if isTruncated {
      tell(.truncated, transport: index + 1)
      return give(packet, index, isClear: false)
    }
    receive(packet, index)
  }

  /// Lets packets of an unknown path show whether they are RTP.
  private mutating func tryOut(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    guard !table.isIgnored(tuple) else { return ignore() }
    let packet = Probation.Packet(tuple: tuple, bytes: bytes, isTruncated: isTruncated, at: now)
    switch probation.take(packet) {
    case .notYet: break
    case .ignored:
      table.ignore(tuple)
      ignore()
    case .call(let packets):
      guard let (path, _) = placeUnannounced(tuple, isRelayed) else {
        table.ignore(tuple)
        return ignore()
      }
      tell(.lateStart, transport: table.paths[path].pair.transport)
      let present = now
      for packet in packets {
        time.move(to: packet.at)
        receive(
          packet.tuple, packet.bytes, isTruncated: packet.isTruncated, isRelayed: isRelayed)
      }
      time.move(to: present)
    }
  }

  /// Opens a packet, or lets it wait for what opens it.
  private mutating func receive(_ packet: consuming WaitingPacket, _ index: Int) {
    if transports[index].media.hasKeys(packet.from) {
      return open(packet, index)
    }
    if transports[index].media.protection == .unknown {
      let shown = transports[index].media.look(
        at: packet.bytes.span.bytes, isRTCP: packet.isRTCP)
      if shown != .unknown { settle(index, shown) }
    }
    switch transports[index].media.protection {
    case .clear: give(packet, index, isClear: true)
    case .unknown, .protected:
      probe(packet, index)
      if transports[index].media.hasKeys(packet.from) { return open(packet, index) }
      // What may be in the clear shows that soon.
      guard keys.areAwaited || transports[index].media.isUndecided else {
        if transports[index].media.waiting.count > 0 { releaseWaiting(index, isOver: true) }
        return give(packet, index, isClear: false)
      }
      keys.hold(bytes: packet.bytes.count)
      transports[index].media.hold(packet)
      while transports[index].media.waiting.count > settings.waitingPacketsMaximum
        || keys.holdsTooMuch,
        let oldest = transports[index].media.popWaiting()
      {
        keys.release(bytes: oldest.bytes.count)
        tell(.waitingOverflow, transport: index + 1)
        give(oldest, index, isClear: false)
      }
    }
  }

  /// Settles whether a transport's media is protected, unless keys showed it already.
  mutating func settle(_ index: Int, _ protection: MediaOpener.Protection) {
    guard transports[index].media.protection == .unknown else { return }
    transports[index].media.settle(protection)
    if protection == .clear { releaseWaiting(index) }
  }

  /// Opens a packet with the keys that there are.
  private mutating func open(_ packet: consuming WaitingPacket, _ index: Int) {
    var packet = packet
    let size = packet.bytes.count
    let (from, isRTCP) = (packet.from, packet.isRTCP)
    if Self.isCryptex(packet) { return give(packet, index, isClear: false) }
    switch transports[index].media.open(&packet.bytes, from: from, isRTCP: isRTCP) {
    case .opened: give(packet, index, isClear: true, wireSize: size)
    case .repeated: countRepeated(packet, index)
    case .refused:
      tell(.notOpened, transport: index + 1)
      give(packet, index, isClear: false)
    case .noKey: give(packet, index, isClear: false)
    }
  }

  /// Whether a packet is one that no key opens here: libsrtp2 authenticates it as it should, and
  /// then decrypts what means nothing (RFC 9335 section 6.2).
  private static func isCryptex(_ packet: borrowing WaitingPacket) -> Bool {
    guard !packet.isRTCP else { return false }
    let header = try? RTPHeader(parsing: packet.bytes.span.bytes, isProtected: true)
    return header?.hasEncryptedElements == true
  }

  /// Gives those packets on that wait and can be opened now, or need not be.
  mutating func releaseWaiting(_ index: Int, isOver: Bool = false) {
    var waiting = transports[index].media.takeWaiting()
    while let packet = waiting.popFirst() {
      let isReady =
        isOver || transports[index].media.protection == .clear
        || transports[index].media.hasKeys(packet.from)
      guard isReady else {
        transports[index].media.hold(packet)
        continue
      }
      keys.release(bytes: packet.bytes.count)
      if transports[index].media.hasKeys(packet.from) {
        open(packet, index)
      } else {
        give(packet, index, isClear: transports[index].media.protection == .clear)
      }
    }
  }

  // MARK: Giving on

  /// Tells of a packet, with the stream that it belongs to.
  private mutating func give(
    _ packet: consuming WaitingPacket, _ index: Int, isClear: Bool, wireSize: Int? = nil
  ) {
    let size = wireSize ?? packet.bytes.count
    if !isClear, !(transports[index].media.hasKeys(packet.from) && Self.isCryptex(packet)) {
      tell(.noKeys, transport: index + 1)
    }
    let kind: ObservedPacket.Kind
    if packet.isRTCP {
      kind = .rtcp
      if isClear { readControl(packet.bytes.span.bytes, index, packet.from) }
    } else {
      guard
        let header = try? RTPHeader(parsing: packet.bytes.span.bytes, isProtected: !isClear)
      else { return ignore() }
      if header.hasEncryptedElements { tell(.cryptex, transport: index + 1) }
      guard let stream = note(header, packet, index, isClear: isClear, size: size) else { return }
      kind = .rtp(header, stream: stream + 1)
    }
    emit(
      .packet(
        ObservedPacket(
          kind: kind, transport: index + 1, from: packet.from,
          pair: table.paths[packet.path].pair.number, at: packet.at, bytes: packet.bytes,
          isClear: isClear, wireSize: size)))
  }

  /// Counts a packet for its stream, which may begin with it.
  private mutating func note(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ index: Int, isClear: Bool, size: Int
  ) -> Int? {
    let from = packet.from
    var place = streamTable.find(transport: index + 1, from: from, ssrc: header.ssrc)
    if place == nil {
      if let known = joinedStream(
        index, from: from, ssrc: header.ssrc, sequence: header.sequence),
        budget.moves(
          streams: transports[streamTable.entries[known].stream.transport - 1].streams.count)
      {
        join(index, with: known, from: from)
        place = known
      } else {
        place = beginStream(header, index, from)
      }
    }
    guard let place else { return nil }
    let isNewType = streamTable.update(place) { entry in
      entry.lastPayloadType != header.payloadType
    }
    if isNewType { learnPayloadType(header.payloadType, place, index) }
    if isClear, streamTable.entries[place].redundantType == header.payloadType {
      lookInside(header, packet, place, index)
    }
    let at = packet.at
    let isDeducing = streamTable.update(place) { entry in
      entry.highest = header.sequence
      entry.lastTime = header.timestamp
      if !isClear { entry.sealedPackets += 1 }
      entry.statistics.add(
        header.sequence, header.timestamp, size: size, at: at, clockRate: entry.clockRate)
      return !entry.deduction.isOver
    }
    if isDeducing { deduce(header, packet, place, index, isClear: isClear) }
    if header.extensionProfile != 0, !transports[index].extensions.isOver {
      deduceExtensions(header, packet, place, index)
    }
    return place
  }

  /// Finds out what a redundant payload carries (RFC 2198).
  private mutating func lookInside(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int
  ) {
    guard let inner = RED.primary(packet.bytes.span.bytes, in: header.payload) else { return }
    let type = inner.payloadType
    let stream = streamTable.entries[place].stream
    if inner.redundantBlocks > 0 {
      tell(.redundancy, transport: index + 1, detail: "older payloads in RED")
    }
    let known = stream.payloads.first { $0.payloadType == type }
    guard let meaning = known ?? meaning(of: type, index, from: stream.from) else { return }
    guard known == nil else { return }
    learn(meaning, place)
  }

  /// Lets packets show which header extensions they have, which are in the clear as headers are.
  private mutating func deduceExtensions(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int
  ) {
    let kind = streamTable.entries[place].stream.kind
    guard
      let map = transports[index].extensions.take(
        header, packet.bytes.span.bytes, from: packet.from, kind: kind, at: packet.at)
    else { return }
    emit(.extensions(transport: index + 1, map, .deduced))
  }

  /// Lets a packet show what its stream carries, where nothing else tells.
  private mutating func deduce(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int,
    isClear: Bool
  ) {
    let at = packet.at
    let deduced = streamTable.update(place) { entry in
      entry.deduction.take(header, packet.bytes.span.bytes, isClear: isClear, at: at)
    }
    if let deduced { return learn(deduced, place) }
    guard isClear, let original = RTX.unwrap(packet.bytes.span.bytes, header: header)?.sequence
    else { return }
    for other in transports[index].streams.prefix(Observer.repairedMaximum) where other != place {
      let entry = streamTable.entries[other]
      guard entry.stream.from == packet.from, entry.stream.kind == .video,
        abs(Int(Int16(bitPattern: original &- entry.highest))) < 2000,
        abs(Int(Int32(bitPattern: header.timestamp &- entry.lastTime))) < 180_000
      else { continue }
      let ssrc = entry.stream.ssrc
      guard let repaired = streamTable.update(place, { $0.deduction.takeRepair(of: ssrc) }) else {
        continue
      }
      streamTable.update(place) { entry in
        entry.stream.repairs = repaired
        entry.stream.repairsHow = .deduced
      }
      return learn(
        PayloadMeaning(
          payloadType: header.payloadType, codec: "rtx", clockRate: 90_000, kind: .video,
          how: .deduced), place)
    }
  }

  private mutating func beginStream(_ header: RTPHeader, _ index: Int, _ from: Int) -> Int? {
    guard transports[index].streams.count < Observer.streamsMaximum else {
      ignore()
      return nil
    }
    var stream = ObservedStream(number: 0, transport: index + 1, from: from, ssrc: header.ssrc)
    if let number = transports[index].descriptions[from],
      let source = descriptionTable.entries[number].source(header.ssrc)
    {
      stream.mid = source.mid
      stream.canonicalName = source.canonicalName
      stream.repairs = source.repairs
      stream.repairsHow = source.repairs == nil ? nil : .description
    }
    guard let place = streamTable.begin(stream) else { return nil }
    transports[index].add(stream: place)
    learnPayloadType(header.payloadType, place, index)
    emit(.stream(streamTable.entries[place].stream))
    return place
  }

  /// Looks up what a payload type of a stream stands for.
  private mutating func learnPayloadType(_ type: UInt8, _ place: Int, _ index: Int) {
    let from = streamTable.entries[place].stream.from
    let meaning = meaning(of: type, index, from: from)
    let isNews = streamTable.update(place) { entry in
      entry.lastPayloadType = type
      guard let meaning, !entry.stream.payloads.contains(where: { $0.payloadType == type }) else {
        return false
      }
      entry.stream.payloads.append(meaning)
      entry.clockRate = entry.stream.clockRate
      entry.deduction.stop()
      return entry.statistics.packets > 0
    }
    if isNews { emit(.stream(streamTable.entries[place].stream)) }
  }

  private mutating func learn(_ meaning: PayloadMeaning, _ place: Int) {
    streamTable.update(place) { entry in
      entry.stream.payloads.removeAll { $0.payloadType == meaning.payloadType }
      entry.stream.payloads.append(meaning)
      entry.clockRate = entry.stream.clockRate
    }
    emit(.stream(streamTable.entries[place].stream))
  }

  private mutating func countRepeated(_ packet: borrowing WaitingPacket, _ index: Int) {
    guard !packet.isRTCP, packet.bytes.count >= RTPHeader.fixedLength else { return }
    let ssrc = packet.bytes.span.bytes.uint32(at: 8)
    if let place = streamTable.find(transport: index + 1, from: packet.from, ssrc: ssrc) {
      streamTable.update(place) { $0.statistics.addDuplicate() }
    }
  }

  /// Takes the names of sources out of RTCP (RFC 3550 section 6.5.1).
  private mutating func readControl(_ bytes: RawSpan, _ index: Int, _ from: Int) {
    for case .sourceDescription(let description) in RTCPCompound(parsing: bytes).packets {
      for chunk in description.chunks {
        let name = chunk.cname
        guard !name.isEmpty,
          let place = streamTable.find(transport: index + 1, from: from, ssrc: chunk.ssrc),
          streamTable.entries[place].stream.canonicalName != name,
          streamTable.entries[place].names < ReportBudget.namesMaximum
        else { continue }
        streamTable.update(place) { entry in
          entry.stream.canonicalName = name
          entry.names += 1
        }
        emit(.stream(streamTable.entries[place].stream))
      }
    }
  }
}

extension RTPHeader {
  /// Whether the header extensions are encrypted, which two profiles tell (RFC 9335 section 5).
  fileprivate var hasEncryptedElements: Bool {
    extensionProfile == 0xc0de || extensionProfile == 0xc2de
  }
}
