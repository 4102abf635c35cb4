import Observer
import Testing
import Wire

struct PcapngTests {
  private let frame = Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(1))))

  @Test(arguments: [true, false])
  func everyKindOfPacketBlockIsRead(isLittle: Bool) throws {
    var capture = CaptureBuilder(isLittle: isLittle)
    capture.section()
    capture.interface(1)
    capture.enhancedPacket(frame, ticks: 5)
    let other = Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(2))))
    capture.block(2) {
      $0.uint16(0)
      $0.uint16(3)
      $0.uint32(0)
      $0.uint32(6)
      $0.uint32(UInt32(other.count))
      $0.uint32(UInt32(other.count))
      $0.bytes += other
    }
    let third = Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(3))))
    capture.block(3) {
      $0.uint32(UInt32(third.count))
      $0.bytes += third
    }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == [1, 2, 3].map { Packets.rtp($0) })
    #expect(read.datagrams.map(\.at) == [5000, 6000, 6000])
    #expect(read.dropped == 3)
  }

  @Test(
    arguments: [
      ([6], 3_000_001, 3_000_001_000), ([9], 3_000_001, 3_000_001),
      ([0x80 | 10], 1536, 1_500_000_000),
      ([3], 5, 5_000_000), ([0], 5, 5_000_000_000),
    ] as [([UInt8], UInt64, Int64)])
  func timestampResolutions(resolution: [UInt8], ticks: UInt64, nanoseconds: Int64) throws {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1) {
      $0.option(9, resolution)
      $0.option(14, [2, 0, 0, 0, 0, 0, 0, 0])
      $0.option(0, [])
    }
    capture.enhancedPacket(frame, ticks: ticks)
    #expect(try readAll(capture.bytes).datagrams.map(\.at) == [nanoseconds + 2_000_000_000])
  }

  @Test func oneFileMayHaveSeveralSectionsAndLinkTypes() throws {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1)
    capture.interface(101)
    capture.enhancedPacket(Packets.ipv4(Packets.udp(Packets.rtp(4))), interface: 1)
    capture.enhancedPacket(frame, interface: 0)
    var second = CaptureBuilder(isLittle: false)
    second.section()
    second.interface(101)
    second.enhancedPacket(Packets.ipv4(Packets.udp(Packets.rtp(5))))
    #expect(
      try readAll(capture.bytes + second.bytes).datagrams.map(\.bytes)
        == [4, 1, 5].map { Packets.rtp($0) })
  }

  @Test func secretsAndCommentsAreReported() throws {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1) { $0.option(1, Array("the uplink".utf8)) }
    let keys = Array("CLIENT_RANDOM 00 11\n".utf8)
    capture.block(10) {
      $0.uint32(0x544c_534b)
      $0.uint32(UInt32(keys.count))
      $0.bytes += keys
    }
    capture.block(0xbad) { $0.bytes += [1, 2, 3, 4] }
    capture.enhancedPacket(frame) { $0.option(1, Array("look here".utf8)) }
    let read = try readAll(capture.bytes)
    #expect(read.secrets == [keys])
    #expect(read.comments == ["the uplink"])
    #expect(read.datagrams.count == 1)
  }

  @Test func interfaceStatisticsReportLostFrames() throws {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1)
    for lost in [3, 10] as [UInt8] {
      capture.block(5) {
        $0.uint32(0)
        $0.uint32(0)
        $0.uint32(0)
        $0.option(5, [lost, 0, 0, 0, 0, 0, 0, 0])
      }
    }
    capture.enhancedPacket(frame)
    #expect(try readAll(capture.bytes).dropped == 10)
  }

  @Test func damageIsReportedWithItsOffset() throws {
    var capture = CaptureBuilder()
    capture.section()
    let place = capture.bytes.count
    capture.enhancedPacket(frame, interface: 3)
    #expect(throws: CaptureError.unknownInterface(3, offset: place)) {
      try readAll(capture.bytes)
    }
    capture.bytes[place + 4] = 13
    #expect(throws: CaptureError.self) { try readAll(capture.bytes) }
  }

  /// A block with a wrong length at either end, or with wrong content, is lost, but no other block
  /// is.
  @Test(arguments: [4, 5, 8, 20, -4])
  func aDamagedBlockLosesOnlyItself(_ offset: Int) throws {
    var capture = CaptureBuilder()
    capture.section()
    capture.interface(1)
    for _ in 0..<3 { capture.enhancedPacket(frame) }
    let place = capture.bytes.count
    capture.enhancedPacket(frame)
    let end = capture.bytes.count
    for _ in 0..<3 { capture.enhancedPacket(frame) }
    capture.bytes[(offset < 0 ? end : place) + offset] ^= 0x40
    let whole = try readAll(capture.bytes)
    #expect(whole.counters.frames == 6)
    #expect(whole.counters.damagedRecords == 1 && whole.waiting == 0)
    #expect(whole.counters.damagedBytes == UInt64(end - place))
  }
}
