package import Wire

/// One packet of a compound packet (RFC 3550 section 6.1).
package enum RTCPPacket: Hashable, Sendable {
  case senderReport(SenderReport)
  case receiverReport(ReceiverReport)
  case sourceDescription(SourceDescription)
  case goodbye(Goodbye)
  case genericNACK(GenericNACK)
  case pictureLoss(PictureLoss)
  case fullIntraRequest(FullIntraRequest)
  case maximumBitrate(MaximumBitrate)
  case transportFeedback(TransportFeedback)
  case extendedReport(ExtendedReport)
  /// A packet that is skipped, such as APP; `ssrc` is 0 if it names no sender.
  case other(type: RTCPType, format: UInt8, ssrc: UInt32, length: Int)

  /// Parses the body of a packet according to its header.
  init(type: RTCPType, format: UInt8, body: RawSpan) throws(ReadError) {
    var reader = ByteReader(body)
    let count = Int(format)
    switch (type, FeedbackFormat(rawValue: format)) {
    case (.senderReport, _):
      self = .senderReport(try SenderReport(parsing: &reader, count: count))
    case (.receiverReport, _):
      self = .receiverReport(try ReceiverReport(parsing: &reader, count: count))
    case (.sourceDescription, _):
      self = .sourceDescription(try SourceDescription(parsing: &reader, count: count))
    case (.goodbye, _): self = .goodbye(try Goodbye(parsing: &reader, count: count))
    case (.extendedReport, _): self = .extendedReport(try ExtendedReport(parsing: &reader))
    case (.transportFeedback, .genericNACK):
      self = .genericNACK(try GenericNACK(parsing: &reader))
    case (.transportFeedback, .transportWide):
      self = .transportFeedback(try TransportFeedback(parsing: &reader))
    case (.payloadFeedback, .pictureLoss): self = .pictureLoss(try PictureLoss(parsing: &reader))
    case (.payloadFeedback, .fullIntra):
      self = .fullIntraRequest(try FullIntraRequest(parsing: &reader))
    case (.payloadFeedback, .application) where RTCPPacket.isMaximumBitrate(body):
      self = .maximumBitrate(try MaximumBitrate(parsing: &reader))
    default:
      let ssrc = body.byteCount >= 4 ? try reader.uint32() : 0
      self = .other(type: type, format: format, ssrc: ssrc, length: body.byteCount)
    }
  }

  private static func isMaximumBitrate(_ body: RawSpan) -> Bool {
    guard body.byteCount >= 12 else { return false }
    var identifier: UInt32 = 0
    for offset in 8..<12 { identifier = identifier << 8 | UInt32(body.byte(at: offset)) }
    return identifier == MaximumBitrate.identifier
  }

  /// Appends the packet to a compound; `other` cannot be written.
  package func write(into writer: inout ByteWriter) {
    switch self {
    case .senderReport(let packet): packet.write(into: &writer)
    case .receiverReport(let packet): packet.write(into: &writer)
    case .sourceDescription(let packet): packet.write(into: &writer)
    case .goodbye(let packet): packet.write(into: &writer)
    case .genericNACK(let packet): packet.write(into: &writer)
    case .pictureLoss(let packet): packet.write(into: &writer)
    case .fullIntraRequest(let packet): packet.write(into: &writer)
    case .maximumBitrate(let packet): packet.write(into: &writer)
    case .transportFeedback(let packet): packet.write(into: &writer)
    case .extendedReport(let packet): packet.write(into: &writer)
    case .other: break
    }
  }
}

/// The packets of one RTCP datagram: a compound packet (RFC 3550 section 6.1) or a single packet
/// (RFC 5506).
package struct RTCPCompound: Hashable, Sendable {
  /// The packets parsed, in order.
  package var packets: [RTCPPacket] = []
  /// The number of malformed packets, which are left out.
  package var malformedCount = 0

  /// Parses all packets; stops at an invalid version, length or padding.
  package init(parsing bytes: RawSpan) {
    var reader = ByteReader(bytes)
    while !reader.isAtEnd {
      do throws(ReadError) {
        let first = try reader.uint8()
        guard first >> 6 == 2 else { throw .malformed }
        let type = RTCPType(rawValue: try reader.uint8())
        var body = try reader.span(4 * Int(try reader.uint16()))
        if first & 0x20 != 0 { body = try RTCPCompound.withoutPadding(body) }
        if let packet = try? RTCPPacket(type: type, format: first & 0x1f, body: body) {
          packets.append(packet)
        } else {
          malformedCount += 1
        }
      } catch {
        malformedCount += 1
        return
      }
    }
  }

  /// Returns a compound's bytes with only the packets whose types `isKept` accepts; stops at an
  /// invalid version or length.
  package static func bytes(of compound: [UInt8], where isKept: (RTCPType) -> Bool) -> [UInt8] {
    var kept: [UInt8] = []
    var start = 0
    while start + 4 <= compound.count, compound[start] >> 6 == 2 {
      let words = Int(compound[start + 2]) << 8 | Int(compound[start + 3])
      let end = start + 4 * (words + 1)
      guard end <= compound.count else { break }
      if isKept(RTCPType(rawValue: compound[start + 1])) { kept += compound[start..<end] }
      start = end
    }
    return kept
  }

  @_lifetime(copy body)
  private static func withoutPadding(_ body: RawSpan) throws(ReadError) -> RawSpan {
    guard body.byteCount > 0 else { throw .malformed }
    let padding = Int(body.byte(at: body.byteCount - 1))
    guard padding > 0, padding <= body.byteCount else { throw .malformed }
    return body.extracting(0..<body.byteCount - padding)
  }
}

extension ByteWriter {
  /// Starts an RTCP packet; pass the result to `endRTCP`.
  mutating func beginRTCP(_ type: RTCPType, count: Int) -> Int {
    let start = self.count
    uint8(0x80 | UInt8(truncatingIfNeeded: count) & 0x1f)
    uint8(type.rawValue)
    uint16(0)
    return start
  }

  /// Starts a feedback message (RFC 4585 section 6.1).
  mutating func beginRTCP(_ type: RTCPType, format: FeedbackFormat) -> Int {
    beginRTCP(type, count: Int(format.rawValue))
  }

  /// Pads the packet to whole words and writes its length.
  mutating func endRTCP(_ start: Int) {
    zeros((4 - (count - start) % 4) % 4)
    patch(uint16: UInt16(truncatingIfNeeded: (count - start) / 4 - 1), at: start + 2)
  }
}

/// The packet type in the second byte of an RTCP header (RFC 3550 section 12.1).
package struct RTCPType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let senderReport = RTCPType(rawValue: 200)
  package static let receiverReport = RTCPType(rawValue: 201)
  package static let sourceDescription = RTCPType(rawValue: 202)
  package static let goodbye = RTCPType(rawValue: 203)
  package static let application = RTCPType(rawValue: 204)
  /// RTPFB, transport layer feedback (RFC 4585 section 6.2).
  package static let transportFeedback = RTCPType(rawValue: 205)
  /// PSFB, payload-specific feedback (RFC 4585 section 6.3).
  package static let payloadFeedback = RTCPType(rawValue: 206)
  /// XR, an extended report (RFC 3611).
  package static let extendedReport = RTCPType(rawValue: 207)
}

/// A feedback message's format, from the FMT field.
package struct FeedbackFormat: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Generic NACK, transport feedback (RFC 4585 section 6.2.1).
  package static let genericNACK = FeedbackFormat(rawValue: 1)
  /// Transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01).
  package static let transportWide = FeedbackFormat(rawValue: 15)
  /// Picture loss indication, payload feedback (RFC 4585 section 6.3.1).
  package static let pictureLoss = FeedbackFormat(rawValue: 1)
  /// Full intra request, payload feedback (RFC 5104 section 4.3.1).
  package static let fullIntra = FeedbackFormat(rawValue: 4)
  /// Application layer feedback, payload feedback; carries REMB (RFC 4585 section 6.4).
  package static let application = FeedbackFormat(rawValue: 15)
}

// MARK: - RTCPDescription

/// Canonical names of sources (RFC 3550 section 6.5); other items are skipped.
package struct SourceDescription: Hashable, Sendable {
  /// A source and its canonical name, empty if absent.
  package struct Chunk: Hashable, Sendable {
    package var ssrc: UInt32
    package var cname: String

    package init(ssrc: UInt32, cname: String) {
      self.ssrc = ssrc
      self.cname = cname
    }
  }

  package var chunks: [Chunk]

  package init(chunks: [Chunk]) { self.chunks = chunks }

  init(parsing reader: inout ByteReader, count: Int) throws(ReadError) {
    chunks = []
    for _ in 0..<count {
      let start = reader.offset
      var chunk = Chunk(ssrc: try reader.uint32(), cname: "")
      while true {
        let item = try reader.uint8()
        if item == 0 { break }
        let text = try reader.span(Int(try reader.uint8()))
        if item == 1 { chunk.cname = String(decoding: [UInt8](text), as: UTF8.self) }
      }
      // A chunk is padded to a 32-bit boundary.
      try reader.skip((4 - (reader.offset - start) % 4) % 4)
      chunks.append(chunk)
    }
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.sourceDescription, count: min(31, chunks.count))
    for chunk in chunks.prefix(31) {
      let name = Array(chunk.cname.utf8.prefix(255))
      let chunkStart = writer.count
      writer.uint32(chunk.ssrc)
      writer.uint8(1)
      writer.uint8(UInt8(name.count))
      writer.append(name)
      writer.uint8(0)
      writer.zeros((4 - (writer.count - chunkStart) % 4) % 4)
    }
    writer.endRTCP(start)
  }
}

/// Sources that are leaving (RFC 3550 section 6.6).
package struct Goodbye: Hashable, Sendable {
  package var ssrcs: [UInt32]
  package var reason: String

  package init(ssrcs: [UInt32], reason: String = "") {
    self.ssrcs = ssrcs
    self.reason = reason
  }

  init(parsing reader: inout ByteReader, count: Int) throws(ReadError) {
    ssrcs = []
    for _ in 0..<count { ssrcs.append(try reader.uint32()) }
    reason = ""
    guard !reader.isAtEnd else { return }
    let text = try reader.span(Int(try reader.uint8()))
    reason = String(decoding: [UInt8](text), as: UTF8.self)
  }

  func write(into writer: inout ByteWriter) {
    let start = writer.beginRTCP(.goodbye, count: min(31, ssrcs.count))
    for ssrc in ssrcs.prefix(31) { writer.uint32(ssrc) }
    if !reason.isEmpty {
      let text = Array(reason.utf8.prefix(255))
      writer.uint8(UInt8(text.count))
      writer.append(text)
    }
    writer.endRTCP(start)
  }
}
