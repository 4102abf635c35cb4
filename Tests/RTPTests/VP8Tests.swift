import Testing
import Wire

@testable import RTP

struct VP8Tests {
  @Test func aBrowsersKeyFrameIsRecognised() throws {
    let packets = try SamplePacket.chromiumCall().map(\.bytes)
    let packet = try #require(packets.first { $0[1] & 0x7f == 96 })
    let header = try RTPHeader(parsing: packet.span.bytes)
    var reader = ByteReader(packet.span.bytes.extracting(header.payload))
    let descriptor = try VP8Descriptor(parsing: &reader)
    #expect(descriptor.beginsFrame)
    #expect(descriptor.pictureID == PictureID(0x349a))
    let read = reader.offset
    #expect(descriptor.length == read)
    let frame = try VP8FrameHeader(parsing: reader.rest())
    #expect(frame.isKey)
    #expect(frame.width == 640 && frame.height == 480)
  }

  /// Tests every combination of optional fields.
  @Test func descriptorsReadBack() throws {
    for fields in 0..<64 {
      var descriptor = VP8Descriptor(
        beginsPartition: fields & 1 != 0,
        pictureID: fields & 2 != 0 ? PictureID(0x1234 & 0x7f, isLong: fields & 4 != 0) : nil)
      if fields & 8 != 0 { descriptor.baseLayerIndex = 200 }
      if fields & 16 != 0 {
        descriptor.temporalLayer = 2
        descriptor.isLayerSync = true
      }
      if fields & 32 != 0 { descriptor.keyIndex = 31 }
      descriptor.isNonReference = fields & 5 == 5
      descriptor.partition = UInt8(fields & 7)
      var writer = ByteWriter()
      descriptor.write(into: &writer)
      #expect(writer.count == descriptor.length)
      let written = writer.bytes
      var reader = ByteReader(written.span.bytes)
      let read = try VP8Descriptor(parsing: &reader)
      #expect(read == descriptor)
      let isAtEnd = reader.isAtEnd
      #expect(isAtEnd)
    }
  }

  @Test(arguments: ["", "90", "9080", "908080", "9040", "9020"])
  func aTruncatedDescriptorIsRefused(hex: String) {
    let bytes = octets(hex)
    #expect(throws: ReadError.self) {
      var reader = ByteReader(bytes.span.bytes)
      _ = try VP8Descriptor(parsing: &reader)
    }
  }

  @Test func frameHeadersReportKeyFrames() throws {
    let key = try VP8FrameHeader(parsing: octets("1000009d012a80026801").span.bytes)

    #expect(key.isKey && key.width == 640 && key.height == 360)
    #expect(try !VP8FrameHeader(parsing: octets("11").span.bytes).isKey)
    #expect(throws: ReadError.self) { try VP8FrameHeader(parsing: [UInt8]().span.bytes) }
    #expect(throws: ReadError.self) {
      try VP8FrameHeader(parsing: octets("100000ffffff80026801").span.bytes)
    }
  }

  @Test func framesAreSplitEvenly() {
    for (length, limit, count) in [
      (0, 1000, 0), (1, 1000, 1), (1000, 1000, 1), (1001, 1000, 2), (9999, 1000, 10),
    ] {
      let split = PayloadSplit(length: length, limit: limit)
      #expect(split.count == count)
      var next = 0
      for part in 0..<split.count {
        #expect(split[part].lowerBound == next)
        #expect(split[part].count <= limit)
        #expect(split[part].count >= length / max(1, count))
        next = split[part].upperBound
      }
      #expect(next == length)
    }
  }
}
