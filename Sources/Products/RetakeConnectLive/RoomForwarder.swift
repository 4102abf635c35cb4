import RetakeRTC
import Room
import RoomClient

/// Forwards the events of a room in order, with the objects of this module.
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
