public import Live
public import Room

/// An event in a room, reported to the application.
public enum RoomUpdate: Sendable {
  /// The progress of connecting: 1 to 100.
  case connecting(progress: Float)
  /// The room was joined; lists the participants, the local one first.
  case connected(participantIDs: [String])
  /// The room has ended.
  ///
  /// Always the last update.
  case disconnected(DisconnectReason)
  /// An error; `disconnected` follows if it is critical.
  case error(RoomError)
  /// A participant has entered.
  case participantEntered(RemoteParticipant)
  /// A participant has left.
  case participantLeft(RemoteParticipant)
  /// Local media is now visible to the others.
  case localMediaPublished(LocalMedia)
  /// Local media is no longer visible to the others.
  case localMediaUnpublished(LocalMedia)
  /// A participant publishes a video.
  case remoteVideoPublished(RemoteParticipant, RemoteVideo)
  /// A participant unpublished a video, which ends any subscription to it.
  case remoteVideoUnpublished(RemoteParticipant, RemoteVideo)
  /// A participant publishes audio.
  case remoteAudioPublished(RemoteParticipant, RemoteAudio)
  /// A participant unpublished audio.
  case remoteAudioUnpublished(RemoteParticipant, RemoteAudio)
  /// A video is received from now on.
  case remoteVideoSubscribed(RemoteParticipant, RemoteVideo)
  /// A video is no longer received.
  case remoteVideoUnsubscribed(RemoteParticipant, RemoteVideo)
  /// Playback of a participant's audio has started.
  case remoteAudioSubscribed(RemoteParticipant, RemoteAudio)
  /// Playback of a participant's audio has stopped.
  case remoteAudioUnsubscribed(RemoteParticipant, RemoteAudio)
  /// A video was switched on or off, or its extra value changed.
  case remoteVideoStateChanged(RemoteParticipant, RemoteVideo)
  /// Audio was switched on or off, or its extra value changed.
  case remoteAudioStateChanged(RemoteParticipant, RemoteAudio)
  /// A participant sent a message.
  case userMessage(senderID: String, message: String, type: String)
  /// A participant started or stopped speaking, according to the service.
  case talking(participantID: String, Bool)
  /// The connection to the service was lost and is being restored.
  case reconnecting(attempt: Int)
  /// The connection to the service is restored.
  case reconnected
  /// ICE restarts on a connection that lost its path, or after a network change.
  case restartingICE(attempt: Int)
  /// The number of videos that can be received has grown.
  case receiversGrown(Int)
  /// The service sent a notification of its own kind, as JSON.
  case notification(type: String, String)
  /// The state of screen sharing in another process changed.
  case screenShare(ExtensionStatus)
  /// A stream with its tracks was added to a Sora channel: the local stream or a received one.
  case streamAdded(MediaStream)
  /// A stream was removed from a Sora channel.
  case streamRemoved(MediaStream)
}

/// A service's closing message.
public struct RoomClosure: Hashable, Sendable {
  /// Why the room ended.
  public var reason: DisconnectReason
  /// The service's code, such as a close frame's (RFC 6455 section 7.4), if any.
  public var code: Int?
  /// The service's text; empty if there is none.
  public var message: String
}

/// Why a room ended.
public enum DisconnectReason: String, Hashable, Sendable {
  /// This client left, or an error ended the room.
  case disconnected
  /// The room no longer exists.
  case destroyed
  /// The service or a moderator removed this client.
  case kicked

  init(_ reason: RoomEnding.Reason) {
    switch reason {
    case .disconnected: self = .disconnected
    case .destroyed: self = .destroyed
    case .kicked: self = .kicked
    }
  }
}

/// A room's state.
public enum RoomStatus: String, Hashable, Sendable {
  case initialized, connecting, connected, disconnecting, disconnected

  init(_ state: RoomState) { self = RoomStatus(rawValue: state.rawValue) ?? .initialized }
}

/// Receives a room's events serially; every method has an empty default.
public protocol RoomDelegate: AnyObject, Sendable {
  /// Reports the progress of connecting: 1 to 100.
  func room(_ room: Room, onConnecting progress: Float)
  /// Reports that the room was joined; lists the participants, the local one first.
  func room(_ room: Room, onConnected participantIDs: [String])
  /// Reports that the room has ended.
  ///
  /// Always the last event.
  func room(_ room: Room, onDisconnected reason: DisconnectReason)
  /// Reports an error; `onDisconnected` follows if it is critical.
  func room(_ room: Room, onError code: Int, message: String, isCritical: Bool)
  /// Reports that a participant entered.
  func room(_ room: Room, onParticipantEntered participant: RemoteParticipant)
  /// Reports that a participant left.
  func room(_ room: Room, onParticipantLeft participant: RemoteParticipant)
  /// Reports that local media is now visible to the others.
  func room(_ room: Room, onLocalMediaPublished media: LocalMedia)
  /// Reports that local media is no longer visible to the others.
  func room(_ room: Room, onLocalMediaUnpublished media: LocalMedia)
  /// Reports that a participant publishes a video.
  func room(_ room: Room, onRemoteVideoPublished video: RemoteVideo, of: RemoteParticipant)
  /// Reports that a participant unpublished a video.
  func room(_ room: Room, onRemoteVideoUnpublished video: RemoteVideo, of: RemoteParticipant)
  /// Reports that a participant publishes audio.
  func room(_ room: Room, onRemoteAudioPublished audio: RemoteAudio, of: RemoteParticipant)
  /// Reports that a participant unpublished audio.
  func room(_ room: Room, onRemoteAudioUnpublished audio: RemoteAudio, of: RemoteParticipant)
  /// Reports that playback of a participant's audio started.
  func room(_ room: Room, onRemoteAudioSubscribed audio: RemoteAudio, of: RemoteParticipant)
  /// Reports that playback of a participant's audio stopped.
  func room(_ room: Room, onRemoteAudioUnsubscribed audio: RemoteAudio, of: RemoteParticipant)
  /// Reports that a video was switched on or off, or that its extra value changed.
  func room(_ room: Room, onRemoteVideoStateChanged video: RemoteVideo, of: RemoteParticipant)
  /// Reports that audio was switched on or off, or that its extra value changed.
  func room(_ room: Room, onRemoteAudioStateChanged audio: RemoteAudio, of: RemoteParticipant)
  /// Reports a participant's message.
  func room(_ room: Room, onUserMessage message: String, type: String, senderID: String)
  /// Reports every update, including those with a method of their own.
  func room(_ room: Room, onUpdate update: RoomUpdate)
}

extension RoomDelegate {
  /// Does nothing by default.
  public func room(_ room: Room, onConnecting progress: Float) {}
  /// Does nothing by default.
  public func room(_ room: Room, onConnected participantIDs: [String]) {}
  /// Does nothing by default.
  public func room(_ room: Room, onDisconnected reason: DisconnectReason) {}
  /// Does nothing by default.
  public func room(_ room: Room, onError code: Int, message: String, isCritical: Bool) {}
  /// Does nothing by default.
  public func room(_ room: Room, onParticipantEntered participant: RemoteParticipant) {}
  /// Does nothing by default.
  public func room(_ room: Room, onParticipantLeft participant: RemoteParticipant) {}
  /// Does nothing by default.
  public func room(_ room: Room, onLocalMediaPublished media: LocalMedia) {}
  /// Does nothing by default.
  public func room(_ room: Room, onLocalMediaUnpublished media: LocalMedia) {}
  /// Does nothing by default.
  public func room(_ room: Room, onRemoteVideoPublished video: RemoteVideo, of: RemoteParticipant) {
  }
  /// Does nothing by default.
  public func room(
    _ room: Room, onRemoteVideoUnpublished video: RemoteVideo, of: RemoteParticipant
  ) {}
  /// Does nothing by default.
  public func room(_ room: Room, onRemoteAudioPublished audio: RemoteAudio, of: RemoteParticipant) {
  }
  /// Does nothing by default.
  public func room(
    _ room: Room, onRemoteAudioUnpublished audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing by default.
  public func room(
    _ room: Room, onRemoteAudioSubscribed audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing by default.
  public func room(
    _ room: Room, onRemoteAudioUnsubscribed audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing by default.
  public func room(
    _ room: Room, onRemoteVideoStateChanged video: RemoteVideo, of: RemoteParticipant
  ) {}
  /// Does nothing by default.
  public func room(
    _ room: Room, onRemoteAudioStateChanged audio: RemoteAudio, of: RemoteParticipant
  ) {}
  /// Does nothing by default.
  public func room(_ room: Room, onUserMessage message: String, type: String, senderID: String) {}
  /// Does nothing by default.
  public func room(_ room: Room, onUpdate update: RoomUpdate) {}

  /// Calls the method that matches an update.
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
