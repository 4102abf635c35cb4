import RetakeSora

// The SDK's page on audio operations as an application from before Swift concurrency: ordinary
// classes, closures that hold `self`, no concurrency annotations. It compiles here in Swift 6 mode.

/// A screen with one channel.
class AudioOperations {
  var mediaChannel: MediaChannel?
  var happened: [String] = []
  var whatHappens: () -> Void = {}

  /// Mutes or unmutes one connection's received stream.
  func handleMuteReceiveStream(connectionId: String) {
    let downstreams = mediaChannel?.receiverStreams ?? []
    guard downstreams.count > 0 else { return }
    for stream in downstreams where stream.streamId == connectionId {
      stream.audioEnabled = !stream.audioEnabled
    }
  }

  /// Configures a channel whose received streams are played three times as loud.
  func louder(url: URL) -> Configuration {
    let config = Configuration(
      url: url, channelId: "channel", role: .sendrecv, multistreamEnabled: true)
    config.mediaChannelHandlers.onAddStream = { [weak self] stream in
      guard let self = self else { return }
      if stream.streamId != config.publisherStreamId { stream.remoteAudioVolume = 3.0 }
      self.note("added \(stream.streamId)")
    }
    return config
  }

  /// Sets a mode once the channel is connected.
  func setMode(_ config: Configuration) {
    config.mediaChannelHandlers.onConnect = { [weak self] _ in
      let result = Sora.shared.setAudioMode(
        .default(category: .playAndRecord, output: .speaker),
        options: [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay])
      switch result {
      case .success():
        self?.note("mode set")
      case .failure(let error):
        self?.note("mode refused: \(error.localizedDescription)")
      }
    }
  }

  func connect(_ config: Configuration) {
    Sora.shared.connect(configuration: config) { mediaChannel, error in
      self.mediaChannel = mediaChannel
      self.note(error.map { "failed: \($0.localizedDescription)" } ?? "connected")
    }
  }

  private func note(_ text: String) {
    happened.append(text)
    whatHappens()
  }
}

/// A screen isolated to the main actor, as in code that updates the user interface.
@MainActor class AudioScreen {
  var mediaChannel: MediaChannel?
  var names: [String] = []

  func connect(_ config: Configuration) {
    config.mediaChannelHandlers.onAddStream = { [weak self] stream in
      MainActor.assertIsolated()
      self?.names.append(stream.streamId)
    }
    Sora.shared.connect(configuration: config) { mediaChannel, _ in
      MainActor.assertIsolated()
      self.mediaChannel = mediaChannel
    }
  }
}
