package import Flow
package import RTP
package import Wire

/// An RTP stream of an observed call, and what is known of what it carries.
package struct ObservedTrack: Sendable {
  /// Its number over all calls, which stands for it in all rows.
  package var number: UInt32
  package var ssrc: UInt32
  /// Whether the observed peer receives it; else it sends it.
  package var isInbound: Bool
  /// Nil as long as nothing tells.
  package var kind: MediaKind?
  package var mid: String
  /// What its payload types stand for.
  package var codecs: [FlowSection.Codec] = []
  /// The source whose packets it sends again (RFC 4588).
  package var repairs: UInt32?
  /// The payload types that its own stand for where it sends packets again.
  package var repeatedTypes: [UInt8: UInt8] = [:]
  /// What descriptions state of its formats, by payload type.
  package var parameters: [UInt8: String] = [:]
  /// The number of the transport that carries it; nil if statistics have no transports.
  package var transport: Int?
  /// The name that the streams of one end share (CNAME, RFC 3550 section 6.5.1).
  package var canonicalName: String?

  package init(
    number: UInt32, ssrc: UInt32, isInbound: Bool, kind: MediaKind?, mid: String
  ) {
    self.number = number
    self.ssrc = ssrc
    self.isInbound = isInbound
    self.kind = kind
    self.mid = mid
  }

  /// What a payload type stands for, when it can be received.
  func codec(of payloadType: UInt8) -> FlowSection.Codec? {
    codecs.first { $0.payloadType == payloadType }
  }

  /// What the layers below know the stream by: sections need not be known.
  var key: String { String(number) }
}

extension CodecName {
  /// RFC 2198.
  static let redundant = CodecName(rawValue: "red")
  /// RFC 5109.
  static let errorCorrection = CodecName(rawValue: "ulpfec")
}

/// An RTP packet of a call, in the clear or not.
package struct SeenPacket: Sendable {
  package var header: RTPHeader
  /// Empty where it could not be opened.
  package var bytes: [UInt8]
  package var isClear: Bool
  /// When it was captured, where that was earlier than it is handed on; nil for now.
  package var arrival: Instant?

  package init(header: RTPHeader, bytes: [UInt8], isClear: Bool) {
    self.header = header
    self.bytes = bytes
    self.isClear = isClear
  }

  /// The packet as a receiver has it: of RED, the block that it is about, or what corrects errors.
  ///
  /// What corrects errors leaves a packet without payload, so that nothing waits for its number.
  ///
  /// - Parameters:
  ///   - codec: that of the packet.
  ///   - lead: bytes before the redundant payload that stay: the number of a packet that is sent
  ///     again.
  /// - Returns: nil when its blocks do not fit into it or are not known.
  func unwrapped(_ codec: FlowSection.Codec, _ track: ObservedTrack, after lead: Int = 0)
    -> StreamReception.Packet?
  {
    guard codec.name == .redundant else {
      return StreamReception.Packet(wire: header, header: header, bytes: bytes, codec: codec)
    }
    // Padding alone probes the path, or keeps it.
    guard header.payload.count > lead else {
      return track.media.map {
        StreamReception.Packet(wire: header, header: header, bytes: bytes, codec: $0)
      }
    }
    let start = header.payload.lowerBound + lead
    guard let inner = RED.primary(bytes.span.bytes, in: start..<header.payload.upperBound),
      let codec = track.codec(of: inner.payloadType), codec.name != .redundant
    else { return nil }
    var opened = header
    opened.payloadType = inner.payloadType
    opened.paddingLength = 0
    var kept = Array(bytes[..<start])
    guard codec.name != .errorCorrection else {
      opened.payload = header.payload.lowerBound..<header.payload.lowerBound
      return track.media.map {
        StreamReception.Packet(
          wire: header, header: opened, bytes: kept, codec: $0, isInRED: true,
          correction: Array(bytes[inner.payload]))
      }
    }
    kept += bytes[inner.payload]
    opened.payload = header.payload.lowerBound..<kept.count
    return StreamReception.Packet(
      wire: header, header: opened, bytes: kept, codec: codec, isInRED: true)
  }
}

extension ObservedTrack {
  /// Whether its name is a UUID, as Firefox and aiortc make them: both count what came of a stream
  /// itself, and its retransmissions apart.
  var isNamedByUUID: Bool {
    guard var name = canonicalName.map({ $0[...] }) else { return false }
    if name.hasPrefix("{"), name.hasSuffix("}") { name = name.dropFirst().dropLast() }
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    return parts.map(\.utf8.count) == [8, 4, 4, 4, 12]
      && parts.allSatisfy { $0.allSatisfy(\.isHexDigit) }
  }

  /// Whether what corrects errors may be among its packets.
  var hasCorrection: Bool { codecs.contains { $0.name == .errorCorrection } }

  /// What its packets carry that are no wrappers.
  fileprivate var media: FlowSection.Codec? {
    codecs.first { $0.name != .redundant && $0.name != .errorCorrection }
  }
}
