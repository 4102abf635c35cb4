public import JSEP
package import Media
package import SCTP
package import SDP
package import Stats
public import Wire

/// An application's call on a peer connection, in most cases a method of W3C RTCPeerConnection.
package enum PeerCall: Hashable, Sendable, Codable {
  case createOffer(iceRestart: Bool)
  case createAnswer
  /// Sets the local description; with nil, creates the appropriate one first (W3C implicit
  /// setLocalDescription).
  case setLocalDescription(SessionDescription?)
  case setRemoteDescription(SessionDescription)
  /// Adds a trickled candidate, or nil after the last one.
  case addICECandidate(CandidateInit?)
  /// Removes candidates that the remote peer withdrew; pairs that already work stay in use.
  case removeICECandidates([CandidateInit])
  /// Changes the ICE servers and the policy for the next gathering (W3C setConfiguration).
  case setConfiguration(
    iceServers: [ICEServerConfiguration], iceTransportPolicy: ICETransportPolicy)
  /// Sets the limits for all video and the capacity assumed for the path, in bit/s; nil leaves a
  /// value unchanged.
  case limitBitrate(minimum: UInt64?, current: UInt64?, maximum: UInt64?)
  case addTrack(
    kind: MediaKind, streamIDs: [String], source: MediaSource, trackID: String? = nil,
    isEnabled: Bool? = nil)
  case addTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String], source: MediaSource?,
    sendEncodings: [RTPEncoding]? = nil, isEnabled: Bool? = nil)
  case removeTrack(transceiver: UInt32)
  case setDirection(transceiver: UInt32, TransceiverDirection)
  /// Replaces a sender's source without negotiation; with nil, nothing is sent.
  ///
  /// The new source is enabled unless stated otherwise.
  case replaceSource(transceiver: UInt32, MediaSource?, isEnabled: Bool? = nil)
  /// Enables or disables a local or remote track; while disabled, it is silent or black (W3C
  /// MediaStreamTrack.enabled).
  case setEnabled(transceiver: UInt32, isInbound: Bool, isEnabled: Bool)
  /// Sets the volume of received audio, from 0 to 10.
  case setVolume(transceiver: UInt32, volume: Double)
  /// Sends DTMF tones in place of a sender's audio (W3C RTCDTMFSender insertDTMF); `duration` and
  /// `gap` are in milliseconds.
  case insertDTMF(transceiver: UInt32, tones: String, duration: UInt32, gap: UInt32)
  /// Reads whether a track is enabled or muted, and its volume.
  case trackState(transceiver: UInt32, isInbound: Bool)
  case stopTransceiver(UInt32)
  case setStreams(transceiver: UInt32, [String])
  case setCodecPreferences(transceiver: UInt32, [RTPCodec])
  case getParameters(transceiver: UInt32)
  case setParameters(transceiver: UInt32, RTPSendParameters)
  /// Sets the content hint for a sender's video (W3C MediaStreamTrack.contentHint).
  case setContentHint(transceiver: UInt32, ContentHint)
  /// Records an event of a sender's capturer in the take.
  ///
  /// A screen capturer implies a content hint if none is set.
  case noteCapture(transceiver: UInt32, CaptureNote)
  /// Adds all of a stream's tracks, or none.
  case addStream(MediaStreamInit)
  case removeStream(String)
  case streams
  case restartICE
  /// Reads the pending local description, or else the current one, with the candidates gathered so
  /// far.
  case localDescription
  /// Reads a description by its W3C slot, such as the pending remote description.
  case readDescription(DescriptionSlot)
  case transceivers
  /// Creates a data channel, which opens once SCTP is connected (W3C createDataChannel).
  case createDataChannel(DataChannelInit)
  case closeDataChannel(UInt32)
  case setBufferedAmountLowThreshold(channel: UInt32, UInt64)
  /// Reads the data channels that are not closed.
  case dataChannels
  /// Reads the stats of the connection, or of a single sender or receiver.
  ///
  /// The call carries the codecs' processing times, because they are measured elsewhere.
  case getStats(of: StatsSelector? = nil, codecTimes: [CodecTime]? = nil)
  /// Reads the sources that a received track played in the last ten seconds (W3C
  /// getSynchronizationSources, getContributingSources).
  case sources(transceiver: UInt32)
  /// Starts reporting the loudest voices; with nil, stops.
  case observeLoudest(LoudestSettings?)
  /// Assigns audio slots to this many received voices; with nil, slots are not used.
  case limitAudioSlots(Int?)
  /// Sets whether a transceiver's audio is played without a slot.
  case exemptFromAudioSlots(transceiver: UInt32, Bool)
  case close
}

/// The result of a `PeerCall`: its return value, or the error it would throw.
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

/// The reason that a call failed, in the form of a W3C exception.
public struct PeerError: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// The DOMException name that W3C prescribes, such as `InvalidStateError`; otherwise a name of
  /// the same form.
  public var name: String
  /// What is wrong with the call, in one sentence.
  public var message: String

  /// The `name` of an error that refuses an identifier because another stream or track uses it.
  public static let duplicateIDName = "DuplicateIDError"
  /// Whether a stream or track was refused because its identifier is in use.
  public var isDuplicateID: Bool { name == PeerError.duplicateIDName }

  /// Creates an error; `name` should be a DOMException name where W3C prescribes one.
  public init(name: String, message: String) {
    self.name = name
    self.message = message
  }

  /// The error as text: `name: message`.
  public var description: String { "\(name): \(message)" }
}

/// A snapshot of a transceiver for applications.
public struct TransceiverInfo: Hashable, Sendable, Codable {
  /// The transceiver's number within its peer.
  public var id: UInt32
  /// Whether the transceiver is for audio or for video.
  public var kind: MediaKind
  /// The MID, once it is known.
  public var mid: String?
  /// The direction that the application requested (W3C direction).
  public var direction: TransceiverDirection
  /// The negotiated direction; nil before the first negotiation.
  public var currentDirection: TransceiverDirection?
  /// The identifiers of the remote streams that contain the received track.
  public var remoteStreamIDs: [String]
  /// The remote peer's identifier for its track; nil if it stated none, or in replies from a take.
  public var remoteTrackID: String?

  /// The members that are stored in takes: all but `remoteTrackID`.
  private enum CodingKeys: String, CodingKey {
    case id, kind, mid, direction, currentDirection, remoteStreamIDs
  }

  /// Creates a snapshot from a transceiver's current values.
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

/// An event from the camera or screen capturer behind a sender.
package struct CaptureNote: Hashable, Sendable, Codable {
  /// What happened to the capturer.
  package enum Event: String, Hashable, Sendable, Codable {
    case started, failed, stopped
    /// The user refused permission.
    case denied
  }

  package var event: Event
  package var isScreencast: Bool
  /// The requested format: size in pixels, frame rate and pixel format.
  package var width: Int
  package var height: Int
  package var framesPerSecond: Double
  package var pixelFormat: VideoPixelFormat
  /// The device's name, if known.
  package var device: String?

  package init(
    event: Event, isScreencast: Bool, width: Int, height: Int, framesPerSecond: Double,
    pixelFormat: VideoPixelFormat, device: String? = nil
  ) {
    self.event = event
    self.isScreencast = isScreencast
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.pixelFormat = pixelFormat
    self.device = device
  }
}
