package import Peer
package import SDP

/// An output of a signaling machine.
package enum SignalingOutput: Hashable, Sendable, Codable {
  /// Opens, uses or closes a transport.
  case transport(TransportID, TransportRequest)
  /// An HTTP request; answered by `response`.
  case request(RequestID, ServiceRequest)
  /// A request to a connection of the room.
  case connection(ConnectionID, ConnectionRequest)
  /// An event for the room.
  case event(SignalingEvent)
}

/// A request to a transport.
package enum TransportRequest: Hashable, Sendable, Codable {
  /// Opens a WebSocket (RFC 6455); answered by `opened` or `failed`.
  case open(url: String, subprotocols: [String], headers: [HTTPField])
  case send(SignalingFrame)
  /// Answered by `closed`.
  case close(code: UInt16, reason: String)
}

/// A request to a connection.
package enum ConnectionRequest: Hashable, Sendable, Codable {
  /// Opens the connection.
  ///
  /// If it sends, local media is added before the first offer.
  case open(ConnectionRole, ICEServers)
  /// Creates an offer with all local media of the connection, sets it, and returns it as
  /// `description`.
  case makeOffer(iceRestart: Bool)
  /// Sets the remote description.
  ///
  /// An offer is answered by `description` with the answer.
  case setRemote(SessionDescription)
  /// Adds a remote candidate; nil means there are no more.
  case addCandidate(CandidateInit?)
  /// The layers that the server wants of a sent section.
  case setLayers(mid: String, [SendLayer])
  /// Creates a data channel.
  case createChannel(label: String, isOrdered: Bool, maximumRetransmits: UInt16?, id: UInt16?)
  case sendOnChannel(label: String, SignalingFrame)
  /// Requests statistics.
  case getStats(ActionID)
  case close
}

/// The direction of a connection's media.
package enum ConnectionRole: String, Hashable, Sendable, Codable {
  /// Sending only.
  case up
  /// Receiving only.
  case down
  case both
}

/// The ICE servers of a connection, from the service.
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

/// An event of a signaling machine for its room.
package enum SignalingEvent: Hashable, Sendable, Codable {
  /// The progress of joining.
  case progress(JoinStage)
  /// The room was joined: the participants present and their media.
  case joined(JoinedRoom)
  case participantEntered(ParticipantInfo)
  /// Follows `unpublished` for everything that the participant published.
  case participantLeft(String, LeaveCause)
  /// A participant published more media.
  case published(owner: String, [PublishedMedia])
  case unpublished(owner: String, [MediaID])
  /// Published media has another extra value or other profiles, or was switched on or off.
  case mediaChanged(PublishedMedia)
  /// A participant starts or stops speaking; with its level in dBov (0 to -127) if known.
  case talking(participant: String, Bool, level: Int?)
  /// The voices currently sent, if the service limits their number: all of them.
  case voices([MediaID])
  /// Media of another participant is received in a section of a connection from now on.
  case assigned(MediaID, ConnectionID, mid: String)
  /// It is no longer received.
  case unassigned(MediaID)
  /// Local media was published under a number that others see.
  case localPublished(LocalMediaID, MediaID)
  case localUnpublished(LocalMediaID)
  /// The server switched local media off or on (muted by a moderator).
  case localMuted(LocalMediaID, Bool)
  /// The result of an action.
  case result(ActionID, SignalingFailure?)
  case message(UserMessage)
  /// A notification of the service in its own terms, as JSON.
  case notification(type: String, String)
  /// The server redirects to another one; the machine follows by itself.
  case redirected(String)
  /// The transport was lost and the machine is reconnecting, or has rejoined the room.
  case reconnecting(attempt: Int, reason: String)
  case reconnected
  /// A failure; `ended` follows if it is critical.
  case failed(SignalingFailure)
  /// The room is over.
  ///
  /// This is the last event.
  case ended(RoomEnding)
}
