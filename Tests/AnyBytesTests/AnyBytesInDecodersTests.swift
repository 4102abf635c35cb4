import Foundation
import Media
import RTP
import Testing

/// Feeds arbitrary frames to the optional decoders, which must decode or reject each frame.
///
/// These tests use 4 of every thousand inputs that `AnyBytesTests` distributes.
@Suite struct AnyBytesInDecodersTests {
  /// Parameter sets for 64x44 pixels, and the start of a slice.
  private static let h264: [UInt8] =
    [
      0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x11, 0xfe, 0xd0, 0, 0, 0, 1, 0x68, 0xce, 0x3c,
      0x80, 0, 0, 0, 1, 0x65, 0xb8,
    ] + (0..<200).map { UInt8(truncatingIfNeeded: 1 + $0 * 7 % 250) }

  /// The start of a Chromium key frame, with its sequence header.
  private static let av1 = """
    12000a0a00000024c4ffdf00680232b401104d0030c30c05b1940010b48b77c7b70339fa4128448ce322
    08e53ac60ee80aec84a30590ae1167d32c8a65047ab3a5d83a11217486c2e38a2b0994de33f349a67687
    80b74b1218cc0f262f12db2a4e5fd88ac573e117e462610306e2ef6902f29ad05ca0a6ed1dece46baefb
    e83e071ea23c2038e0642c8751531136fca0324e3cf81754cc85651fed94ba046a5695e56decc17e7b78
    4a9b4253f212d985d5ddd8160256b662768b8c45cff4691168bfae819c
    """

  private static func frame(_ codec: String) -> [UInt8] {
    guard codec == "av1" else { return h264 }
    let digits = av1.filter(\.isHexDigit).compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count - 1, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }

  @Test(arguments: LibraryCodecs.furtherDecoders)
  func anyBytesMayBeFrames(of codec: String) throws {
    var damage = Damage(seed: 31)
    let decoder = try LibraryCodecs().videoDecoder(track: "", CodecName(rawValue: codec))
    let samples = [Self.frame(codec)]
    let look = try #require(CodecName(rawValue: codec).codec?.look)
    let sample = samples[0]
    let isKey = look(sample.span.bytes).isKey
    #expect(isKey)
    let count = InputBudget.count(2)
    for _ in 0..<count {
      guard let made = try? decoder.decode(damage.damaged(samples)) else { continue }
      let frame = made.videoFrame
      let length = I420Buffer.byteCount(width: frame.width, height: frame.height)
      #expect(frame.samples.count == length && length > 0)
    }
    print("any bytes: frames of \(codec): \(count) inputs")
  }
}
