import Foundation
import RTP
import Seeded
import Wire

/// A packet of a recorded call.
struct SamplePacket {
  /// Whether the packet was sent by the end that sends the media.
  var isFromSender: Bool
  var microseconds: Int64
  var bytes: [UInt8]

  /// Returns the packets in Samples/chromium-call.txt.
  static func chromiumCall() throws -> [SamplePacket] {
    let url = Bundle.module.url(forResource: "Samples/chromium-call", withExtension: "txt")
    guard let url else { throw CocoaError(.fileNoSuchFile) }
    return try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map { line in
      let fields = line.split(separator: " ")
      return SamplePacket(
        isFromSender: fields[0] == ">", microseconds: Int64(fields[1]) ?? 0,
        bytes: octets(String(fields[2])))
    }
  }
}

/// Parses bytes from hexadecimal text, ignoring blanks.
func octets(_ hex: String) -> [UInt8] {
  [UInt8](hexadecimal: hex.filter { !$0.isWhitespace }) ?? []
}

extension SeededGenerator {
  /// Returns the bytes with a few places flipped, cut off, repeated or overwritten.
  mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0...Int.random(in: 0..<4, using: &self) {
      let place = bytes.isEmpty ? 0 : Int.random(in: 0..<bytes.count, using: &self)
      switch Int.random(in: 0..<5, using: &self) {
      case 0 where !bytes.isEmpty: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &self)
      case 1 where !bytes.isEmpty:
        bytes[place] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &self) ?? 0
      case 2: bytes.removeLast(min(bytes.count, Int.random(in: 0..<12, using: &self)))
      case 3: bytes.insert(UInt8.random(in: 0...255, using: &self), at: place)
      default: bytes += bytes[place...].prefix(40)
      }
    }
    return bytes
  }
}
