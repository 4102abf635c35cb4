import RTP
import Wire

// FlexFEC streams, and the streams that they protect.
extension Observer {
  /// Learns from descriptions which source a stream protects or is protected by, and whether all
  /// its descriptions list ULPFEC.
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

  /// Returns the protected source in a `flexfec-03` packet: a count of one, then three zero bytes,
  /// before the SSRC; nil for other packets.
  private static func protected(by bytes: RawSpan, _ header: RTPHeader) -> UInt32? {
    let start = header.payload.lowerBound
    guard header.payload.count >= 20, header.payload.upperBound <= bytes.byteCount,
      bytes.byte(at: start) & 0xc0 == 0, bytes.uint32(at: start + 8) == 0x0100_0000
    else { return nil }
    return bytes.uint32(at: start + 12)
  }
}

// MARK: - Relayed

// Handles unencrypted packets from a relay, which states the transports that they belong to.
extension Observer {
  /// Begins a path that a relay announced, or its next ICE generation; its packets are unencrypted,
  /// whatever descriptions say.
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
