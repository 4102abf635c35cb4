/// Receives the events of a room, one after the other on the callback queue; every method is
/// optional.
public protocol RoomDelegate: AnyObject {
  /// How far connecting is: 1 to 100.
  func onConnecting(progress: Float)
  /// The room is there; who is in it, this side first.
  func onConnected(participantIds: [String])
  /// The room is over, because it was left or by an error. Nothing comes after it.
  func onDisconnected(reason: DisconnectReason)
  /// Something went wrong; `onDisconnected` follows where it is critical.
  func onError(code: Int, message: String, isCritical: Bool)
  /// A participant has entered.
  func onParticipantEntered(remoteParticipant: any RemoteParticipant)
  /// A participant has left.
  func onParticipantLeft(remoteParticipant: any RemoteParticipant)
  /// Local media is seen by the others.
  func onLocalMediaPublished(localMedia: (any LocalMedia)?)
  /// Local media is no longer seen by the others.
  func onLocalMediaUnpublished(localMedia: (any LocalMedia)?)
  /// A participant publishes a video.
  func onRemoteVideoPublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// A participant takes a video back.
  func onRemoteVideoUnpublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// A participant publishes audio.
  func onRemoteAudioPublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A participant takes audio back.
  func onRemoteAudioUnpublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A voice is among those that are heard: the server chooses them by who speaks.
  func onRemoteAudioSubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A voice is no longer among those that are heard.
  func onRemoteAudioUnsubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A video was switched on or off, or has another extra value.
  func onRemoteVideoStateChanged(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// Audio was switched on or off, or has another extra value.
  func onRemoteAudioStateChanged(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// A message of a participant.
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
