package import RTP

/// The duration of an Opus or G.711 packet, read from its bytes.
package struct AudioPacket: Hashable, Sendable {
  /// The duration in samples at 48 kHz.
  package let duration: Int
  /// The duration of each of the packet's frames, in samples at 48 kHz.
  package let frameDuration: Int
  /// Whether the packet includes a low-rate copy of the previous packet.
  package let hasInbandFEC: Bool
  /// The number of samples at 48 kHz per tick of the codec's RTP clock.
  package let ticks: Int64

  /// The longest G.711 packet in bytes: 200 ms (RFC 3551 section 4.2).
  private static let longestG711 = 1_600

  /// Parses a packet; nil if the codec is not decoded here or the packet is malformed.
  package init?(_ frame: ReceivedFrame) {
    ticks = frame.codec.audioTicks
    if frame.codec.isG711 {
      guard !frame.bytes.isEmpty, frame.bytes.count <= AudioPacket.longestG711 else { return nil }
      duration = frame.bytes.count * Int(ticks)
      frameDuration = duration
      hasInbandFEC = false
      return
    }
    guard frame.codec == .opus, let packet = OpusPacket(frame.bytes) else { return nil }
    duration = packet.duration
    frameDuration = packet.frameDuration
    hasInbandFEC = packet.hasInbandFEC
  }
}

extension CodecName {
  /// Samples at 48 kHz per tick of the codec's RTP clock.
  var audioTicks: Int64 { isG711 ? 6 : 1 }
}

// MARK: - OpusPacket

/// An Opus packet's framing: its duration, and whether its lengths are valid.
///
/// Parsing fails for packets that a decoder would refuse because of their framing (RFC 6716
/// section 3.4), so these packets never reach playout.
package struct OpusPacket: Hashable, Sendable {
  /// The duration of each of the packet's frames, in samples at 48 kHz.
  package let frameDuration: Int
  package let frameCount: Int
  package let isStereo: Bool
  /// Whether the packet includes a low-rate copy of the previous packet (RFC 6716 section 2.1.7).
  package let hasInbandFEC: Bool

  /// The duration in samples at 48 kHz.
  package var duration: Int { frameDuration * frameCount }

  /// The longest packet allowed, 120 ms (RFC 6716 section 3.4, R5).
  package static let longestDuration = 5_760
  /// The longest frame allowed in bytes (RFC 6716 section 3.4, R2).
  private static let longestFrame = 1_275

  /// Parses the table-of-contents byte and the framing; nil if they are invalid.
  package init?(_ bytes: [UInt8]) {
    guard let toc = bytes.first else { return nil }
    let configuration = Int(toc >> 3)
    frameDuration = OpusPacket.frameDuration(configuration)
    isStereo = toc & 4 != 0
    guard let framing = OpusPacket.framing(bytes, code: toc & 3) else { return nil }
    frameCount = framing.frameCount
    guard frameDuration * frameCount <= OpusPacket.longestDuration else { return nil }
    hasInbandFEC =
      configuration < 16 && framing.firstLength > 0
      && OpusPacket.hasLowRateFrames(
        bytes[framing.firstOffset], frameDuration: frameDuration, isStereo: isStereo)
  }

  /// Returns the frame duration for a configuration number (RFC 6716 section 3.1, table 2).
  private static func frameDuration(_ configuration: Int) -> Int {
    switch configuration {
    case 0..<12: [480, 960, 1_920, 2_880][configuration & 3]
    case 12..<16: configuration & 1 == 0 ? 480 : 960
    default: 120 << (configuration & 3)
    }
  }

  /// Returns whether the SILK header bits announce low-rate copies; they can be read directly from
  /// the first byte (RFC 6716 section 4.2.3).
  private static func hasLowRateFrames(
    _ first: UInt8, frameDuration: Int, isStereo: Bool
  ) -> Bool {
    let silkFrames = max(1, frameDuration / 960)
    let middle = first & (0x80 >> UInt8(silkFrames)) != 0
    let side = isStereo && first & (0x80 >> UInt8(2 * silkFrames + 1)) != 0
    return middle || side
  }

  private struct Framing {
    var frameCount: Int
    var firstOffset: Int
    var firstLength: Int
  }

  /// Parses the frame count and lengths (RFC 6716 section 3.2); nil if they are invalid.
  private static func framing(_ bytes: [UInt8], code: UInt8) -> Framing? {
    let size = bytes.count
    switch code {
    case 0:
      guard size - 1 <= longestFrame else { return nil }
      return Framing(frameCount: 1, firstOffset: 1, firstLength: size - 1)
    case 1:
      guard (size - 1) % 2 == 0, (size - 1) / 2 <= longestFrame else { return nil }
      return Framing(frameCount: 2, firstOffset: 1, firstLength: (size - 1) / 2)
    case 2:
      guard let (length, width) = frameLength(bytes, at: 1) else { return nil }
      let rest = size - 1 - width - length
      guard rest >= 0, rest <= longestFrame else { return nil }
      return Framing(frameCount: 2, firstOffset: 1 + width, firstLength: length)
    default:
      return manyFrames(bytes)
    }
  }

  /// Parses the framing of code 3: a count, optional padding, and frames with equal or individual
  /// lengths; nil if they are invalid.
  private static func manyFrames(_ bytes: [UInt8]) -> Framing? {
    guard bytes.count >= 2 else { return nil }
    let count = Int(bytes[1] & 0x3F)
    guard count > 0, count <= 48 else { return nil }
    var offset = 2
    var padding = 0
    if bytes[1] & 0x40 != 0 {
      while true {
        guard offset < bytes.count else { return nil }
        let value = Int(bytes[offset])
        offset += 1
        padding += value == 255 ? 254 : value
        if value != 255 { break }
      }
    }
    var available = bytes.count - offset - padding
    guard available >= 0 else { return nil }
    if bytes[1] & 0x80 == 0 {
      guard available % count == 0, available / count <= longestFrame else { return nil }
      return Framing(frameCount: count, firstOffset: offset, firstLength: available / count)
    }
    var firstLength: Int?
    for _ in 0..<(count - 1) {
      guard let (length, width) = frameLength(bytes, at: offset) else { return nil }
      offset += width
      available -= width + length
      guard available >= 0 else { return nil }
      firstLength = firstLength ?? length
    }
    guard available <= longestFrame else { return nil }
    return Framing(
      frameCount: count, firstOffset: offset, firstLength: firstLength ?? available)
  }

  /// Parses a length of one or two bytes (RFC 6716 section 3.2.1); returns the length and how many
  /// bytes encode it, or nil if bytes are missing.
  private static func frameLength(_ bytes: [UInt8], at offset: Int) -> (Int, Int)? {
    guard offset < bytes.count else { return nil }
    let first = Int(bytes[offset])
    guard first >= 252 else { return (first, 1) }
    guard offset + 1 < bytes.count else { return nil }
    return (4 * Int(bytes[offset + 1]) + first, 2)
  }
}
