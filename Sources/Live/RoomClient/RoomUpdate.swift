public import Live
public import Room

/// Something that happens in a room, as its application hears it.
public enum RoomUpdate: Sendable {
  /// How far connecting is: 1 to 100.
  case connecting(progress: Float)
  /// The room is there; who is in it, this side first.
  case connected(participantIDs: [String])
  /// The room is over. Nothing comes after it.
  case disconnected(DisconnectReason)
  /// Something went wrong; `disconnected` follows when it is critical.
  case error(RoomError)
  /// A participant has entered.
  case participantEntered(RemoteParticipant)
  /// A participant has left.
  case participantLeft(RemoteParticipant)
  /// Local media is seen by the others.
  case localMediaPublished(LocalMedia)
  /// Local media is no longer seen by the others.
  case localMediaUnpublished(LocalMedia)
  /// A participant publishes a video.
  case remoteVideoPublished(RemoteParticipant, RemoteVideo)
  /// A participant takes a video back; who was subscribed to it is no longer.
  case remoteVideoUnpublished(RemoteParticipant, RemoteVideo)
  /// A participant publishes audio.
  case remoteAudioPublished(RemoteParticipant, RemoteAudio)
  /// A participant takes audio back.
  case remoteAudioUnpublished(RemoteParticipant, RemoteAudio)
  /// A video comes from now on.
  case remoteVideoSubscribed(RemoteParticipant, RemoteVideo)
  /// A video comes no longer.
  case remoteVideoUnsubscribed(RemoteParticipant, RemoteVideo)
  /// A voice is among those that are heard.
  case remoteAudioSubscribed(RemoteParticipant, RemoteAudio)
  /// A voice is no longer among those that are heard.
  case remoteAudioUnsubscribed(RemoteParticipant, RemoteAudio)
  /// A video was switched on or off, or has another extra value.
  case remoteVideoStateChanged(RemoteParticipant, RemoteVideo)
  /// Audio was switched on or off, or has another extra value.
  case remoteAudioStateChanged(RemoteParticipant, RemoteAudio)
  /// A message of a participant.
  case userMessage(senderID: String, message: String, type: String)
  /// The service says that a participant speaks, or does no longer.
  case talking(participantID: String, Bool)
  /// The way to the service was lost and is sought again.
  case reconnecting(attempt: Int)
  /// The way to the service is back.
  case reconnected
  /// ICE begins anew on a connection, because it lost its path or the network changed.
  case restartingICE(attempt: Int)
  /// How many videos can be received has grown.
  case receiversGrown(Int)
  /// The service pushes or notifies something in its own words, as JSON.
  case notification(type: String, String)
  /// How far sharing of the screen by a helper is.
  case screenShare(ExtensionStatus)
  /// A stream was added to a channel of a Sora server: the local one or a received one, with its
  /// tracks.
  case streamAdded(MediaStream)
  /// A stream of a channel of a Sora server was removed.
  case streamRemoved(MediaStream)
}

/// What a service said when it ended a room.
public struct RoomClosure: Hashable, Sendable {
  /// Why the room is over.
  public var reason: DisconnectReason
  /// The service's number for it, that of the close frame where it is one (RFC 6455 section 7.4);
  /// nil: it gave none.
  public var code: Int?
  /// What it said; empty: nothing.
  public var message: String
}

/// Why a room is over.
public enum DisconnectReason: String, Hashable, Sendable {
  /// This side left, or an error ended the room.
  case disconnected
  /// The room is no longer there.
  case destroyed
  /// The service or a moderator ended it for this side.
  case kicked

  init(_ reason: RoomEnding.Reason) {
    switch reason {
    case .disconnected: self = .disconnected
    case .destroyed: self = .destroyed
    case .kicked: self = .kicked
    }
  }
}

/// How a room is.
public enum RoomStatus: String, Hashable, Sendable {
  case initialized, connecting, connected, disconnecting, disconnected

  init(_ state: RoomState) { self = RoomStatus(rawValue: state.rawValue) ?? .initialized }
}

/// Receives the events of a room, one after the other; every method does nothing by default.
public protocol RoomDelegate: AnyObject, Sendable {
  /// How far connecting is: 1 to 100.
  func room(_ room: Room, onConnecting progress: Float)
  /// The room is there; who is in it, this side first.
  func room(_ room: Room, onConnected participantIDs: [String])
  /// The room is over. Nothing comes after it.
  func room(_ room: Room, onDisconnected reason: DisconnectReason)
  /// Something went wrong; `onDisconnected` follows when it is critical.
  func room(_ room: Room, onError code: Int, message: String, isCritical: Bool)
  /// A participant has entered.
  func room(_ room: Room, onParticipantEntered participant: RemoteParticipant)
  /// A participant has left.
  func room(_ room: Room, onParticipantLeft participant: RemoteParticipant)
  /// Local media is seen by the others.
  func room(_ room: Room, onLocalMediaPublished media: LocalMedia)
  /// Local media is no longer seen by the others.
  func room(_ room: Room, onLocalMediaUnpublished media: LocalMedia)
  /// A participant publishes a video.
  func room(_ room: Room, onRemoteVideoPublished video: RemoteVideo, of: RemoteParticipant)
  /// A participant takes a video back.
  func room(_ room: Room, onRemoteVideoUnpublished video: RemoteVideo, of: RemoteParticipant)
  /// A participant publishes audio.
  func room(_ room: Room, onRemoteAudioPublished audio: RemoteAudio, of: RemoteParticipant)
  /// A participant takes audio back.
  func room(_ room: Room, onRemoteAudioUnpublished audio: RemoteAudio, of: RemoteParticipant)
  /// A voice is among those that are heard.
  func room(_ room: Room, onRemoteAudioSubscribed audio: RemoteAudio, of: RemoteParticipant)
  /// A voice is no longer among those that are heard.
  func room(_ room: Room, onRemoteAudioUnsubscribed audio: RemoteAudio, of: RemoteParticipant)
  /// A video was switched on or off, or has another extra value.
  func room(_ room: Room, onRemoteVideoStateChanged video: RemoteVideo, of: RemoteParticipant)
  /// Audio was switched on or off, or has another extra value.
  func room(_ room: Room, onRemoteAudioStateChanged audio: RemoteAudio, of: RemoteParticipant)
  /// A message of a participant.
  func room(_ room: Room, onUserMessage message: String, type: String, senderID: String)
  /// Anything that has no method of its own, and everything that has one.
  func room(_ room: Room, onUpdate update: RoomUpdate)
}

extension RoomDelegate {
  /// Does nothing.
  public func room(_ room: Room, onConnecting progress: Float) {}
  /// Does nothing.
  public func room(_ room: Room, onConnected participantIDs: [String]) {}
  /// Does nothing.
  public func room(_ room: Room, onDisconnected reason: DisconnectReason) {}
  /// Does nothing.
  public func room(_ room: Room, onError code: Int, message: String, isCritical: Bool) {}
  /// Does nothing.
  public func room(_ room: Room, onParticipantEntered participant: RemoteParticipant) {}
  /// Does nothing.
  public func room(_ room: Room, onParticipantLeft participant: RemoteParticipant) {}
  /// Does nothing.
  public func room(_ room: Room, onLocalMediaPublished media: LocalMedia) {}
  /// Does nothing.
  public func room(_ room: Room, onLocalMediaUnpublished media: LocalMedia) {}
  /// Does nothing.
  public func room(_ room: Room, onRemoteVideoPublished video: RemoteVideo, of: RemoteParticipant) {
  }
  /// Does nothing.
  public func room(
    _ room: Room, onRemoteVideoUnpublished video: RemoteVideo, of: RemoteParticipant
  ) {}
  /// Does nothing.
  public func room(_ room: Room, onRemoteAudioPublished audio: RemoteAudio, of: RemoteParticipant) {
  }
  /// Does nothing.
  public func room(
    _ room: Room, onRemoteAudioUnpublished audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing.
  public func room(
    _ room: Room, onRemoteAudioSubscribed audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing.
  public func room(
    _ room: Room, onRemoteAudioUnsubscribed audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing.
  public func room(
    _ room: Room, onRemoteVideoStateChanged video: RemoteVideo, of: RemoteParticipant
  ) {}
  /// Does nothing.
  public func room(
    _ room: Room, onRemoteAudioStateChanged audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing.
  public func room(_ room: Room, onUserMessage message: String, type: String, senderID: String) {}
  /// Does nothing.
  public func room(_ room: Room, onUpdate update: RoomUpdate) {}

  /// Tells an update by the method that it has.
  func receive(_ update: RoomUpdate, of room: Room) {
    switch update {
    case .connecting(let progress): self.room(room, onConnecting: progress)
    case .connected(let ids): self.room(room, onConnected: ids)
    case .disconnected(let reason): self.room(room, onDisconnected: reason)
    case .error(let error):
      self.room(
        room, onError: error.code.rawValue, message: error.message, isCritical: error.isCritical)
    case .participantEntered(let who): self.room(room, onParticipantEntered: who)
    case .participantLeft(let who): self.room(room, onParticipantLeft: who)
    case .localMediaPublished(let media): self.room(room, onLocalMediaPublished: media)
    case .localMediaUnpublished(let media): self.room(room, onLocalMediaUnpublished: media)
    case .remoteVideoPublished(let who, let video):
      self.room(room, onRemoteVideoPublished: video, of: who)
    case .remoteVideoUnpublished(let who, let video):
      self.room(room, onRemoteVideoUnpublished: video, of: who)
    case .remoteAudioPublished(let who, let audio):
      self.room(room, onRemoteAudioPublished: audio, of: who)
    case .remoteAudioUnpublished(let who, let audio):
      self.room(room, onRemoteAudioUnpublished: audio, of: who)
    case .remoteAudioSubscribed(let who, let audio):
      self.room(room, onRemoteAudioSubscribed: audio, of: who)
    case .remoteAudioUnsubscribed(let who, let audio):
      self.room(room, onRemoteAudioUnsubscribed: audio, of: who)
    case .remoteVideoStateChanged(let who, let video):
      self.room(room, onRemoteVideoStateChanged: video, of: who)
    case .remoteAudioStateChanged(let who, let audio):
      self.room(room, onRemoteAudioStateChanged: audio, of: who)
    case .userMessage(let sender, let message, let type):
      self.room(room, onUserMessage: message, type: type, senderID: sender)
    default: break
    }
    self.room(room, onUpdate: update)
  }
}
