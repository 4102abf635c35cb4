package import Wire

/// A room's configuration; together with the seed, it is the room's genesis.
package struct RoomConfiguration: Hashable, Sendable, Codable {
  /// The protocol and the server.
  package var signaling: SignalingConfiguration
  /// The number of videos that can be received when the room starts.
  package var videoReceiverInitialCount = 9
  /// The maximum number of videos that can be received.
  package var videoReceiverMaximumCount = 20
  /// The number of receivers that are added when all are in use.
  package var videoReceiverGrowthRate = 1
  /// The number of voices that are played at the same time if the service does not select them; nil
  /// for all.
  package var audioOccupants: Int? = 4
  /// Whether voices without a slot are silenced; nil means no, as in older takes.
  package var silencesWithoutSlot: Bool?
  /// Whether remote audio is subscribed to automatically.
  package var subscribesAudio = true
  /// Whether room identifiers must be 1 to 32 letters, digits and hyphens.
  package var checksRoomID = true
  package var needsToken = false
  /// The time limit for connecting in milliseconds.
  package var connectTimeoutMilliseconds: Int64 = 30_000
  /// The time limit for the service's replies in milliseconds.
  package var actionTimeoutMilliseconds: Int64 = 10_000
  /// The time that a connection may be without a path before ICE restarts, in milliseconds.
  package var restartDelayMilliseconds: Int64 = 3_000
  /// The number of consecutive restarts after which the room ends.
  package var restartMaximum = 4
  /// Whether an ICE restart that is requested while a connection is still new is carried out once
  /// the connection is established, rather than skipped.
  ///
  /// Nil, as in older takes, means that it is skipped.
  package var restartsOnceConnected: Bool?
  /// The first bytes of each random stream in hexadecimal, by label; nil in takes that were not
  /// redacted.
  package var drawnBytes: [String: String]?

  package init(signaling: SignalingConfiguration) { self.signaling = signaling }
}

/// An input of a room's state machine.
package enum RoomInput: Sendable {
  case genesis(RoomConfiguration, seed: [UInt8])
  case deadline
  /// An application's call; the reply has the same number.
  case call(id: UInt32, RoomCall)
  case transport(TransportID, TransportEvent)
  case response(RequestID, HTTPResult)
  case connection(ConnectionID, RoomConnectionReport)
  /// A report from the process that shares a screen.
  case share(ShareReport)
}

/// An application's call, which is answered by exactly one `RoomReply`.
package enum RoomCall: Hashable, Sendable, Codable {
  /// Sets a token that was obtained or renewed.
  case signedIn(token: String, lifetimeMilliseconds: Int64?)
  case signOut
  case connect(RoomJoin)
  case disconnect
  /// Publishes local media; deferred until the room is joined.
  case publish([LocalMediaInfo])
  case unpublish([LocalMediaID])
  /// Changes local media's extra value, or switches the media on or off.
  case updateLocal(LocalMediaInfo)
  /// Subscribes to one audio or video stream; a failure is in the reply.
  case subscribe(MediaID)
  /// Subscribes to several streams; events report failures.
  case subscribeAll([MediaID])
  case unsubscribe(MediaID)
  case unsubscribeAll([MediaID])
  case setProfile(MediaID, VideoProfile)
  case setPaused(MediaID, Bool)
  case sendMessage(UserMessage)
  /// Mutes or unmutes all received audio; the setting of each stream is kept separately.
  case setMuted(Bool)
  /// Mutes or unmutes one received audio stream; the setting for all audio is kept separately.
  case setMediaMuted(MediaID, Bool)
  case restartICE
  /// Reports that the local addresses changed.
  case networkChanged
  /// Starts the process that shares a screen.
  case requestScreenShare
  /// Ends sharing immediately.
  case stopScreenShare(isLeaving: Bool)
}

/// The outcome of a call; it may arrive much later than the call.
package enum RoomReply: Hashable, Sendable {
  case done
  case failed(SignalingFailure)
}

/// A peer connection's report to its room.
package enum RoomConnectionReport: Hashable, Sendable, Codable {
  /// The connection was opened; `peer` is its number in the take, or 0 without a take.
  case opened(peer: UInt32)
  /// A report for the signaling machine.
  case report(ConnectionReport)
  /// The number of the transceiver that sends local media became known.
  case sending(LocalMediaID, transceiver: UInt32)
  /// A transceiver was assigned to a received section.
  case receiving(mid: String, transceiver: UInt32)
  /// The connection's DTLS handshake is complete.
  case secured
  /// A received voice gained or lost an audio slot.
  case audioSlot(transceiver: UInt32, isHeld: Bool)
}

/// Everything that a room requests from its surroundings or reports to the application.
package enum RoomOutput: Hashable, Sendable {
  case transport(TransportID, TransportRequest)
  case request(RequestID, ServiceRequest)
  case connection(ConnectionID, RoomConnectionOrder)
  case reply(call: UInt32, RoomReply)
  case state(machine: String, from: String, to: String)
  case event(RoomEvent)
  case person(PersonChange)
  case share(ShareOrder)
  /// The token is about to expire; `signedIn` supplies a new one.
  case tokenWanted
}

/// A room's order to one of its peer connections.
package enum RoomConnectionOrder: Hashable, Sendable, Codable {
  /// A request from the signaling machine.
  case request(ConnectionRequest)
  /// Sends local media, starting with the next offer or answer.
  case attach(LocalMediaInfo)
  /// Stops sending local media.
  case detach(LocalMediaID)
  /// Limits the number of received voices that are played at the same time.
  case limitAudio(Int)
  /// Sets whether a transceiver's audio is played without a slot.
  case exemptAudio(transceiver: UInt32, Bool)
  /// Sets whether a transceiver's media is played.
  case setAudible(transceiver: UInt32, Bool)
  /// Silences a transceiver's audio because it has no slot, or plays it again.
  case setSilenced(transceiver: UInt32, Bool)
}

/// The states of a room, in the order in which it passes through them.
package enum RoomState: String, Hashable, Sendable, Codable {
  case initialized, connecting, connected, disconnecting, disconnected
}

/// A change that the application may want to display, whether or not one of its calls caused it.
package enum RoomEvent: Hashable, Sendable, Codable {
  /// The progress of connecting, from 1 to 100.
  case connecting(progress: Int)
  /// The room was joined; lists the participants, the local one first.
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
  /// A transceiver receives a remote participant's media.
  case remoteSubscribed(MediaID, ConnectionID, transceiver: UInt32)
  case remoteUnsubscribed(MediaID)
  /// A voice is played, or is no longer played.
  case audioOccupied(MediaID)
  case audioVacated(MediaID)
  case talking(participant: String, Bool, level: Int?)
  case message(UserMessage)
  case notification(type: String, String)
  case redirected(String)
  case reconnecting(attempt: Int, reason: String)
  case reconnected
  case restartingICE(ConnectionID, attempt: Int)
  /// The number of videos that can be received grew.
  case receiversGrown(Int)
  case screenShare(ExtensionStatus)

  /// The event's name without its arguments.
  package var name: String { "\(self)".prefix { $0 != "(" }.description }
}

/// A participant's arrival or departure, or a change of the connections that carry its media.
///
/// A participant keeps its number as long as the room exists, even if other connections carry its
/// media.
package enum PersonChange: Hashable, Sendable {
  case entered(number: Int, id: String, name: String, isLocal: Bool)
  case left(number: Int)
  case carried(CarriedMedia)
  case ended(CarriedMedia)
}

/// A participant's media on a peer's transceiver.
package struct CarriedMedia: Hashable, Sendable {
  /// The number of the participant who publishes the media.
  package var participant: Int
  /// The media's number; nil for local media that is not published yet.
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
