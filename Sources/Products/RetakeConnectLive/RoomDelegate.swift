import RetakeRTC
import Room
import RoomClient

/// Receives a room's events, one by one on the callback queue; every method is optional.
public protocol RoomDelegate: AnyObject {
  /// Reports the progress of connecting: 1 to 100.
  func onConnecting(progress: Float)
  /// Reports that the room is connected; lists the participants, the local one first.
  func onConnected(participantIds: [String])
  /// Reports that the room ended, because it was left or after an error; always the last event.
  func onDisconnected(reason: DisconnectReason)
  /// Reports an error; `onDisconnected` follows if it is critical.
  func onError(code: Int, message: String, isCritical: Bool)
  /// Reports that a participant entered.
  func onParticipantEntered(remoteParticipant: any RemoteParticipant)
  /// Reports that a participant left.
  func onParticipantLeft(remoteParticipant: any RemoteParticipant)
  /// Reports that local media was published.
  func onLocalMediaPublished(localMedia: (any LocalMedia)?)
  /// Reports that local media was unpublished.
  func onLocalMediaUnpublished(localMedia: (any LocalMedia)?)
  /// Reports that a participant published a video.
  func onRemoteVideoPublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// Reports that a participant unpublished a video.
  func onRemoteVideoUnpublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// Reports that a participant published audio.
  func onRemoteAudioPublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// Reports that a participant unpublished audio.
  func onRemoteAudioUnpublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// Reports that the server selected a participant's audio because the participant speaks.
  func onRemoteAudioSubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// Reports that a participant's audio is no longer selected.
  func onRemoteAudioUnsubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// Reports that a video was enabled or disabled, or that its extra value changed.
  func onRemoteVideoStateChanged(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo)
  /// Reports that audio was enabled or disabled, or that its extra value changed.
  func onRemoteAudioStateChanged(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio)
  /// Reports a participant's message.
  func onUserMessage(senderId: String, message: String)
}

extension RoomDelegate {
  /// Does nothing by default.
  public func onConnecting(progress: Float) {}
  /// Does nothing by default.
  public func onConnected(participantIds: [String]) {}
  /// Does nothing by default.
  public func onDisconnected(reason: DisconnectReason) {}
  /// Does nothing by default.
  public func onError(code: Int, message: String, isCritical: Bool) {}
  /// Does nothing by default.
  public func onParticipantEntered(remoteParticipant: any RemoteParticipant) {}
  /// Does nothing by default.
  public func onParticipantLeft(remoteParticipant: any RemoteParticipant) {}
  /// Does nothing by default.
  public func onLocalMediaPublished(localMedia: (any LocalMedia)?) {}
  /// Does nothing by default.
  public func onLocalMediaUnpublished(localMedia: (any LocalMedia)?) {}
  /// Does nothing by default.
  public func onRemoteVideoPublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo
  ) {}
  /// Does nothing by default.
  public func onRemoteVideoUnpublished(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo
  ) {}
  /// Does nothing by default.
  public func onRemoteAudioPublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing by default.
  public func onRemoteAudioUnpublished(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing by default.
  public func onRemoteAudioSubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing by default.
  public func onRemoteAudioUnsubscribed(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing by default.
  public func onRemoteVideoStateChanged(
    remoteParticipant: any RemoteParticipant, remoteVideo: any RemoteVideo
  ) {}
  /// Does nothing by default.
  public func onRemoteAudioStateChanged(
    remoteParticipant: any RemoteParticipant, remoteAudio: any RemoteAudio
  ) {}
  /// Does nothing by default.
  public func onUserMessage(senderId: String, message: String) {}
}

// MARK: - RoomForwarder

/// Forwards a room's events in order, with this module's objects.
final class RoomForwarder: RoomClient.RoomDelegate {
  private typealias Event = @Sendable (any RoomDelegate) -> Void

  private let delegate: WeakDelegate<any RoomDelegate>
  private let objects: RoomObjects

  init(_ delegate: any RoomDelegate, _ objects: RoomObjects) {
    self.delegate = WeakDelegate { [weak delegate] in delegate }
    self.objects = objects
  }

  private func notify(_ event: @escaping Event) {
    ConnectLive.calls.call { [delegate] in delegate.value.map(event) }
  }

  func report(_ error: RoomError) {
    notify {
      $0.onError(
        code: error.code.rawValue, message: error.message, isCritical: error.isCritical)
    }
  }

  func room(_ room: RoomClient.Room, onUpdate update: RoomUpdate) {
    if let event = aboutRoom(update) ?? aboutVideo(update) ?? aboutAudio(update) { notify(event) }
  }

  private func aboutRoom(_ update: RoomUpdate) -> Event? {
    switch update {
    case .connecting(let progress): return { $0.onConnecting(progress: progress) }
    case .connected(let ids): return { $0.onConnected(participantIds: ids) }
    case .disconnected(let reason):
      let reason = DisconnectReason(rawValue: reason.rawValue) ?? .disconnected
      return { $0.onDisconnected(reason: reason) }
    case .error(let error):
      report(error)
      return nil
    case .participantEntered(let who):
      let who = objects.participant(who)
      return { $0.onParticipantEntered(remoteParticipant: who) }
    case .participantLeft(let who):
      let who = objects.participant(who)
      objects.forget(who)
      return { $0.onParticipantLeft(remoteParticipant: who) }
    case .localMediaPublished(let media):
      let media = objects.local(media)
      return { $0.onLocalMediaPublished(localMedia: media) }
    case .localMediaUnpublished(let media):
      let media = objects.local(media)
      objects.forget(media)
      return { $0.onLocalMediaUnpublished(localMedia: media) }
    case .userMessage(let sender, let message, _):
      return { $0.onUserMessage(senderId: sender, message: message) }
    default: return nil
    }
  }

  private func aboutVideo(_ update: RoomUpdate) -> Event? {
    switch update {
    case .remoteVideoPublished(let who, let video):
      let (who, video) = media(who, video)
      return { $0.onRemoteVideoPublished(remoteParticipant: who, remoteVideo: video) }
    case .remoteVideoUnpublished(let who, let video):
      let (who, video) = media(who, video)
      who.forget(video.id)
      return { $0.onRemoteVideoUnpublished(remoteParticipant: who, remoteVideo: video) }
    case .remoteVideoStateChanged(let who, let video):
      let (who, video) = media(who, video)
      return { $0.onRemoteVideoStateChanged(remoteParticipant: who, remoteVideo: video) }
    default: return nil
    }
  }

  private func aboutAudio(_ update: RoomUpdate) -> Event? {
    switch update {
    case .remoteAudioPublished(let who, let audio):
      let (who, audio) = media(who, audio)
      return { $0.onRemoteAudioPublished(remoteParticipant: who, remoteAudio: audio) }
    case .remoteAudioUnpublished(let who, let audio):
      let (who, audio) = media(who, audio)
      who.forget(audio.id)
      return { $0.onRemoteAudioUnpublished(remoteParticipant: who, remoteAudio: audio) }
    case .remoteAudioSubscribed(let who, let audio):
      let (who, audio) = media(who, audio)
      return { $0.onRemoteAudioSubscribed(remoteParticipant: who, remoteAudio: audio) }
    case .remoteAudioUnsubscribed(let who, let audio):
      let (who, audio) = media(who, audio)
      return { $0.onRemoteAudioUnsubscribed(remoteParticipant: who, remoteAudio: audio) }
    case .remoteAudioStateChanged(let who, let audio):
      let (who, audio) = media(who, audio)
      return { $0.onRemoteAudioStateChanged(remoteParticipant: who, remoteAudio: audio) }
    default: return nil
    }
  }

  private func media(
    _ who: RoomClient.RemoteParticipant, _ video: RoomClient.RemoteVideo
  ) -> (RemoteParticipantObject, RemoteVideoObject) {
    let who = objects.participant(who)
    return (who, who.video(video))
  }

  private func media(
    _ who: RoomClient.RemoteParticipant, _ audio: RoomClient.RemoteAudio
  ) -> (RemoteParticipantObject, RemoteAudioObject) {
    let who = objects.participant(who)
    return (who, who.audio(audio))
  }
}
