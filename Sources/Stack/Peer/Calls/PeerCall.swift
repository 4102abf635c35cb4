public import JSEP
package import Media
package import SCTP
package import SDP
package import Stats
public import Wire

/// A call of the application programming interface, as an input (W3C RTCPeerConnection methods).
package enum PeerCall: Hashable, Sendable, Codable {
  case createOffer(iceRestart: Bool)
  case createAnswer
  /// Without a description the right one is made first (W3C implicit setLocalDescription).
  case setLocalDescription(SessionDescription?)
  case setRemoteDescription(SessionDescription)
  /// A trickled candidate; nil means that there are no more.
  case addICECandidate(CandidateInit?)
  /// Takes back candidates that the peer had signaled; pairs of them that work continue.
  case removeICECandidates([CandidateInit])
  /// Changes the servers and the policy of the next gathering (W3C setConfiguration).
  case setConfiguration(
    iceServers: [ICEServerConfiguration], iceTransportPolicy: ICETransportPolicy)
  /// Sets what all video may spend, in bits per second, and what the path is taken to carry now;
  /// nil leaves a value as it is.
  case limitBitrate(minimum: UInt64?, current: UInt64?, maximum: UInt64?)
  case addTrack(
    kind: MediaKind, streamIDs: [String], source: MediaSource, trackID: String? = nil,
    isEnabled: Bool? = nil)
  case addTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String], source: MediaSource?,
    sendEncodings: [RTPEncoding]? = nil, isEnabled: Bool? = nil)
  case removeTrack(transceiver: UInt32)
  case setDirection(transceiver: UInt32, TransceiverDirection)
  /// Replaces what a sender sends, without negotiation; nil sends nothing. What comes in its place
  /// is enabled unless it says otherwise.
  case replaceSource(transceiver: UInt32, MediaSource?, isEnabled: Bool? = nil)
  /// Makes a track that is sent or received silent or black while its packets flow on, or ends that
  /// (W3C MediaStreamTrack.enabled).
  case setEnabled(transceiver: UInt32, isInbound: Bool, isEnabled: Bool)
  /// Sets how loud received audio is played: 0 to 10.
  case setVolume(transceiver: UInt32, volume: Double)
  /// Presses keys of a telephone in the place of a sender's audio (W3C RTCDTMFSender insertDTMF):
  /// how long each is down and how long none is between two, in milliseconds.
  case insertDTMF(transceiver: UInt32, tones: String, duration: UInt32, gap: UInt32)
  /// Reads what was set on a track.
  case trackState(transceiver: UInt32, isInbound: Bool)
  case stopTransceiver(UInt32)
  case setStreams(transceiver: UInt32, [String])
  case setCodecPreferences(transceiver: UInt32, [RTPCodec])
  case getParameters(transceiver: UInt32)
  case setParameters(transceiver: UInt32, RTPSendParameters)
  /// Tells what the video frames of a sender show (W3C MediaStreamTrack.contentHint).
  case setContentHint(transceiver: UInt32, ContentHint)
  /// Keeps in the take that the capturer of a sender began, could not begin, or ended; what it
  /// captures decides how a sender is treated that has no hint of its own.
  case noteCapture(transceiver: UInt32, CaptureNote)
  /// Adds all tracks of a stream, or none.
  case addStream(MediaStreamInit)
  case removeStream(String)
  /// Reads the streams that are sent and received.
  case streams
  case restartICE
  /// Reads the pending or else current local description with the candidates gathered so far.
  case localDescription
  /// Reads another description.
  case readDescription(DescriptionSlot)
  /// Reads the transceivers.
  case transceivers
  /// Creates a data channel (W3C createDataChannel).
  case createDataChannel(DataChannelInit)
  case closeDataChannel(UInt32)
  case setBufferedAmountLowThreshold(channel: UInt32, UInt64)
  /// Reads the data channels that are not closed.
  case dataChannels
  /// Reads the stats, all of them or those of a sender or receiver; what the codecs' processors
  /// took so far comes with the call, because it is measured outside.
  case getStats(of: StatsSelector? = nil, codecTimes: [CodecTime]? = nil)
  /// Reads who was played lately (W3C getSynchronizationSources, getContributingSources).
  case sources(transceiver: UInt32)
  /// Tells the loudest voices from now on; nil: no more.
  case observeLoudest(LoudestSettings?)
  /// Gives so many received voices an audio slot; nil: there are no slots.
  case limitAudioSlots(Int?)
  /// Lets what a transceiver receives be heard without a slot, or no longer.
  case exemptFromAudioSlots(transceiver: UInt32, Bool)
  case close
}

/// The answer to a call.
package enum PeerReply: Hashable, Sendable {
  case done
  case description(SessionDescription)
  case transceiver(TransceiverInfo)
  case transceivers([TransceiverInfo])
  case parameters(RTPSendParameters)
  case streams(MediaStreams)
  case trackState(TrackState)
  case dataChannel(DataChannelInfo)
  case dataChannels([DataChannelInfo])
  case stats(StatsReport)
  case sources(ReceivedSources)
  case failure(PeerError)
}

/// A refused call.
public struct PeerError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// The DOMException name that W3C prescribes: `InvalidStateError`, ...
  public var name: String
  /// What is wrong, in words.
  public var message: String

  /// The name of the error about an identifier that another stream or track has already.
  public static let duplicateIDName = "DuplicateIDError"
  /// Whether a stream or track was refused because another one has its identifier.
  public var isDuplicateID: Bool { name == PeerError.duplicateIDName }

  /// Creates an error.
  public init(name: String, message: String) {
    self.name = name
    self.message = message
  }

  /// `name: message`.
  public var description: String { "\(name): \(message)" }
}

/// A transceiver as applications see it.
public struct TransceiverInfo: Hashable, Sendable, Codable {
  /// Names the transceiver in its peer.
  public var id: UInt32
  /// Audio or video frames.
  public var kind: MediaKind
  /// The m-section, once known.
  public var mid: String?
  /// What is wanted.
  public var direction: TransceiverDirection
  /// What was agreed.
  public var currentDirection: TransceiverDirection?
  /// The peer's streams that the received track belongs to.
  public var remoteStreamIDs: [String]
  /// How the peer names its track; nil when it gave no name, and in replies that a take kept.
  public var remoteTrackID: String?

  /// A take has the others alone.
  private enum CodingKeys: String, CodingKey {
    case id, kind, mid, direction, currentDirection, remoteStreamIDs
  }

  /// Creates the snapshot of a transceiver.
  public init(
    id: UInt32, kind: MediaKind, mid: String?, direction: TransceiverDirection,
    currentDirection: TransceiverDirection?, remoteStreamIDs: [String],
    remoteTrackID: String? = nil
  ) {
    self.id = id
    self.kind = kind
    self.mid = mid
    self.direction = direction
    self.currentDirection = currentDirection
    self.remoteStreamIDs = remoteStreamIDs
    self.remoteTrackID = remoteTrackID
  }
}
