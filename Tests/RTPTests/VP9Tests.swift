import Testing
import Wire

@testable import RTP

struct VP9Tests {
  private func read(_ bytes: [UInt8]) throws -> VP9Descriptor {
    var reader = ByteReader(bytes.span.bytes)
    let descriptor = try VP9Descriptor(parsing: &reader)
    let isAtEnd = reader.isAtEnd
    #expect(isAtEnd)
    return descriptor
  }

  /// Tests every combination of optional fields.
  @Test func descriptorsReadBack() throws {
    for fields in 0..<512 {
      var descriptor = VP9Descriptor()
      descriptor.isFlexible = fields & 1 != 0
      descriptor.isInterPredicted = fields & 2 != 0
      descriptor.beginsFrame = fields & 4 != 0
      descriptor.endsFrame = fields & 8 != 0
      descriptor.isNotReferenced = fields & 5 == 5
      descriptor.pictureID = fields & 16 != 0 ? PictureID(0x12, isLong: fields & 32 != 0) : nil
      if fields & 64 != 0 {
        descriptor.layer = VP9Descriptor.Layer(temporal: 5, spatial: 6)
        descriptor.layer?.isSwitchingPoint = fields & 8 != 0
        descriptor.layer?.isInterLayerPredicted = fields & 4 != 0
        if !descriptor.isFlexible { descriptor.baseLayerIndex = 200 }
      }
      if descriptor.isFlexible, descriptor.isInterPredicted {
        descriptor.references = Array([1, 7, 127].prefix(1 + fields % 3))
      }
      if fields & 128 != 0 {
        var structure = VP9ScalabilityStructure(layerCount: 1 + fields % 8)
        if fields & 256 != 0 {
          structure.sizes = (0..<structure.layerCount).map { (UInt16($0) * 320, 180) }
          structure.group = [
            .init(temporal: 0, isSwitchingPoint: true, references: [4]),
            .init(temporal: 2, isSwitchingPoint: false, references: [1, 2, 3]),
            .init(temporal: 1, isSwitchingPoint: false, references: []),
          ]
        }
        descriptor.structure = structure
      }
      var writer = ByteWriter()
      descriptor.write(into: &writer)
      #expect(writer.count == descriptor.length)
      #expect(try read(writer.bytes) == descriptor)
    }
  }

  @Test(arguments: ["", "80", "8080", "20", "2000", "50", "5003", "500303", "02", "0210", "0208"])
  func aTruncatedDescriptorIsRefused(hex: String) {
    #expect(throws: ReadError.truncated) { try read(octets(hex)) }
  }

  @Test func aFourthReferenceIsRefused() {
    #expect(throws: ReadError.malformed) { try read(octets("5003030300")) }
  }

  /// A 640x360 key frame written by libvpx, and frames that may follow it.
  private static let key = "824983422027f016700000"

  @Test(arguments: [
    (key, true, 640, 360),
    // Another frame with its reference's size.
    ("86003fffff", false, 0, 0),
    // An intra-only frame that is not shown, with which a decoder cannot start.
    ("85a4c1a17f813f80b380", false, 640, 360),
  ])
  func frameHeadersHaveKeyFlagAndSize(hex: String, isKey: Bool, width: Int, height: Int) throws {
    let header = try VP9FrameHeader(parsing: octets(hex).span.bytes)
    #expect(header.isKey == isKey)
    #expect(header.width == width && header.height == height)
  }

  @Test(arguments: ["", "02", "8249", "82498343202700", "82498342e0", "c2"])
  func otherBytesHaveNoFrameHeader(hex: String) {
    #expect(throws: ReadError.self) { try VP9FrameHeader(parsing: octets(hex).span.bytes) }
  }

  @Test func packetsReportFrameStartsAndKeyFrames() throws {
    func packet(_ hex: String) -> VideoPacket? {
      VideoPacket(octets(hex).span.bytes, codec: .vp9)
    }
    // Flexible mode with a picture identifier: a key frame's first packet, and its second.
    let first = try #require(packet("988001" + Self.key))
    #expect(first.beginning == .certain && first.isKey && first.pictureID == PictureID(1))
    #expect(first.content == .slice(3..<14))
    let second = try #require(packet("948001" + "aabb"))
    #expect(second.beginning == .no && !second.isKey)
    // A higher layer of the same video frame, and a layer that depends on earlier video frames.
    #expect(packet("b8800102" + Self.key)?.beginning == .possible)
    let delta = try #require(packet("d8800202" + Self.key))
    #expect(delta.beginning == .certain && !delta.isKey)
    #expect(packet("988001") == nil)
  }

  @Test func framesAreSplitForFlexibleMode() throws {
    for isKey in [true, false] {
      let frame = EncodedFrame(
        kind: .video, codec: .vp9, mediaTime: 0, bytes: Array(repeating: 0x82, count: 2500),
        isKey: isKey)
      let shares = PayloadShare.all(of: frame, pictureID: 77, limit: 1000)
      #expect(shares.map(\.range.count).reduce(0, +) == 2500 && shares.count == 3)
      for (index, share) in shares.enumerated() {
        var writer = ByteWriter()
        share.prefix.write(into: &writer)
        #expect(writer.count == share.prefix.length)
        #expect(writer.count + share.range.count <= 1000)
        let descriptor = try read(writer.bytes)
        #expect(descriptor.beginsVideoFrame == (index == 0) && descriptor.endsFrame == (index == 2))
        #expect(descriptor.isInterPredicted == !isKey && descriptor.pictureID == PictureID(77))
        #expect(descriptor.references == (isKey ? [] : [1]))
      }
    }
  }
}
