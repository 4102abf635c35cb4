import RTP
import Testing
import Wire

@testable import JSEP

/// Tests the formats in which an H.264 stream may be offered (RFC 6184 section 8.2.2).
struct H264VariantTests {
  private func profiles(_ profileLevelID: String) -> [String] {
    RTPCodec.h264(carrying: profileLevelID).compactMap {
      CodecFormat.value(of: "profile-level-id", in: $0.sdpFmtpLine ?? "")
    }
  }

  @Test(arguments: [
    ("42c01e", ["42e01f", "42e01f", "4d001f", "64001f"]),
    ("42E01F", ["42e01f", "42e01f", "4d001f", "64001f"]),
    ("42001f", ["42e01f", "42e01f", "4d001f", "64001f"]),
    ("4d4028", ["4d001f", "64001f"]), ("64001f", ["64001f"]), ("640c1f", ["64001f"]),
    ("7a0020", []), ("f4001f", []), ("", []), ("nonsense", []),
  ])
  func aStreamIsOfferedInVariantsThatCanDecodeIt(profile: String, expected: [String]) {
    #expect(profiles(profile) == expected)
    let codecs = RTPCodec.h264(carrying: profile)
    #expect(codecs.last?.isRetransmission ?? true)
    #expect(codecs.count == expected.count + (expected.isEmpty ? 0 : 1))
  }
}
