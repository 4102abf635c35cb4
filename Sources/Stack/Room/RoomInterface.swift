package import Wire

/// The configuration of a room: its genesis, with the seed.
package struct RoomConfiguration: Hashable, Sendable, Codable {
  /// The protocol and the server.
  package var signaling: SignalingConfiguration
  /// The initial number of received videos.
  package var videoReceiverInitialCount = 9
  /// The maximum number of received videos.
  package var videoReceiverMaximumCount = 20
  /// By how many the pool grows when it is full.
  package var videoReceiverGrowthRate = 1
  /// How many voices are played at once if the service does not select; nil for all.
  package var audioOccupants: Int? = 4
  /// Whether voices without a slot are silenced; nil means no, as in older takes.
  package var silencesWithoutSlot: Bool?
  /// Whether the audio of others is subscribed to automatically.
  package var subscribesAudio = true
  /// Whether room identifiers must be 1 to 32 letters, digits and hyphens.
  package var checksRoomID = true
  /// Whether a token is required.
  package var needsToken = false
  /// The time limit for connecting in milliseconds.
  package var connectTimeoutMilliseconds: Int64 = 30_000
  /// The time limit for actions of the service in milliseconds.
  package var actionTimeoutMilliseconds: Int64 = 10_000
  /// How long a connection may be without a path before ICE restarts, in milliseconds.
  package var restartDelayMilliseconds: Int64 = 3_000
  /// After how many consecutive restarts the room is given up.
  package var restartMaximum = 4
  /// Whether an ICE restart that is requested before a connection reported any state happens once
  /// it is connected; nil means no, as in older takes.
  package var restartsOnceConnected: Bool?
  /// What the streams of randomness begin with, by label in hexadecimal; nil in takes that were not
  /// redacted.
  package var drawnBytes: [String: String]?

  package init(signaling: SignalingConfiguration) { self.signaling = signaling }
}

/// Everything that can happen to a room.
package enum RoomInput: Sendable {
  case genesis(RoomConfiguration, seed: [UInt8])
  case deadline
  /// A call of the application; its reply has the same number.
  case call(id: UInt32, RoomCall)
  /// An event of a signaling transport.
  case transport(TransportID, TransportEvent)
  /// The result of an HTTP request.
  case response(RequestID, HTTPResult)
  /// A report of a connection.
  case connection(ConnectionID, RoomConnectionReport)
  /// A report of the process that shares a screen.
  case share(ShareReport)
}

/// A call of an application.
package enum RoomCall: Hashable, Sendable, Codable {
  /// A token was obtained or renewed.
  case signedIn(token: String, lifetimeMilliseconds: Int64?)
  case signOut
  /// Joins the room.
  case connect(RoomJoin)
  case disconnect
  /// Publishes local media; deferred until the room is joined.
  case publish([LocalMediaInfo])
  case unpublish([LocalMediaID])
  /// Local media has another extra value or was switched on or off.
  case updateLocal(LocalMediaInfo)
  /// Subscribes to one video; failure is the reply.
  case subscribe(MediaID)
  /// Subscribes to several; failures are events.
  case subscribeAll([MediaID])
  case unsubscribe(MediaID)
  case unsubscribeAll([MediaID])
  case setProfile(MediaID, VideoProfile)
  case setPaused(MediaID, Bool)
  case sendMessage(UserMessage)
  /// Mutes or unmutes everything received.
  case setMuted(Bool)
  /// Mutes or unmutes one received audio, independently of the whole room.
  case setMediaMuted(MediaID, Bool)
  case restartICE
  /// The local addresses changed.
  case networkChanged
  /// Starts the process that shares a screen.
  case requestScreenShare
  /// Ends sharing immediately.
  case stopScreenShare(isLeaving: Bool)
}

/// The reply to a call.
package enum RoomReply: Hashable, Sendable {
  case done
  case failed(SignalingFailure)
}

/// A report of a room's connection.
package enum RoomConnectionReport: Hashable, Sendable, Codable {
  /// The connection was opened; its number in the take, 0 without a take.
  case opened(peer: UInt32)
  /// A report for the signaling machine.
  case report(ConnectionReport)
  /// The transceiver that sends local media.
  case sending(LocalMediaID, transceiver: UInt32)
  /// The transceiver that receives a section.
  case receiving(mid: String, transceiver: UInt32)
  /// DTLS is connected.
  case secured
  /// A received voice gained or lost an audio slot.
  case audioSlot(transceiver: UInt32, isHeld: Bool)
}

/// An output of a room.
package enum RoomOutput: Hashable, Sendable {
  case transport(TransportID, TransportRequest)
  case request(RequestID, ServiceRequest)
  case connection(ConnectionID, RoomConnectionOrder)
  case reply(call: UInt32, RoomReply)
  case state(machine: String, from: String, to: String)
  case event(RoomEvent)
  case person(PersonChange)
  case share(ShareOrder)
  /// The token expires: another one is requested, by `signedIn`.
  case tokenWanted
}

/// An order to a room's connection.
package enum RoomConnectionOrder: Hashable, Sendable, Codable {
  /// A request of the signaling machine.
  case request(ConnectionRequest)
  /// Sends local media from the next offer or answer on.
  case attach(LocalMediaInfo)
  /// Stops sending local media.
  case detach(LocalMediaID)
  /// Limits the received voices that are played at once.
  case limitAudio(Int)
  /// Sets whether a transceiver's audio is played without a slot.
  case exemptAudio(transceiver: UInt32, Bool)
  /// Sets whether a transceiver's media is played.
  case setAudible(transceiver: UInt32, Bool)
  /// Sets whether a transceiver's audio is silenced while it has no slot.
  case setSilenced(transceiver: UInt32, Bool)
}

/// The states of a room.
package enum RoomState: String, Hashable, Sendable, Codable {
  case initialized, connecting, connected, disconnecting, disconnected
}

/// An event for the application.
package enum RoomEvent: Hashable, Sendable, Codable {
  /// The progress of connecting: 1 to 100.
  case connecting(progress: Int)
  /// The room was joined: the participants, this one first.
  case connected([String])
  case disconnected(RoomEnding)
  case failed(SignalingFailure)
  case participantEntered(String)
  case participantLeft(String, LeaveCause)
  case localMediaPublished(LocalMediaID, MediaID)
  case localMediaUnpublished(LocalMediaID)
  /// The service switched local media off or on.
  case localMediaMuted(LocalMediaID, Bool)
  case remotePublished(PublishedMedia)
  case remoteUnpublished(PublishedMedia)
  case remoteStateChanged(PublishedMedia)
  /// Media of another participant is received by this transceiver.
  case remoteSubscribed(MediaID, ConnectionID, transceiver: UInt32)
  case remoteUnsubscribed(MediaID)
  /// A voice is played, or no longer.
  case audioOccupied(MediaID)
  case audioVacated(MediaID)
  case talking(participant: String, Bool, level: Int?)
  case message(UserMessage)
  case notification(type: String, String)
  case redirected(String)
  case reconnecting(attempt: Int, reason: String)
  case reconnected
  /// ICE restarts on a connection.
  case restartingICE(ConnectionID, attempt: Int)
  /// The number of videos that can be received has grown.
  case receiversGrown(Int)
  case screenShare(ExtensionStatus)

  /// The name without arguments.
  package var name: String { "\(self)".prefix { $0 != "(" }.description }
}

/// A change of a participant or of what carries its media.
///
/// A participant keeps its number for the life of the room, whichever connections carry it.
package enum PersonChange: Hashable, Sendable {
  case entered(number: Int, id: String, name: String, isLocal: Bool)
  case left(number: Int)
  case carried(CarriedMedia)
  case ended(CarriedMedia)
}

/// A participant's media on a transceiver of a peer.
package struct CarriedMedia: Hashable, Sendable {
  /// The participant's number.
  package var participant: Int
  /// The number of the media; nil for local media that is not published yet.
  package var media: UInt32?
  package var kind: MediaKind
  package var isInbound: Bool
  /// The peer's number in the take.
  package var peer: UInt32
  package var transceiver: UInt32
  package var extraValue: String

  package init(
    participant: Int, media: UInt32?, kind: MediaKind, isInbound: Bool, peer: UInt32,
    transceiver: UInt32, extraValue: String
  ) {
    self.participant = participant
    self.media = media
    self.kind = kind
    self.isInbound = isInbound
    self.peer = peer
    self.transceiver = transceiver
    self.extraValue = extraValue
  }
}
