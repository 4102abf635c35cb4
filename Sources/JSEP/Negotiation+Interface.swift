package import SDP
package import Wire

/// W3C RTCSignalingState.
public enum SignalingState: String, Hashable, Sendable {
  /// No exchange is under way.
  case stable
  /// A local offer waits for its answer.
  case haveLocalOffer = "have-local-offer"
  /// A remote offer waits for its answer.
  case haveRemoteOffer = "have-remote-offer"
  /// A local provisional answer was given.
  case haveLocalPranswer = "have-local-pranswer"
  /// A remote provisional answer was given.
  case haveRemotePranswer = "have-remote-pranswer"
  /// The connection was closed.
  case closed
}

/// W3C RTCRtpTransceiverDirection.
public enum TransceiverDirection: String, Hashable, Sendable, Codable {
  /// Sends and receives.
  case sendrecv
  /// Only sends.
  case sendonly
  /// Only receives.
  case recvonly
  /// Does neither.
  case inactive
  /// Was stopped for good.
  case stopped

  /// Whether media is sent.
  public var sends: Bool { self == .sendrecv || self == .sendonly }
  /// Whether media is received.
  public var receives: Bool { self == .sendrecv || self == .recvonly }
}

/// A refused call, named as the DOMException that W3C prescribes for it.
package struct JSEPError: Error, Hashable, Sendable {
  package enum Kind: String, Sendable {
    case invalidState = "InvalidStateError"
    case invalidAccess = "InvalidAccessError"
    case syntax = "RTCError"
    case invalidModification = "InvalidModificationError"
    case operation = "OperationError"
  }
  package var kind: Kind
  package var reason: String
  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }
}

/// The own side of the transport, as descriptions must state it.
package struct LocalTransport: Hashable, Sendable {
  package var usernameFragment: String
  package var password: String
  /// Hash name and value of the certificate's fingerprint.
  package var fingerprintAlgorithm: String
  package var fingerprint: String
  /// The candidates gathered so far, each as the text after `a=` (`candidate:...`).
  package var candidates: [String]
  package var gatheringIsComplete: Bool
  /// The default destination for `c=` and `m=` once a candidate is known.
  package var defaultAddress: SocketAddress?

  package init(
    usernameFragment: String, password: String, fingerprintAlgorithm: String, fingerprint: String,
    candidates: [String] = [], gatheringIsComplete: Bool = false, defaultAddress: SocketAddress? = nil
  ) {
    self.usernameFragment = usernameFragment
    self.password = password
    self.fingerprintAlgorithm = fingerprintAlgorithm
    self.fingerprint = fingerprint
    self.candidates = candidates
    self.gatheringIsComplete = gatheringIsComplete
    self.defaultAddress = defaultAddress
  }
}

/// The peer's side of the one bundled transport, read from its description.
package struct RemoteTransport: Hashable, Sendable {
  package var usernameFragment: String
  package var password: String
  package var isLite: Bool
  /// Hash name and value of every fingerprint offered.
  package var fingerprints: [(algorithm: String, value: String)]
  /// Whether this side is the DTLS client; nil until an answer settles it.
  package var localIsDTLSClient: Bool?
  /// The candidates in the description, each as the text after `a=`.
  package var candidates: [String]
  package var endOfCandidates: Bool

  package init(
    usernameFragment: String, password: String, isLite: Bool,
    fingerprints: [(algorithm: String, value: String)], localIsDTLSClient: Bool?,
    candidates: [String], endOfCandidates: Bool
  ) {
    self.usernameFragment = usernameFragment
    self.password = password
    self.isLite = isLite
    self.fingerprints = fingerprints
    self.localIsDTLSClient = localIsDTLSClient
    self.candidates = candidates
    self.endOfCandidates = endOfCandidates
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.usernameFragment == right.usernameFragment && left.password == right.password
      && left.isLite == right.isLite && left.localIsDTLSClient == right.localIsDTLSClient
      && left.candidates == right.candidates && left.endOfCandidates == right.endOfCandidates
      && left.fingerprints.elementsEqual(right.fingerprints, by: ==)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(usernameFragment) }
}

/// A transceiver as the offer/answer machine keeps it (RFC 9429 section 3.4.1).
package struct Transceiver: Hashable, Sendable {
  /// Names the transceiver in this peer; counted from 1 in order of creation.
  package var id: UInt32
  package var kind: MediaKind
  /// Known once associated with an m-section.
  package var mid: String?
  package var mLineIndex: Int?
  package var direction: TransceiverDirection
  package var currentDirection: TransceiverDirection?
  /// Whether `stop` was called.
  package var isStopping = false
  /// Whether it was made by addTrack (then a remote offer may take it, RFC 9429 section 5.10).
  package var wasMadeByAddTrack = false
  /// The msid stream and track identifiers of what is sent.
  package var streamIDs: [String]
  package var trackID: String
  /// Drawn at creation; the SSRCs this transceiver sends with.
  package var ssrc: UInt32
  package var rtxSSRC: UInt32
  /// The peer's stream and track identifiers, once signaled.
  package var remoteStreamIDs: [String] = []
  package var remoteTrackID: String?

  package init(
    id: UInt32, kind: MediaKind, direction: TransceiverDirection, streamIDs: [String],
    trackID: String, ssrc: UInt32, rtxSSRC: UInt32
  ) {
    self.id = id
    self.kind = kind
    self.direction = direction
    self.streamIDs = streamIDs
    self.trackID = trackID
    self.ssrc = ssrc
    self.rtxSSRC = rtxSSRC
  }
}

/// What one m-section agreed on, after an answer was applied.
package struct NegotiatedSection: Hashable, Sendable {
  package var mid: String
  package var transceiverID: UInt32
  package var kind: MediaKind
  package var direction: TransceiverDirection
  /// In the order of preference of the answer; retransmission formats are folded into their codec.
  package var codecs: [NegotiatedCodec]
  /// URI and identifier, in the order of the answer.
  package var extensions: [(uri: String, id: UInt8)]
  package var remoteSSRCs: [UInt32]
  package var remoteRTXSSRCs: [UInt32?]
  package var reducedSizeRTCP: Bool

  package init(
    mid: String, transceiverID: UInt32, kind: MediaKind, direction: TransceiverDirection,
    codecs: [NegotiatedCodec], extensions: [(uri: String, id: UInt8)], remoteSSRCs: [UInt32],
    remoteRTXSSRCs: [UInt32?], reducedSizeRTCP: Bool
  ) {
    self.mid = mid
    self.transceiverID = transceiverID
    self.kind = kind
    self.direction = direction
    self.codecs = codecs
    self.extensions = extensions
    self.remoteSSRCs = remoteSSRCs
    self.remoteRTXSSRCs = remoteRTXSSRCs
    self.reducedSizeRTCP = reducedSizeRTCP
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.mid == right.mid && left.transceiverID == right.transceiverID && left.kind == right.kind
      && left.direction == right.direction && left.codecs == right.codecs
      && left.remoteSSRCs == right.remoteSSRCs && left.remoteRTXSSRCs == right.remoteRTXSSRCs
      && left.reducedSizeRTCP == right.reducedSizeRTCP
      && left.extensions.elementsEqual(right.extensions, by: ==)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(mid) }
}

package struct NegotiatedCodec: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case.
  package var name: String
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The fmtp line's value as both sides agreed on it; empty when there is none.
  package var parameters: String
  package var rtxPayloadType: UInt8?
  /// `nack`, `nack pli`, `ccm fir`, `goog-remb`, `transport-cc`: what both sides listed.
  package var feedback: [String]

  package init(
    payloadType: UInt8, name: String, clockRate: UInt32, channels: UInt8?, parameters: String,
    rtxPayloadType: UInt8?, feedback: [String]
  ) {
    self.payloadType = payloadType
    self.name = name
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = parameters
    self.rtxPayloadType = rtxPayloadType
    self.feedback = feedback
  }
}

extension Negotiation {
  /// What applying a description changed, in the order in which applications must hear of it.
  package enum Change: Hashable, Sendable {
    case signalingState(from: SignalingState, to: SignalingState)
    /// A transceiver was made for a remote m-section.
    case transceiverAdded(id: UInt32)
    /// The peer began to send on a transceiver (the W3C track event).
    case trackAdded(transceiver: UInt32, streamIDs: [String])
    /// The peer no longer sends on it.
    case trackRemoved(transceiver: UInt32)
    /// A transceiver was stopped and is gone from the session.
    case transceiverStopped(id: UInt32)
    /// `sections` is new: an offer/answer exchange completed.
    case sectionsAgreed
    /// `remoteTransport` is new or changed.
    case remoteTransport
    /// A local description was set: gathering may begin.
    case localDescriptionSet
  }
}
