package import Wire

/// How a room behaves: its genesis, with the seed.
package struct RoomConfiguration: Hashable, Sendable, Codable {
  /// Which protocol is spoken with whom.
  package var signaling: SignalingConfiguration
  /// How many videos are received at first.
  package var videoReceiverInitialCount = 9
  /// How many videos are received at most.
  package var videoReceiverMaximumCount = 20
  /// By how many the receivers grow when all are taken.
  package var videoReceiverGrowthRate = 1
  /// How many voices are heard at once where the service does not choose; nil: all.
  package var audioOccupants: Int? = 4
  /// Whether a voice without a slot is not played; nil: it is, in a take of before.
  package var silencesWithoutSlot: Bool?
  /// Whether the audio of others is subscribed to as it is published.
  package var subscribesAudio = true
  /// Whether identifiers of rooms have 1 to 32 letters, digits and hyphens.
  package var checksRoomID = true
  /// Whether nobody connects without a token.
  package var needsToken = false
  /// How long connecting may take, in milliseconds.
  package var connectTimeoutMilliseconds: Int64 = 30_000
  /// How long the service may take for what it was asked for, in milliseconds.
  package var actionTimeoutMilliseconds: Int64 = 10_000
  /// How long a connection may be without its path before ICE begins anew, in milliseconds.
  package var restartDelayMilliseconds: Int64 = 3_000
  /// How often in a row ICE begins anew before the room is given up.
  package var restartMaximum = 4

  package init(signaling: SignalingConfiguration) { self.signaling = signaling }
}

/// Everything that can happen to a room.
package enum RoomInput: Sendable {
  case genesis(RoomConfiguration, seed: [UInt8])
  case deadline
  /// The application wants something; its reply carries the number.
  case call(id: UInt32, RoomCall)
  /// Something happened to a transport of the signaling.
  case transport(TransportID, TransportEvent)
  /// A request over HTTP was answered, or not.
  case response(RequestID, HTTPResult)
  /// Something happened to a connection of the room.
  case connection(ConnectionID, RoomConnectionReport)
  /// Something happened to the process that shares a screen.
  case share(ShareReport)
}

/// What an application wants of a room.
package enum RoomCall: Hashable, Sendable, Codable {
  /// The service has let the application in, or has renewed that.
  case signedIn(token: String, lifetimeMilliseconds: Int64?)
  case signOut
  /// Enters the room.
  case connect(RoomJoin)
  case disconnect
  /// Publishes local media; before the room is there, when it is.
  case publish([LocalMediaInfo])
  case unpublish([LocalMediaID])
  /// Local media has another extra value, or is switched on or off.
  case updateLocal(LocalMediaInfo)
  /// Subscribes to one video; what goes wrong is the reply.
  case subscribe(MediaID)
  /// Subscribes to several; what goes wrong is told as events.
  case subscribeAll([MediaID])
  case unsubscribe(MediaID)
  case unsubscribeAll([MediaID])
  case setProfile(MediaID, VideoProfile)
  case setPaused(MediaID, Bool)
  case sendMessage(UserMessage)
  /// Mutes all that is received, or no longer.
  case setMuted(Bool)
  /// Mutes one received audio; independent of the whole room's.
  case setMediaMuted(MediaID, Bool)
  case restartICE
  /// The local addresses have changed.
  case networkChanged
  /// Asks for the helper that shares a screen.
  case requestScreenShare
  /// Ends sharing at once.
  case stopScreenShare(isLeaving: Bool)
}

/// The answer to a call.
package enum RoomReply: Hashable, Sendable {
  case done
  case failed(SignalingFailure)
}

/// What a connection of the room tells.
package enum RoomConnectionReport: Hashable, Sendable, Codable {
  /// The connection is made; its number in the take, 0 without a take.
  case opened(peer: UInt32)
  /// Something of which the signaling is to hear.
  case report(ConnectionReport)
  /// Which transceiver sends local media.
  case sending(LocalMediaID, transceiver: UInt32)
  /// Which transceiver receives what comes in a section.
  case receiving(mid: String, transceiver: UInt32)
  /// DTLS is done.
  case secured
  /// A received voice took one of the slots for audio, or lost it.
  case audioSlot(transceiver: UInt32, isHeld: Bool)
}

/// What a room wants done or tells.
package enum RoomOutput: Hashable, Sendable {
  case transport(TransportID, TransportRequest)
  case request(RequestID, ServiceRequest)
  case connection(ConnectionID, RoomConnectionOrder)
  case reply(call: UInt32, RoomReply)
  case state(machine: String, from: String, to: String)
  case event(RoomEvent)
  case person(PersonChange)
  case share(ShareOrder)
  /// The token runs out: another one is to come by `signedIn`.
  case tokenWanted
}

/// What is asked of a connection of the room.
package enum RoomConnectionOrder: Hashable, Sendable, Codable {
  /// What the signaling asks for.
  case request(ConnectionRequest)
  /// Sends local media, from the next offer or answer on.
  case attach(LocalMediaInfo)
  /// Sends it no longer.
  case detach(LocalMediaID)
  /// Lets so many received voices be heard at once.
  case limitAudio(Int)
  /// Lets what a transceiver receives be heard whoever else speaks, or no longer.
  case exemptAudio(transceiver: UInt32, Bool)
  /// Silences what a transceiver receives, or no longer.
  case setAudible(transceiver: UInt32, Bool)
  /// Does not play what a transceiver receives while it has no slot, or does again.
  case setSilenced(transceiver: UInt32, Bool)
}

/// The states of a room.
package enum RoomState: String, Hashable, Sendable, Codable {
  case initialized, connecting, connected, disconnecting, disconnected
}

/// What a room tells its application.
package enum RoomEvent: Hashable, Sendable, Codable {
  /// How far connecting is: 1 to 100.
  case connecting(progress: Int)
  /// The room is there: who is in it, this side first.
  case connected([String])
  case disconnected(RoomEnding)
  case failed(SignalingFailure)
  case participantEntered(String)
  case participantLeft(String, LeaveCause)
  case localMediaPublished(LocalMediaID, MediaID)
  case localMediaUnpublished(LocalMediaID)
  /// The service has switched local media off or on.
  case localMediaMuted(LocalMediaID, Bool)
  case remotePublished(PublishedMedia)
  case remoteUnpublished(PublishedMedia)
  case remoteStateChanged(PublishedMedia)
  /// Media of others comes, by this transceiver.
  case remoteSubscribed(MediaID, ConnectionID, transceiver: UInt32)
  case remoteUnsubscribed(MediaID)
  /// A voice is heard, or is no longer.
  case audioOccupied(MediaID)
  case audioVacated(MediaID)
  case talking(participant: String, Bool, level: Int?)
  case message(UserMessage)
  case notification(type: String, String)
  case redirected(String)
  case reconnecting(attempt: Int, reason: String)
  case reconnected
  /// ICE begins anew on a connection.
  case restartingICE(ConnectionID, attempt: Int)
  /// How many videos can be received has grown.
  case receiversGrown(Int)
  case screenShare(ExtensionStatus)

  /// The name without arguments.
  package var name: String { "\(self)".prefix { $0 != "(" }.description }
}

/// What became of a participant or of media that carries it; a participant keeps its number for as
/// long as the room continues, whichever connections carry it.
package enum PersonChange: Hashable, Sendable {
  case entered(number: Int, id: String, name: String, isLocal: Bool)
  case left(number: Int)
  case carried(CarriedMedia)
  case ended(CarriedMedia)
}

/// Media of a participant on a transceiver of a peer.
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
