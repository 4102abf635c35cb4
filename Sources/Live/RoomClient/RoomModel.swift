import Live
import Peer
import Room
import Stats
import Synchronization
import Wire

/// A room's participants and their media, updated from the room's events.
final class RoomModel: Sendable {
  private struct State {
    var status = RoomStatus.initialized
    var participants: [String: RemoteParticipant] = [:]
    /// The present participants' names, by identifier.
    var names: [String: String] = [:]
    /// Published media by number.
    var videos: [MediaID: RemoteVideo] = [:]
    var audios: [MediaID: RemoteAudio] = [:]
    /// The transceivers that receive media, by the media's number.
    var places: [MediaID: (connection: ConnectionID, transceiver: UInt32)] = [:]
    var local: [LocalMedia] = []
    var authenticator: (any Authenticator)?
    var share: (any ScreenSharing)?
    var closure: RoomClosure?
    /// Media that was published but is reported only once it is received.
    var held: Set<MediaID> = []
  }

  let sources: LocalSources
  private let local: LocalParticipant
  /// Whether media is reported as published only once its track exists, because there are no
  /// subscriptions.
  private let holdsPublished: Bool
  private let state = Mutex(State())
  private let driver = Mutex<WeakDriver?>(nil)

  init(local: LocalParticipant, streamID: String?) {
    self.local = local
    sources = LocalSources(streamID: streamID ?? "media")
    holdsPublished = streamID != nil
  }

  func belong(to driver: RoomDriver) {
    let weak = WeakDriver(driver)
    self.driver.withLock { $0 = weak }
  }

  private var roomDriver: RoomDriver? { driver.withLock { $0 }?.driver }

  /// The service's closing message; nil until it arrives.
  var closure: RoomClosure? { state.withLock { $0.closure } }
  var status: RoomStatus { state.withLock { $0.status } }
  var participants: [String: RemoteParticipant] { state.withLock { $0.participants } }
  func setAuthenticator(_ authenticator: (any Authenticator)?) {
    state.withLock { $0.authenticator = authenticator }
  }
  var share: (any ScreenSharing)? { state.withLock { $0.share } }
  func setShare(_ share: (any ScreenSharing)?) { state.withLock { $0.share = share } }

  var videoOccupants: [String] {
    Set(participants.values.filter { $0.isVideoSubscribed }.map(\.id)).sorted()
  }

  var audioOccupants: [String] {
    Set(
      participants.values.filter { $0.audios.values.contains { $0.isOccupant } }.map(\.id)
    ).sorted()
  }

  // MARK: Local media

  func add(_ media: LocalMedia) {
    state.withLock { state in
      if !state.local.contains(where: { $0 === media }) { state.local.append(media) }
    }
    for part in media.parts {
      part.belong(to: roomDriver)
      sources.set(part.track, part.info.id)
    }
  }

  func remove(_ media: LocalMedia) {
    state.withLock { state in state.local.removeAll { $0 === media } }
    for part in media.parts { part.belong(to: nil) }
  }

  /// Closes the microphones once the room has ended.
  func closeMicrophones() {
    for media in state.withLock({ $0.local }) { media.audio?.closeMicrophone() }
  }

  private func local(_ id: LocalMediaID) -> (media: LocalMedia, part: LocalPart)? {
    for media in state.withLock({ $0.local }) {
      if let part = media.parts.first(where: { $0.info.id == id }) { return (media, part) }
    }
    return nil
  }

  // MARK: Room events

  /// Handles what a driver reports; returns updates for the application.
  ///
  /// Called during the room's step, so nothing here may call the room.
  func handle(_ news: RoomNews) -> [RoomUpdate] {
    switch news {
    case .event(let event): return handle(event)
    case .named(let id, let name):
      state.withLock { $0.names[id] = name }
      return []
    case .state(let now):
      state.withLock { $0.status = RoomStatus(now) }
      return []
    case .share(let order):
      let share = state.withLock { $0.share }
      share?.carryOut(order)
      return []
    case .tokenWanted:
      renewToken()
      return []
    case .failed(let error): return [.error(error)]
    case .stream(let stream, let isAdded):
      return [isAdded ? .streamAdded(stream) : .streamRemoved(stream)]
    }
  }

  private func renewToken() {
    guard let authenticator = state.withLock({ $0.authenticator }) else { return }
    Task { [weak self] in
      // If there is no new token, the service ends the room itself.
      guard let token = try? await authenticator.token() else { return }
      self?.roomDriver?.post(
        .signedIn(token: token.text, lifetimeMilliseconds: token.lifetimeSeconds.map { $0 * 1000 }))
    }
  }

  private func handle(_ event: RoomEvent) -> [RoomUpdate] {
    switch event {
    case .connecting(let progress): return [.connecting(progress: Float(progress))]
    case .connected(let ids):
      local.setID(ids.first ?? "")
      for id in ids.dropFirst() { _ = participant(id) }
      return [.connected(participantIDs: ids)]
    case .disconnected(let ending):
      let reason = DisconnectReason(ending.reason)
      state.withLock { state in
        state.closure = RoomClosure(
          reason: reason, code: ending.code, message: ending.message)
      }
      return [.disconnected(reason)]
    case .failed(let failure): return [.error(RoomError(failure))]
    case .participantEntered(let id): return [.participantEntered(participant(id))]
    case .participantLeft(let id, _):
      let gone = state.withLock { state in
        state.names[id] = nil
        return state.participants.removeValue(forKey: id)
      }
      return gone.map { [.participantLeft($0)] } ?? []
    case .localMediaPublished(let id, let media):
      guard let own = local(id) else { return [] }
      let isFirst = own.media.parts.allSatisfy { !$0.isPublished }
      own.part.setMedia(media)
      guard isFirst else { return [] }
      local.add(own.media)
      return [.localMediaPublished(own.media)]
    case .localMediaUnpublished(let id):
      guard let own = local(id) else { return [] }
      own.part.setMedia(nil)
      guard own.media.parts.allSatisfy({ !$0.isPublished }) else { return [] }
      local.remove(own.media)
      return [.localMediaUnpublished(own.media)]
    case .remotePublished(let media): return publish(media)
    case .remoteUnpublished(let media): return unpublish(media)
    case .remoteStateChanged(let media): return change(media)
    case .remoteSubscribed(let media, let connection, let transceiver):
      return subscribe(media, connection, transceiver)
    case .remoteUnsubscribed(let media): return unsubscribe(media)
    case .audioOccupied(let media): return occupy(media, true)
    case .audioVacated(let media): return occupy(media, false)
    default: return handleOther(event)
    }
  }

  private func handleOther(_ event: RoomEvent) -> [RoomUpdate] {
    switch event {
    case .localMediaMuted(let id, let isMuted):
      local(id)?.part.track.isEnabled = !isMuted
      return []
    case .talking(let id, let isTalking, _): return [.talking(participantID: id, isTalking)]
    case .message(let message):
      return [
        .userMessage(senderID: message.sender, message: message.text, type: message.type)
      ]
    case .notification(let type, let text): return [.notification(type: type, text)]
    case .reconnecting(let attempt, _): return [.reconnecting(attempt: attempt)]
    case .reconnected: return [.reconnected]
    case .restartingICE(_, let attempt): return [.restartingICE(attempt: attempt)]
    case .receiversGrown(let size): return [.receiversGrown(size)]
    case .screenShare(let status):
      share?.reported(status)
      return [.screenShare(status)]
    default: return []
    }
  }

  private func participant(_ id: String) -> RemoteParticipant {
    state.withLock { state in
      if let known = state.participants[id] { return known }
      let made = RemoteParticipant(id: id, name: state.names[id] ?? "")
      state.participants[id] = made
      return made
    }
  }

  // MARK: Remote media

  private func publish(_ media: PublishedMedia) -> [RoomUpdate] {
    let owner = participant(media.owner)
    if holdsPublished { state.withLock { _ = $0.held.insert(media.id) } }
    if media.kind == .video {
      let video = RemoteVideo(media, driver: roomDriver)
      owner.add(video)
      state.withLock { $0.videos[media.id] = video }
      return holdsPublished ? [] : [.remoteVideoPublished(owner, video)]
    }
    let audio = RemoteAudio(media, driver: roomDriver)
    owner.add(audio)
    state.withLock { $0.audios[media.id] = audio }
    return holdsPublished ? [] : [.remoteAudioPublished(owner, audio)]
  }

  private func unpublish(_ media: PublishedMedia) -> [RoomUpdate] {
    let owner = participant(media.owner)
    owner.remove(Int(media.id.number))
    let (video, audio, wasHeld) = state.withLock { state in
      state.places[media.id] = nil
      return (
        state.videos.removeValue(forKey: media.id), state.audios.removeValue(forKey: media.id),
        state.held.remove(media.id) != nil
      )
    }
    if wasHeld { return [] }
    if let video {
      video.setTrack(nil, isSubscribed: false)
      return [.remoteVideoUnpublished(owner, video)]
    }
    return audio.map { [.remoteAudioUnpublished(owner, $0)] } ?? []
  }

  private func change(_ media: PublishedMedia) -> [RoomUpdate] {
    let owner = participant(media.owner)
    let (video, audio, isHeld) = state.withLock {
      ($0.videos[media.id], $0.audios[media.id], $0.held.contains(media.id))
    }
    video?.change(media)
    audio?.change(media)
    if isHeld { return [] }
    if let video { return [.remoteVideoStateChanged(owner, video)] }
    return audio.map { [.remoteAudioStateChanged(owner, $0)] } ?? []
  }

  private func subscribe(
    _ media: MediaID, _ connection: ConnectionID, _ transceiver: UInt32
  ) -> [RoomUpdate] {
    let (video, audio, wasHeld) = state.withLock { state in
      state.places[media] = (connection, transceiver)
      return (state.videos[media], state.audios[media], state.held.remove(media) != nil)
    }
    Task { [weak self] in self?.connectTrack(media) }
    if let video {
      video.setTrack(nil, isSubscribed: true)
      let owner = participant(video.owner)
      return (wasHeld ? [.remoteVideoPublished(owner, video)] : [])
        + [.remoteVideoSubscribed(owner, video)]
    }
    guard let audio, wasHeld else { return [] }
    return [.remoteAudioPublished(participant(audio.owner), audio)]
  }

  /// Records a confirmed subscription or unsubscription; frames may arrive later.
  func setSubscribed(_ isSubscribed: Bool, _ media: MediaID) {
    state.withLock { $0.videos[media] }?.setSubscribed(isSubscribed)
  }

  /// Looks up the track that carries media; must not be called within the step that reported the
  /// media.
  private func connectTrack(_ media: MediaID) {
    guard let place = state.withLock({ $0.places[media] }),
      let link = roomDriver?.link(place.connection)
    else { return }
    let track = link.connection.receivedTrack(on: place.transceiver)
    let (video, audio, now) = state.withLock {
      ($0.videos[media], $0.audios[media], $0.places[media])
    }
    guard now?.connection == place.connection, now?.transceiver == place.transceiver else { return }
    if let track = track as? RemoteVideoTrack { video?.setTrack(track, isSubscribed: true) }
    if let track = track as? RemoteAudioTrack { audio?.setTrack(track) }
  }

  /// Prepares for reporting an update: looks up its track, sets the audio mode, or closes the
  /// microphones.
  func prepare(_ update: RoomUpdate) {
    switch update {
    case .remoteVideoPublished(_, let video), .remoteVideoSubscribed(_, let video):
      connectTrack(MediaID(UInt32(video.id)))
    case .remoteAudioPublished(_, let audio), .remoteAudioSubscribed(_, let audio):
      connectTrack(MediaID(UInt32(audio.id)))
    case .connected where holdsPublished:
      // Set the audio mode before reporting, as the service's SDK does, because a listener may set
      // another mode.
      for media in state.withLock({ $0.local }) { media.audio?.roomIsThere() }
    case .disconnected: closeMicrophones()
    default: break
    }
  }

  private func unsubscribe(_ media: MediaID) -> [RoomUpdate] {
    let (video, audio) = state.withLock { state in
      state.places[media] = nil
      return (state.videos[media], state.audios[media])
    }
    audio?.setTrack(nil)
    guard let video else { return [] }
    video.setTrack(nil, isSubscribed: false)
    return [.remoteVideoUnsubscribed(participant(video.owner), video)]
  }

  private func occupy(_ media: MediaID, _ isOccupant: Bool) -> [RoomUpdate] {
    guard let audio = state.withLock({ $0.audios[media] }) else { return [] }
    audio.setOccupant(isOccupant)
    let owner = participant(audio.owner)
    return [
      isOccupant ? .remoteAudioSubscribed(owner, audio) : .remoteAudioUnsubscribed(owner, audio)
    ]
  }

  // MARK: Levels and statistics

  /// The loudest level of each remote participant being played.
  var audioLevels: [String: Int] {
    var levels: [String: Int] = [:]
    for (id, participant) in participants {
      for audio in participant.audios.values where audio.isOccupant {
        levels[id] = max(levels[id] ?? 0, audio.track?.audioLevel?.percent ?? 0)
      }
    }
    return levels
  }

  func statistics(of participant: String, _ links: [RoomLink]) async -> [Statistics] {
    let places = state.withLock { state in
      state.places.filter { media, _ in
        (state.videos[media]?.owner ?? state.audios[media]?.owner) == participant
      }.sorted { $0.key < $1.key }.map(\.value)
    }
    var found: [Statistics] = []
    for place in places {
      guard let link = roomDriver?.link(place.connection),
        let report = try? await link.connection.getStats(
          of: .receiver(transceiver: place.transceiver))
      else { continue }
      found += report.objects.filter { $0.type == "inbound-rtp" }.map { Statistics($0) }
    }
    return found
  }
}

extension LocalPart {
  var isPublished: Bool { publishedNumber != nil }
}

extension RoomSnapshot {
  /// The local identifier; nil before joining.
  var localID: String? { participants.first { $0.isLocal }?.id }
}
