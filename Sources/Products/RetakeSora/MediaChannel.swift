import Live
import Media
public import RetakeRTC
import Room
import RoomClient
import Stats
import Synchronization

/// A connected Sora channel.
public final class MediaChannel: Sendable {
  private struct State {
    var room: Room?
    var media: LocalMedia?
    var streams: [MediaStream] = []
    var audio: AudioSession?
    var isGivenUp = false
    /// The room's handlers, which forward events to the application's handlers.
    var handlers: RoomClient.MediaChannelHandlers?
    /// Called once with the result of connecting.
    var handler: Handed<(MediaChannel?, (any Error)?) -> Void>?
  }

  /// The configuration used to connect.
  public let configuration: Configuration
  let calls: CallbackQueue
  private let state: Mutex<State>

  init(
    _ configuration: Configuration, _ calls: CallbackQueue,
    _ handler: @escaping (MediaChannel?, (any Error)?) -> Void
  ) {
    (self.configuration, self.calls) = (configuration, calls)
    state = Mutex(State(handler: Handed(handler)))
  }

  // MARK: Streams

  /// Received streams, in the order in which they were added.
  public var receiverStreams: [MediaStream] {
    streams.filter { $0.streamId != configuration.publisherStreamId }
  }

  /// All streams, including the local one.
  public var streams: [MediaStream] { state.withLock { $0.streams } }

  /// The local stream; nil if nothing is sent.
  public var senderStream: MediaStream? {
    streams.first { $0.streamId == configuration.publisherStreamId }
  }

  func added(_ core: Live.MediaStream) -> MediaStream {
    state.withLock { state in
      if let known = state.streams.first(where: { $0.core === core }) { return known }
      let stream = MediaStream(core, core.isRemote ? nil : state.media)
      state.streams.append(stream)
      return stream
    }
  }

  func removed(_ core: Live.MediaStream) -> MediaStream? {
    state.withLock { state in
      let stream = state.streams.first { $0.core === core }
      state.streams.removeAll { $0.core === core }
      return stream
    }
  }

  // MARK: Connecting

  /// Reports the result of connecting once: first to the closure passed to `connect`, then to the
  /// handlers.
  func answer(_ error: (any Error)?) {
    let told = state.withLock { state in
      defer { state.handler = nil }
      return state.handler
    }
    guard let told else { return }
    // The room's `onConnect` handler keeps this channel alive; release it now that connecting has
    // ended.
    state.withLock { $0.handlers }?.onConnect = nil
    calls.call {
      told.value(error == nil ? self : nil, error)
      self.configuration.mediaChannelHandlers.onConnect?(error)
    }
  }

  /// Connects the channel.
  ///
  /// The room's handlers report the result after the audio session has the category and mode of a
  /// call.
  func connect(_ machine: MachineSession) async {
    do {
      let (session, audio) = try machine.begin()
      var native = configuration.core
      let handlers = RoomClient.MediaChannelHandlers()
      configuration.mediaChannelHandlers.follow(handlers, self)
      state.withLock { $0.handlers = handlers }
      native.mediaChannelHandlers = handlers
      var config = RoomConfig()
      // Like the SDK, play all received audio, not only the loudest.
      config.audioOccupants = nil
      let room = Room(
        .sora(native), config: config, session: session, label: "Sora", audio: audio)
      let media = native.role == .recvonly ? nil : try Self.media(native)
      let isGivenUp = state.withLock { state in
        (state.room, state.media, state.audio) = (room, media, audio)
        return state.isGivenUp
      }
      guard !isGivenUp else { throw RoomError(.invalidState, "the attempt was abandoned") }
      if let media { try await room.publish(media) }
      try await room.connect(roomId: configuration.channelId)
    } catch {
      answer(error)
    }
  }

  /// Creates media from the camera and the microphone; without a camera, the video is black.
  private static func media(_ configuration: SoraConfiguration) throws(RoomError) -> LocalMedia {
    var options = LocalMediaOptions()
    options.hasVideo = configuration.videoEnabled
    options.hasAudio = configuration.audioEnabled
    return try LocalMedia(
      options: options, permissions: AVCaptureDevice.permissions,
      cameras: { AVCaptureDevice.capturer($0) ?? BlackVideoCapturer() })
  }

  /// Leaves the channel.
  public func disconnect() {
    let room = state.withLock { state in
      state.isGivenUp = true
      return state.room
    }
    room?.beginDisconnecting()
  }

  // MARK: Beyond the audio page of the SDK's documentation

  /// Returns the channel's W3C statistics.
  public func getStats(handler: @escaping (RTCStatisticsReport) -> Void) {
    let told = Handed(handler)
    let room = state.withLock { $0.room }
    Task { [calls] in
      let report = RTCStatisticsReport(await room?.getStats() ?? StatsReport())
      calls.call { told.value(report) }
    }
  }

  /// Stops or restarts the microphone itself.
  /// - Throws: the device's error.
  public func setAudioHardMute(_ isMuted: Bool) async throws {
    let audio = state.withLock { $0.audio }
    if isMuted { try audio?.pauseRecording() } else { try audio?.resumeRecording() }
  }
}

// MARK: - MediaChannelHandlers

/// How a channel ended.
public enum SoraCloseEvent: Sendable {
  /// A normal end, with the server's code and reason.
  case ok(code: Int, reason: String)
  /// An error ended the channel.
  case error(any Error)
}

/// Handlers for a channel's events; nil handlers are not called.
///
/// They are called one at a time on the callback queue.
public final class MediaChannelHandlers: Sendable {
  private struct State {
    var onConnect: Handed<((any Error)?) -> Void>?
    var onAddStream: Handed<(MediaStream) -> Void>?
    var onDisconnect: Handed<(SoraCloseEvent) -> Void>?
    var onRemoveStream: Handed<(MediaStream) -> Void>?
    var onReceiveSignaling: Handed<(String) -> Void>?
  }

  private let state = Mutex(State())

  /// Creates handlers that are all nil.
  public init() {}

  private func value<Value>(_ path: any KeyPath<State, Handed<Value>?> & Sendable) -> Value? {
    state.withLock { $0[keyPath: path] }?.value
  }

  private func set<Value>(
    _ path: any WritableKeyPath<State, Handed<Value>?> & Sendable, _ value: Value?
  ) {
    let handed = value.map { Handed($0) }
    state.withLock { $0[keyPath: path] = handed }
  }

  /// Called with nil once the channel is connected, or with the error if connecting failed.
  public var onConnect: (((any Error)?) -> Void)? {
    get { value(\.onConnect) }
    set { set(\.onConnect, newValue) }
  }
  /// Called with each stream that is added: the local stream, whose identifier is
  /// `publisherStreamId`, or a received stream, whose identifier is that of the sender's
  /// connection.
  public var onAddStream: ((MediaStream) -> Void)? {
    get { value(\.onAddStream) }
    set { set(\.onAddStream, newValue) }
  }
  /// Called when the channel has ended, with the reason; not called if connecting failed.
  public var onDisconnect: ((SoraCloseEvent) -> Void)? {
    get { value(\.onDisconnect) }
    set { set(\.onDisconnect, newValue) }
  }
  /// Called with each stream that is removed.
  public var onRemoveStream: ((MediaStream) -> Void)? {
    get { value(\.onRemoveStream) }
    set { set(\.onRemoveStream, newValue) }
  }
  /// Called with each message from the server, as JSON.
  public var onReceiveSignaling: ((String) -> Void)? {
    get { value(\.onReceiveSignaling) }
    set { set(\.onReceiveSignaling, newValue) }
  }

  /// Forwards the room's events to these handlers.
  func follow(_ core: RoomClient.MediaChannelHandlers, _ channel: MediaChannel) {
    core.onConnect = { channel.answer($0) }
    core.onAddStream = { [weak channel] stream in
      guard let channel else { return }
      let stream = channel.added(stream)
      channel.calls.call { self.onAddStream?(stream) }
    }
    core.onRemoveStream = { [weak channel] stream in
      guard let channel, let stream = channel.removed(stream) else { return }
      channel.calls.call { self.onRemoveStream?(stream) }
    }
    core.onReceiveSignaling = { [weak channel] text in
      channel?.calls.call { self.onReceiveSignaling?(text) }
    }
    core.onDisconnect = { [weak channel] event in
      let told: SoraCloseEvent
      switch event {
      case .ok(let code, let reason): told = .ok(code: code, reason: reason)
      case .error(let error): told = .error(error)
      }
      channel?.calls.call { self.onDisconnect?(told) }
    }
  }
}

// MARK: - MediaStream

/// A channel's local stream, or a received stream.
public final class MediaStream: Sendable {
  let core: Live.MediaStream
  /// The local media; nil for a received stream.
  private let media: LocalMedia?
  private let shown = Mutex<ShownFrames?>(nil)
  private let isFilled = Mutex(false)

  init(_ core: Live.MediaStream, _ media: LocalMedia?) {
    (self.core, self.media) = (core, media)
  }

  /// The stream's identifier: `publisherStreamId` for the local stream, otherwise the identifier of
  /// the connection that sends it.
  public var streamId: String { core.id }

  /// Whether the audio is enabled; false if there is none.
  ///
  /// While disabled, the local stream sends silence and the microphone keeps running.
  public var audioEnabled: Bool {
    get { core.audioEnabled }
    set { core.audioEnabled = newValue }
  }

  /// The volume of received audio, 0 to 10; nil for the local stream, whose volume cannot be
  /// changed.
  ///
  /// 0 is silent, 1 is unchanged; other values are clamped.
  public var remoteAudioVolume: Double? {
    get { core.remoteAudioVolume }
    set { core.remoteAudioVolume = newValue }
  }

  // MARK: Beyond the audio page of the SDK's documentation

  /// Whether the video is enabled rather than black.
  public var videoEnabled: Bool {
    get { core.videoEnabled }
    set { core.videoEnabled = newValue }
  }

  /// Displays the video in a renderer with libwebrtc's interface from now on.
  ///
  /// It replaces the previous renderer; nil removes it.
  public func setVideoRenderer(_ renderer: (any RTCVideoRenderer)?) {
    let next = renderer.map { ShownFrames($0) }
    let former = shown.withLock { shown in
      defer { shown = next }
      return shown
    }
    for track in core.videoTracks {
      if let track = track as? RemoteVideoTrack {
        former.map { track.remove($0) }
        next.map { track.add($0) }
      } else if let track = track as? LocalVideoTrack {
        former.map { track.remove($0) }
        next.map { track.add($0) }
      }
    }
  }

  /// Sends an application's video frame on the local stream, with its timestamp.
  ///
  /// The first such frame stops the camera.
  public func send(videoFrame: RTCVideoFrame?) {
    guard let frame = videoFrame?.native else { return }
    let isFirst = isFilled.withLock { isFilled in
      defer { isFilled = true }
      return !isFilled
    }
    if isFirst { media?.endCapturing() }
    media?.video?.source.capture(frame)
  }
}
