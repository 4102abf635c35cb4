package import Peer
package import SDP

/// An input of a signaling machine.
package enum SignalingInput: Hashable, Sendable, Codable {
  /// Its deadline was reached.
  case deadline
  /// An event of one of its transports.
  case transport(TransportID, TransportEvent)
  /// The result of an HTTP request.
  case response(RequestID, HTTPResult)
  /// An intent of the room.
  case intent(RoomIntent)
  /// A report of one of its connections.
  case connection(ConnectionID, ConnectionReport)
}

/// An event of a transport.
package enum TransportEvent: Hashable, Sendable, Codable {
  /// It is open; the subprotocol that the server chose.
  case opened(subprotocol: String?)
  /// A complete message arrived.
  case frame(SignalingFrame)
  /// The server closed it (RFC 6455 section 7.4), or confirmed a local close.
  case closed(code: UInt16, reason: String)
  /// It could not be opened, or broke, for the reason given.
  case failed(String)
}

/// An intent of the room.
package enum RoomIntent: Hashable, Sendable, Codable {
  /// Joins a room; the machine opens the transports it needs.
  case join(RoomJoin)
  /// Publishes local media; each is answered by `localPublished` or by `result`.
  case publish(PublicationRequest)
  /// Unpublishes local media; answered by `localUnpublished`.
  case unpublish(ActionID, [LocalMediaID])
  /// Local media has another extra value or was switched on or off.
  case updateLocal(LocalMediaInfo)
  /// Subscribes to media of others; answered by `result`, and by `assigned` once it is received.
  case subscribe(ActionID, [MediaID])
  /// Unsubscribes.
  case unsubscribe(ActionID, [MediaID])
  /// Selects another layer of a received video.
  case setProfile(ActionID, MediaID, VideoProfile)
  /// Pauses or resumes a received video.
  case setPaused(ActionID, MediaID, Bool)
  /// Sends a message to participants; to all if there are no targets.
  case sendMessage(ActionID, UserMessage)
  /// Restarts ICE on a connection, after a network change or a failure.
  case restartICE(ConnectionID)
  /// The local addresses changed, so transports are probably dead.
  ///
  /// The machine keeps them, or opens new ones and resumes.
  case networkChanged
  /// A new token that replaces the one of the join.
  case renewToken(String)
  /// Leaves; answered by `ended`, even if the server does not answer in time.
  case leave
}

/// A report of a connection to the signaling machine.
package enum ConnectionReport: Hashable, Sendable, Codable {
  /// The requested offer or answer, already set as local description; `media` has the sections of
  /// local media.
  case description(SessionDescription, media: [LocalMediaPlace])
  /// A description was refused or could not be created.
  case refused(PeerError)
  /// A local candidate; nil means there are no more (W3C end-of-candidates).
  case candidate(CandidateInit?)
  /// The overall state of the connection (W3C connectionState).
  case state(PeerState)
  /// A data channel opened.
  case channelOpened(label: String)
  /// A message arrived on a data channel.
  case channelMessage(label: String, SignalingFrame)
  /// A data channel closed.
  case channelClosed(label: String)
  /// The requested statistics, as a JSON list of W3C objects.
  case stats(ActionID, String)
}

/// The states of a connection (W3C RTCPeerConnectionState).
package enum PeerState: String, Hashable, Sendable, Codable {
  case new, connecting, connected, disconnected, failed, closed
}
