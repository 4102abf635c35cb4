import RTP
import Wire

/// Replaces the payload types, SSRCs, header extension ids and MIDs in recorded packets with those
/// of a live client.
///
/// RTP sequence numbers and timestamps stay. Transport-wide numbers are adjusted for omitted and
/// repeated packets, and packets in formats that the client lacks are converted or replaced by
/// padding.
package struct PacketRewriter: Sendable {
  /// A packet for the live client.
  package struct Rewritten: Hashable, Sendable {
    package var bytes: [UInt8]
    package var transport: Int
  }

  private let plan: ReenactmentPlan
  private let agreement: Agreement
  private let streams: [UInt32: ReenactmentPlan.Stream]
  private var numbers: TransportNumbers
  /// Whether to omit recorded retransmissions, because new ones are sent when the client requests
  /// them.
  private let leavesRepairsOut: Bool

  package init(_ plan: ReenactmentPlan, _ agreement: Agreement, leavesRepairsOut: Bool) {
    self.plan = plan
    self.agreement = agreement
    self.leavesRepairsOut = leavesRepairsOut
    streams = Dictionary(plan.streams.map { ($0.ssrc, $0) }) { first, _ in first }
    numbers = TransportNumbers([])
    // Omitted packets must not look lost in the client's congestion feedback.
    var recorded: [(number: UInt16, isLeftOut: Bool)] = []
    for packet in plan.packets where !packet.isRTCP {
      guard let header = try? RTPHeader(parsing: packet.bytes.span.bytes),
        let number = transportNumber(of: header, packet.bytes)
      else { continue }
      recorded.append((number, target(of: header, packet.bytes) == nil))
    }
    numbers = TransportNumbers(recorded)
  }

  // MARK: RTP

  /// Rewrites a recorded packet; returns nil if it is omitted.
  package mutating func rewrite(_ packet: ReenactmentPlan.Packet) -> Rewritten? {
    packet.isRTCP ? rewriteReports(packet.bytes) : rewriteMedia(packet.bytes, again: nil)
  }

  /// Rewrites a recorded packet that is sent again, with a new transport-wide number.
  package mutating func repeated(_ bytes: [UInt8]) -> Rewritten? {
    rewriteMedia(bytes, again: numbers.insert())
  }

  /// The form in which a packet is sent.
  private enum Target {
    case asItIs(UInt8)
    /// The original of a retransmission, for a client without RTX.
    case repeated(UInt8, of: UInt32, sequence: UInt16)
    /// The last block of redundant data, for a client without RED.
    case block(UInt8, at: Int)
    /// Padding instead of FEC, for a client without FEC: a gap in the sequence numbers would look
    /// like loss.
    case padding(UInt8)
  }

  private func target(of header: RTPHeader, _ bytes: [UInt8]) -> Target? {
    guard let stream = streams[header.ssrc], agreement.ssrcs[header.ssrc] != nil,
      let section = agreement.sections[stream.section]
    else { return nil }
    let recorded = plan.sections[stream.section]
    if leavesRepairsOut, stream.repairs != nil { return nil }
    guard let format = recorded.format(header.payloadType) else { return nil }
    let media = section.types.first { recorded.format($0.key)?.isMedia == true }?.value
    if format.isRedundancy {
      // The last block is the packet's own; the others belong to earlier packets (RFC 2198).
      let blocks = RedundantBlocks(bytes[header.payload])
      guard let last = blocks.types.last, let start = blocks.lastStart else { return nil }
      guard let type = section.types[last] else { return media.map { .padding($0) } }
      return section.types[header.payloadType].map { .asItIs($0) } ?? .block(type, at: start)
    }
    if let type = section.types[header.payloadType] { return .asItIs(type) }
    if format.isRetransmission {
      guard let source = stream.repairs,
        let repeated = format.repeatedType ?? soleMediaType(stream),
        recorded.format(repeated)?.isMedia == true,
        let type = section.types[repeated], header.payload.count >= 2
      else { return nil }
      let place = header.payload.lowerBound
      return .repeated(
        type, of: source, sequence: UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1]))
    }
    // A stream without media may be omitted without a visible gap.
    guard stream.payloadTypes.contains(where: { recorded.format($0)?.isMedia == true }) else {
      return nil
    }
    return media.map { .padding($0) }
  }

  private func soleMediaType(_ stream: ReenactmentPlan.Stream) -> UInt8? {
    plan.formatsInUse(ofSection: stream.section).first(where: \.isMedia)?.payloadType
  }

  private mutating func rewriteMedia(_ bytes: [UInt8], again number: UInt16?) -> Rewritten? {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes),
      let target = target(of: header, bytes), let stream = streams[header.ssrc],
      let section = agreement.sections[stream.section],
      var ssrc = agreement.ssrcs[header.ssrc]
    else { return nil }
    var sequence = header.sequence
    var payload = header.payload
    var type: UInt8
    var padding = header.paddingLength
    switch target {
    case .asItIs(let new): type = new
    case .repeated(let new, let source, let original):
      guard let repeated = agreement.ssrcs[source] else { return nil }
      (type, ssrc, sequence) = (new, repeated, original)
      payload = payload.lowerBound + 2..<payload.upperBound
    case .block(let new, let start):
      type = new
      payload = start..<payload.upperBound
    case .padding(let new):
      type = new
      payload = payload.lowerBound..<payload.lowerBound
      padding = 4
    }
    var writer = ByteWriter(capacity: bytes.count + 16)
    let elements = elements(of: header, bytes, stream, section, again: number)
    writer.uint8(
      0x80 | (padding > 0 ? 0x20 : 0) | (elements.isEmpty ? 0 : 0x10)
        | UInt8(truncatingIfNeeded: header.contributorCount & 15))
    writer.uint8(type & 0x7f | (header.marker ? 0x80 : 0))
    writer.uint16(sequence)
    writer.uint32(header.timestamp)
    writer.uint32(ssrc)
    let contributors = RTPHeader.fixedLength..<RTPHeader.fixedLength + 4 * header.contributorCount
    writer.append(Array(bytes[contributors]))
    append(elements, to: &writer)
    var content = Array(bytes[payload])
    if case .asItIs = target { renameBlocks(in: &content, of: header, stream, section) }
    writer.append(content)
    if padding > 0 {
      writer.zeros(padding - 1)
      writer.uint8(UInt8(truncatingIfNeeded: padding))
    }
    return Rewritten(bytes: writer.bytes, transport: section.transport)
  }

  /// Replaces the payload types of redundant blocks (RFC 2198 section 3), including those inside a
  /// retransmission.
  private func renameBlocks(
    in content: inout [UInt8], of header: RTPHeader, _ stream: ReenactmentPlan.Stream,
    _ section: Agreement.Section
  ) {
    let recorded = plan.sections[stream.section]
    guard let format = recorded.format(header.payloadType) else { return }
    let repeated = format.isRetransmission ? format.repeatedType : nil
    let isRepeated = repeated.flatMap { recorded.format($0) }?.isRedundancy == true
    guard format.isRedundancy || isRepeated else { return }
    let start = isRepeated ? 2 : 0
    guard start < content.count else { return }
    for place in RedundantBlocks(content[start...]).heads {
      content[place] = content[place] & 0x80 | (section.types[content[place] & 0x7f] ?? 0x7f)
    }
  }

  // MARK: Header extensions

  private typealias Element = (id: UInt8, value: [UInt8])

  private func transportNumber(of header: RTPHeader, _ bytes: [UInt8]) -> UInt16? {
    guard let stream = streams[header.ssrc] else { return nil }
    let names = plan.sections[stream.section].extensions
    var elements = HeaderExtensionElements(header)
    while let (id, range) = elements.next(in: bytes.span.bytes) {
      if names[id].map(Self.numbersTransport) == true, range.count >= 2 {
        return UInt16(bytes[range.lowerBound]) << 8 | UInt16(bytes[range.lowerBound + 1])
      }
    }
    return nil
  }

  private static func numbersTransport(_ uri: String) -> Bool {
    uri == HeaderExtensionURI.transportSequence.rawValue
      || uri == HeaderExtensionURI.laterTransportSequence.rawValue
  }

  private mutating func elements(
    of header: RTPHeader, _ bytes: [UInt8], _ stream: ReenactmentPlan.Stream,
    _ section: Agreement.Section, again number: UInt16?
  ) -> [Element] {
    var found: [Element] = []
    let names = plan.sections[stream.section].extensions
    var elements = HeaderExtensionElements(header)
    while let (id, range) = elements.next(in: bytes.span.bytes) {
      guard let new = section.extensions[id], let uri = names[id] else { continue }
      var value = Array(bytes[range])
      if uri == HeaderExtensionURI.mid.rawValue { value = Array(section.mid.utf8) }
      if Self.numbersTransport(uri), value.count >= 2 {
        let recorded = UInt16(value[0]) << 8 | UInt16(value[1])
        let sent = number ?? numbers.number(for: recorded)
        (value[0], value[1]) = (UInt8(sent >> 8), UInt8(truncatingIfNeeded: sent))
      }
      found.append((new, value))
    }
    return found
  }

  /// Writes header extensions with one-byte headers if all fit into them (RFC 8285 section 4.2).
  private func append(_ elements: [Element], to writer: inout ByteWriter) {
    guard !elements.isEmpty else { return }
    let isLong = elements.contains { $0.id > 14 || !(1...16).contains($0.value.count) }
    let length = elements.reduce(0) { $0 + (isLong ? 2 : 1) + $1.value.count }
    let words = (length + 3) / 4
    writer.uint16(isLong ? 0x1000 : 0xbede)
    writer.uint16(UInt16(truncatingIfNeeded: words))
    for (id, value) in elements {
      if isLong {
        writer.uint8(id)
        writer.uint8(UInt8(truncatingIfNeeded: value.count))
      } else {
        writer.uint8(id << 4 | UInt8(truncatingIfNeeded: value.count - 1))
      }
      writer.append(value)
    }
    writer.zeros(4 * words - length)
  }

  // MARK: RTCP

  /// Rewrites the recorded sender's reports on its own streams.
  ///
  /// Its report blocks and feedback are omitted, because they are about media that the recorded
  /// receiver sent.
  private func rewriteReports(_ bytes: [UInt8]) -> Rewritten? {
    var writer = ByteWriter(capacity: bytes.count)
    var transport: Int?
    func place(_ ssrc: UInt32) -> UInt32? {
      guard let new = agreement.ssrcs[ssrc], let stream = streams[ssrc] else { return nil }
      transport = transport ?? agreement.sections[stream.section]?.transport
      return new
    }
    for packet in RTCPCompound(parsing: bytes.span.bytes).packets {
      switch packet {
      case .senderReport(var report):
        guard let ssrc = place(report.ssrc) else { continue }
        report.ssrc = ssrc
        report.blocks = []
        RTCPPacket.senderReport(report).write(into: &writer)
      case .sourceDescription(let description):
        let chunks = description.chunks.compactMap { chunk in
          place(chunk.ssrc).map { SourceDescription.Chunk(ssrc: $0, cname: chunk.cname) }
        }
        guard !chunks.isEmpty else { continue }
        RTCPPacket.sourceDescription(SourceDescription(chunks: chunks)).write(into: &writer)
      case .goodbye(let goodbye):
        let ssrcs = goodbye.ssrcs.compactMap { place($0) }
        guard !ssrcs.isEmpty else { continue }
        RTCPPacket.goodbye(Goodbye(ssrcs: ssrcs, reason: goodbye.reason)).write(into: &writer)
      default: continue
      }
    }
    guard let transport, writer.count > 0 else { return nil }
    return Rewritten(bytes: writer.bytes, transport: transport)
  }
}

// MARK: - TransportNumbers

/// Transport-wide sequence numbers for the live client: the recorded ones, including gaps due to
/// loss, renumbered for omitted and repeated packets.
struct TransportNumbers: Sendable {
  /// The numbers of omitted packets, unwrapped and sorted.
  private var removed: [Int64] = []
  /// The highest recorded number at the time of each insertion, in order.
  private var inserted: [Int64] = []
  private var last: Int64
  private var highest: Int64

  /// - Parameter recorded: the numbers in order of arrival, and whether each packet is omitted.
  init(_ recorded: [(number: UInt16, isLeftOut: Bool)]) {
    last = Int64(recorded.first?.number ?? 0)
    highest = last
    var unwrapping = last
    for entry in recorded {
      unwrapping = TransportNumbers.unwrapped(entry.number, near: unwrapping)
      if entry.isLeftOut { removed.append(unwrapping) }
    }
    removed.sort()
  }

  private static func unwrapped(_ number: UInt16, near last: Int64) -> Int64 {
    last + Int64(Int16(bitPattern: number &- UInt16(truncatingIfNeeded: last)))
  }

  /// Returns the number of elements below a limit.
  private static func count(_ sorted: [Int64], below limit: Int64) -> Int64 {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < limit { low = middle + 1 } else { high = middle }
    }
    return Int64(low)
  }

  /// Returns the new number for a recorded one.
  mutating func number(for recorded: UInt16) -> UInt16 {
    last = TransportNumbers.unwrapped(recorded, near: last)
    highest = max(highest, last)
    return UInt16(
      truncatingIfNeeded: last - TransportNumbers.count(removed, below: last)
        + TransportNumbers.count(inserted, below: last))
  }

  /// Returns the number for an additional packet, after the highest so far.
  mutating func insert() -> UInt16 {
    inserted.append(highest)
    return UInt16(
      truncatingIfNeeded: highest - TransportNumbers.count(removed, below: highest)
        + Int64(inserted.count))
  }
}

// MARK: - RedundantBlocks

/// The blocks of redundant data (RFC 2198 section 3); empty if the headers are truncated.
struct RedundantBlocks {
  /// The blocks' payload types; the last one is the packet's own.
  private(set) var types: [UInt8] = []
  /// The index of each block's header.
  private(set) var heads: [Int] = []
  /// The index of the last block's content; nil if it is missing.
  private(set) var lastStart: Int?

  init(_ payload: ArraySlice<UInt8>) {
    var place = payload.startIndex
    var skipped = 0
    while place < payload.endIndex {
      heads.append(place)
      types.append(payload[place] & 0x7f)
      guard payload[place] & 0x80 != 0 else {
        let start = place + 1 + skipped
        lastStart = start <= payload.endIndex ? start : nil
        return
      }
      guard place + 4 <= payload.endIndex else { break }
      skipped += Int(payload[place + 2] & 3) << 8 | Int(payload[place + 3])
      place += 4
    }
    (types, heads) = ([], [])
  }
}
