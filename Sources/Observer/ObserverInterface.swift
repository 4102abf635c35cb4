package import ICE
package import RTP
package import Secure
package import Wire

extension Observer {
  /// What can be seen or told.
  package enum Input: Sendable {
    /// A UDP datagram between others; one of which only the beginning was captured is marked.
    /// It came at `arrival`, which is now when nothing else is said, with an ECN mark where that is
    /// known.
    case datagram(
      FiveTuple, [UInt8], isTruncated: Bool = false, arrival: Instant? = nil, ecn: ECNMark? = nil)
    /// What one side of a TCP connection sent next, after `lost` bytes that nobody saw.
    case stream(FiveTuple, [UInt8], lost: Int = 0, isEnd: Bool = false)
    /// Further bytes of an NSS key log.
    case keyLog([UInt8])
    /// An SRTP key that somebody gave.
    case srtpKey(SRTPKey)
    /// A session description that one of the ends made, and how it is known.
    case description(String, Knowledge = .given)
    /// Who looks on could not see something, or left it out as of no call.
    case notSeen(CoverageReport.Kind, count: UInt64, detail: String)
    /// There will be no more keys: nothing needs to wait for them.
    case noMoreKeys
    /// The deadline was reached.
    case deadline
    /// The capture is over.
    case end
  }

  /// What an observer tells.
  package enum Output: Sendable {
    /// Two ends talk to each other; they are 0 and 1 from here on.
    case call(ObservedCall)
    /// A further transport of a call, or a transport that turned out to belong to an older call.
    case transport(ObservedTransport)
    case state(ObservedState)
    case candidate(ObservedCandidate)
    /// A pair of addresses was checked, or more is known of it.
    case pair(ObservedPair)
    /// A datagram that came inside of something else.
    case carried(CarriedDatagram)
    /// What is known of the DTLS association of a transport.
    case handshake(transport: Int, DTLSFacts)
    case keys(ObservedKeys)
    /// An RTP stream began, or more is known of what it carries.
    case stream(ObservedStream)
    /// The header extensions of a transport, where descriptions or contents tell them.
    case extensions(transport: Int, HeaderExtensionMap, Knowledge)
    /// RTP, RTCP or SCTP; also SRTP that could not be opened.
    case packet(ObservedPacket)
    /// What a pair counted by now, where nothing but that changed.
    case checked(ObservedPair)
    /// A description was understood as that of an end of a call.
    case description(ObservedDescription)
    case coverage(CoverageReport)
  }
}

extension Observer.Output {
  /// The transport that it is about; nil for a call as such, and for the whole capture.
  package var transport: Int? {
    switch self {
    case .call: nil
    case .transport(let transport): transport.number
    case .state(let state): state.transport
    case .candidate(let candidate): candidate.transport
    case .pair(let pair): pair.transport
    case .carried(let datagram): datagram.transport
    case .handshake(let transport, _): transport
    case .keys(let keys): keys.transport
    case .stream(let stream): stream.transport
    case .extensions(let transport, _, _): transport
    case .packet(let packet): packet.transport
    case .checked(let pair): pair.transport
    case .description(let description): description.transport
    case .coverage(let row): row.transport
    }
  }
}

/// How something is known.
package enum Knowledge: String, Hashable, Sendable {
  /// Somebody said so who looks on.
  case given
  /// A description states it.
  case description
  /// A standard fixes it (RFC 3551 section 6).
  case standard
  /// The wire states it.
  case wire
  /// It was concluded from what packets look like.
  case deduced
}

/// A call between two ends.
package struct ObservedCall: Hashable, Sendable {
  /// From 1, in the order in which calls are found.
  package var number: Int
  /// What made it a call.
  package var how: Knowledge
  /// Addresses of both ends between which a check was answered or media went; where nothing of
  /// that was seen, those of the first check.
  package var addresses: [SocketAddress]
  /// When it was found.
  package var began = Instant.zero
}

/// What carries a call, or a part of one that is not bundled.
package struct ObservedTransport: Hashable, Sendable {
  /// From 1, over all calls.
  package var number: Int
  package var call: Int
  /// The ICE user name fragments of both ends, as far as they are known.
  package var usernameFragments: [String?]
  /// Whether the call changed: the transport goes on what an older call did.
  package var isMoved = false
}

/// A state that an end must be in, because of what went over the wire.
package struct ObservedState: Hashable, Sendable {
  package var transport: Int
  /// 0 or 1.
  package var end: Int
  /// `ice-connection`, `ice-role`, `dtls`.
  package var machine: String
  package var from: String
  package var to: String
}

/// An address that an end has.
package struct ObservedCandidate: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  package var address: SocketAddress
  package var transportProtocol: TransportProtocol
  /// Host, reflexive or relayed; where nothing tells, what an address on the wire is most likely.
  package var kind: ICECandidate.Kind?
  /// The priority that a check announced, or a description states.
  package var priority: UInt32?
  /// What a description states of it.
  package var foundation: String?
  package var how: Knowledge
}

/// Two addresses between which checks go.
package struct ObservedPair: Hashable, Sendable {
  /// From 1, over all calls.
  package var number: Int
  package var transport: Int
  package var transportProtocol: TransportProtocol
  /// The address of each end's candidate.
  package var addresses: [SocketAddress]
  /// The types of these candidates; where nothing tells one, what an address on the wire is most
  /// likely.
  package var types: [ICECandidate.Kind] = [.host, .host]
  /// Where each end sends from, as the wire shows it: for one behind a TURN server its own address.
  package var bases: [SocketAddress] = []
  /// RFC 8445 section 6.1.2.3; 0 while the priority of a candidate is unknown.
  package var priority: UInt64 = 0
  /// Whether it leads through a TURN server that was seen.
  package var isRelayed = false
  /// Whether a check of each end succeeded.
  package var hasSucceeded = [false, false]
  /// Whether a nominating check succeeded.
  package var isNominated = false
  /// Whether it is the pair in use of a component of its transport at present.
  package var isSelected = false
  /// Checks of each end, and the answers to them.
  package var requests: [UInt64] = [0, 0]
  package var responses: [UInt64] = [0, 0]
  /// The last round trip of a check of each end, seen from where the capture was made: the way
  /// from there to the other end and back.
  package var roundTrips: [Interval?] = [nil, nil]
  /// The sum of all of them.
  package var totalRoundTrips: [Interval] = [.zero, .zero]
  /// Datagrams and bytes that each end sent.
  package var packets: [UInt64] = [0, 0]
  package var bytes: [UInt64] = [0, 0]
}

/// A datagram of a call that TURN or a TCP connection carried.
package struct CarriedDatagram: Hashable, Sendable {
  package var transport: Int
  /// Which end sent it, and the pair that it went over.
  package var from: Int
  package var pair: Int
  /// Between which addresses of the pair.
  package var tuple: FiveTuple
  package var at: Instant
  package var bytes: [UInt8]
}

/// Keys that open a transport's packets from now on, and those that waited.
package struct ObservedKeys: Hashable, Sendable {
  /// Where keys came from.
  package enum Source: String, Hashable, Sendable {
    case dtls, description, given
  }

  package var transport: Int
  /// The end whose packets they open; nil for both.
  package var end: Int?
  package var suite: SRTPSuite
  package var source: Source
  /// How many packets waited for them.
  package var waitingPackets: Int
}

/// A packet of a call.
package struct ObservedPacket: Sendable {
  /// Which protocol a packet is of.
  package enum Kind: Hashable, Sendable {
    /// With the number of its stream.
    case rtp(RTPHeader, stream: Int)
    case rtcp
    case sctp
  }

  package var kind: Kind
  package var transport: Int
  /// Which end sent it.
  package var from: Int
  /// The pair that it went over.
  package var pair: Int
  /// When it was captured; earlier than the step when it waited for keys.
  package var at: Instant
  /// The packet in the clear, or as it was protected.
  package var bytes: [UInt8]
  /// Whether it is in the clear; where it is not, the header of RTP still is.
  package var isClear: Bool
  /// Bytes of the packet as it was on the wire.
  package var wireSize: Int
  /// The ECN mark of its IP header at the place of the capture; nil where that is not known.
  package var ecn: ECNMark?
}

/// A description that belongs to an end.
package struct ObservedDescription: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  package var text: String
  /// Whether it was seen on the wire, or given.
  package var how: Knowledge
}

/// Something that could not be seen, and what it takes away.
package struct CoverageReport: Hashable, Sendable {
  /// What is missing, and why.
  package enum Kind: String, Hashable, Sendable, CaseIterable {
    /// There is no key for packets that are protected.
    case noKeys = "no-keys"
    /// Packets did not fit to the keys that there are.
    case notOpened = "not-opened"
    /// SRTP keys that were given open no packet.
    case unusedKey = "unused-key"
    /// Secrets of key logs are of no association that was seen.
    case unusedKeyLog = "unused-key-log"
    /// Packets were given on protected, because too many waited for keys.
    case waitingOverflow = "waiting-overflow"
    /// The beginning of the call is not in the capture.
    case lateStart = "late-start"
    /// Only one end's packets are there.
    case oneDirection = "one-direction"
    /// Datagrams of which only the beginning was captured.
    case truncated
    /// Header extensions are encrypted as well (RFC 9335), which libsrtp2 does not open.
    case cryptex
    /// A protection that is not read here, such as a cipher suite.
    case unsupported
    /// A relay's channel whose other end was not seen.
    case unknownPeer = "unknown-peer"
    /// A connection under TLS.
    case tls
    /// A connection of which bytes are missing.
    case streamGap = "stream-gap"
    /// Descriptions that could not be read, or belong to no call.
    case description
    /// Packets that the capturing side saw twice, through a relay and beside it.
    case relayedTwice = "relayed-twice"
    /// Packets of no call.
    case ignored
    /// Packets of data channels that no key opened.
    case unopenedData = "data-not-opened"
    /// Packets with older payloads, which a receiver may have made up for losses with; here they do
    /// not (RFC 2198).
    case redundancy
    /// Streams of which nothing tells what they carry: they have no clock, and so no jitter.
    case unknownClock = "unknown-clock"
    /// Streams whose codec or clock was concluded from their packets.
    case deduced
    /// Streams that no description of their end announces, where it announces others.
    case unannounced
    /// Frames that the capturing system lost.
    case dropped
    /// Records of a capture that are damaged, and what they hide.
    case damagedCapture = "damaged-capture"
    /// The capture ends in the middle of a record, or of its compressed data.
    case cutCapture = "cut-capture"
    /// Frames whose date no take can have.
    case outsideOfTime = "outside-of-time"
    /// Packets in layers that are not opened, such as those of a link type that is not known.
    case unread = "unread-layer"
  }

  package var kind: Kind
  /// The transport that it is about; nil for the whole capture.
  package var transport: Int?
  /// How many packets, or whatever the kind counts, so far.
  package var count: UInt64
  /// More in words; may be empty.
  package var detail: String
}

/// What could not be seen, for those who have rows of coverage of their own.
package typealias CoverageKind = CoverageReport.Kind

/// How an observer works; part of genesis.
package struct ObserverSettings: Hashable, Sendable {
  /// Whether protected packets wait for keys that may come.
  package var awaitsKeys = true
  /// How many packets wait in one transport, and how many bytes of all transports.
  package var waitingPacketsMaximum = 20_000
  package var waitingBytesMaximum = 64 << 20
  /// The limit on paths; packets on further ones belong to no call.
  package var pathsMaximum = ObserverSettings.formerPathsMaximum
  /// What payload types stand for, whatever else says something else.
  package var payloadTypes: [PayloadTypeMapping] = []
  /// Whether media without keys is in the clear, whatever it looks like.
  package var isClear = false
  /// Whether streams of FlexFEC are told from those that they repair; not so in older takes.
  package var repairsFully = true
  /// Whether a relay is found at the other end when more than ports shows it, and video inside of
  /// RED is; not so in older takes.
  package var judgesClosely = true

  package init() {}

  /// The limit of takes that state none: each path has two rows at the end, which had to fit into
  /// one step, so no such take has more paths.
  package static let formerPathsMaximum = 1 << 15
  /// The limit of today, unless something else is asked for.
  package static let usualPathsMaximum = 1 << 14
}

/// A payload type and what it stands for.
package struct PayloadTypeMapping: Hashable, Sendable {
  package var payloadType: UInt8
  /// In lower case; `rtx` for retransmissions.
  package var codec: String
  /// In Hz.
  package var clockRate: UInt32

  package init(payloadType: UInt8, codec: String, clockRate: UInt32) {
    self.payloadType = payloadType
    self.codec = codec
    self.clockRate = clockRate
  }

  /// Reads `96=vp8,97=rtx,111=opus/48000`, either side first; nil for anything else.
  package static func list(parsing text: String) -> [PayloadTypeMapping]? {
    var list: [PayloadTypeMapping] = []
    for part in text.split(separator: ",") {
      let pair = part.split(separator: "=")
      guard pair.count == 2 else { return nil }
      let (number, name) = UInt8(pair[0]) != nil ? (pair[0], pair[1]) : (pair[1], pair[0])
      let format = name.split(separator: "/")
      guard let type = UInt8(number), type < 128, let codec = format.first?.lowercased() else {
        return nil
      }
      var clockRate = StaticPayloadTypes.usualClockRate(of: codec)
      if format.count > 1 {
        guard let stated = UInt32(format[1]), stated > 0 else { return nil }
        clockRate = stated
      }
      list.append(PayloadTypeMapping(payloadType: type, codec: codec, clockRate: clockRate))
    }
    return list
  }
}
