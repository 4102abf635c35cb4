import RTP
import Secure
import Wire

// Tracks streams, their packets and their contents.
extension Observer {
  /// The maximum number of streams per transport; further sources are assumed to be spoofed.
  private static let streamsMaximum = 1024
  /// The maximum number of single-packet sources per transport that are accepted as streams.
  private static let singlesMaximum = 4
  /// The hint for packets that may be unencrypted.
  package static let clearHint = "if they are not encrypted, --clear reads them"
  /// The maximum number of streams that a retransmission is compared with.
  private static let repairedMaximum = 64

  /// Reports a packet, unless a second packet must first prove that its source sends RTP.
  mutating func deliver(
    _ packet: consuming WaitingPacket, _ index: Int, isClear: Bool, wireSize: Int? = nil
  ) {
    let size = wireSize ?? packet.bytes.count
    guard !packet.isRTCP else {
      if isClear { readControl(packet.bytes.span.bytes, index, packet.from) }
      return emit(packet, .rtcp, index, isClear: isClear, size: size)
    }
    guard let header = try? RTPHeader(parsing: packet.bytes.span.bytes, isProtected: !isClear)
    else { return ignore() }
    if isProven(header, index, packet.from, isClear: isClear) {
      return deliver(packet, header, index, isClear: isClear, size: size)
    }
    var dropped: UInt64 = 0
    let first = unproven.add(
      UnprovenStreams.Packet(
        packet: copy packet, transport: index + 1, header: header, isClear: isClear, size: size),
      dropped: &dropped)
    if dropped > 0 { countUnseen(.ignored, by: dropped) }
    guard let first else { return }
    deliver(first)
    deliver(packet, header, index, isClear: isClear, size: size)
  }

  /// Returns whether a packet belongs to a known stream, or begins a stream without waiting for a
  /// second packet.
  ///
  /// A packet need not wait if it was authenticated or announced, or if it continues a stream of
  /// another transport.
  private mutating func isProven(_ header: RTPHeader, _ index: Int, _ from: Int, isClear: Bool)
    -> Bool
  {
    if streamTable.find(transport: index + 1, from: from, ssrc: header.ssrc) != nil { return true }
    if isClear, transports[index].media.hasKeys(from) { return true }
    for number in transports[index].descriptions {
      if let number, descriptionTable.entries[number].source(header.ssrc) != nil { return true }
    }
    return joinedStream(index, from: from, ssrc: header.ssrc, sequence: header.sequence) != nil
  }

  /// Reports a packet that waited for a second packet from its source.
  private mutating func deliver(_ waiting: UnprovenStreams.Packet) {
    deliver(
      waiting.packet, waiting.header, waiting.transport - 1, isClear: waiting.isClear,
      size: waiting.size)
  }

  /// Ends the wait for second packets: a single packet becomes a stream only if the transport uses
  /// its payload type and has few such packets.
  mutating func releaseUnproven() {
    let waiting = unproven.removeAll()
    for first in waiting {
      let index = first.transport - 1
      let type = first.header.payloadType
      let isFew = waiting.count { $0.transport == first.transport } <= Observer.singlesMaximum
      let isKnown =
        meaning(of: type, index, from: first.packet.from) != nil
        || transports[index].streams.contains { streamTable.entries[$0].lastPayloadType == type }
      if isFew, isKnown { deliver(first) } else { ignore() }
    }
  }

  private mutating func deliver(
    _ packet: consuming WaitingPacket, _ header: RTPHeader, _ index: Int, isClear: Bool, size: Int
  ) {
    if header.hasEncryptedElements { countUnseen(.cryptex, transport: index + 1) }
    guard let stream = record(header, packet, index, isClear: isClear, size: size) else { return }
    emit(packet, .rtp(header, stream: stream + 1), index, isClear: isClear, size: size)
  }

  private mutating func emit(
    _ packet: consuming WaitingPacket, _ kind: ObservedPacket.Kind, _ index: Int, isClear: Bool,
    size: Int
  ) {
    if !isClear, !(transports[index].media.hasKeys(packet.from) && Observer.isCryptex(packet)) {
      // If DTLS or a description shows that the media is encrypted, its keys are missing; otherwise
      // encryption is a guess.
      let isGuess =
        transports[index].dtls.facts == nil && !transports[index].hasProtectedDescription
      countUnseen(.noKeys, transport: index + 1, detail: isGuess ? Observer.clearHint : "")
    }
    emit(
      .packet(
        ObservedPacket(
          kind: kind, transport: index + 1, from: packet.from,
          pair: table.paths[packet.path].pair.number, at: packet.at, bytes: packet.bytes,
          isClear: isClear, wireSize: size, ecn: packet.ecn)))
  }

  /// Counts a packet in its stream, creating the stream if necessary; returns the stream's index,
  /// or nil if there are too many streams.
  private mutating func record(
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
    if isClear, settings.repairsFully { findProtected(header, packet, place, index) }
    let isDeducing = streamTable.update(place) { entry in
      entry.highest = header.sequence
      entry.lastTime = header.timestamp
      if header.extensionProfile != 0 { entry.hasExtensions = true }
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

  /// Determines the payload type and codec inside of a redundant payload (RFC 2198).
  private mutating func lookInside(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int
  ) {
    guard let inner = RED.primary(packet.bytes.span.bytes, in: header.payload) else { return }
    let type = inner.payloadType
    let stream = streamTable.entries[place].stream
    if inner.redundantBlocks > 0 {
      countUnseen(.redundancy, transport: index + 1, detail: "older payloads in RED")
    }
    let known = stream.payloads.first { $0.payloadType == type }
    var found = known ?? meaning(of: type, index, from: stream.from)
    if found == nil, stream.kind == .audio, stream.clockRate == 48_000 {
      // Browsers' redundant audio is Opus unless stated otherwise.
      found = PayloadMeaning(
        payloadType: type, codec: "opus", clockRate: 48_000, kind: .audio, how: .deduced)
    }
    guard let meaning = found else { return }
    guard known == nil else { return }
    learn(meaning, place)
  }

  /// Infers header extensions from packets, since headers are not encrypted.
  private mutating func deduceExtensions(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int
  ) {
    let kind = streamTable.entries[place].stream.kind
    guard
      let map = transports[index].extensions.examine(
        header, packet.bytes.span.bytes, from: packet.from, kind: kind, at: packet.at)
    else { return }
    emit(.extensions(transport: index + 1, map, .deduced))
  }

  /// Infers a stream's contents from a packet if nothing else determines them.
  private mutating func deduce(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int,
    isClear: Bool
  ) {
    let at = packet.at
    let (former, deduced) = streamTable.update(place) { entry in
      let (former, inner) = (entry.deduction.meaning, entry.deduction.inner)
      let deduced = entry.deduction.examine(
        header, packet.bytes.span.bytes, isClear: isClear, at: at)
      // Set before the stream is reported, so that one report states RED and the codec inside of
      // it.
      if entry.deduction.inner != inner {
        entry.stream.payloads.removeAll { $0 == inner }
        if let inner = entry.deduction.inner { entry.stream.payloads.append(inner) }
      }
      return (former, deduced)
    }
    if let deduced { return learn(deduced, place, insteadOf: former) }
    guard isClear, let original = RTX.unwrap(packet.bytes.span.bytes, header: header)?.sequence
    else { return }
    for other in transports[index].streams.prefix(Observer.repairedMaximum) where other != place {
      let entry = streamTable.entries[other]
      guard entry.stream.from == packet.from, entry.stream.kind == .video,
        abs(Int(Int16(bitPattern: original &- entry.highest))) < 2000,
        abs(Int(Int32(bitPattern: header.timestamp &- entry.lastTime))) < 180_000
      else { continue }
      let ssrc = entry.stream.ssrc
      guard let repaired = streamTable.update(place, { $0.deduction.examineRepair(of: ssrc) })
      else {
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
      learnProtection(source, index, of: &stream)
    }
    guard let place = streamTable.begin(stream, judgesClosely: settings.judgesClosely) else {
      return nil
    }
    transports[index].add(stream: place)
    learnPayloadType(header.payloadType, place, index)
    emit(.stream(streamTable.entries[place].stream))
    return place
  }

  /// Looks up the encoding of a payload type, and adds it to the stream if it is new there.
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

  private mutating func learn(
    _ meaning: PayloadMeaning, _ place: Int, insteadOf former: PayloadMeaning? = nil
  ) {
    streamTable.update(place) { entry in
      entry.stream.payloads.removeAll { $0.payloadType == meaning.payloadType || $0 == former }
      entry.stream.payloads.append(meaning)
      entry.clockRate = entry.stream.clockRate
    }
    emit(.stream(streamTable.entries[place].stream))
  }

  mutating func countRepeated(_ packet: borrowing WaitingPacket, _ index: Int) {
    guard !packet.isRTCP, packet.bytes.count >= RTPHeader.fixedLength else { return }
    let ssrc = packet.bytes.span.bytes.uint32(at: 8)
    if let place = streamTable.find(transport: index + 1, from: packet.from, ssrc: ssrc) {
      streamTable.update(place) { $0.statistics.addDuplicate() }
    }
  }

  /// Reads CNAMEs from RTCP (RFC 3550 section 6.5.1).
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

// MARK: - Protection

// FlexFEC streams, and the streams that they protect.
extension Observer {
  /// Learns from descriptions which source a stream protects or is protected by, and whether all of
  /// the transport's descriptions list ULPFEC.
  func learnProtection(
    _ source: SignaledDescriptions.Source, _ index: Int, of stream: inout ObservedStream
  ) {
    guard settings.repairsFully else { return }
    stream.agreesOnCorrection = transports[index].descriptions.allSatisfy { number in
      guard let number else { return true }
      return descriptionTable.entries[number].payloads.contains { $0.codec == "ulpfec" }
    }
    if let protects = source.protects { stream.protects = protects }
    if let source = source.protectedBy { stream.protectedBy = source }
  }

  /// Infers from a packet which source its stream protects, if no description names it.
  mutating func findProtected(
    _ header: RTPHeader, _ packet: borrowing WaitingPacket, _ place: Int, _ index: Int
  ) {
    let named = Self.protected(by: packet.bytes.span.bytes, header)
    guard named != nil || streamTable.entries[place].seeksProtected else { return }
    let entry = streamTable.entries[place]
    // A description may name the protected source without stating the format.
    let isNamed = entry.stream.payloads.isEmpty && entry.stream.protects == named
    guard entry.stream.protects == nil || isNamed else { return }
    var protected = named
    if entry.stream.payloads.first?.codec == "flexfec" {
      // The CSRC list names the protected source (RFC 8627 section 4.2.1).
      protected =
        header.contributorCount == 1
        ? packet.bytes.span.bytes.uint32(at: RTPHeader.fixedLength) : nil
    } else if !entry.seeksProtected, entry.deduction.isOver {
      // The payload type's encoding is known, and it is not FlexFEC.
      return
    }
    guard let protected, protected != header.ssrc,
      streamTable.find(transport: index + 1, from: entry.stream.from, ssrc: protected) != nil
    else { return }
    learnProtected(protected, header.payloadType, place)
  }

  private mutating func learnProtected(_ ssrc: UInt32, _ type: UInt8, _ place: Int) {
    let stream = streamTable.update(place) { entry in
      entry.stream.protects = ssrc
      if !entry.deduction.isOver {
        entry.stream.payloads = [
          PayloadMeaning(
            payloadType: type, codec: "flexfec-03", clockRate: 90_000, kind: .video, how: .deduced)
        ]
        entry.clockRate = 90_000
        entry.deduction.stop()
      }
      return entry.stream
    }
    emit(.stream(stream))
  }

  /// Returns the source that a `flexfec-03` packet protects; nil for other packets.
  ///
  /// Its FEC header has an SSRC count of one and three zero bytes before the protected SSRC.
  private static func protected(by bytes: RawSpan, _ header: RTPHeader) -> UInt32? {
    let start = header.payload.lowerBound
    guard header.payload.count >= 20, header.payload.upperBound <= bytes.byteCount,
      bytes.byte(at: start) & 0xc0 == 0, bytes.uint32(at: start + 8) == 0x0100_0000
    else { return nil }
    return bytes.uint32(at: start + 12)
  }
}

// MARK: - Relayed

// Handles unencrypted packets from a relay, which states each packet's transport.
extension Observer {
  /// Begins a path that a relay announced, or the path's next ICE generation.
  ///
  /// The path's packets are unencrypted, even if descriptions say otherwise.
  mutating func begin(clearPath tuple: FiveTuple, _ fragments: [String]) {
    guard fragments.count == 2, let names = CheckNames("\(fragments[1]):\(fragments[0])"),
      let (path, _) = place(names, tuple, false)
    else { return ignore() }
    let index = table.paths[path].transportIndex
    transports[index].recordBeginning()
    showClear(index)
  }

  /// Handles an SCTP packet on a path that a relay announced.
  mutating func receiveData(_ tuple: FiveTuple, _ bytes: [UInt8]) {
    guard let (path, from) = table.find(tuple),
      count(bytes, on: path, from: from, isRelayed: false)
    else { return ignore() }
    recordMedia(on: path, from: from, isMedia: false)
    emit(
      .packet(
        ObservedPacket(
          kind: .sctp, transport: table.paths[path].pair.transport, from: from,
          pair: table.paths[path].pair.number, at: now, bytes: bytes, isClear: true,
          wireSize: bytes.count)))
  }
}
