package import Flow
package import ICE
package import Media
package import RTP
package import SDP
package import Secure
package import Wire

/// Something a peer tells: for the application, for the take, or for both.
package enum PeerEvent: Sendable {
  /// A transition of one of the state machines.
  case state(StateTransition)
  /// W3C negotiationneeded.
  case negotiationNeeded
  /// A local candidate to be signaled; nil when there are no more.
  case localCandidate(CandidateInit?)
  /// A candidate became known to the agent, local or remote.
  case candidate(isLocal: Bool, ICECandidate)
  /// A pair was made or changed; beside the value, which would be three times as large with it.
  indirect case candidatePair(ICEPairReport)
  /// A local certificate in DER; for the take alone.
  case certificate([UInt8])
  /// The DTLS association was established.
  case secured(SecuredTransport)
  /// The secrets of the association that was established; for the take alone.
  case keyLog(KeyLog)
  /// W3C track: the peer sends on this transceiver.
  case track(TransceiverInfo)
  /// The peer no longer sends on this transceiver.
  case trackEnded(transceiver: UInt32)
  /// The peer sends a stream that it did not send before.
  case streamAdded(MediaStreamInfo)
  /// The peer sends nothing of a stream any more.
  case streamRemoved(id: String)
  /// What an m-section agreed on; the take's `track` rows.
  case trackNegotiated(TrackRecord)
  /// An RTCP block in the clear.
  case rtcp(RTCPRecord)
  /// An encoded frame with the result of its encoding or decoding.
  case frame(FrameRecord)
  /// A data channel was made, by either side, or entered another state; the take's `channel` rows.
  case dataChannel(DataChannelRecord)
  /// A message came on a data channel.
  case message(DataMessage)
  /// W3C bufferedamountlow of a data channel.
  case bufferedAmountLow(channel: UInt32)
  /// W3C error of a data channel: why it cannot be used, in words.
  case dataChannelError(channel: UInt32, String)
  /// Another track became the dominant speaker among those sent and received; nil: nobody is.
  case dominantSpeaker(SpeakingTrack?)
  /// Somebody speaks, still speaks, or has spoken; the take's `speech` rows.
  case speech(SpeechRecord)
  /// The loudest voices of an interval, the loudest first, as asked for; none: all are silent.
  case loudestSpeakers([SpeakerVolume])
  /// A received voice took an audio slot, or lost it.
  case audioSlot(SpeakingTrack, isHeld: Bool)
  /// The application muted a track or unmuted it, or the peer did; the latter as a notice.
  case trackChanged(TrackChange)
  /// Local candidates that were signaled are gone; a notice.
  case candidatesRemoved([CandidateInit])
  /// A server gave no candidate (W3C icecandidateerror); a notice.
  case gatheringError(GatheringError)
  /// Another candidate pair carries a transport; a notice.
  case selectedPair(SelectedPairChange)
  /// Somebody speaks into a sent track that is disabled, or no longer does; a notice.
  case mutedSpeech(transceiver: UInt32, isSpeaking: Bool)
  /// The connection is over, and why; a notice.
  case connectionEnded(ConnectionEnd)
  /// Something was refused and counted: what and why, for the timeline.
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

/// What a DTLS handshake established, without secrets.
package struct SecuredTransport: Hashable, Sendable {
  /// The number of the transport among those of the peer.
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

/// What it takes to read what an association protects: a take holds it, nobody else is told.
package struct KeyLog: Hashable, Sendable {
  /// The number of the transport among those of the peer.
  package var transport: Int
  package var secrets: DTLSSecrets
  /// The certificates that both sides showed, in DER.
  package var localCertificate: [UInt8]
  package var remoteCertificate: [UInt8]

  package init(
    transport: Int = 0, secrets: DTLSSecrets, localCertificate: [UInt8],
    remoteCertificate: [UInt8]
  ) {
    self.transport = transport
    self.secrets = secrets
    self.localCertificate = localCertificate
    self.remoteCertificate = remoteCertificate
  }
}

/// One direction of a track as agreed.
package struct TrackRecord: Hashable, Sendable {
  package var transceiver: UInt32
  package var mid: String
  package var kind: MediaKind
  package var isInbound: Bool
  /// The SSRC sent with, or announced by the peer; nil when not announced.
  package var ssrc: UInt32?
  package var codec: String
  package var payloadType: UInt8
  package var clockRate: UInt32
  /// The identifier of the transport-wide sequence number extension, 0 when not agreed.
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

/// An encoded frame and what its encoder or decoder made of it, in the order of the codec calls.
package struct FrameRecord: Sendable {
  // The widest come first, so that no room is lost between them: records are moved a lot, and up to
  // 128 bytes that needs no call.
  package var codec: CodecName
  /// How the result came about: `decoded`, `recovered`, `concealed`, `undecodable`, `encoded`;
  /// `not decoded` and `passed on` for frames of codecs without a library.
  package var outcome: String
  /// The decoded result, whose digest goes into the take.
  package var decoded: DecodedMedia
  package var width: Int
  package var height: Int
  /// The encoded bytes; empty for concealed audio.
  package var bytes: [UInt8]
  /// The sources that a mixer put together.
  package var contributors: [Contributor] = []
  /// The sum of squares of a block of audio, and its largest absolute sample.
  package var energy: UInt64 = 0
  package var transceiver: UInt32
  package var ssrc: UInt32
  /// The RTP timestamp on the wire (inbound), or the media time before the stream's offset
  /// (outbound).
  package var rtpTime: UInt32
  package var peak: UInt16 = 0
  package var kind: MediaKind
  /// Received and decoded; else encoded and sent.
  package var isInbound: Bool
  package var isKey: Bool
  /// The quantiser of a video frame.
  package var quantiser: UInt8
  /// The RFC 6464 level of a block of audio that is sent.
  package var audioLevel: UInt8?
  package var isVoice = false
  /// Whether a frame that is not decoded is not to be shown, because its track is disabled.
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

/// Decoded media of a frame.
package enum DecodedMedia: Sendable {
  case none
  case audio(AudioBlock)
  case videoFrame(I420Buffer)
  /// The digest of a video frame that a recording let go of.
  case digest([UInt8])
}
