import Media
import RTP
import SCTP
import Tape
import Wire

/// Replaces the unencrypted contents of RTP and RTCP packets without changing their length.
///
/// Media keeps only the headers that show where a frame begins, whether it is a key frame and how
/// large its picture is. Frames are redacted like the packets that carried them, so both still
/// match.
final class RedactedMedia {
  private let text: RedactedText
  private let types: PayloadTypeNames
  private static let filler: UInt8 = 0xaa

  init(_ text: RedactedText, _ types: PayloadTypeNames) {
    (self.text, self.types) = (text, types)
  }

  private var parts: Redaction.Parts { text.standIns.parts }

  // MARK: RTP

  func rtp(_ packet: [UInt8], of peer: UInt32) -> [UInt8] {
    guard parts.contains(.media), let header = try? RTPHeader(parsing: packet.span.bytes) else {
      return packet
    }
    var made = packet
    let payload = Array(packet[header.payload])
    made.replaceSubrange(
      header.payload,
      with: self.payload(payload, types.codec(of: header.payloadType, peer: peer), peer))
    return made
  }

  private func payload(_ bytes: [UInt8], _ type: PayloadTypeNames.Entry?, _ peer: UInt32) -> [UInt8]
  {
    guard let type, !bytes.isEmpty else { return RedactedMedia.filled(bytes, from: 1) }
    switch type.name {
    case "rtx":
      let inner = type.apt.flatMap { types.codec(of: $0, peer: peer) }
      return Array(bytes.prefix(2)) + payload(Array(bytes.dropFirst(2)), inner, peer)
    case "red": return redundant(bytes, peer)
    case "h264": return h264(bytes)
    case "av1": return av1(bytes)
    case "telephone-event": return bytes
    default: break
    }
    guard let codec = Codec.named(type.name), codec.kind == .video else {
      return RedactedMedia.frame(bytes, type.name)
    }
    guard let read = codec.payload.read(bytes.span.bytes), case .slice(let range) = read.content
    else { return RedactedMedia.filled(bytes, from: 1) }
    let part = Array(bytes[range])
    let blank =
      read.beginning == .no
      ? RedactedMedia.filled(part, from: 0) : RedactedMedia.frame(part, type.name)
    return Array(bytes[..<range.lowerBound]) + blank + bytes[range.upperBound...]
  }

  private static func filled(_ bytes: [UInt8], from start: Int) -> [UInt8] {
    Array(bytes.prefix(start))
      + [UInt8](repeating: filler, count: max(0, bytes.count - start))
  }

  /// Returns a tone in G.711 with the level and length of the original audio.
  private static func hum(_ codes: [UInt8], _ law: G711Law) -> [UInt8] {
    let power = codes.reduce(0.0) { sum, code in
      let sample = Double(law.decode(code))
      return sum + sample * sample
    }
    let level = Int16(clamping: Int((power / Double(max(codes.count, 1))).squareRoot().rounded()))
    return codes.indices.map { law.encode($0 % 4 < 2 ? level : -level) }
  }

  /// Redacts a frame or its first part, keeping the codec's headers.
  static func frame(_ bytes: [UInt8], _ codec: String) -> [UInt8] {
    switch codec {
    case "opus": return filled(bytes, from: 2)
    case "pcmu": return hum(bytes, .mu)
    case "pcma": return hum(bytes, .a)
    case "vp8":
      var made = filled(bytes, from: 1)
      // The start code and the size of a key frame are kept (RFC 6386 section 9.1).
      if let first = bytes.first, first & 1 == 0, bytes.count >= 10 {
        made.replaceSubrange(3..<10, with: bytes[3..<10])
      }
      return made
    // The first bytes are kept: they show whether the frame is a key frame (VP9 bitstream
    // specification, section 6.2).
    case "vp9": return filled(bytes, from: 6)
    case "h264": return byteStream(bytes)
    case "av1": return units(bytes)
    default: return filled(bytes, from: 0)
    }
  }

  /// Redacts a payload that contains redundant blocks (RFC 2198 section 3).
  private func redundant(_ bytes: [UInt8], _ peer: UInt32) -> [UInt8] {
    var heads: [(type: UInt8, length: Int?)] = []
    var offset = 0
    while offset < bytes.count {
      let type = bytes[offset] & 0x7f
      if bytes[offset] & 0x80 == 0 {
        heads.append((type, nil))
        offset += 1
        break
      }
      guard offset + 4 <= bytes.count else { return RedactedMedia.filled(bytes, from: 1) }
      heads.append((type, Int(bytes[offset + 2] & 3) << 8 | Int(bytes[offset + 3])))
      offset += 4
    }
    var made = Array(bytes[..<offset])
    for head in heads {
      let block = Array(bytes[offset...].prefix(head.length ?? bytes.count))
      made += payload(block, types.codec(of: head.type, peer: peer), peer)
      offset += block.count
    }
    return made
  }

  // MARK: H.264

  private static let sequenceParameters: UInt8 = 7

  private static func unit(_ unit: [UInt8]) -> [UInt8] {
    unit.first.map { $0 & 31 } == sequenceParameters ? unit : filled(unit, from: 1)
  }

  /// Redacts the NAL units in a payload (RFC 6184 section 5.2).
  private func h264(_ bytes: [UInt8]) -> [UInt8] {
    switch bytes[0] & 31 {
    case 24:
      var made = [bytes[0]]
      var offset = 1
      while offset + 2 <= bytes.count {
        let length = Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
        made += bytes[offset..<offset + 2]
        made += RedactedMedia.unit(Array(bytes[(offset + 2)...].prefix(length)))
        offset = made.count
      }
      return made + [UInt8](repeating: Self.filler, count: max(0, bytes.count - made.count))
    case 28: return RedactedMedia.filled(bytes, from: 2)
    default: return RedactedMedia.unit(bytes)
    }
  }

  /// Redacts NAL units that are separated by start codes (H.264 annex B).
  private static func byteStream(_ bytes: [UInt8]) -> [UInt8] {
    var made: [UInt8] = []
    var start = 0
    var index = 0
    while index + 2 < bytes.count {
      if bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 {
        var end = index
        if end > start, bytes[end - 1] == 0 { end -= 1 }
        made += unit(Array(bytes[start..<end])) + bytes[end..<index + 3]
        start = index + 3
        index = start
      } else {
        index += 1
      }
    }
    return made + unit(Array(bytes[start...]))
  }

  // MARK: AV1

  /// Redacts an OBU or its first part, but keeps the header and, in a frame, the first byte;
  /// sequence headers and temporal delimiters are kept whole.
  private static func obu(_ bytes: [UInt8]) -> [UInt8] {
    guard let first = bytes.first else { return bytes }
    let type = first >> 3 & 15
    guard type != 1, type != 2 else { return bytes }
    var head = first & 4 == 0 ? 1 : 2
    if first & 2 != 0 {
      while head < bytes.count, bytes[head] & 0x80 != 0 { head += 1 }
      head += 1
    }
    return filled(bytes, from: head + (type == 3 || type == 6 ? 1 : 0))
  }

  private static func units(_ bytes: [UInt8]) -> [UInt8] {
    var made: [UInt8] = []
    for unit in AV1Unit.units(of: bytes.span.bytes) {
      let end = unit.payload.upperBound
      guard end <= bytes.count, end > made.count else { break }
      made += obu(Array(bytes[made.count..<end]))
    }
    return made + [UInt8](repeating: filler, count: max(0, bytes.count - made.count))
  }

  /// Redacts the OBU elements of a payload (AV1 RTP payload format, section 4.4).
  private func av1(_ bytes: [UInt8]) -> [UInt8] {
    let count = Int(bytes[0] >> 4 & 3)
    var continues = bytes[0] & 0x80 != 0
    var made = [bytes[0]]
    var number = 1
    while made.count < bytes.count {
      var length = bytes.count - made.count
      if count == 0 || number < count {
        var value = 0
        var shift = 0
        var offset = made.count
        while offset < bytes.count, shift < 28 {
          value |= Int(bytes[offset] & 0x7f) << shift
          shift += 7
          offset += 1
          if bytes[offset - 1] & 0x80 == 0 { break }
        }
        made += bytes[made.count..<offset]
        length = min(value, bytes.count - made.count)
      }
      let element = Array(bytes[made.count...].prefix(length))
      made += continues ? RedactedMedia.filled(element, from: 0) : RedactedMedia.obu(element)
      continues = false
      number += 1
    }
    return made
  }

  // MARK: RTCP

  /// Returns whether the bytes are an RTCP compound packet that is not encrypted.
  static func isClearRTCP(_ bytes: [UInt8]) -> Bool {
    var offset = 0
    while offset + 4 <= bytes.count {
      guard bytes[offset] >> 6 == 2, bytes[offset + 1] >= 192 else { return false }
      offset += 4 * (Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])) + 4
    }
    return offset == bytes.count
  }

  /// Redacts the names in a compound packet, such as CNAMEs (RFC 3550 sections 6.5 to 6.7).
  func rtcp(_ bytes: [UInt8]) -> [UInt8] {
    var made = bytes
    var offset = 0
    while offset + 4 <= bytes.count {
      let end = min(
        bytes.count, offset + 4 * (Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])) + 4)
      let count = Int(bytes[offset] & 31)
      switch bytes[offset + 1] {
      case 202: descriptions(&made, offset + 4, end, count)
      case 203:
        let place = offset + 4 + 4 * count
        if place < end { replaceText(&made, place, end) }
      case 204 where parts.contains(.names) && offset + 12 < end:
        made.replaceSubrange(
          offset + 12..<end, with: [UInt8](repeating: 0, count: end - offset - 12))
      default: break
      }
      offset = end
    }
    return made
  }

  private func descriptions(_ bytes: inout [UInt8], _ start: Int, _ end: Int, _ count: Int) {
    var offset = start
    for _ in 0..<count {
      offset += 4
      while offset < end, bytes[offset] != 0 {
        guard offset + 1 < end else { return }
        replaceText(&bytes, offset + 1, end)
        offset += 2 + Int(bytes[offset + 1])
      }
      // Zeros follow the last item, up to the next 32-bit boundary.
      offset = start + (offset - start) / 4 * 4 + 4
    }
  }

  /// Replaces a string if its stand-in has the same length; the byte before the text is its length.
  private func replaceText(_ bytes: inout [UInt8], _ place: Int, _ end: Int) {
    let range = place + 1..<min(end, place + 1 + Int(bytes[place]))
    guard !range.isEmpty else { return }
    let old = String(decoding: bytes[range], as: UTF8.self)
    let new = Array(text.standIns.word(old, .names).utf8)
    if new.count == range.count { bytes.replaceSubrange(range, with: new) }
  }
}

// MARK: - RedactedSCTP

/// Replaces the labels, protocols and messages of data channels in SCTP packets.
struct RedactedSCTP {
  /// For each stream, the payload protocol (PPID) of the message whose chunks are being read.
  private var protocols: [UInt16: UInt32] = [:]

  /// Returns a message of the same length, filled with letters if the original was text.
  static func message(_ bytes: [UInt8], isBinary: Bool) -> [UInt8] {
    [UInt8](repeating: isBinary ? 0xaa : UInt8(ascii: "x"), count: bytes.count)
  }

  /// Returns whether a datagram is an SCTP packet: chunks must fill it exactly, and the checksum
  /// must be right or zero (RFC 9653).
  static func isPacket(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 16 else { return false }
    var offset = 12
    while offset + 4 <= bytes.count {
      let length = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
      guard length >= 4, offset + length <= bytes.count else { return false }
      offset += (length + 3) / 4 * 4
    }
    let stated = (0..<4).reduce(0 as UInt32) { $0 | UInt32(bytes[8 + $1]) << UInt32(8 * $1) }
    var zeroed = bytes
    zeroed.replaceSubrange(8..<12, with: [0, 0, 0, 0])
    return offset >= bytes.count && (stated == 0 || stated == checksum(zeroed))
  }

  mutating func packet(_ bytes: [UInt8], _ text: RedactedText) -> [UInt8] {
    guard bytes.count >= 12 else { return bytes }
    var made = bytes
    var offset = 12
    while offset + 4 <= bytes.count {
      let length = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
      let end = min(bytes.count, offset + length)
      guard length >= 4 else { break }
      switch bytes[offset] {
      case 0 where offset + 16 <= end:
        let identifier = bytes.span.bytes.uint32(at: offset + 12)
        replace(&made, offset + 16..<end, identifier, text)
      case 64 where offset + 20 <= end:
        let stream = bytes.span.bytes.uint16(at: offset + 8)
        if bytes[offset + 1] & 2 != 0 {
          protocols[stream] = bytes.span.bytes.uint32(at: offset + 16)
        }
        replace(&made, offset + 20..<end, protocols[stream] ?? 53, text)
      default: break
      }
      offset += (length + 3) / 4 * 4
    }
    guard made != bytes else { return bytes }
    made.replaceSubrange(8..<12, with: [0, 0, 0, 0])
    let sum = RedactedSCTP.checksum(made)
    made.replaceSubrange(
      8..<12, with: (0..<4).map { UInt8(truncatingIfNeeded: sum >> UInt32(8 * $0)) })
    return made
  }

  private func replace(
    _ bytes: inout [UInt8], _ range: Range<Int>, _ identifier: UInt32, _ text: RedactedText
  ) {
    let old = Array(bytes[range])
    let parts = text.standIns.parts
    switch identifier {
    case 50: bytes.replaceSubrange(range, with: opening(old, text))
    case 51, 54:
      if parts.contains(.messages) {
        bytes.replaceSubrange(range, with: RedactedSCTP.message(old, isBinary: false))
      }
    case 52, 53:
      if parts.contains(.messages) {
        bytes.replaceSubrange(range, with: RedactedSCTP.message(old, isBinary: true))
      }
    default: break
    }
  }

  /// Replaces the label and the protocol in a DATA_CHANNEL_OPEN message (RFC 8832 section 5.1).
  private func opening(_ bytes: [UInt8], _ text: RedactedText) -> [UInt8] {
    guard bytes.count >= 12, bytes[0] == 3 else { return bytes }
    var made = bytes
    var offset = 12
    for place in [8, 10] {
      let length = Int(bytes[place]) << 8 | Int(bytes[place + 1])
      let range = offset..<min(bytes.count, offset + length)
      guard !range.isEmpty else { continue }
      let new = text.standIns.word(String(decoding: bytes[range], as: UTF8.self), .names)
      if new.utf8.count == range.count { made.replaceSubrange(range, with: Array(new.utf8)) }
      offset = range.upperBound
    }
    return made
  }

  /// Returns the CRC32c of a packet (RFC 9260 appendix A).
  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var sum = ~UInt32(0)
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0x82f6_3b78 : sum >> 1 }
    }
    return ~sum
  }
}

// MARK: - PayloadTypeNames

/// The codecs of payload types, according to the take's descriptions.
struct PayloadTypeNames {
  struct Entry {
    var name: String
    /// The payload type that this type retransmits; nil if it does not retransmit.
    var apt: UInt8?
  }

  private var entries: [UInt32: [UInt8: Entry]] = [:]
  private var all: [UInt8: Entry] = [:]

  mutating func add(_ type: UInt8, _ name: String, peer: UInt32) {
    let name = name.lowercased()
    entries[peer, default: [:]][type, default: Entry(name: name)].name = name
    all[type, default: Entry(name: name)].name = name
  }

  mutating func add(_ type: UInt8, apt: UInt8, peer: UInt32) {
    entries[peer, default: [:]][type, default: Entry(name: "rtx")].apt = apt
    all[type, default: Entry(name: "rtx")].apt = apt
  }

  func codec(of type: UInt8, peer: UInt32) -> Entry? {
    if let known = entries[peer]?[type] ?? all[type] { return known }
    switch type {
    case 0: return Entry(name: "pcmu")
    case 8: return Entry(name: "pcma")
    case 9: return Entry(name: "g722")
    default: return nil
    }
  }
}
