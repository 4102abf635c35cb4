package import ICE
package import RTP
package import Secure
package import Wire

extension Observer {
  package enum Input: Sendable {
    /// An observed UDP datagram; truncated if the capture has only its first bytes.
    ///
    /// It arrived at `arrival` (now by default), with an ECN field if known.
    case datagram(
      FiveTuple, [UInt8], isTruncated: Bool = false, arrival: Instant? = nil, ecn: ECNMark? = nil)
    /// The next bytes in one direction of a TCP connection, after `lost` missing bytes.
    case stream(FiveTuple, [UInt8], lost: Int = 0, isEnd: Bool = false)
    /// Further bytes of an NSS key log.
    case keyLog([UInt8])
    case srtpKey(SRTPKey)
    /// One end's session description, and its origin.
    case description(String, Knowledge = .given)
    /// Something that was dropped before it reached the observer.
    case notSeen(CoverageReport.Kind, count: UInt64, detail: String)
    /// A path with unencrypted packets from a relay, with the ICE username fragments of its source
    /// and destination.
    case clearPath(FiveTuple, fragments: [String])
    /// An SCTP packet on a path that `clearPath` announced.
    case data(FiveTuple, [UInt8], arrival: Instant)
    /// No more keys will arrive, so nothing need wait for them.
    case noMoreKeys
    /// The deadline was reached.
    case deadline
    /// The capture has ended.
    case end
  }

  package enum Output: Sendable {
    /// A call was found; its two ends are numbered 0 and 1.
    case call(ObservedCall)
    /// A further transport of a call, or a transport that was reassigned to an older call.
    case transport(ObservedTransport)
    case state(ObservedState)
    case candidate(ObservedCandidate)
    /// A candidate pair that was checked, or whose details became known.
    case pair(ObservedPair)
    /// A datagram that TURN or TCP carried.
    case carried(CarriedDatagram)
    /// A new fact about a transport's DTLS association, such as its version or cipher suite.
    case handshake(transport: Int, DTLSFacts)
    case keys(ObservedKeys)
    /// A new RTP stream, or a change in what is known about its contents.
    case stream(ObservedStream)
    /// A transport's header extensions, from descriptions or inferred.
    case extensions(transport: Int, HeaderExtensionMap, Knowledge)
    /// RTP, RTCP or SCTP, decrypted if possible.
    case packet(ObservedPacket)
    /// New counters for a pair that is otherwise unchanged.
    case checked(ObservedPair)
    /// A description that was assigned to an end of a call.
    case description(ObservedDescription)
    case coverage(CoverageReport)
  }
}

extension Observer.Output {
  /// The transport that the output is about; nil for the call itself or the entire capture.
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

/// How the observer knows something.
package enum Knowledge: String, Hashable, Sendable {
  /// Supplied by the user.
  case given
  /// Stated in a description.
  case description
  /// Fixed by a standard (RFC 3551 section 6).
  case standard
  /// Stated on the wire.
  case wire
  /// Inferred from the packets themselves, because no description was seen.
  case deduced
}

/// A call that the observer found in the traffic; its two ends are numbered 0 and 1.
package struct ObservedCall: Hashable, Sendable {
  /// The call's number, counted from 1 in order of discovery.
  package var number: Int
  /// The origin of the evidence that the traffic is a call.
  package var how: Knowledge
  /// The ends' addresses, from a successful check or from media if there was any, otherwise from
  /// the first check.
  package var addresses: [SocketAddress]
  /// The time of discovery.
  package var began = Instant.zero
}

/// A transport of a call; without bundling, a call has several.
package struct ObservedTransport: Hashable, Sendable {
  /// The transport's number, counted from 1 over all calls.
  package var number: Int
  package var call: Int
  /// The ends' ICE username fragments, if known.
  package var usernameFragments: [String?]
  /// Whether the transport was reassigned to an older call, which it continues.
  package var isMoved = false
}

/// A state of one end, inferred from its packets.
package struct ObservedState: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  /// The machine that changed its state: `ice-connection`, `ice-role` or `dtls`.
  package var machine: String
  package var from: String
  package var to: String
}

/// An ICE candidate of one end, from a description or from packets.
package struct ObservedCandidate: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  package var address: SocketAddress
  package var transportProtocol: TransportProtocol
  /// The candidate's type; if unknown, the most likely type for an address on the wire.
  package var kind: ICECandidate.Kind?
  /// The priority, from a check or a description; nil if it is unknown.
  package var priority: UInt32?
  /// The foundation, if a description contains the candidate.
  package var foundation: String?
  package var how: Knowledge
}

/// A candidate pair as deduced from packets, with separate values for both ends.
package struct ObservedPair: Hashable, Sendable {
  /// The pair's number, counted from 1 over all calls.
  package var number: Int
  package var transport: Int
  package var transportProtocol: TransportProtocol
  /// Each end's candidate address.
  package var addresses: [SocketAddress]
  /// The candidate types; if unknown, the most likely type for an address on the wire.
  package var types: [ICECandidate.Kind] = [.host, .host]
  /// The addresses that the ends send from on the wire: for an end behind a TURN server, its local
  /// address.
  package var bases: [SocketAddress] = []
  /// The pair priority (RFC 8445 section 6.1.2.3); 0 while a candidate's priority is unknown.
  package var priority: UInt64 = 0
  /// Whether the pair uses a TURN server that was seen.
  package var isRelayed = false
  /// Whether at least one check succeeded, for each end's checks.
  package var hasSucceeded = [false, false]
  /// Whether a nominating check succeeded.
  package var isNominated = false
  /// Whether a component of the transport currently uses the pair.
  package var isSelected = false
  /// The numbers of each end's checks and of their responses.
  package var requests: [UInt64] = [0, 0]
  package var responses: [UInt64] = [0, 0]
  /// The last round trip of each end's checks, measured from the capture point to the other end and
  /// back.
  package var roundTrips: [Interval?] = [nil, nil]
  package var totalRoundTrips: [Interval] = [.zero, .zero]
  /// Datagrams and bytes that each end sent.
  package var packets: [UInt64] = [0, 0]
  package var bytes: [UInt64] = [0, 0]
}

/// A datagram of a call that TURN or TCP carried.
package struct CarriedDatagram: Hashable, Sendable {
  package var transport: Int
  /// The end that sent the datagram, and its candidate pair.
  package var from: Int
  package var pair: Int
  /// The pair's addresses, the sender's first.
  package var tuple: FiveTuple
  package var at: Instant
  package var bytes: [UInt8]
}

/// Keys that decrypt a transport's packets from now on, including those that waited.
package struct ObservedKeys: Hashable, Sendable {
  /// Where keys come from: a DTLS handshake, a description (RFC 4568) or the user.
  package enum Source: String, Hashable, Sendable {
    case dtls, description, given
  }

  package var transport: Int
  /// The end whose packets the keys decrypt; nil for both.
  package var end: Int?
  package var suite: SRTPSuite
  package var source: Source
  /// The number of packets that waited for the keys.
  package var waitingPackets: Int
}

/// An RTP, RTCP or SCTP packet of a call.
package struct ObservedPacket: Sendable {
  /// The packet's protocol; for RTP, with its parsed header.
  package enum Kind: Hashable, Sendable {
    /// RTP, with the number of its stream.
    case rtp(RTPHeader, stream: Int)
    case rtcp
    case sctp
  }

  package var kind: Kind
  package var transport: Int
  /// The end that sent the packet.
  package var from: Int
  /// The pair on which the packet was sent.
  package var pair: Int
  /// The capture time; earlier than the step if the packet waited for keys.
  package var at: Instant
  /// The packet, decrypted if possible.
  package var bytes: [UInt8]
  /// Whether the contents are readable; the RTP header always is.
  package var isClear: Bool
  package var wireSize: Int
  /// The ECN field of the packet's IP header where it was captured; nil if unknown.
  package var ecn: ECNMark?
}

/// A description that was assigned to an end.
package struct ObservedDescription: Hashable, Sendable {
  package var transport: Int
  package var end: Int
  package var text: String
  /// Whether the description was seen on the wire, or supplied.
  package var how: Knowledge
}

/// Something that could not be seen or decrypted, and how many times that happened.
package struct CoverageReport: Hashable, Sendable {
  /// What could not be seen or decrypted, and why.
  package enum Kind: String, Hashable, Sendable, CaseIterable {
    /// There is no key for encrypted packets.
    case noKeys = "no-keys"
    /// The keys did not decrypt some packets.
    case notOpened = "not-opened"
    /// One or more of the supplied SRTP keys decrypted no packet.
    case unusedKey = "unused-key"
    /// Key logs contain secrets of associations that were not seen.
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
    /// A TLS connection, whose contents cannot be read.
    case tls
    /// A connection with missing bytes.
    case streamGap = "stream-gap"
    /// Descriptions that could not be parsed, or belong to no call.
    case description
    /// Packets that were captured twice, inside a relay's packets and outside of them.
    case relayedTwice = "relayed-twice"
    /// Packets that belong to no call.
    case ignored
    /// Data channel packets that could not be decrypted.
    case unopenedData = "data-not-opened"
    /// Packets with redundant payloads, from which a receiver may have recovered losses; that is
    /// not modelled here (RFC 2198).
    case redundancy
    /// Streams with unknown contents, which have no clock and so no jitter.
    case unknownClock = "unknown-clock"
    /// Streams whose codec or clock was inferred from packets.
    case deduced
    /// Streams that their sender's description does not announce, although it announces other
    /// streams.
    case unannounced
    /// Frames lost by the capturing system.
    case dropped
    /// Damaged records, and the records that they hide.
    case damagedCapture = "damaged-capture"
    /// The capture ends in the middle of a record, or of its compressed data.
    case cutCapture = "cut-capture"
    /// Frames with dates that takes cannot represent.
    case outsideOfTime = "outside-of-time"
    /// Packets in unsupported layers, such as an unknown link type.
    case unread = "unread-layer"
  }

  package var kind: Kind
  /// The affected transport; nil for the entire capture.
  package var transport: Int?
  /// The number of packets, or of other items that the kind counts, so far.
  package var count: UInt64
  /// What exactly is affected, or a hint for the user; may be empty.
  package var detail: String
}

/// The kinds of coverage, for other modules that write coverage rows.
package typealias CoverageKind = CoverageReport.Kind

/// An observer's settings, which its genesis contains.
package struct ObserverSettings: Hashable, Sendable {
  /// Whether encrypted packets wait for keys that may arrive.
  package var awaitsKeys = true
  /// Limits on waiting packets: their number per transport, and bytes in total.
  package var waitingPacketsMaximum = 20_000
  package var waitingBytesMaximum = 64 << 20
  /// The maximum number of paths; packets on any further path are treated as belonging to no call.
  package var pathsMaximum = ObserverSettings.formerPathsMaximum
  /// Encodings of payload types, which override all other sources.
  package var payloadTypes: [PayloadTypeMapping] = []
  /// Whether media without keys is treated as unencrypted even if it does not look like it.
  package var isClear = false
  /// Whether FlexFEC streams are distinguished from the streams that they protect; false in older
  /// takes.
  package var repairsFully = true
  /// Whether packets can correct a guess, based on ports, about which end is the relay, and whether
  /// video inside RED is recognized; false in older takes.
  package var judgesClosely = true
  /// Whether an end may change its SRTP key during the call; false in older takes.
  package var followsKeys = true
  /// Whether RTCP with a key identifier is decrypted even if its tag is longer than RTP's; false in
  /// older takes.
  package var findsIdentifiers = true

  package init() {}

  /// `pathsMaximum` in takes that do not state it, chosen so that the two final rows of each path
  /// fit into one step.
  package static let formerPathsMaximum = 1 << 15
  /// The default of `pathsMaximum` for new takes.
  package static let usualPathsMaximum = 1 << 14
}

/// A payload type with the encoding that the user states for it.
package struct PayloadTypeMapping: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case; `rtx` for retransmissions.
  package var codec: String
  package var clockRate: UInt32

  package init(payloadType: UInt8, codec: String, clockRate: UInt32) {
    self.payloadType = payloadType
    self.codec = codec
    self.clockRate = clockRate
  }

  /// Parses `96=vp8,97=rtx,111=opus/48000` or, with the sides swapped, `vp8=96`; returns nil if the
  /// text is malformed.
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
