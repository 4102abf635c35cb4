/// What the first bytes of a frame are, by the numbers of tcpdump.org/linktypes.html.
package struct LinkType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// A protocol family in the byte order of the machine that captured.
  package static let null = LinkType(rawValue: 0)
  package static let ethernet = LinkType(rawValue: 1)
  /// IPv4 or IPv6 at once; two systems wrote other numbers into files.
  package static let raw = LinkType(rawValue: 101)
  package static let rawBSD = LinkType(rawValue: 12)
  package static let rawOpenBSD = LinkType(rawValue: 14)
  /// As `null`, in network order.
  package static let loop = LinkType(rawValue: 108)
  /// What `-i any` gives on Linux ("cooked").
  package static let linuxCooked = LinkType(rawValue: 113)
  package static let ipv4 = LinkType(rawValue: 228)
  package static let ipv6 = LinkType(rawValue: 229)
  /// The same of newer versions, with the interface.
  package static let linuxCooked2 = LinkType(rawValue: 276)
  /// PPP, with its address or without; on a serial line; with the direction in front; as pppd of
  /// Linux has it; and a session of PPPoE without Ethernet.
  package static let ppp = LinkType(rawValue: 9)
  package static let pppInHDLC = LinkType(rawValue: 50)
  package static let pppoe = LinkType(rawValue: 51)
  package static let pppOfDaemon = LinkType(rawValue: 166)
  package static let pppWithDirection = LinkType(rawValue: 204)
  package static let ciscoHDLC = LinkType(rawValue: 104)
  /// 802.2 in ATM (RFC 2684).
  package static let llcATM = LinkType(rawValue: 100)
  /// What a tunnel of IPsec holds, and what a packet filter logs, on BSD.
  package static let enc = LinkType(rawValue: 109)
  package static let packetFilterLog = LinkType(rawValue: 117)
  package static let mpls = LinkType(rawValue: 219)
  /// 802.11, alone and behind what the radio says of the frame.
  package static let wireless = LinkType(rawValue: 105)
  package static let wirelessPrism = LinkType(rawValue: 119)
  package static let wirelessRadiotap = LinkType(rawValue: 127)
  package static let wirelessAVS = LinkType(rawValue: 163)
  package static let perPacketInformation = LinkType(rawValue: 192)
  /// Frames of any kind with their process, of macOS; the second is what older files have.
  package static let packetTap = LinkType(rawValue: 258)
  package static let packetTapOfUser = LinkType(rawValue: 149)
  /// What a rule of netfilter logs.
  package static let netfilterLog = LinkType(rawValue: 239)
}

/// A frame of a capture: its head, and where its bytes stand in the parser that gave it.
package struct CapturedFrame: Sendable {
  /// When it was captured; that of the frame before for one that has no time of its own.
  package var unixNanoseconds: Int64
  package var linkType: LinkType
  /// The number of the interface in its section; 0 in pcap.
  package var interface: Int
  /// Where the captured bytes stand; ask the parser for them before it goes on.
  package var bytes: Range<Int>
  /// How many bytes the frame had on the wire.
  package var originalLength: Int
  /// How many bytes at the end of the frame are its checksum.
  package var checksumLength: Int = 0
  /// Where the texts stand that somebody wrote on this frame.
  package var comments: [Range<Int>] = []
}

/// What a capture holds, in the order of the file.
package enum CaptureRecord: Sendable {
  case frame(CapturedFrame)
  /// Secrets to decrypt with, and where they stand (pcapng Decryption Secrets Block).
  case secrets(SecretsType, Range<Int>)
  /// A text on the whole capture, or on an interface.
  case comment(String)
  /// How many frames the system lost that captured, as far as it told since the last such record.
  case dropped(UInt64)
}

/// What a Decryption Secrets Block holds.
package struct SecretsType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Lines of an NSS key log.
  package static let tlsKeyLog = SecretsType(rawValue: 0x544c_534b)
}
