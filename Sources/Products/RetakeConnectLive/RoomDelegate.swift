/// Receives the events of a room, one after the other on the callback queue; every method is
/// optional.
public protocol RoomDelegate: AnyObject {
  /// The progress of connecting: 1 to 100.
  func onConnecting(progress: Float)
  /// The room is connected; its participants, the local one first.
  func onConnected(participantIds: [String])
  /// The room ended, because it was left or after an error; no event follows.
  func onDisconnected(reason: DisconnectReason)
  /// An error occurred; `onDisconnected` follows if it is critical.
  func onError(code: Int, message: String, isCritical: Bool)
  /// A participant entered.
  func onParticipantEntered(remoteParticipant: any RemoteParticipant)
  /// A participant left.
  func onParticipantLeft(remoteParticipant: any RemoteParticipant)
  /// Local media was published.
  func onLocalMediaPublished(localMedia: (any LocalMedia)?)
  /// Local media was unpublished.
  func onLocalMediaUnpublished(localMedia: (any LocalMedia)?)
  /// A participant published a video.
  func onRemoteVideoPublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// A participant unpublished a video.
  func onRemoteVideoUnpublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// A participant published audio.
  func onRemoteAudioPublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A participant unpublished audio.
  func onRemoteAudioUnpublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A participant's audio is now among those that the server selects by who speaks.
  func onRemoteAudioSubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A participant's audio is no longer selected.
  func onRemoteAudioUnsubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A video was enabled or disabled, or its extra value changed.
  func onRemoteVideoStateChanged(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// Audio was enabled or disabled, or its extra value changed.
  func onRemoteAudioStateChanged(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A participant sent a message.
  func onUserMessage(senderId: String, message: String)
}

extension RoomDelegate {
  /// Does nothing.
  public func onConnecting(progress: Float) {}
  /// Does nothing.
  public func onConnected(participantIds: [String]) {}
  /// Does nothing.
  public func onDisconnected(reason: DisconnectReason) {}
  /// Does nothing.
  public func onError(code: Int, message: String, isCritical: Bool) {}
  /// Does nothing.
  public func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
  /// Does nothing.
  public func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
  /// Does nothing.
  public func onLocalMediaPublished(localMedia: (any LocalMedia)?) {}
  /// Does nothing.
  public func onLocalMediaUnpublished(localMedia: (any LocalMedia)?) {}
  /// Does nothing.
  public func onRemoteVideoPublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo
  ) {}
  /// Does nothing.
  public func onRemoteVideoUnpublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo
  ) {}
  /// Does nothing.
  public func onRemoteAudioPublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing.
  public func onRemoteAudioUnpublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing.
  public func onRemoteAudioSubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing.
  public func onRemoteAudioUnsubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing.
  public func onRemoteVideoStateChanged(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo
  ) {}
  /// Does nothing.
  public func onRemoteAudioStateChanged(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing.
  public func onUserMessage(senderId: String, message: String) {}
}
