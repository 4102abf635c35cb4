import Observer
import Testing
import Wire

/// Tests layers around a call's packets in captures from routers, clouds, radio and phones.
struct EncapsulationTests {
  private static let payload = Packets.rtp(7, count: 20)
  /// The packet inside every capture here.
  private static let inner4 = Packets.ipv4(Packets.udp(payload), identification: 9)
  private static let inner6 = Packets.ipv6(Packets.udp(payload))
  private static let frame4 = Packets.ethernet(inner4)
  private static let frame6 = Packets.ethernet(inner6, type: 0x86dd)

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  /// Makes the outer packet of a tunnel, between addresses other than the call's.
  private static func outer(_ payload: [UInt8], _ transport: UInt8) -> [UInt8] {
    Packets.ethernet(Packets.ipv4(payload, transport: transport, identification: 5, network: 9))
  }

  private static func tunnel(_ payload: [UInt8], to port: Int) -> [UInt8] {
    outer(Packets.udp(payload, from: 40_000, to: port), 17)
  }

  private static func pppoe(_ payload: [UInt8]) -> [UInt8] {
    [0x11, 0, 0, 7] + Packets.big(payload.count, 2) + payload
  }

  private static let vxlan: [UInt8] = [8, 0, 0, 0, 0, 1, 2, 0]
  private static let snap: [UInt8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0]

  /// Makes an 802.11 data frame to an access point, with a QoS field.
  private static func wireless(
    _ body: [UInt8], flags: UInt8 = 1, quality: [UInt8]? = [0, 0], padding: Int = 0
  ) -> [UInt8] {
    [quality == nil ? 0x08 : 0x88, flags] + zeros(22) + (flags & 3 == 3 ? zeros(6) : [])
      + (quality ?? []) + zeros(padding) + body
  }

  private static func subframe(_ packet: [UInt8]) -> [UInt8] {
    let body = snap + packet
    let frame = zeros(12) + Packets.big(body.count, 2) + body
    return frame + zeros((4 - frame.count % 4) % 4)
  }

  private static func little(_ value: Int, _ width: Int) -> [UInt8] {
    Packets.big(value, width).reversed()
  }

  private static func radiotap(_ flags: UInt8, _ frame: [UInt8]) -> [UInt8] {
    // A time and the flags; the second word of presence bits is empty.
    [0, 0] + little(25, 2) + [3, 0, 0, 0x80] + zeros(4) + zeros(4) + zeros(8) + [flags] + frame
  }

  private static func label(_ value: Int, isLast: Bool) -> [UInt8] {
    Packets.big(value << 12 | (isLast ? 0x1ff : 0xff), 4)
  }

  /// The same packet in each supported encapsulation.
  private static let frames: [(name: String, linkType: UInt32, frame: [UInt8])] = [
    ("PPPoE", 1, Packets.ethernet(pppoe([0, 0x21] + inner4), type: 0x8864)),
    (
      "PPPoE with padding", 1, Packets.ethernet(pppoe([0, 0x21] + inner4) + zeros(6), type: 0x8864)
    ),
    ("PPPoE with IPv6", 1, Packets.ethernet(pppoe([0, 0x57] + inner6), type: 0x8864)),
    ("PPPoE, protocol of one byte", 1, Packets.ethernet(pppoe([0x21] + inner4), type: 0x8864)),
    (
      "PPPoE in QinQ", 1,
      Packets.ethernet(pppoe([0, 0x21] + inner4), type: 0x8864, tags: [0x88a8, 0x8100])
    ),
    ("QinQ of before 802.1ad", 1, Packets.ethernet(inner4, tags: [0x9100, 0x8100])),
    ("three tags", 1, Packets.ethernet(inner4, tags: [0x9200, 0x88a8, 0x8100])),
    ("E-Tag", 1, zeros(12) + [0x89, 0x3f] + zeros(6) + [8, 0] + inner4),
    ("VN-Tag", 1, zeros(12) + [0x89, 0x26] + zeros(4) + [8, 0] + inner4),
    ("provider backbone", 1, zeros(12) + [0x88, 0xe7] + zeros(4) + frame4),
    ("802.3 with SNAP", 1, zeros(12) + Packets.big(8 + inner4.count, 2) + snap + inner4),
    ("MACsec without encryption", 1, zeros(12) + [0x88, 0xe5, 0, 0] + zeros(4) + [8, 0] + inner4),
    ("MACsec with a channel", 1, zeros(12) + [0x88, 0xe5, 0x20] + zeros(13) + [8, 0] + inner4),
    ("MPLS", 1, Packets.ethernet(label(100, isLast: true) + inner4, type: 0x8847)),
    (
      "MPLS with three labels", 1,
      Packets.ethernet(
        label(100, isLast: false) + label(3000, isLast: false) + label(2, isLast: true) + inner6,
        type: 0x8847)
    ),
    (
      "pseudowire with a control word", 1,
      Packets.ethernet(label(100, isLast: true) + zeros(4) + frame4, type: 0x8847)
    ),
    ("pseudowire", 1, Packets.ethernet(label(100, isLast: true) + frame4, type: 0x8847)),
    (
      "pseudowire between addresses that begin as IPv4 does", 1,
      Packets.ethernet(
        label(100, isLast: true) + [0x45] + frame4.dropFirst(), type: 0x8848, tags: [0x8100])
    ),
    (
      "pseudowire with a tag", 1,
      Packets.ethernet(
        label(9, isLast: true) + zeros(4) + Packets.ethernet(inner4, tags: [0x8100]), type: 0x8847)
    ),
    ("MPLS without Ethernet", 219, label(100, isLast: true) + inner4),
    ("GRE", 1, outer([0, 0, 8, 0] + inner4, 47)),
    ("GRE with IPv6", 1, outer([0, 0, 0x86, 0xdd] + inner6, 47)),
    ("GRE with all fields", 1, outer([0xb0, 0, 8, 0] + zeros(12) + inner4, 47)),
    ("GRE with a key and Ethernet", 1, outer([0x20, 0, 0x65, 0x58] + zeros(4) + frame4, 47)),
    ("GRE with MPLS", 1, outer([0, 0, 0x88, 0x47] + label(5, isLast: true) + inner4, 47)),
    (
      "PPTP", 1,
      outer([0x30, 0x81, 0x88, 0x0b] + zeros(12) + [0xff, 3, 0, 0x21] + inner4, 47)
    ),
    ("ERSPAN I", 1, outer([0, 0, 0x88, 0xbe] + frame4, 47)),
    (
      "ERSPAN II", 1,
      outer([0x10, 0, 0x88, 0xbe] + zeros(4) + [0x10] + zeros(7) + frame4, 47)
    ),
    (
      "ERSPAN III", 1,
      outer([0x10, 0, 0x22, 0xeb] + zeros(4) + [0x20] + zeros(11) + frame4, 47)
    ),
    (
      "ERSPAN III of a platform", 1,
      outer([0x10, 0, 0x22, 0xeb] + zeros(4) + [0x20] + zeros(10) + [1] + zeros(8) + frame4, 47)
    ),
    (
      "ERSPAN III with IP", 1,
      outer([0x10, 0, 0x22, 0xeb] + zeros(4) + [0x20] + zeros(9) + [8, 0] + inner4, 47)
    ),
    ("IP in IP", 1, outer(inner4, 4)),
    ("6in4", 1, outer(inner6, 41)),
    ("4in6", 1, Packets.ethernet(Packets.ipv6(inner4, next: 4), type: 0x86dd)),
    (
      "4in6 behind options", 1,
      Packets.ethernet(
        Packets.ipv6([4, 0, 4, 1, 2, 1, 0, 0] + inner4, next: 60), type: 0x86dd)
    ),
    ("EtherIP", 1, outer([0x30, 0] + frame4, 97)),
    ("MPLS in IP", 1, outer(label(5, isLast: true) + inner4, 137)),
    (
      "an authentication header", 101,
      Packets.ipv4([17, 4] + zeros(22) + Packets.udp(payload), transport: 51)
    ),
    ("PPP", 9, [0xff, 3, 0, 0x21] + inner4),
    ("PPP without an address", 9, [0, 0x57] + inner6),
    ("PPP in HDLC", 50, [0xff, 3, 0, 0x21] + inner4),
    ("Cisco's HDLC as PPP", 50, [0x0f, 0, 8, 0] + inner4),
    ("Cisco's HDLC", 104, [0x8f, 0, 0x86, 0xdd] + inner6),
    ("PPP of pppd", 166, [1, 3, 0, 0x21] + inner4),
    ("PPP with direction", 204, [1, 0xff, 3, 0, 0x21] + inner4),
    ("a session of PPPoE", 51, pppoe([0, 0x21] + inner4)),
    ("bridging in PPP", 9, [0, 0x31, 0, 1] + frame4),
    ("802.11", 105, wireless(snap + inner4)),
    ("802.11 without quality", 105, wireless(snap + inner4, quality: nil)),
    ("802.11 between access points", 105, wireless(snap + inner4, flags: 3)),
    ("802.11 with HT control", 105, wireless(snap + inner4, flags: 0x81, quality: zeros(6))),
    ("802.11 that was decrypted", 105, wireless(snap + inner4, flags: 0x41)),
    ("802.11 that was decrypted in place", 105, wireless(zeros(8) + snap + inner4, flags: 0x41)),
    ("A-MSDU of one", 105, wireless(subframe(inner4), quality: [0x80, 0])),
    ("radiotap", 127, radiotap(0, wireless(snap + inner4))),
    ("radiotap with a checksum", 127, radiotap(0x10, wireless(snap + inner4) + zeros(4))),
    ("radiotap with padding", 127, radiotap(0x20, wireless(snap + inner4, padding: 2))),
    (
      "Prism", 119, little(0x44, 4) + little(144, 4) + zeros(136) + wireless(snap + inner4)
    ),
    (
      "AVS", 119,
      Packets.big(0x8021_1001, 4) + Packets.big(64, 4) + zeros(56) + wireless(snap + inner4)
    ),
    ("AVS by its own number", 163, [0x80, 0x21, 0x10, 1, 0, 0, 0, 8] + wireless(snap + inner4)),
    ("PPI", 192, [0, 0, 8, 0] + little(105, 4) + wireless(snap + inner4)),
    ("PPI with Ethernet", 192, [0, 0, 12, 0] + little(1, 4) + zeros(4) + frame4),
    (
      "PKTAP", 258, little(108, 4) + little(1, 4) + little(1, 4) + zeros(96) + frame4
    ),
    (
      "PKTAP of older files", 149,
      little(108, 4) + little(1, 4) + little(12, 4) + zeros(96) + inner4
    ),
    (
      "NFLOG", 239,
      [2, 0, 0, 0] + little(8, 2) + little(1, 2) + zeros(4) + little(5, 2) + little(10, 2)
        + zeros(4) + little(4 + inner4.count, 2) + little(9, 2) + inner4
    ),
    (
      "NFLOG in network order", 239,
      [10, 0, 0, 0] + Packets.big(4 + inner6.count, 2) + Packets.big(9, 2) + inner6
    ),
    ("VXLAN", 1, tunnel(vxlan + frame4, to: 4789)),
    ("VXLAN of early Linux", 1, tunnel(vxlan + frame6, to: 8472)),
    ("VXLAN at another port", 1, tunnel(vxlan + frame4, to: 65_330)),
    ("VXLAN with a group", 1, tunnel([0x88, 0, 0, 9, 0, 1, 2, 0] + frame4, to: 4789)),
    ("VXLAN, generic", 1, tunnel([0x0c, 0, 0, 1, 0, 1, 2, 0] + inner4, to: 4790)),
    ("VXLAN, generic, with Ethernet", 1, tunnel([0x0c, 0, 0, 3, 0, 1, 2, 0] + frame4, to: 4790)),
    ("GENEVE", 1, tunnel([0, 0, 0x65, 0x58, 0, 1, 2, 0] + frame4, to: 6081)),
    ("GENEVE with options", 1, tunnel([2, 0, 8, 0, 0, 1, 2, 0] + zeros(8) + inner4, to: 6081)),
    (
      "GTP-U", 1, tunnel([0x30, 255] + Packets.big(inner4.count, 2) + zeros(4) + inner4, to: 2152)
    ),
    (
      "GTP-U of 5G", 1,
      tunnel(
        [0x34, 255] + Packets.big(inner6.count + 8, 2) + zeros(4) + [0, 0, 0, 0x85, 1, 0, 5, 0]
          + inner6, to: 2152)
    ),
    (
      "GTP-U with a sequence", 1,
      tunnel([0x32, 255] + Packets.big(inner4.count + 4, 2) + zeros(8) + inner4, to: 2152)
    ),
    ("L2TP", 1, tunnel([0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21] + inner4, to: 1701)),
    (
      "L2TP with a length", 1,
      tunnel(
        [0x48, 2] + Packets.big(14 + inner4.count, 2) + zeros(8) + [0, 0x21] + inner4, to: 1701)
    ),
    ("TZSP", 1, tunnel([1, 0, 0, 1, 0, 10, 1, 5, 1] + frame4, to: 37_008)),
    ("MPLS in UDP", 1, tunnel(label(5, isLast: true) + inner4, to: 6635)),
    ("cooked with a tag", 113, zeros(14) + [0x81, 0, 0, 5, 8, 0] + inner4),
    ("cooked 802.2", 113, zeros(14) + [0, 4] + snap + inner4),
    (
      "cooked, version 2, with tags", 276,
      [0x88, 0xa8] + zeros(18) + [0, 5, 0x81, 0, 0, 6, 8, 0] + inner4
    ),
    ("cooked PPPoE", 113, zeros(14) + [0x88, 0x64] + pppoe([0, 0x21] + inner4)),
    ("loopback of macOS", 0, [30, 0, 0, 0] + inner6),
    ("loopback of FreeBSD", 0, [28, 0, 0, 0] + inner6),
    ("loopback of NetBSD", 0, [0, 0, 0, 24] + inner6),
    ("loopback of OpenBSD", 108, [0, 0, 0, 24] + inner6),
    ("loopback of Windows", 0, [23, 0, 0, 0] + inner6),
    ("raw IP of OpenBSD", 14, inner4),
    ("enc of OpenBSD", 109, [0, 0, 0, 2] + zeros(8) + inner4),
    ("pflog", 117, [61, 2] + zeros(62) + inner4),
    (
      "tunnels in each other", 1,
      tunnel(
        vxlan
          + Packets.ethernet(
            outer([0, 0, 8, 0] + Packets.ipv4(inner4, transport: 4, identification: 3), 47)
              .dropFirst(14).map { $0 }, tags: [0x8100]), to: 4789)
    ),
  ]

  @Test func everyLayerIsRemoved() throws {
    for (name, linkType, frame) in Self.frames {
      var capture = CaptureBuilder.pcap(linkType: linkType)
      capture.record(frame)
      let read = try readAll(capture.bytes)
      #expect(read.datagrams.map(\.bytes) == [Self.payload], "\(name)")
      let source = read.datagrams.first?.tuple.source.description
      #expect(["192.0.2.1:1000", "[2001:db8::1]:1000"].contains(source), "\(name)")
      #expect(read.counters.unread.words().isEmpty && read.counters.malformed == 0, "\(name)")
    }
  }

  /// Media sent to a tunnel's port, and data that almost looks like that tunnel's packets.
  @Test(arguments: [4789, 8472, 4790, 6081, 2152, 1701, 37_008, 6635, 65_330])
  func otherDatagramsToATunnelPortAreNotUnwrapped(port: Int) throws {
    let long = Packets.rtp(1, count: 300)
    let contents: [[UInt8]] = [
      long, Packets.message(60), Packets.record(200), Packets.protectedControl(tag: 10),
      [0x88, 0] + long.dropFirst(2), [0x90, 0x60] + long.dropFirst(2), Self.zeros(60),
      Self.vxlan + long, [8, 0, 0, 1, 0, 0, 0, 0] + Self.frame4,
      [0x30, 255, 0, 60] + long, [0x30, 1, 0, 4] + Self.zeros(40), [0, 2, 0, 1, 0, 2] + long,
      [1, 0, 0, 1, 1] + long, [0, 0, 8, 0, 0, 1, 2, 0] + long,
    ]
    var capture = CaptureBuilder.pcap()
    for content in contents { capture.record(Self.tunnel(content, to: port)) }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == contents)
    #expect(read.datagrams.allSatisfy { $0.tuple.destination.port == UInt16(port) })
  }

  @Test func severalPacketsInOneWirelessFrameAreRead() throws {
    let packets = (1...3).map {
      Packets.ipv4(Packets.udp(Packets.rtp($0, count: 11)), identification: $0)
    }
    let other: [UInt8] = Array(Self.snap.prefix(6)) + [8, 6] + Self.zeros(28)
    let arp = Self.zeros(12) + Packets.big(other.count, 2) + other + Self.zeros(2)
    var capture = CaptureBuilder.pcap(linkType: 105)
    let frames = packets.map { Self.subframe($0) }
    capture.record(
      Self.wireless(frames[0] + arp + frames[1] + frames[2], quality: [0x80, 0]))
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == (1...3).map { Packets.rtp($0, count: 11) })
    #expect(read.counters.unread.words() == "1 packet of ARP")
  }

  /// Both the inner packet and the outer packet are fragmented.
  @Test func nestedFragmentsAreReassembled() throws {
    let whole = Packets.udp(Packets.rtp(1, count: 900))
    let inside = [(0, 480), (480, whole.count)].map { start, end in
      Packets.ethernet(
        Packets.ipv4(
          Array(whole[start..<end]), identification: 77,
          fragment: start / 8 | (end < whole.count ? 0x2000 : 0)))
    }
    var capture = CaptureBuilder.pcap(linkType: 101)
    for (number, frame) in inside.enumerated() {
      let outer = Packets.udp(Self.vxlan + frame, to: 4789)
      for (start, end) in [(0, 320), (320, outer.count)] {
        capture.record(
          Packets.ipv4(
            Array(outer[start..<end]), identification: 100 + number,
            fragment: start / 8 | (end < outer.count ? 0x2000 : 0), network: 9))
      }
    }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.bytes) == [Packets.rtp(1, count: 900)])
    #expect(read.datagrams.first?.tuple.source.description == "192.0.2.1:1000")
    #expect(read.counters.reassembled == 3)
  }

  @Test func aTruncatedPacketInATunnelIsMarked() throws {
    let frame = Self.tunnel(Self.vxlan + Self.frame4, to: 4789)
    var capture = CaptureBuilder.pcap()
    capture.record(Array(frame.dropLast(12)), original: frame.count)
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.map(\.isTruncated) == [true])
    #expect(read.datagrams.first?.bytes == Array(Self.payload.dropLast(12)))
  }

  @Test func nestedTunnelsAreLimited() throws {
    var packet = Self.inner4
    for number in 1...40 {
      packet = Packets.ipv4(packet, transport: 4, identification: number)
    }
    var capture = CaptureBuilder.pcap(linkType: 101)
    capture.record(packet)
    let labels = (0..<400).flatMap { Self.label($0, isLast: false) }
    capture.record(Packets.ipv4(labels, transport: 137))
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.isEmpty)
    #expect(read.counters.unread.words().contains("1 packet inside of more than 8 tunnels"))
    var tagged = CaptureBuilder.pcap()
    tagged.record(Packets.ethernet(Self.inner4, tags: [Int](repeating: 0x8100, count: 60)))
    #expect(try readAll(tagged.bytes).counters.unread.words().contains("more than 8 tunnels"))
  }

  /// The counters name the layers that were not opened, and say whether these may contain media.
  @Test(arguments: [
    (147 as UInt32, Packets.rtp(1), "of link type 147", true),
    (220, zeros(64), "of link type 220", false),
    (1, Packets.ethernet(zeros(28), type: 0x0806), "of ARP", false),
    (1, Packets.ethernet(zeros(28), type: 0x1234), "of Ethernet type 0x1234", false),
    (1, Packets.ethernet(zeros(28), type: 0x8863), "of PPPoE discovery", false),
    (1, Packets.ethernet([0x0c] + zeros(40), type: 0x88e5), "inside of encrypted MACsec", true),
    (
      1, zeros(12) + [0, 38, 0x42, 0x42, 3] + zeros(40), "of 802.2 (spanning trees and the like)",
      false
    ),
    (1, Packets.ethernet(pppoe([0xc0, 0x21] + zeros(8)), type: 0x8864), "of LCP", false),
    (1, Packets.ethernet(pppoe([0, 0xfd] + zeros(8)), type: 0x8864), "of compressed PPP", true),
    (101, Packets.ipv4(zeros(40), transport: 50), "of ESP (IPsec)", true),
    (101, Packets.ipv4(zeros(40), transport: 1), "of ICMP", false),
    (101, Packets.ipv4(zeros(40), transport: 253), "of IP protocol 253", true),
    (105, wireless(zeros(40), flags: 0x41), "inside of encrypted 802.11", true),
    (105, [0x80, 0] + zeros(40), "of 802.11 without data", false),
    (
      1, Packets.ethernet(label(9, isLast: true) + zeros(40), type: 0x8847),
      "inside of MPLS that carries neither IP nor Ethernet", true
    ),
    (0, [7, 0, 0, 0] + zeros(40), "of protocol family 7", false),
  ])
  func unsupportedLayersAreReported(
    linkType: UInt32, frame: [UInt8], words: String, mayHideMedia: Bool
  ) throws {
    var capture = CaptureBuilder.pcap(linkType: linkType)
    for _ in 0..<3 { capture.record(frame) }
    let read = try readAll(capture.bytes)
    #expect(read.datagrams.isEmpty)
    #expect(read.counters.unread.words() == "3 packets \(words)")
    #expect(read.counters.unread.hidingMedia == (mayHideMedia ? 3 : 0))
    #expect(read.counters.unread.words(hidingMedia: true).isEmpty != mayHideMedia)
  }

  /// Cuts every frame of this suite at every place, and sets each byte to its extremes.
  @Test func nothingInALayerTraps() throws {
    for (_, linkType, frame) in Self.frames {
      var capture = CaptureBuilder.pcap(linkType: linkType)
      let head = min(frame.count, 120)
      for length in 0..<head { capture.record(Array(frame.prefix(length)), original: frame.count) }
      for place in 0..<head {
        for value in [0, 1, 0x45, 0x7f, 0x80, 0xff, ~frame[place]] as [UInt8] {
          var altered = frame
          altered[place] = value
          capture.record(altered)
        }
      }
      let read = try readAll(capture.bytes)
      #expect(read.counters.frames == UInt64(8 * head))
    }
  }
}
