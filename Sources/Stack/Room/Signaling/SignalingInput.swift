package import Peer
package import SDP

/// What happens to a signaling machine.
package enum SignalingInput: Hashable, Sendable, Codable {
  /// Its deadline was reached.
  case deadline
  /// Something happened to a transport that it asked for.
  case transport(TransportID, TransportEvent)
  /// A request over HTTP was answered, or not.
  case response(RequestID, HTTPResult)
  /// The room wants something.
  case intent(RoomIntent)
  /// Something happened to a connection that it asked for.
  case connection(ConnectionID, ConnectionReport)
}

/// What happens to a transport.
package enum TransportEvent: Hashable, Sendable, Codable {
  /// It is open; the subprotocol that the server chose.
  case opened(subprotocol: String?)
  /// A whole message came.
  case frame(SignalingFrame)
  /// The other side has closed it (RFC 6455 section 7.4), or the answer to a local close came.
  case closed(code: UInt16, reason: String)
  /// It could not be opened, or broke; why, in words.
  case failed(String)
}

/// What the room wants of its signaling.
package enum RoomIntent: Hashable, Sendable, Codable {
  /// Enters a room; the machine opens what it needs for that.
  case join(RoomJoin)
  /// Adds local media; answered for each one by `localPublished` or by `result`.
  case publish(PublicationRequest)
  /// Takes local media back; answered by `localUnpublished`.
  case unpublish(ActionID, [LocalMediaID])
  /// Local media has another extra value, or is switched on or off.
  case updateLocal(LocalMediaInfo)
  /// Wants media of others; answered by `result`, and by `assigned` when it is there.
  case subscribe(ActionID, [MediaID])
  /// Wants it no longer.
  case unsubscribe(ActionID, [MediaID])
  /// Wants another layer of a received video.
  case setProfile(ActionID, MediaID, VideoProfile)
  /// Wants nothing of a received video for a while, or again.
  case setPaused(ActionID, MediaID, Bool)
  /// Sends a message to participants; to all when there are none.
  case sendMessage(ActionID, UserMessage)
  /// The network has changed, or a connection failed: ICE is to begin anew on it.
  case restartICE(ConnectionID)
  /// The local addresses have changed: transports are likely dead. The machine keeps them, or asks
  /// for new ones and resumes.
  case networkChanged
  /// A new token in the place of the one that the join had.
  case renewToken(String)
  /// Leaves; answered by `ended`, also when the server does not answer in time.
  case leave
}

/// What a connection tells the signaling.
package enum ConnectionReport: Hashable, Sendable, Codable {
  /// The offer or answer that was asked for, already applied as local description; `media` says
  /// which section carries which local media.
  case description(SessionDescription, media: [LocalMediaPlace])
  /// A description was refused, or could not be made.
  case refused(PeerError)
  /// A candidate of this side; nil: there are no more (W3C end-of-candidates).
  case candidate(CandidateInit?)
  /// The state of the connection as a whole (W3C connectionState).
  case state(PeerState)
  /// A data channel is open; the label names it.
  case channelOpened(label: String)
  /// A message came over a data channel.
  case channelMessage(label: String, SignalingFrame)
  /// A data channel is closed.
  case channelClosed(label: String)
  /// The statistics that were asked for, as a JSON list of W3C objects.
  case stats(ActionID, String)
}

/// The states of a connection (W3C RTCPeerConnectionState).
package enum PeerState: String, Hashable, Sendable, Codable {
  case new, connecting, connected, disconnected, failed, closed
}
