import Testing
import Wire

@testable import RTP

struct H264Tests {
  private func payload(_ hex: String) -> H264Payload? { H264Payload(octets(hex).span.bytes) }

  @Test(arguments: [
    // A single slice; one with a sequence parameter set; slices of a key frame.
    ("41aabb", "0000000141aabb", UInt8(1), false), ("6742e0", "000000016742e0", 7, true),
    ("65aa", "0000000165aa", 5, true),
    // Three units in one packet.
    ("78000267aa000168000265bb", "0000000167aa00000001680000000165bb", 7, true),
    // A slice's first fragment, and a complete one.
    ("7c85aabb", "0000000165aabb", 5, true), ("5cc1aa", "0000000141aa", 1, false),
  ])
  func packetsBecomeAByteStream(hex: String, stream: String, first: UInt8, isKey: Bool) throws {
    let read = try #require(payload(hex))
    #expect(read.bytes == octets(stream))
    #expect(read.firstUnit?.rawValue == first && read.isKey == isKey)
  }

  @Test func laterPartsOfASliceHaveNoHeader() throws {
    for hex in ["7c05aabb", "7c45aabb"] {
      let read = try #require(payload(hex))
      #expect(read.bytes == [0xaa, 0xbb] && read.firstUnit == nil && read.isKey)
    }
  }

  @Test(arguments: [
    "", "78", "780001", "780000", "78000367aa", "7800021caa", "7c85", "7c9caa", "7900",
    "7d85aa", "00aabb", "1eaabb",
  ])
  func brokenPayloadsAreRefused(hex: String) { #expect(payload(hex) == nil) }

  @Test(arguments: [
    ("", []), ("aabb", []), ("00000141", [3..<4]), ("0000000141aa", [4..<6]),
    ("00000001670000000168aa000001650000", [4..<5, 9..<11, 14..<15]),
    ("000001000001", []), ("00000141000300", [3..<6]),
  ])
  func unitsAreFoundBetweenStartCodes(hex: String, units: [Range<Int>]) {
    #expect(H264Payload.units(of: octets(hex).span.bytes) == units)
  }

  private func frame(_ sizes: [Int]) -> EncodedFrame {
    var bytes: [UInt8] = []
    for (index, size) in sizes.enumerated() {
      bytes += H264Payload.startCode + [index == 0 ? 0x67 : 0x65]
      bytes += (1..<size).map { UInt8(1 + ($0 * 7 + index) % 250) }
    }
    return EncodedFrame(kind: .video, codec: .h264, mediaTime: 0, bytes: bytes, isKey: true)
  }

  @Test(arguments: [[1], [1000], [1001], [12, 4, 5000, 999]])
  func aSplitFrameIsReassembled(sizes: [Int]) throws {
    let frame = frame(sizes)
    let shares = PayloadShare.all(of: frame, pictureID: 0, limit: 1000)
    var stream: [UInt8] = []
    for share in shares {
      var writer = ByteWriter()
      share.prefix.write(into: &writer)
      #expect(writer.count == share.prefix.length)
      writer.append(frame.bytes.span.bytes.extracting(share.range))
      #expect(writer.count <= 1000)
      let packet = writer.bytes
      let read = H264Payload(packet.span.bytes)
      stream += try #require(read).bytes
    }
    #expect(stream == frame.bytes)
  }

  @Test func withoutFragmentsALargeUnitCannotBeSent() {
    let large = PayloadShare.all(
      of: frame([10, 1001]), pictureID: 0, limit: 1000, fragments: false)
    #expect(large.isEmpty)
    let small = PayloadShare.all(
      of: frame([10, 1000]), pictureID: 0, limit: 1000, fragments: false)
    #expect(small.count == 2)
  }

  /// The output is at most as long as the payload, plus start codes.
  @Test func aPacketNeverExceedsItsUnits() {
    var state: UInt64 = 7
    for _ in 0..<20_000 {
      var bytes: [UInt8] = []
      for _ in 0..<(1 + Int(state >> 58)) {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        bytes.append(UInt8(truncatingIfNeeded: state >> 33) & (state >> 62 == 0 ? 0x1f : 0xff))
      }
      if let read = H264Payload(bytes.span.bytes) {
        #expect(!read.bytes.isEmpty && read.bytes.count <= 4 + bytes.count * 2)
      }
    }
  }
}
