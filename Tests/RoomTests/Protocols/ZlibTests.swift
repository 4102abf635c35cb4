import Foundation
import Testing

@testable import Room

struct ZlibTests {
  private static let text = Array(
    String(repeating: "a=candidate:1 1 udp 2130706431 192.0.2.1 39645 typ host\r\n", count: 40).utf8
  )

  /// Compression must be deterministic, because its output is on the tape.
  @Test func compressedBytesAreFixedAndShorter() throws {
    #expect(Zlib.compressed([]) == [0x78, 0x01, 0x03, 0x00, 0, 0, 0, 1])
    #expect(
      Zlib.compressed(Array("aaaaaaaaaa".utf8)) == [
        0x78, 0x01, 0x4b, 0x84, 0x03, 0x00, 0x14, 0xe1, 0x03, 0xcb,
      ])
    let compressed = Zlib.compressed(Self.text)
    #expect(compressed.count * 10 < Self.text.count)
    #expect(try Zlib.expanded(compressed, limit: Self.text.count) == Self.text)
    #expect(throws: Zlib.Failure.tooLong) {
      try Zlib.expanded(compressed, limit: Self.text.count - 1)
    }
  }

  @Test func everyLengthAndDistanceRoundTrips() throws {
    var state: UInt64 = 9
    func next() -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(truncatingIfNeeded: state >> 33)
    }
    for round in 0..<30 {
      var bytes: [UInt8] = []
      while bytes.count < 5000 * (round % 10) {
        let count = 1 + next() % 600
        if bytes.count > 10, next() % 2 == 0 {
          let from = next() % bytes.count
          for offset in 0..<count { bytes.append(bytes[from + offset % (bytes.count - from)]) }
        } else {
          for _ in 0..<(count / 8) { bytes.append(UInt8(truncatingIfNeeded: next())) }
        }
      }
      #expect(try Zlib.expanded(Zlib.compressed(bytes), limit: 1 << 20) == bytes)
    }
  }

  /// The bytes that zlib makes of incompressible text.
  @Test func storedBytesAreRead() throws {
    let bytes: [UInt8] = [
      0x78, 0x01, 0x01, 0x05, 0x00, 0xfa, 0xff, 0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x06, 0x2c, 0x02,
      0x15,
    ]
    #expect(try Zlib.expanded(bytes, limit: 5) == Array("hello".utf8))
    #expect(throws: Zlib.Failure.tooLong) { try Zlib.expanded(bytes, limit: 4) }
  }

  @Test func dynamicCodesAreRead() throws {
    let bytes = try #require(Data(base64Encoded: Self.dynamic))
    let text = String(decoding: try Zlib.expanded(Array(bytes), limit: 10_000), as: UTF8.self)
    #expect(text == (0..<200).map { "line \($0 * 7919 % 1000)" }.joined(separator: "\n"))
  }

  @Test func anyBytesAreReadOrRefused() {
    let good = Zlib.compressed(Self.text)
    for index in good.indices {
      for bit in 0..<8 {
        var bad = good
        bad[index] ^= 1 << UInt8(bit)
        if let text = try? Zlib.expanded(bad, limit: 10_000) { #expect(text == Self.text) }
      }
      #expect(throws: Zlib.Failure.self) {
        try Zlib.expanded(Array(good[..<index]), limit: 10_000)
      }
    }
  }

  /// Bytes that zlib compressed at its highest level.
  private static let dynamic = """
    eNo91TtOREEQQ9GcVbCErn/XggiQEPsPEXq+L5oSgWnZOjM/379fn+fj5/9jbZ/jxn2OqXmOnn6O2tJh+RwZ8RxR\
    /hw+9hy2SrajZFfwpoJvK3iugucouF3BlQrOVnBcBfsSbEq2UHIpeEfBdxV8TcETCu5ScI2C8yo4j4LDFeypZGuS\
    FazYdefvip0+9Lj0eOlx6LHpsegx6VHJZkoOBW8delx6ZLvDds52WfTIgy/bHbZztsvDS+nx0iPbGdtF0WPSo4Jz\
    2c7YLtgulx5J5sX0+Pab9KjYvix3WM5ZLpYeLz0OPbKcKTmSHoMnKHiW7YztnO3y0uPQI9sdtnO2S56s4L1sd9gO\
    d4O7xl3hLnGXuAvcOe5s3mR90iP9om5Q16hr1BXqEnWBOkedoc5QB7pF3UXdoG5Q16gr1CXqAnWBOkedoQ50i7o9\
    bIe7wV3jrnCXuEvcBe4cd4a7lx3Twe7CbmDXsGvYFewSdgE7h53DzmCHuoXdhd3AbmDXsCvYJexi3y8KxoOd5ftk\
    imS8w3jAG+A18Ap4BbwEXgDPgWfAe92xHe4u7gZ3jbvGXeEucRe4c9w57szfnyX+NV/G1/4A2rDiOg==
    """
}
