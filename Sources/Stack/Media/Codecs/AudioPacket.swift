package import RTP

/// The duration of an audio packet, read from its bytes, whatever its codec.
package struct AudioPacket: Hashable, Sendable {
  /// How long the packet is, in samples at 48 kHz.
  package let duration: Int
  /// How long one of its frames is, in samples at 48 kHz.
  package let frameDuration: Int
  /// Whether it carries a low-rate copy of the previous packet.
  package let hasInbandFEC: Bool
  /// Samples at 48 kHz per tick of its RTP clock.
  package let ticks: Int64

  /// The longest packet of G.711, in bytes: 200 ms (RFC 3551 section 4.2).
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
  /// How many samples at 48 kHz a tick of the codec's RTP clock lasts.
  var audioTicks: Int64 { isG711 ? 6 : 1 }
}
