import Secure
import Wire

/// A protected record of DTLS 1.3 as it stands in a datagram (RFC 9147 section 4).
struct UnifiedRecord: Sendable {
  /// The low two bits of the epoch.
  var epochBits: UInt8
  /// The header as on the wire, with the record number hidden.
  var header: [UInt8]
  /// Where the record number stands in the header, in one byte or two.
  var number: Range<Int>
  var sealed: [UInt8]

  /// Whether a first byte is that of such a record.
  static func matches(_ first: UInt8) -> Bool { first & 0xe0 == 0x20 }

  /// Reads the record at an offset and moves past it; nil when there is none that can be read:
  /// connection identifiers have a length that only the ends know.
  static func read(_ bytes: RawSpan, at offset: inout Int) -> UnifiedRecord? {
    guard offset < bytes.byteCount else { return nil }
    let first = bytes.byte(at: offset)
    guard matches(first), first & 0x10 == 0 else { return nil }
    let numberLength = first & 0x08 != 0 ? 2 : 1
    let hasLength = first & 0x04 != 0
    let headerLength = 1 + numberLength + (hasLength ? 2 : 0)
    guard bytes.byteCount - offset >= headerLength else { return nil }
    let begin = offset + headerLength
    let length =
      hasLength ? Int(bytes.uint16(at: begin - 2)) : bytes.byteCount - begin
    guard length >= AEADCipher.tagLength + 1, length <= bytes.byteCount - begin else { return nil }
    let record = UnifiedRecord(
      epochBits: first & 3, header: [UInt8](bytes.extracting(offset..<begin)),
      number: 1..<1 + numberLength, sealed: [UInt8](bytes.extracting(begin..<begin + length)))
    offset = begin + length
    return record
  }
}

/// Opens the records that one side sends in one epoch of DTLS 1.3.
struct EpochProtection: Sendable {
  private let cipher: AEADCipher
  private let key: [UInt8]
  private let vector: [UInt8]
  private let numberKey: [UInt8]
  /// The record number after the highest that was opened.
  private var next: UInt64 = 0

  /// Derives the keys of a traffic secret.
  init(_ secret: [UInt8], _ cipher: AEADCipher, _ schedule: KeySchedule) {
    self.cipher = cipher
    key = schedule.expand(secret, "key", count: cipher.keyLength)
    vector = schedule.expand(secret, "iv", count: AEADCipher.nonceLength)
    numberKey = schedule.expand(secret, "sn", count: cipher.keyLength)
  }

  /// The content type and the text of a record; nil when it is of another epoch, or damaged.
  mutating func open(_ record: UnifiedRecord) -> (type: UInt8, text: [UInt8])? {
    guard let mask = cipher.mask(key: numberKey, sample: Array(record.sealed.prefix(16))) else {
      return nil
    }
    var header = record.header
    var low: UInt64 = 0
    for (index, place) in record.number.enumerated() {
      header[place] ^= mask[index]
      low = low << 8 | UInt64(header[place])
    }
    // The number nearest to the one that is expected (section 4.2.2).
    let range: UInt64 = record.number.count == 2 ? 1 << 16 : 1 << 8
    var number = next & ~(range - 1) | low
    if number + range / 2 < next {
      number += range
    } else if number >= range, number > next + range / 2 {
      number -= range
    }
    var nonce = vector
    for index in 0..<8 {
      nonce[4 + index] ^= UInt8(truncatingIfNeeded: number >> (56 - 8 * UInt64(index)))
    }
    guard
      var text = cipher.open(
        Array(record.sealed.dropLast(AEADCipher.tagLength)),
        tag: Array(record.sealed.suffix(AEADCipher.tagLength)), key: key, nonce: nonce,
        additional: header)
    else { return nil }
    next = max(next, number + 1)
    // The type follows the text, and zeros may follow the type (RFC 8446 section 5.4).
    while text.last == 0 { text.removeLast() }
    guard let type = text.popLast() else { return nil }
    return (type, text)
  }
}
