import RetakeConnectLive

// The SDK's guide as an application from before Swift concurrency: ordinary classes, closures that
// hold `self`, no concurrency annotations. It compiles here in Swift 6 mode.

/// A participant in rooms.
class Caller: RoomDelegate {
  var room: Room?
  var media: LocalMedia?
  var log: [String] = []
  var received: [RemoteVideo] = []
  @Published var screenShareStatus: ScreenShareData.ExtensionStatus = .notAvailable

  // MARK: Signing in

  func signIn(_ secret: String = "serviceSecret") {
    ConnectLive.signIn(serviceId: "serviceId", serviceSecret: secret) { [weak self] code, message in
      if code == 0 {
        self?.log.append("signed in")
      } else {
        self?.log.append("refused \(code)")
      }
    }
  }

  // MARK: Local media

  func createMedia(_ change: (inout LocalMediaOptions) -> Void = { _ in }) {
    var config = Config()
    config.mediaOptions.audio = true
    config.mediaOptions.video = true
    change(&config.mediaOptions)
    let media = ConnectLive.createLocalMedia(options: config.mediaOptions)
    self.media = media
  }

  func turnCamera() {
    let media = self.media
    Task {
      try? await media?.switchCamera(position: .back, isMirror: true)
    }
  }

  // MARK: Room

  func enter(_ roomId: String) {
    let room = ConnectLive.createRoom(config: Config(), delegate: self)
    self.room = room
    if media != nil { try? room.publish(media) }
    room.connect(roomId: roomId)
  }

  // MARK: Screen

  func startScreenSharing(_ appGroup: String) {
    guard let room = self.room else { return }
    let extensionBundleId = ""

    #if !targetEnvironment(simulator)
      do {
        try room.requestScreenShare(appGroup: appGroup, extensionName: extensionBundleId) {
          [weak self] status in
          self?.log.append("status \(status)")
          self?.screenShareStatus = status
        }
      } catch {
        log.append("not shared: \(error.localizedDescription)")
      }
    #endif
  }

  func stopScreenSharing(isLeftRoom: Bool = false) {
    guard let room = self.room else { return }
    room.stopScreenShare(isLeftRoom: isLeftRoom)
    self.screenShareStatus = .notAvailable
  }

  // MARK: RoomDelegate

  func onConnecting(progress: Float) { log.append("connecting \(Int(progress))") }
  func onConnected(participantIds: [String]) { log.append("connected \(participantIds.count)") }
  func onDisconnected(reason: DisconnectReason) { log.append("disconnected \(reason)") }
  func onError(code: Int, message: String, isCritical: Bool) {
    log.append("error \(code) \(isCritical)")
  }
  func onParticipantEntered(remoteParticipant: RemoteParticipant) { log.append("entered") }
  func onParticipantLeft(remoteParticipant: RemoteParticipant) { log.append("left") }
  func onLocalMediaPublished(localMedia: LocalMedia?) {
    log.append("own published \(localMedia === media)")
  }
  func onLocalMediaUnpublished(localMedia: LocalMedia?) { log.append("own unpublished") }
  func onRemoteVideoPublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
    received.append(remoteVideo)
    log.append("video published \(remoteVideo.extraValue)")
  }
  func onRemoteVideoUnpublished(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
    log.append("video unpublished \(remoteVideo.extraValue)")
  }
  func onRemoteAudioPublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
    log.append("audio published")
  }
  func onRemoteAudioUnpublished(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
    log.append("audio unpublished")
  }
  func onRemoteAudioSubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
    log.append("voice")
  }
  func onRemoteAudioUnsubscribed(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
    log.append("no voice")
  }
  func onRemoteVideoStateChanged(remoteParticipant: RemoteParticipant, remoteVideo: RemoteVideo) {
    log.append("video state \(remoteVideo.active)")
  }
  func onRemoteAudioStateChanged(remoteParticipant: RemoteParticipant, remoteAudio: RemoteAudio) {
    log.append("audio state \(remoteAudio.active)")
  }
  func onUserMessage(senderId: String, message: String) { log.append("message \(message)") }
}

/// The process that shares the screen.
class ConnectLiveSampleHandler: RPBroadcastSampleHandler {
  let appGroupName: String
  var screenShare: ScreenShare?
  var disconnectSemaphore: DispatchSemaphore?

  init(_ appGroupName: String) { self.appGroupName = appGroupName }

  override func broadcastStarted(withSetupInfo setupInfo: [String: NSObject]?) {
    do {
      screenShare = try ConnectLive.createScreenShare(appGroup: appGroupName)
    } catch {
      finishBroadcastWithError(error)
    }

    disconnectSemaphore = DispatchSemaphore(value: 0)
    screenShare?.start { [weak self] error, msg in
      guard let self = self else { return }
      var key = "default"
      switch error {
      case .invalidData: key = "invalidData"
      case .stopBroadcast: key = "stopBroadcast"
      case .meetingFinished: key = "meetingFinished"
      case .broadcastFailed: key = "broadcastFailed"
      case .broadcastClosed: key = "broadcastClosed"
      @unknown default: break
      }
      let words = NSLocalizedString(
        key, tableName: "Localizable", bundle: Bundle.main, value: "", comment: "")
      let message = words.appending(": \(msg)")
      let userInfo = [NSLocalizedFailureReasonErrorKey: message]
      let ending = NSError(domain: "app.domain", code: -1, userInfo: userInfo)
      self.finishBroadcastWithError(ending)
    }
  }

  override func broadcastPaused() { screenShare?.pause() }
  override func broadcastResumed() { screenShare?.resume() }

  override func broadcastFinished() {
    screenShare?.stop { [weak self] in
      self?.disconnectSemaphore?.signal()
    }
    disconnectSemaphore?.wait()
    screenShare = nil
  }

  override func processSampleBuffer(
    _ sampleBuffer: CMSampleBuffer, with sampleBufferType: RPSampleBufferType
  ) {
    switch sampleBufferType {
    case RPSampleBufferType.video:
      screenShare?.sendVideoFrame(sampleBuffer: sampleBuffer)
    case RPSampleBufferType.audioApp: break
    case RPSampleBufferType.audioMic: break
    @unknown default: break
    }
  }
}

/// Receives the audio session's events.
class AudioWatcher: AudioSessionDelegate {
  var log: [String] = []

  func didBeginInterruption() { log.append("interrupted") }
  func didEndInterruption(shouldResumeSession: Bool) { log.append("resumed") }
  func didChangeRoute(
    reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription
  ) { log.append("route \(reason)") }
  func mediaServerTerminated() { log.append("server gone") }
  func mediaServerReset() { log.append("server back") }
  func didChangeCanPlayOrRecord(canPlayOrRecord: Bool) { log.append("can \(canPlayOrRecord)") }
  func didStartPlayOrRecord() { log.append("started") }
  func didStopPlayOrRecord() { log.append("stopped") }
  func willSetActive(active: Bool) { log.append("will \(active)") }
  func didSetActive(active: Bool) { log.append("did \(active)") }
  func failedToSetActive(active: Bool, error: Error) { log.append("failed \(active)") }
}

/// A delegate isolated to the main actor, as in code that updates the user interface.
@MainActor class RoomScreen: @MainActor RoomDelegate {
  var room: Room?
  var log: [String] = []

  func enter(_ roomId: String) {
    ConnectLive.signIn(serviceId: "serviceId", serviceSecret: "serviceSecret") {
      [weak self] code, _ in
      MainActor.assertIsolated()
      guard let self, code == 0 else { return }
      self.room = ConnectLive.createRoom(config: Config(), delegate: self)
      self.room?.connect(roomId: roomId)
    }
  }

  func onConnected(participantIds: [String]) {
    MainActor.assertIsolated()
    log.append("connected \(participantIds.count)")
  }
}
