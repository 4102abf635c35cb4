package import Flow
package import ICE
package import Media
package import RTP
package import SDP
package import Secure
package import Wire

/// An event of a peer: for the application, the take, or both.
package enum PeerEvent: Sendable {
  /// A transition of one of the state machines.
  case state(StateTransition)
  /// W3C negotiationneeded.
  case negotiationNeeded
  /// A local candidate to signal; nil if there are no more.
  case localCandidate(CandidateInit?)
  /// The agent has a new local or remote candidate.
  case candidate(isLocal: Bool, ICECandidate)
  /// A pair was added or changed; indirect, because it would triple the size of the enum.
  indirect case candidatePair(ICEPairReport)
  /// A local certificate in DER; only for the take.
  case certificate([UInt8])
  /// The DTLS association was established.
  case secured(SecuredTransport)
  /// The secrets of the established association; only for the take.
  case keyLog(KeyLog)
  /// W3C track: the peer sends on this transceiver.
  case track(TransceiverInfo)
  /// The peer stopped sending on this transceiver.
  case trackEnded(transceiver: UInt32)
  /// The peer started to send a stream.
  case streamAdded(MediaStreamInfo)
  /// The peer stopped sending a stream.
  case streamRemoved(id: String)
  /// The result for an m-section; a `track` row of the take.
  case trackNegotiated(TrackRecord)
  /// An RTCP block in the clear.
  case rtcp(RTCPRecord)
  /// An encoded frame with its encoded or decoded result.
  case frame(FrameRecord)
  /// A data channel was created by either side, or changed state; a `channel` row of the take.
  case dataChannel(DataChannelRecord)
  /// A message arrived on a data channel.
  case message(DataMessage)
  /// W3C bufferedamountlow of a data channel.
  case bufferedAmountLow(channel: UInt32)
  /// W3C error of a data channel, as a sentence.
  case dataChannelError(channel: UInt32, String)
  /// The dominant speaker changed among sent and received tracks; nil if there is none.
  case dominantSpeaker(SpeakingTrack?)
  /// Somebody speaks, still speaks, or stopped; a `speech` row of the take.
  case speech(SpeechRecord)
  /// The loudest voices of an interval, loudest first; empty if all are silent.
  case loudestSpeakers([SpeakerVolume])
  /// A received voice gained or lost an audio slot.
  case audioSlot(SpeakingTrack, isHeld: Bool)
  /// The application or the peer muted or unmuted a track; the peer's are a notice.
  case trackChanged(TrackChange)
  /// Signaled local candidates became invalid; a notice.
  case candidatesRemoved([CandidateInit])
  /// A server provided no candidate (W3C icecandidateerror); a notice.
  case gatheringError(GatheringError)
  /// Another candidate pair was selected; a notice.
  case selectedPair(SelectedPairChange)
  /// Somebody speaks into a disabled sent track, or stopped; a notice.
  case mutedSpeech(transceiver: UInt32, isSpeaking: Bool)
  /// The connection is over, and why; a notice.
  case connectionEnded(ConnectionEnd)
  /// Something was refused and counted, for the timeline.
  case refused(layer: String, reason: String)
}

/// A transition of a state machine.
package struct StateTransition: Hashable, Sendable {
  /// `signaling`, `ice-connection`, `ice-gathering`, `connection`, `dtls` (`dtls 2` and so on for
  /// further transports), `sctp`, `establishment`.
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
  /// The number of the transport.
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
  /// The number of the transport.
  package var transport: Int
  package var secrets: DTLSSecrets
  /// The certificates of both sides, in DER.
  package var localCertificate: [UInt8]
  package var remoteCertificate: [UInt8]
  /// The certificates that the peer sent after its own; none in takes before format 7.
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
  /// The SSRC that is sent or that the peer announced, if any.
  package var ssrc: UInt32?
  package var codec: String
  package var payloadType: UInt8
  package var clockRate: UInt32
  /// The identifier of the transport-wide sequence number extension; 0 if not negotiated.
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

/// An encoded frame and its encoder's or decoder's result, in the order of the codec calls.
package struct FrameRecord: Sendable {
  // Ordered by size to avoid padding: records are moved often, and up to 128 bytes that needs no
  // call to memcpy.
  package var codec: CodecName
  /// The origin of the result: `decoded`, `recovered`, `concealed`, `undecodable`, `encoded`; `not
  /// decoded` and `passed on` for frames of codecs without a library.
  package var outcome: String
  /// The decoded result; its digest goes into the take.
  package var decoded: DecodedMedia
  package var width: Int
  package var height: Int
  /// The encoded bytes; empty for concealed audio.
  package var bytes: [UInt8]
  /// The sources that a mixer combined.
  package var contributors: [Contributor] = []
  /// The sum of squares of a block of audio, and its largest absolute sample.
  package var energy: UInt64 = 0
  package var transceiver: UInt32
  package var ssrc: UInt32
  /// The RTP timestamp on the wire (inbound), or the media time without the stream's offset
  /// (outbound).
  package var rtpTime: UInt32
  package var peak: UInt16 = 0
  package var kind: MediaKind
  /// Whether it was received and decoded, rather than encoded and sent.
  package var isInbound: Bool
  package var isKey: Bool
  /// The quantiser of a video frame.
  package var quantiser: UInt8
  /// The RFC 6464 level of a sent block of audio.
  package var audioLevel: UInt8?
  package var isVoice = false
  /// Whether an undecoded frame is not shown, because its track is disabled.
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

/// The decoded media of a frame.
package enum DecodedMedia: Sendable {
  case none
  case audio(AudioBlock)
  case videoFrame(I420Buffer)
  /// The digest of a video frame whose pixels were dropped.
  case digest([UInt8])
}

// MARK: - PeerNotice

/// An event that is reported only if genesis asks for it: older takes do not have it, and replay
/// without it.
public struct PeerNotice: RawRepresentable, Hashable, Sendable, Codable {
  /// The name of the notice in genesis.
  public var rawValue: String

  /// Creates a notice by its name; one unknown to this version is never reported.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Mute, unmute and the end of received tracks, with reasons.
  public static let tracks = PeerNotice(rawValue: "tracks")
  /// Signaled local candidates that became invalid.
  public static let removedCandidates = PeerNotice(rawValue: "removed-candidates")
  /// W3C icecandidateerror.
  public static let gatheringErrors = PeerNotice(rawValue: "gathering-errors")
  /// W3C RTCIceTransport selectedcandidatepairchange, with the reason.
  public static let selectedPair = PeerNotice(rawValue: "selected-pair")
  /// Speech into a disabled track.
  public static let mutedSpeech = PeerNotice(rawValue: "muted-speech")
  /// Why the connection ended.
  public static let connectionEnd = PeerNotice(rawValue: "connection-end")

  /// All notices of this version.
  public static let all: [PeerNotice] = [
    .tracks, .removedCandidates, .gatheringErrors, .selectedPair, .mutedSpeech, .connectionEnd,
  ]
}

/// A server that provided no candidate (W3C RTCPeerConnectionIceErrorEvent).
public struct GatheringError: Hashable, Sendable, Codable {
  /// The server's URI; empty if unknown.
  public var url: String
  /// The STUN error code, or 701 if the server cannot be reached.
  public var errorCode: UInt16
  /// The error as text.
  public var errorText: String
  /// The local address that the request was sent from, if any.
  public var address: String?
  /// The local port.
  public var port: UInt16?

  /// Creates an error.
  public init(
    url: String, errorCode: UInt16, errorText: String, address: String? = nil, port: UInt16? = nil
  ) {
    self.url = url
    self.errorCode = errorCode
    self.errorText = errorText
    self.address = address
    self.port = port
  }

  /// The code for an unreachable server.
  public static let unreachable: UInt16 = 701
}

/// Reports that ICE switched a transport to another candidate pair, and why.
public struct SelectedPairChange: Hashable, Sendable, Codable {
  /// The reason for a change.
  public enum Reason: String, Hashable, Sendable, Codable {
    /// The first pair that works.
    case first
    /// The previous pair no longer works.
    case lost
    /// The controlling side nominated it (RFC 8445 section 8.1.1).
    case nominated
    /// ICE was restarted.
    case restart
    /// The pair is better than the previous one.
    case preferred
  }

  /// The number of the transport.
  public var transport: Int
  /// The local candidate.
  public var local: String
  /// The remote candidate.
  public var remote: String
  /// The reason.
  public var reason: Reason
  /// When media or data was last received over the previous pair, in milliseconds ago; nil if
  /// never.
  public var lastReceivedMilliseconds: Int64?

  /// Creates a change.
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

/// Why a connection ended.
public enum ConnectionEnd: String, Hashable, Sendable, Codable {
  /// The application closed it.
  case application
  /// The peer closed the association (DTLS close_notify).
  case peer
  /// No candidate pair works; a restart may help.
  case iceFailed = "ice-failed"
  /// The handshake failed, or the certificate does not match the signaled fingerprint.
  case dtlsFailed = "dtls-failed"
}
