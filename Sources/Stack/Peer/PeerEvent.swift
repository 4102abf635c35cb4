package import Flow
package import ICE
package import Media
package import RTP
package import SDP
package import Secure
package import Wire

/// An event of a peer: for the application, the take, or both.
package enum PeerEvent: Sendable {
  /// A state machine changed its state.
  case state(StateTransition)
  /// Negotiation is needed (W3C negotiationneeded).
  case negotiationNeeded
  /// A local candidate to signal, or nil after the last one.
  case localCandidate(CandidateInit?)
  /// The agent has a new local or remote candidate.
  case candidate(isLocal: Bool, ICECandidate)
  /// A pair was added or changed; indirect, because it would otherwise triple the enum's size.
  indirect case candidatePair(ICEPairReport)
  /// A local certificate in DER; only for the take.
  case certificate([UInt8])
  /// The DTLS association was established.
  case secured(SecuredTransport)
  /// The secrets of the established association; only for the take.
  case keyLog(KeyLog)
  /// The remote peer sends on this transceiver (W3C track).
  case track(TransceiverInfo)
  /// The remote peer stopped sending on this transceiver, or the transceiver was stopped.
  case trackEnded(transceiver: UInt32)
  /// The remote peer started to send a stream.
  case streamAdded(MediaStreamInfo)
  /// The remote peer stopped sending a stream.
  case streamRemoved(id: String)
  /// An m-section was negotiated; a `track` row in the take.
  case trackNegotiated(TrackRecord)
  /// An RTCP block in the clear.
  case rtcp(RTCPRecord)
  /// An encoded frame with the result of encoding or decoding it.
  case frame(FrameRecord)
  /// A data channel was created by either peer or changed its state; a `channel` row in the take.
  case dataChannel(DataChannelRecord)
  /// A message arrived on a data channel.
  case message(DataMessage)
  /// A data channel's buffered amount became low (W3C bufferedamountlow).
  case bufferedAmountLow(channel: UInt32)
  /// A data channel reported an error, as a sentence (W3C error).
  case dataChannelError(channel: UInt32, String)
  /// The dominant speaker among local and remote tracks changed; nil if there is none.
  case dominantSpeaker(SpeakingTrack?)
  /// Speech began, continues or ended; a `speech` row in the take.
  case speech(SpeechRecord)
  /// The loudest voices in an interval, loudest first; empty if none reaches the threshold.
  case loudestSpeakers([SpeakerVolume])
  /// A received voice gained or lost an audio slot.
  case audioSlot(SpeakingTrack, isHeld: Bool)
  /// A track was enabled or disabled or, as a `PeerNotice`, a received track was muted, unmuted or
  /// ended.
  case trackChanged(TrackChange)
  /// Signaled local candidates became invalid (a `PeerNotice`).
  case candidatesRemoved([CandidateInit])
  /// A server did not provide a candidate (a `PeerNotice`; W3C icecandidateerror).
  case gatheringError(GatheringError)
  /// A different candidate pair was selected (a `PeerNotice`).
  case selectedPair(SelectedPairChange)
  /// Speech into a disabled local track began or ended (a `PeerNotice`).
  case mutedSpeech(transceiver: UInt32, isSpeaking: Bool)
  /// The connection ended, with the reason (a `PeerNotice`).
  case connectionEnded(ConnectionEnd)
  /// A layer refused an input; emitted whenever the number of such refusals reaches a power of two.
  case refused(layer: String, reason: String)
}

/// A change of one of the connection's W3C states, or of its establishment state.
package struct StateTransition: Hashable, Sendable {
  /// The machine's name: `signaling`, `ice-connection`, `ice-gathering`, `connection`, `dtls`
  /// (`dtls 2` and so on for further transports), `sctp` or `establishment`.
  package var machine: String
  package var from: String
  package var to: String

  package init(machine: String, from: String, to: String) {
    self.machine = machine
    self.from = from
    self.to = to
  }
}

/// The result of a DTLS handshake, without secrets.
package struct SecuredTransport: Hashable, Sendable {
  /// The number of the transport that the association secures.
  package var transport: Int
  package var version: String
  package var cipherSuite: String
  package var profile: String
  package var role: String
  package var remoteFingerprint: String

  package init(
    transport: Int = 0, version: String, cipherSuite: String, profile: String, role: String,
    remoteFingerprint: String
  ) {
    self.transport = transport
    self.version = version
    self.cipherSuite = cipherSuite
    self.profile = profile
    self.role = role
    self.remoteFingerprint = remoteFingerprint
  }
}

/// The secrets that decrypt an association; only for the take.
package struct KeyLog: Hashable, Sendable {
  /// The number of the transport whose packets the secrets decrypt.
  package var transport: Int
  package var secrets: DTLSSecrets
  /// The certificates of both peers in DER.
  package var localCertificate: [UInt8]
  package var remoteCertificate: [UInt8]
  /// The certificates that the remote peer sent after its own; empty in takes before format 7.
  package var remoteIssuers: [[UInt8]]

  package init(
    transport: Int = 0, secrets: DTLSSecrets, localCertificate: [UInt8],
    remoteCertificate: [UInt8], remoteIssuers: [[UInt8]] = []
  ) {
    self.remoteIssuers = remoteIssuers
    self.transport = transport
    self.secrets = secrets
    self.localCertificate = localCertificate
    self.remoteCertificate = remoteCertificate
  }
}

/// One direction of a negotiated track.
package struct TrackRecord: Hashable, Sendable {
  package var transceiver: UInt32
  package var mid: String
  package var kind: MediaKind
  package var isInbound: Bool
  /// The SSRC that is sent or that the remote peer announced, if any.
  package var ssrc: UInt32?
  package var codec: String
  package var payloadType: UInt8
  package var clockRate: UInt32
  /// The identifier of the transport-wide sequence number extension; 0 if it was not negotiated.
  package var transportSequenceID: UInt8

  package init(
    transceiver: UInt32, mid: String, kind: MediaKind, isInbound: Bool, ssrc: UInt32?,
    codec: String, payloadType: UInt8, clockRate: UInt32, transportSequenceID: UInt8
  ) {
    self.transceiver = transceiver
    self.mid = mid
    self.kind = kind
    self.isInbound = isInbound
    self.ssrc = ssrc
    self.codec = codec
    self.payloadType = payloadType
    self.clockRate = clockRate
    self.transportSequenceID = transportSequenceID
  }
}

/// An encoded frame and the result of its encoder or decoder.
///
/// Records are emitted in the order of the codec calls.
package struct FrameRecord: Sendable {
  // Members are ordered by size to avoid padding: records are moved often, and moving up to 128
  // bytes needs no call to memcpy.
  package var codec: CodecName
  /// The kind of result: `decoded`, `recovered`, `concealed`, `undecodable` or `encoded`; if no
  /// codec processed the frame here, `not decoded` (received) or `passed on` (sent).
  package var outcome: String
  /// The decoded result; the take contains its digest.
  package var decoded: DecodedMedia
  package var width: Int
  package var height: Int
  /// The encoded bytes; empty for audio that was recovered or concealed.
  package var bytes: [UInt8]
  /// The sources that a mixer combined.
  package var contributors: [Contributor] = []
  /// The sum of the squares of an audio block's samples, in its loudest channel.
  package var energy: UInt64 = 0
  package var transceiver: UInt32
  package var ssrc: UInt32
  /// The RTP timestamp in the packets (inbound), or the media time without the stream's offset
  /// (outbound).
  package var rtpTime: UInt32
  /// The largest absolute value of an audio block's samples.
  package var peak: UInt16 = 0
  package var kind: MediaKind
  /// Whether the frame was received rather than sent.
  package var isInbound: Bool
  package var isKey: Bool
  /// A video frame's quantiser, in its codec's units.
  package var quantiser: UInt8
  /// The level that an audio block's sender states (RFC 6464), if any.
  package var audioLevel: UInt8?
  package var isVoice = false
  /// Whether an undecoded frame is not shown because its track is disabled.
  package var isWithheld = false

  package init(
    transceiver: UInt32, kind: MediaKind, isInbound: Bool, codec: CodecName, ssrc: UInt32,
    rtpTime: UInt32, isKey: Bool, width: Int, height: Int, bytes: [UInt8], outcome: String,
    decoded: DecodedMedia, quantiser: UInt8
  ) {
    self.transceiver = transceiver
    self.kind = kind
    self.isInbound = isInbound
    self.codec = codec
    self.ssrc = ssrc
    self.rtpTime = rtpTime
    self.isKey = isKey
    self.width = width
    self.height = height
    self.bytes = bytes
    self.outcome = outcome
    self.decoded = decoded
    self.quantiser = quantiser
  }
}

/// The media that a frame was decoded to, or only its digest.
package enum DecodedMedia: Sendable {
  case none
  case audio(AudioBlock)
  case videoFrame(I420Buffer)
  /// The digest of a video frame whose pixels were dropped.
  case digest([UInt8])
}

// MARK: - PeerNotice

/// An event that is reported only if the genesis requests it, so that older takes, which do not
/// contain it, replay without it.
public struct PeerNotice: RawRepresentable, Hashable, Sendable, Codable {
  /// The notice's name in the genesis.
  public var rawValue: String

  /// Creates a notice by name; a notice that this version does not know is never reported.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Mute, unmute and end of received tracks, with reasons.
  public static let tracks = PeerNotice(rawValue: "tracks")
  /// Signaled local candidates that became invalid.
  public static let removedCandidates = PeerNotice(rawValue: "removed-candidates")
  /// Servers that did not provide a candidate (W3C icecandidateerror).
  public static let gatheringErrors = PeerNotice(rawValue: "gathering-errors")
  /// Changes of the selected pair, with the reason (W3C RTCIceTransport
  /// selectedcandidatepairchange).
  public static let selectedPair = PeerNotice(rawValue: "selected-pair")
  /// Speech into a disabled track.
  public static let mutedSpeech = PeerNotice(rawValue: "muted-speech")
  /// The end of the connection, with its reason.
  public static let connectionEnd = PeerNotice(rawValue: "connection-end")

  /// All notices that this version can report.
  public static let all: [PeerNotice] = [
    .tracks, .removedCandidates, .gatheringErrors, .selectedPair, .mutedSpeech, .connectionEnd,
  ]
}

/// A server that did not provide a candidate (W3C RTCPeerConnectionIceErrorEvent).
public struct GatheringError: Hashable, Sendable, Codable {
  /// The server's URI; empty if unknown.
  public var url: String
  /// The STUN error code, or 701 if the server cannot be reached.
  public var errorCode: UInt16
  /// The server's reason phrase, or a local reason if the server sent none.
  public var errorText: String
  /// The local address from which the request was sent, if any.
  public var address: String?
  /// The local port from which the request was sent, if any.
  public var port: UInt16?

  /// Creates an error; `address` and `port` are nil if no request was sent.
  public init(
    url: String, errorCode: UInt16, errorText: String, address: String? = nil, port: UInt16? = nil
  ) {
    self.url = url
    self.errorCode = errorCode
    self.errorText = errorText
    self.address = address
    self.port = port
  }

  /// The code for a server that cannot be reached.
  public static let unreachable: UInt16 = 701
}

/// A transport's change to a different candidate pair, with the reason.
public struct SelectedPairChange: Hashable, Sendable, Codable {
  /// Why a pair was selected.
  public enum Reason: String, Hashable, Sendable, Codable {
    /// The pair is the first one that works.
    case first
    /// The previous pair no longer works.
    case lost
    /// The controlling agent nominated the pair (RFC 8445 section 8.1.1).
    case nominated
    /// ICE was restarted, and the pair belongs to the new generation.
    case restart
    /// The pair is better than the previous one.
    case preferred
  }

  /// The transport's number within its peer; the first is 0.
  public var transport: Int
  /// The local candidate's attribute, without `a=`.
  public var local: String
  /// The remote candidate's attribute, without `a=`.
  public var remote: String
  /// Why the new pair was selected.
  public var reason: Reason
  /// The time in milliseconds since media or data was last received over the new pair; nil if
  /// nothing was received over it.
  public var lastReceivedMilliseconds: Int64?

  /// Creates a change; `local` and `remote` are candidate attributes without `a=`.
  public init(
    transport: Int, local: String, remote: String, reason: Reason, lastReceivedMilliseconds: Int64?
  ) {
    self.transport = transport
    self.local = local
    self.remote = remote
    self.reason = reason
    self.lastReceivedMilliseconds = lastReceivedMilliseconds
  }
}

/// Why a connection ended, from the local peer's point of view.
public enum ConnectionEnd: String, Hashable, Sendable, Codable {
  /// The application closed the connection.
  case application
  /// The remote peer closed the association (DTLS close_notify).
  case peer
  /// No candidate pair works; a restart may help.
  case iceFailed = "ice-failed"
  /// The handshake failed, the certificate does not match the signaled fingerprint, or the
  /// association broke later.
  case dtlsFailed = "dtls-failed"
}
