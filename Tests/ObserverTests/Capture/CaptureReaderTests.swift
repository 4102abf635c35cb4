import Observer
import Testing
import Wire

struct CaptureReaderTests {
  private let payload = Array("hello".utf8)

  private static let packet4 = Packets.ipv4(Packets.udp(Array("hello".utf8)))
  private static let packet6 = Packets.ipv6(Packets.udp(Array("hello".utf8)))

  /// Link types, each with a frame that contains a datagram.
  private static let frames: [(UInt32, [UInt8])] = [
    (1, Packets.ethernet(packet4)),
    (1, Packets.ethernet(packet4, tags: [0x8100])),
    (1, Packets.ethernet(packet4, tags: [0x88a8, 0x8100])),
    (1, Packets.ethernet(packet6, type: 0x86dd)),
    (113, [UInt8](repeating: 0, count: 14) + [8, 0] + packet4),
    (276, [8, 0] + [UInt8](repeating: 0, count: 18) + packet4),
    (101, packet4),
    (101, packet6),
    (12, packet4),
    (228, packet4),
    (229, packet6),
    (0, [2, 0, 0, 0] + packet4),
    (0, [0, 0, 0, 30] + packet6),
    (108, [0, 0, 0, 2] + packet4),
  ]

  @Test(arguments: frames)
  func datagramsOfEveryLinkTypeAreRead(linkType: UInt32, frame: [UInt8]) throws {
    var capture = CaptureBuilder.pcap(linkType: linkType)
    capture.record(frame)
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == [payload])
    #expect(read.datagrams.first?.tuple.source.port == 1000)
    #expect(read.datagrams.first?.tuple.destination.port == 2000)
  }

  @Test(arguments: [true, false], [true, false])
  func timesAreReadInBothOrdersAndUnits(isLittle: Bool, nanoseconds: Bool) throws {
    var capture = CaptureBuilder.pcap(isLittle: isLittle, nanoseconds: nanoseconds)
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(payload))), seconds: 7, fraction: 5)
    let at = try #require(try readAll(capture.bytes).datagrams.first?.at)
    #expect(at == 7_000_000_000 + (nanoseconds ? 5 : 5000))
  }

  @Test func optionsAndExtensionHeadersAreSkipped() throws {
    var capture = CaptureBuilder.pcap(linkType: 101)
    capture.record(Packets.ipv4(Packets.udp(payload), options: [1, 1, 1, 0]))
    let headers: [UInt8] = [60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]
    let inner = headers + Packets.udp(payload)
    capture.record(Packets.ipv6(inner, next: 0))
    #expect(try readAll(capture.bytes).datagrams.map(\.bytes) == [payload, payload])
  }

  @Test func linkPaddingIsNotPayload() throws {
    var capture = CaptureBuilder.pcap()
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(payload))) + [0, 0, 0, 0, 0, 0])
    #expect(try readAll(capture.bytes).datagrams.map(\.bytes) == [payload])
  }

  @Test func aTruncatedPacketIsMarked() throws {
    var capture = CaptureBuilder.pcap()
    let frame = Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(1))))
    capture.record(Array(frame.prefix(70)), original: frame.count)
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.isTruncated) == [true])
    #expect(read.datagrams.first?.bytes == Array(Packets.rtp(1).prefix(28)))
    #expect(read.counters.truncated == 1)
  }

  @Test func fragmentsAreReassembledInAnyOrder() throws {
    let whole = Packets.udp(Packets.rtp(1, count: 60))
    let pieces = [(0, 24), (24, 48), (48, whole.count)]
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
      var capture = CaptureBuilder.pcap(linkType: 101)
      for index in order {
        let (start, end) = pieces[index]
        capture.record(
          Packets.ipv4(
            Array(whole[start..<end]), identification: 9,
            fragment: start / 8 | (index < 2 ? 0x2000 : 0)))
      }
      let read = try readAll(capture.bytes)
      #expect(read.datagrams.map(\.bytes) == [Packets.rtp(1, count: 60)])
      #expect(read.counters.reassembled == 1)
    }
  }

  /// RFC 3168 section 5.3: one marked fragment marks the datagram, whichever completes it.
  @Test(arguments: [
    ([ECNMark.ect0, .congestionExperienced, .ect0], ECNMark.congestionExperienced),
    ([.congestionExperienced, .ect0, .ect0], .congestionExperienced),
    ([.ect0, .ect0, .ect0], .ect0), ([.ect0, .ect1, .ect0], .notCapable),
  ])
  func fragmentsHaveOneMark(marks: [ECNMark], expected: ECNMark) throws {
    let whole = Packets.udp(Packets.rtp(1, count: 60))
    var capture = CaptureBuilder.pcap(linkType: 101)
    for (index, (start, end)) in [(0, 24), (24, 48), (48, whole.count)].enumerated() {
      var packet = Packets.ipv4(
        Array(whole[start..<end]), identification: 9,
        fragment: start / 8 | (index < 2 ? 0x2000 : 0))
      packet[1] = marks[index].rawValue
      capture.record(packet)
    }
    #expect(try readAll(capture.bytes).marks == [expected])
  }

  @Test func ipv6FragmentsAreReassembled() throws {
    let whole = Packets.udp(Packets.rtp(1, count: 60))
    var capture = CaptureBuilder.pcap(linkType: 101)
    for (start, end, more) in [(0, 40, 1), (40, whole.count, 0)] {
      let head = [17, 0] + Packets.big(start | more, 2) + Packets.big(7, 4)
      capture.record(Packets.ipv6(head + whole[start..<end], next: 44))
    }
    #expect(try readAll(capture.bytes).datagrams.map(\.bytes) == [Packets.rtp(1, count: 60)])
  }

  @Test func overlappingFragmentsAreDropped() throws {
    let whole = Packets.udp(Packets.rtp(1, count: 60))
    var capture = CaptureBuilder.pcap(linkType: 101)
    for (start, end, more) in [(0, 24, true), (16, 48, true), (48, whole.count, false)] {
      capture.record(
        Packets.ipv4(
          Array(whole[start..<end]), identification: 9, fragment: start / 8 | (more ? 0x2000 : 0)))
    }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.isEmpty)
    #expect(read.counters.fragmentsDropped == 2)
  }

  @Test func unfinishedFragmentsAreLimited() throws {
    var capture = CaptureBuilder.pcap(linkType: 101)
    for number in 0..<500 {
      capture.record(
        Packets.ipv4(
          [UInt8](repeating: 1, count: 8000), identification: number + 1, fragment: 0x2000))
    }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.isEmpty)
    #expect(read.counters.fragmentsDropped >= 500 - 130)
  }

  @Test func aPacketCapturedTwiceCountsOnce() throws {
    var capture = CaptureBuilder.pcap()
    let frame = Packets.ethernet(Packets.ipv4(Packets.udp(payload), identification: 7))
    capture.record(frame)
    capture.record(
      Packets.ethernet(
        Packets.ipv4(Packets.udp(payload), identification: 7, hops: 63), tags: [0x8100]),
      fraction: 900)
    // If packets have no IP identification, the same bytes a little later count as another packet.
    let anonymous = Packets.ethernet(Packets.ipv4(Packets.udp(payload)))
    capture.record(anonymous, fraction: 1000)
    capture.record(anonymous, fraction: 1100)
    capture.record(anonymous, fraction: 9000)
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.count == 3)
    #expect(read.counters.duplicates == 2)
  }

  @Test func joinedDatagramsAreSplitWhereTheContentShowsIt() throws {
    let parts =
      [65_534, 65_535, 0].map { Packets.rtp($0) } + [Packets.rtp(1, count: 30)]
    var capture = CaptureBuilder.pcap()
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(Array(parts.joined())))))
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(9)))), seconds: 2)
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == parts + [Packets.rtp(9)])
    #expect(read.counters.joinedDatagrams == 1)
    #expect(read.counters.splitDatagrams == 4)
  }

  /// Joined datagrams whose last message is of another kind, as on a bundled path.
  @Test(arguments: [
    [Packets.rtp(3, count: 900), Packets.record(40)],
    [Packets.rtp(3, count: 90), Packets.rtp(4, count: 90), Packets.record(40)],
    [Packets.rtp(3, count: 900), Packets.protectedControl(tag: 0)],
    [Packets.rtp(3), Packets.rtp(4), Packets.protectedControl(tag: 10)],
    [Packets.rtp(3, count: 200), Packets.message(40)],
    [Packets.message(100), Packets.rtp(3, count: 60)],
    [Packets.message(60), Packets.message(60), Packets.rtp(3, count: 50)],
    [Packets.message(60), Packets.record(20)],
    [Packets.protectedControl(tag: 0), Packets.record(10)],
    [Packets.rtp(3, count: 900), Packets.rtp(0, ssrc: 7, extensions: [0x10, 0x30, 0, 0])],
    [
      Packets.rtp(3, count: 90), Packets.rtp(4, count: 90),
      Packets.rtp(0, ssrc: 7, extensions: [0x10, 0x30, 0x51, 1, 2, 0, 0, 0]),
    ],
    [Packets.record(200), Packets.rtp(3)],
    [Packets.record(200), Packets.record(200), Packets.protectedControl(tag: 0)],
  ])
  func aFinalMessageOfAnotherKindIsSplitOff(parts: [[UInt8]]) throws {
    var capture = CaptureBuilder.pcap()
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(Array(parts.joined())))))
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == parts)
    #expect(read.counters.joinedDatagrams == 1)
    #expect(read.counters.splitDatagrams == UInt64(parts.count))
  }

  /// Joined datagrams of several streams, on a path that has carried the other stream up to number
  /// 40.
  @Test(arguments: [
    [Packets.rtp(3, count: 900), Packets.rtp(41, ssrc: 7, count: 60)],
    [Packets.rtp(3, count: 900), Packets.rtp(44, ssrc: 7, count: 60)],
    [Packets.rtp(3), Packets.rtp(4), Packets.rtp(41, ssrc: 7)],
    [Packets.rtp(3), Packets.rtp(41, ssrc: 7), Packets.rtp(4), Packets.rtp(42, ssrc: 7, count: 9)],
    [Packets.rtp(3), Packets.rtp(41, ssrc: 7), Packets.record(40)],
    [Packets.protectedControl(tag: 0), Packets.rtp(41, ssrc: 7, count: 30)],
  ])
  func aPacketOfAnotherStreamIsSplitOff(parts: [[UInt8]]) throws {
    let earlier = [Packets.rtp(39, ssrc: 7), Packets.rtp(40, ssrc: 7)]
    var capture = CaptureBuilder.pcap()
    for payload in earlier + [Array(parts.joined())] {
      capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(payload))))
    }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == earlier + parts)
    #expect(read.counters.joinedDatagrams == 1)
    #expect(read.counters.splitDatagrams == UInt64(parts.count))
  }

  /// The end of the datagram looks like a packet of another stream, but does not continue that
  /// stream on the same path.
  @Test(arguments: [
    (Packets.rtp(40, ssrc: 7, count: 60), 1000), (Packets.rtp(140, ssrc: 7, count: 60), 1000),
    (Packets.rtp(41, ssrc: 8, count: 60), 1000), (Packets.rtp(41, ssrc: 7, count: 60), 1001),
    (Packets.rtp(41, ssrc: 7, count: 950), 1000),
    ([0x80, 97] + Packets.rtp(41, ssrc: 7, count: 60).dropFirst(2), 1000),
  ])
  func anApparentPacketOfAnotherStreamIsNotSplitOff(end: [UInt8], port: Int) throws {
    let payload = Packets.rtp(3, count: 900) + end
    var capture = CaptureBuilder.pcap()
    capture.record(
      Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(40, ssrc: 7)))))
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(payload, from: port))))
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.last?.bytes == payload)
    #expect(read.counters.joinedDatagrams == 0)
  }

  /// Every path is forgotten eventually, and no path is mistaken for another.
  @Test func manyPathsUseLittleMemory() throws {
    var capture = CaptureBuilder.pcap(linkType: 101)
    for port in 0..<9000 {
      capture.record(Packets.ipv4(Packets.udp(Packets.rtp(40, ssrc: port, count: 0), from: port)))
    }
    let joined = Packets.rtp(1, ssrc: 1, count: 90) + Packets.rtp(41, ssrc: 8999, count: 9)
    capture.record(Packets.ipv4(Packets.udp(joined, from: 8998)))
    capture.record(Packets.ipv4(Packets.udp(joined, from: 8999)))
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.count == 9003)
    #expect(read.counters.joinedDatagrams == 1)
  }

  /// Payloads that look like two joined datagrams, but whose parts do not fill the payload.
  @Test(arguments: [
    Packets.rtp(3, count: 900) + Packets.record(40).dropLast(),
    Packets.rtp(3, count: 900) + Packets.message(40) + [0],
    Packets.rtp(3, count: 900) + Packets.protectedControl(tag: 3),
    Packets.rtp(3, count: 10) + Packets.record(400),
    Packets.record(40) + Packets.record(30),
    Packets.protectedControl(tag: 40) + Packets.protectedControl(tag: 0),
    Packets.rtp(3, count: 900) + Packets.rtp(0, ssrc: 7, extensions: [0, 0, 0, 0]),
    Packets.rtp(3, count: 900) + Packets.rtp(0, ssrc: 7, extensions: [0xf0, 0x30, 0, 0]),
    Packets.rtp(3, count: 900) + Packets.rtp(0, ssrc: 7, extensions: [0x10, 0x30, 0x11, 0]),
    Packets.rtp(3, count: 20) + Packets.rtp(0, ssrc: 7, extensions: [0x10, 0x30, 0, 0], count: 60),
    Packets.big(0x0001_0050, 4) + [UInt8](repeating: 1, count: 96) + Packets.rtp(3, count: 40),
  ])
  func oneDatagramThatResemblesTwoIsNotSplit(payload: [UInt8]) throws {
    var capture = CaptureBuilder.pcap()
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(payload))))
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == [payload])
    #expect(read.counters.joinedDatagrams == 0)
  }

  @Test func zeroLengthsFromOffloadAreValid() throws {
    var capture = CaptureBuilder.pcap()
    capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(payload, length: 0), length: 0)))
    #expect(try readAll(capture.bytes).datagrams.map(\.bytes) == [payload])
  }

  @Test func segmentsAreReadInOrderWhateverTheirOrder() throws {
    var capture = CaptureBuilder.pcap(linkType: 101)
    func segment(
      _ text: String, _ sequence: UInt32, _ flags: UInt8 = 0x10, at seconds: UInt32 = 1
    ) {
      capture.record(
        Packets.ipv4(
          Packets.tcp(Array(text.utf8), sequence: sequence, flags: flags), transport: 6),
        seconds: seconds)
    }
    segment("", 0xffff_fffe, 0x02)
    segment("cde", 2)
    segment("abc", 0xffff_ffff)
    segment("bc", 0, at: 2)
    segment("fg", 5)
    // Two bytes are missing.
    segment("jk", 9, at: 3)
    segment("", 11, 0x11, at: 20)
    let read = try readAll(capture.bytes)
    #expect(String(decoding: read.streams.flatMap(\.bytes), as: UTF8.self) == "abccdefgjk")
    #expect(read.streams.map(\.lost).reduce(0, +) == 2)
    #expect(read.streams.last?.isEnd == true)
    #expect(read.counters.streamBytesLost == 2)
  }

  @Test func bytesMayBeAppendedOneByOne() throws {
    var capture = CaptureBuilder.pcap()
    for number in 0..<5 {
      capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(Packets.rtp(number)))))
    }
    var reader = CaptureReader()
    var count = 0
    for byte in capture.bytes {
      reader.append([byte].span.bytes)
      while try reader.next() != nil { count += 1 }
    }
    #expect(count == 5)
    #expect(reader.waitingCount == 0)
  }

  @Test func otherFilesAreRefused() throws {
    #expect(throws: CaptureError.notACapture) { try readAll(Array("GIF89a......".utf8)) }
    var capture = CaptureBuilder.pcap()
    let place = capture.bytes.count
    capture.uint32(1)
    capture.uint32(1)
    capture.uint32(0x7fff_ffff)
    capture.uint32(0x7fff_ffff)
    #expect(throws: CaptureError.badLength(0x7fff_ffff, offset: place)) {
      try readAll(capture.bytes)
    }
  }

  /// A record with a damaged length is lost; a length that is too short yields the record's first
  /// bytes, and a length that reaches over other records hides them.
  @Test(arguments: [(0x7fff_ffff, 9), (0x0100_0000, 9), (120, 10), (200, 9), (200_000, 9)])
  func aDamagedRecordLosesOnlyItself(_ length: Int, _ frames: UInt64) throws {
    var capture = CaptureBuilder.pcap()
    var place = 0
    for number in 0..<10 as Range<UInt32> {
      if number == 5 { place = capture.bytes.count }
      let media = Packets.rtp(Int(number), count: 100)
      capture.record(Packets.ethernet(Packets.ipv4(Packets.udp(media))), seconds: 1000 + number)
    }
    for byte in 0..<4 { capture.bytes[place + 8 + byte] = UInt8(length >> (8 * byte) & 0xff) }
    let whole = try readAll(capture.bytes)
    #expect(whole.counters.frames == frames, "\(whole.counters)")
    #expect(whole.counters.damagedRecords == 1)
    #expect(whole.waiting == 0)
  }

  /// A system that leaves checksums to its network card captures packets without them; a mirror
  /// port captures the same packets with them.
  @Test func theSamePacketWithAnotherChecksumCountsOnce() throws {
    func frame(_ checksum: UInt8, _ last: UInt8, identification: UInt8) -> [UInt8] {
      let media: [UInt8] = [0x80, 0, 0, 1] + [UInt8](repeating: 7, count: 19) + [last]
      let datagram: [UInt8] = [0x13, 0x88, 0x17, 0x70, 0, UInt8(8 + media.count), 0, checksum]
      let head: [UInt8] =
        [0x45, 0, 0, UInt8(28 + media.count), 0, identification, 0, 0, 64, 17, 0, 0]
        + [10, 0, 0, 1, 10, 0, 0, 2]
      return [UInt8](repeating: 2, count: 12) + [8, 0] + head + datagram + media
    }
    for identification in [0, 9] as [UInt8] {
      var capture = CaptureBuilder.pcap()
      for number in 0..<5 as Range<UInt32> {
        let last = UInt8(number)
        let at = number * 20_000
        capture.record(frame(0, last, identification: identification), fraction: at)
        capture.record(frame(0x5a, last, identification: identification), fraction: at + 3000)
      }
      let whole = try readAll(capture.bytes)
      #expect(whole.datagrams.count == 5 && whole.counters.duplicates == 5)
    }
  }
}
