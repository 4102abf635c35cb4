public import ICE
public import JSEP
import Media
public import Peer
import RTP
public import SCTP
public import SDP
public import Secure
public import Wire

/// Something that a connection reports, such as a state change or a candidate.
public enum PeerConnectionEvent: Hashable, Sendable {
  /// W3C signalingstatechange.
  case signalingState(SignalingState)
  /// W3C iceconnectionstatechange.
  case iceConnectionState(ICEConnectionState)
  /// W3C icegatheringstatechange.
  case iceGatheringState(ICEGatheringState)
  /// W3C RTCDtlsTransport statechange.
  case dtlsTransportState(DTLSTransportState)
  /// W3C connectionstatechange.
  case connectionState(ConnectionState)
  /// Whether the call is established.
  case establishment(EstablishmentState)
  /// W3C icecandidate: a local candidate to signal; nil when there are no more.
  case iceCandidate(CandidateInit?)
  /// W3C negotiationneeded.
  case negotiationNeeded
  /// W3C track: the peer sends on this transceiver.
  case track(TransceiverInfo)
  /// The peer stopped sending on this transceiver.
  case trackEnded(transceiver: UInt32)
  /// The peer started to send a stream; not reported for local streams.
  case streamAdded(MediaStreamInfo)
  /// The peer stopped sending a stream.
  case streamRemoved(id: String)
  /// W3C RTCSctpTransport statechange.
  case sctpState(SCTPState)
  /// W3C datachannel: the peer created this channel.
  case dataChannel(DataChannel)
  /// W3C open, closing and close of a data channel.
  case dataChannelState(DataChannel, DataChannelState)
  /// W3C bufferedamountlow of a data channel.
  case bufferedAmountLow(DataChannel)
  /// W3C error of a data channel, in one sentence.
  case dataChannelError(DataChannel, String)
  /// DTLS negotiated a cipher suite and an SRTP profile, by their IANA names.
  case secured(cipherSuite: String, profile: String)
  /// The dominant speaker changed among sent and received tracks; nil if there is none.
  case dominantSpeaker(SpeakingTrack?)
  /// A track started speaking 0.2 s ago.
  case speechBegan(SpeakingTrack)
  /// A track was silent for half a second after speaking, or ended.
  case speechEnded(SpeakingTrack)
  /// An interval's loudest tracks, loudest first, as requested by `observeLoudest`; empty if all
  /// are silent.
  case loudestSpeakers([SpeakerVolume])
  /// A received track gained one of the slots of `limitAudioSlots`.
  case audioSubscribed(SpeakingTrack)
  /// A received track lost its slot.
  case audioUnsubscribed(SpeakingTrack)
  /// The application enabled or disabled a track.
  ///
  /// If the configuration's `notices` include `tracks`, W3C mute, unmute and ended of received
  /// tracks are reported too.
  case trackChanged(TrackChange)
  /// Signaled local candidates became invalid; needs the notice `removedCandidates`.
  case iceCandidatesRemoved([CandidateInit])
  /// W3C icecandidateerror; needs the notice `gatheringErrors`.
  case iceCandidateError(GatheringError)
  /// W3C selectedcandidatepairchange, with the reason; needs the notice `selectedPair`.
  case selectedCandidatePair(SelectedPairChange)
  /// A participant started or stopped speaking into a disabled sent track; needs the notice
  /// `mutedSpeech`.
  case mutedSpeech(transceiver: UInt32, isSpeaking: Bool)
  /// The connection ended, with the reason; needs the notice `connectionEnd`.
  case connectionEnded(ConnectionEnd)
  /// A datagram or message from the network was refused and counted.
  case refused(layer: String, reason: String)

  /// Converts a stack event; nil if it is only for the take or concerns a data channel.
  init?(_ event: PeerEvent, states: PeerConnectionStates) {
    switch event {
    case .state(let transition):
      switch transition.machine {
      case "signaling": self = .signalingState(states.signaling)
      case "ice-connection": self = .iceConnectionState(states.iceConnection)
      case "ice-gathering": self = .iceGatheringState(states.iceGathering)
      case "dtls": self = .dtlsTransportState(states.dtls)
      case "establishment": self = .establishment(states.establishment)
      case "connection": self = .connectionState(states.connection)
      case "sctp": self = .sctpState(states.sctp)
      default: return nil
      }
    case .negotiationNeeded: self = .negotiationNeeded
    case .localCandidate(let candidate): self = .iceCandidate(candidate)
    case .secured(let transport):
      self = .secured(cipherSuite: transport.cipherSuite, profile: transport.profile)
    case .track(let info): self = .track(info)
    case .trackEnded(let transceiver): self = .trackEnded(transceiver: transceiver)
    case .streamAdded(let stream): self = .streamAdded(stream)
    case .streamRemoved(let id): self = .streamRemoved(id: id)
    case .dominantSpeaker(let speaker): self = .dominantSpeaker(speaker)
    case .speech(let speech):
      switch speech.phase {
      case "began": self = .speechBegan(speech.track)
      case "ended": self = .speechEnded(speech.track)
      default: return nil
      }
    case .loudestSpeakers(let volumes): self = .loudestSpeakers(volumes)
    case .audioSlot(let track, let isHeld):
      self = isHeld ? .audioSubscribed(track) : .audioUnsubscribed(track)
    case .trackChanged(let change): self = .trackChanged(change)
    case .candidatesRemoved(let candidates): self = .iceCandidatesRemoved(candidates)
    case .gatheringError(let error): self = .iceCandidateError(error)
    case .selectedPair(let change): self = .selectedCandidatePair(change)
    case .mutedSpeech(let transceiver, let isSpeaking):
      self = .mutedSpeech(transceiver: transceiver, isSpeaking: isSpeaking)
    case .connectionEnded(let reason): self = .connectionEnded(reason)
    case .refused(let layer, let reason): self = .refused(layer: layer, reason: reason)
    case .certificate, .keyLog, .candidate, .candidatePair, .trackNegotiated, .rtcp, .frame,
      .dataChannel, .message, .bufferedAmountLow, .dataChannelError:
      return nil
    }
  }
}

extension PeerConnectionEvent {
  /// Whether the event reports one of the connection's states.
  var isState: Bool {
    switch self {
    case .signalingState, .iceConnectionState, .iceGatheringState, .dtlsTransportState,
      .connectionState, .establishment, .sctpState:
      true
    default: false
    }
  }
}

/// Counts of frames processed by a connection's codecs.
public struct MediaCounters: Hashable, Sendable {
  /// Audio blocks encoded and sent.
  public internal(set) var audioSent = 0
  /// Audio blocks played, concealed ones included.
  public internal(set) var audioReceived = 0
  /// Audio blocks that conceal lost packets.
  public internal(set) var audioConcealed = 0
  /// Video frames encoded and sent.
  public internal(set) var videoFramesSent = 0
  /// Video frames decoded, or received in a codec that is not decoded here.
  public internal(set) var videoFramesReceived = 0
  /// Video frames that the decoder refused.
  public internal(set) var videoFramesUndecodable = 0

  /// Creates counters at zero.
  public init() {}

  mutating func count(_ frame: FrameRecord) {
    switch (frame.kind, frame.isInbound) {
    case (.audio, false): audioSent += 1
    case (.audio, true):
      audioReceived += 1
      if frame.outcome == "concealed" { audioConcealed += 1 }
    case (.video, false): videoFramesSent += 1
    case (.video, true):
      if frame.outcome == "undecodable" {
        videoFramesUndecodable += 1
      } else {
        videoFramesReceived += 1
      }
    }
  }
}

/// All states of a connection at one moment.
public struct PeerConnectionStates: Hashable, Sendable {
  /// The state of the offer/answer exchange.
  public internal(set) var signaling = SignalingState.stable
  /// The state of candidate pair checks.
  public internal(set) var iceConnection = ICEConnectionState.new
  /// The state of candidate gathering.
  public internal(set) var iceGathering = ICEGatheringState.new
  /// The state of the DTLS handshake.
  public internal(set) var dtls = DTLSTransportState.new
  /// Whether the call is established.
  public internal(set) var establishment = EstablishmentState.new
  /// The state of the data channels' association; `connecting` also if there is none.
  public internal(set) var sctp = SCTPState.connecting
  /// The combined state of all transports.
  public internal(set) var connection = ConnectionState.new

  /// Creates a new connection's states.
  public init() {}

  /// Applies a transition; ignores transitions unknown to this version.
  mutating func apply(_ transition: StateTransition) {
    let to = transition.to
    switch transition.machine {
    case "signaling": signaling = SignalingState(rawValue: to) ?? signaling
    case "ice-connection": iceConnection = ICEConnectionState(rawValue: to) ?? iceConnection
    case "ice-gathering": iceGathering = ICEGatheringState(rawValue: to) ?? iceGathering
    case "dtls": dtls = DTLSTransportState(rawValue: to) ?? dtls
    case "establishment":
      establishment = EstablishmentState(rawValue: to) ?? establishment
    case "sctp": sctp = SCTPState(rawValue: to) ?? sctp
    case "connection": connection = ConnectionState(rawValue: to) ?? connection
    default: break
    }
  }
}

// MARK: - PeerCertificate: Generating

extension PeerCertificate {
  /// Creates a certificate for `PeerConfiguration.certificates` (W3C generateCertificate).
  ///
  /// Connections that use the certificate have the same fingerprint, in this process and, if the
  /// certificate is stored, in later processes. The certificate contains a secret key.
  public static func generate(
    _ algorithm: CertificateAlgorithm = .ecdsaP256,
    lifetimeSeconds: Int64 = PeerCertificate.defaultLifetimeSeconds
  ) -> PeerCertificate {
    PeerCertificate(
      algorithm: algorithm, seed: drawSeed(),
      createdUnixSeconds: TakeClock().wallClock.unixNanosecondsAtZero / 1_000_000_000,
      lifetimeSeconds: lifetimeSeconds)
  }

  /// The certificate's sha-256 fingerprint, as in descriptions (W3C
  /// RTCCertificate.getFingerprints); nil if OpenSSL cannot create the certificate.
  public var fingerprint: CertificateFingerprint? {
    guard let bytes = try? bytes() else { return nil }
    return CertificateFingerprint(algorithm: "sha-256", certificate: bytes)
  }
}
