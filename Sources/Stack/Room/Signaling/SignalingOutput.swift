package import Peer
package import SDP

/// What a signaling machine wants done or tells.
package enum SignalingOutput: Hashable, Sendable, Codable {
  /// A transport is to be opened, used or closed.
  case transport(TransportID, TransportRequest)
  /// A request over HTTP; answered by `response`.
  case request(RequestID, ServiceRequest)
  /// A connection of the room is to do something.
  case connection(ConnectionID, ConnectionRequest)
  /// The room is told something.
  case event(SignalingEvent)
}

/// What is asked of a transport.
package enum TransportRequest: Hashable, Sendable, Codable {
  /// Opens a WebSocket (RFC 6455); answered by `opened` or `failed`.
  case open(url: String, subprotocols: [String], headers: [HTTPField])
  case send(SignalingFrame)
  /// Answered by `closed`.
  case close(code: UInt16, reason: String)
}

/// What is asked of a connection.
package enum ConnectionRequest: Hashable, Sendable, Codable {
  /// Creates the connection. Local media is put on it before the first offer when it sends.
  case open(ConnectionRole, ICEServers)
  /// Creates an offer of all local media of the connection, applies it and gives it as
  /// `description`.
  case makeOffer(iceRestart: Bool)
  /// Applies the peer's description. An offer is answered by `description` with the answer.
  case setRemote(SessionDescription)
  /// Adds a candidate of the peer; nil: there are no more.
  case addCandidate(CandidateInit?)
  /// The layers that the server wants of what is sent in a section.
  case setLayers(mid: String, [SendLayer])
  /// Creates a data channel.
  case createChannel(label: String, isOrdered: Bool, maximumRetransmits: UInt16?, id: UInt16?)
  case sendOnChannel(label: String, SignalingFrame)
  /// Asks for statistics.
  case getStats(ActionID)
  case close
}

/// Which way the media of a connection goes.
package enum ConnectionRole: String, Hashable, Sendable, Codable {
  /// Local media only.
  case up
  /// Media of others only.
  case down
  case both
}

/// The ICE servers of a connection, as the service gave them.
package struct ICEServers: Hashable, Sendable, Codable {
  package var servers: [ICEServerConfiguration]
  package var policy: ICETransportPolicy

  package init(
    _ servers: [ICEServerConfiguration] = [], policy: ICETransportPolicy = .all
  ) {
    self.servers = servers
    self.policy = policy
  }
}

/// What a signaling machine tells its room.
package enum SignalingEvent: Hashable, Sendable, Codable {
  /// How far joining is.
  case progress(JoinStage)
  /// The room is entered: who is there already, with what they publish.
  case joined(JoinedRoom)
  case participantEntered(ParticipantInfo)
  /// Told after `unpublished` of all that the participant had.
  case participantLeft(String, LeaveCause)
  /// A participant publishes more.
  case published(owner: String, [PublishedMedia])
  case unpublished(owner: String, [MediaID])
  /// Published media has another extra value, other profiles, or is switched on or off.
  case mediaChanged(PublishedMedia)
  /// A participant speaks, or does no longer; the level in dBov (0 to -127) when the server tells.
  case talking(participant: String, Bool, level: Int?)
  /// Whose audio is sent at present, where the service sends only so many voices: all of them.
  case voices([MediaID])
  /// Media of others comes in a section of a connection from now on.
  case assigned(MediaID, ConnectionID, mid: String)
  /// It comes no longer.
  case unassigned(MediaID)
  /// Local media is published under a number that others see.
  case localPublished(LocalMediaID, MediaID)
  case localUnpublished(LocalMediaID)
  /// The server has switched local media off or on (a moderator mutes).
  case localMuted(LocalMediaID, Bool)
  /// How something that the room wanted went.
  case result(ActionID, SignalingFailure?)
  case message(UserMessage)
  /// The service pushes or notifies something in its own words, as JSON.
  case notification(type: String, String)
  /// The server sends to another one; the machine follows by itself.
  case redirected(String)
  /// The transport was lost and the machine tries again by itself; or it has the room again.
  case reconnecting(attempt: Int, reason: String)
  case reconnected
  /// What went wrong; `ended` follows when it is critical.
  case failed(SignalingFailure)
  /// The room is over for this side. No event comes after it.
  case ended(RoomEnding)
}
