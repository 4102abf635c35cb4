package import ICE
package import RTP
package import Secure
package import Wire

extension Observer {
  /// An input of an observer.
  package enum Input: Sendable {
    /// An observed UDP datagram, marked if only its beginning was captured.
    ///
    /// It arrived at `arrival` (now by default), with an ECN field if known.
    case datagram(
      FiveTuple, [UInt8], isTruncated: Bool = false, arrival: Instant? = nil, ecn: ECNMark? = nil)
    /// The next bytes of one direction of a TCP connection, after `lost` missing bytes.
    case stream(FiveTuple, [UInt8], lost: Int = 0, isEnd: Bool = false)
    /// Further bytes of an NSS key log.
    case keyLog([UInt8])
    /// A supplied SRTP key.
    case srtpKey(SRTPKey)
    /// A session description of one of the ends, and its origin.
    case description(String, Knowledge = .given)
    /// Something that was dropped before it reached the observer.
    case notSeen(CoverageReport.Kind, count: UInt64, detail: String)
    /// A path on which packets come in the clear, out of a relay, with the ICE username fragments
    /// of its source and its destination.
    case clearPath(FiveTuple, fragments: [String])
    /// An SCTP packet on such a path.
    case data(FiveTuple, [UInt8], arrival: Instant)
    /// No more keys will arrive, so nothing needs to wait for them.
    case noMoreKeys
    /// The deadline was reached.
    case deadline
    /// The capture has ended.
    case end
  }

  /// An output of an observer.
  package enum Output: Sendable {
    /// A call between two ends, which are numbered 0 and 1.
    case call(ObservedCall)
    /// Another transport of a call, or a transport that turned out to belong to an older call.
    case transport(ObservedTransport)
    case state(ObservedState)
    case candidate(ObservedCandidate)
    /// A candidate pair that was checked, or about which more is known.
    case pair(ObservedPair)
    /// A datagram that was carried within something else.
    case carried(CarriedDatagram)
    /// The DTLS association of a transport.
    case handshake(transport: Int, DTLSFacts)
    case keys(ObservedKeys)
    /// A new RTP stream, or more about its contents.
    case stream(ObservedStream)
    /// The header extensions of a transport, from descriptions or inferred.
    case extensions(transport: Int, HeaderExtensionMap, Knowledge)
    /// RTP, RTCP or SCTP; or SRTP that could not be decrypted.
    case packet(ObservedPacket)
    /// New counters of a pair that is otherwise unchanged.
    case checked(ObservedPair)
    /// A description that was assigned to an end of a call.
    case description(ObservedDescription)
    case coverage(CoverageReport)
  }
}

extension Observer.Output {
  /// The transport that the output is about; nil for a call as such, and for the whole capture.
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

/// The origin of a piece of knowledge.
package enum Knowledge: String, Hashable, Sendable {
  /// Supplied by the user.
  case given
  /// Stated in a description.
  case description
  /// Fixed by a standard (RFC 3551 section 6).
  case standard
  /// Stated on the wire.
  case wire
  /// Inferred from the looks of packets.
  case deduced
}

/// A call between two ends.
package struct ObservedCall: Hashable, Sendable {
  /// Counted from 1 in order of discovery.
  package var number: Int
  /// What identified it as a call.
  package var how: Knowledge
  /// The addresses of both ends between which a check succeeded or media flowed; otherwise those of
  /// the first check.
  package var addresses: [SocketAddress]
  /// The time of discovery.
  package var began = Instant.zero
}

/// A transport of a call; without bundling, a call has several.
package struct ObservedTransport: Hashable, Sendable {
  /// Counted from 1 over all calls.
  package var number: Int
  package var call: Int
  /// The ICE username fragments of both ends, if known.
  package var usernameFragments: [String?]
  /// Whether the transport was reassigned to an older call that it continues.
  package var isMoved = false
}

/// A state that an end must be in, according to its packets.
package struct ObservedState: Hashable, Sendable {
  package var transport: Int
  /// 0 or 1.
  package var end: Int
  /// `ice-connection`, `ice-role`, `dtls`.
  package var machine: String
  package var from: String
  package var to: String
}

/// An address of an end.
package struct ObservedCandidate: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  package var address: SocketAddress
  package var transportProtocol: TransportProtocol
  /// Host, reflexive or relayed; if unknown, the most likely type of an address on the wire.
  package var kind: ICECandidate.Kind?
  /// The priority in a check or a description.
  package var priority: UInt32?
  /// From a description.
  package var foundation: String?
  package var how: Knowledge
}

/// A candidate pair.
package struct ObservedPair: Hashable, Sendable {
  /// Counted from 1 over all calls.
  package var number: Int
  package var transport: Int
  package var transportProtocol: TransportProtocol
  /// The candidate address of each end.
  package var addresses: [SocketAddress]
  /// The candidate types; if unknown, the most likely type of an address on the wire.
  package var types: [ICECandidate.Kind] = [.host, .host]
  /// The addresses on the wire that the ends send from: for an end behind a TURN server, its local
  /// address.
  package var bases: [SocketAddress] = []
  /// The pair priority (RFC 8445 section 6.1.2.3); 0 while a candidate's priority is unknown.
  package var priority: UInt64 = 0
  /// Whether it uses a TURN server that was seen.
  package var isRelayed = false
  /// Whether a check of each end succeeded.
  package var hasSucceeded = [false, false]
  /// Whether a nominating check succeeded.
  package var isNominated = false
  /// Whether it is currently in use by a component of its transport.
  package var isSelected = false
  /// Checks of each end, and responses to them.
  package var requests: [UInt64] = [0, 0]
  package var responses: [UInt64] = [0, 0]
  /// The last round trip of each end's checks as seen from the place of capture: from there to the
  /// other end and back.
  package var roundTrips: [Interval?] = [nil, nil]
  /// The sum of all round trips.
  package var totalRoundTrips: [Interval] = [.zero, .zero]
  /// Datagrams and bytes sent by each end.
  package var packets: [UInt64] = [0, 0]
  package var bytes: [UInt64] = [0, 0]
}

/// A datagram of a call that was carried by TURN or TCP.
package struct CarriedDatagram: Hashable, Sendable {
  package var transport: Int
  /// The end that sent it, and its pair.
  package var from: Int
  package var pair: Int
  /// The addresses within the pair.
  package var tuple: FiveTuple
  package var at: Instant
  package var bytes: [UInt8]
}

/// Keys that decrypt a transport's packets from now on, including those that waited.
package struct ObservedKeys: Hashable, Sendable {
  /// The origin of keys.
  package enum Source: String, Hashable, Sendable {
    case dtls, description, given
  }

  package var transport: Int
  /// The end whose packets they decrypt; nil for both.
  package var end: Int?
  package var suite: SRTPSuite
  package var source: Source
  /// The number of packets that waited for them.
  package var waitingPackets: Int
}

/// A packet of a call.
package struct ObservedPacket: Sendable {
  /// The protocol of a packet.
  package enum Kind: Hashable, Sendable {
    /// With the number of its stream.
    case rtp(RTPHeader, stream: Int)
    case rtcp
    case sctp
  }

  package var kind: Kind
  package var transport: Int
  /// The end that sent it.
  package var from: Int
  /// The pair that it was sent on.
  package var pair: Int
  /// The capture time; earlier than the step if the packet waited for keys.
  package var at: Instant
  /// The packet, decrypted if possible.
  package var bytes: [UInt8]
  /// Whether it is decrypted or was never encrypted; the RTP header is readable in any case.
  package var isClear: Bool
  /// The size of the packet on the wire.
  package var wireSize: Int
  /// The ECN field of its IP header where it was captured; nil if unknown.
  package var ecn: ECNMark?
}

/// A description that was assigned to an end.
package struct ObservedDescription: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  package var text: String
  /// Whether it was seen on the wire, or supplied.
  package var how: Knowledge
}

/// Something that could not be seen, with its consequences.
package struct CoverageReport: Hashable, Sendable {
  /// The missing part, and why.
  package enum Kind: String, Hashable, Sendable, CaseIterable {
    /// There is no key for encrypted packets.
    case noKeys = "no-keys"
    /// The keys did not decrypt some packets.
    case notOpened = "not-opened"
    /// Supplied SRTP keys decrypted no packet.
    case unusedKey = "unused-key"
    /// Key logs have secrets of associations that were not seen.
    case unusedKeyLog = "unused-key-log"
    /// Packets were reported encrypted because too many waited for keys.
    case waitingOverflow = "waiting-overflow"
    /// The beginning of the call is not in the capture.
    case lateStart = "late-start"
    /// Only one end's packets were captured.
    case oneDirection = "one-direction"
    /// Datagrams that were captured only in part.
    case truncated
    /// Encrypted header extensions (RFC 9335), which libsrtp2 does not decrypt.
    case cryptex
    /// Unsupported protection, such as an unknown cipher suite.
    case unsupported
    /// A relay's channel whose peer address was not seen.
    case unknownPeer = "unknown-peer"
    /// A TLS connection.
    case tls
    /// A connection with missing bytes.
    case streamGap = "stream-gap"
    /// Descriptions that could not be parsed, or belong to no call.
    case description
    /// Packets that were captured twice, through a relay and beside it.
    case relayedTwice = "relayed-twice"
    /// Packets that belong to no call.
    case ignored
    /// Data channel packets that could not be decrypted.
    case unopenedData = "data-not-opened"
    /// Packets with redundant payloads, with which a receiver may have recovered losses; this is
    /// not modelled here (RFC 2198).
    case redundancy
    /// Streams with unknown contents, which have no clock and so no jitter.
    case unknownClock = "unknown-clock"
    /// Streams whose codec or clock was inferred from packets.
    case deduced
    /// Streams that the description of their end does not announce, although it announces others.
    case unannounced
    /// Frames lost by the capturing system.
    case dropped
    /// Damaged records of a capture, and what they hide.
    case damagedCapture = "damaged-capture"
    /// The capture ends in the middle of a record, or of its compressed data.
    case cutCapture = "cut-capture"
    /// Frames with dates that takes cannot represent.
    case outsideOfTime = "outside-of-time"
    /// Packets in unsupported layers, such as an unknown link type.
    case unread = "unread-layer"
  }

  package var kind: Kind
  /// The affected transport; nil for the whole capture.
  package var transport: Int?
  /// The number of packets, or of whatever the kind counts, so far.
  package var count: UInt64
  /// Details; may be empty.
  package var detail: String
}

/// The kinds of coverage, for other modules with rows of coverage.
package typealias CoverageKind = CoverageReport.Kind

/// The settings of an observer; part of genesis.
package struct ObserverSettings: Hashable, Sendable {
  /// Whether encrypted packets wait for keys that may arrive.
  package var awaitsKeys = true
  /// The limits of waiting: packets per transport, and bytes in total.
  package var waitingPacketsMaximum = 20_000
  package var waitingBytesMaximum = 64 << 20
  /// The limit of paths; packets on further ones belong to no call.
  package var pathsMaximum = ObserverSettings.formerPathsMaximum
  /// Encodings of payload types, which take precedence over all other sources.
  package var payloadTypes: [PayloadTypeMapping] = []
  /// Whether media without keys is unencrypted even if it does not look like it.
  package var isClear = false
  /// Whether FlexFEC streams are distinguished from the streams that they protect; false in older
  /// takes.
  package var repairsFully = true
  /// Whether a relay is found at the other end when more than ports shows it, and video inside of
  /// RED is; not so in older takes.
  package var judgesClosely = true

  package init() {}

  /// The limit of takes that state none: each path has two rows at the end, which had to fit into
  /// one step.
  package static let formerPathsMaximum = 1 << 15
  /// The default limit for new takes.
  package static let usualPathsMaximum = 1 << 14
}

/// The encoding of a payload type.
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

  /// Parses `96=vp8,97=rtx,111=opus/48000`, with either side first; nil if the text is malformed.
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
