import Live
public import RetakeRTC
import Room
import RoomClient
import Stats
import Synchronization

/// A connected channel.
public final class MediaChannel: Sendable {
  private struct State {
    var room: Room?
    var media: LocalMedia?
    var streams: [MediaStream] = []
    var audio: AudioSession?
    var isGivenUp = false
    /// The handlers that the room calls.
    var handlers: RoomClient.MediaChannelHandlers?
    /// Called once with the result of connecting.
    var handler: Handed<(MediaChannel?, (any Error)?) -> Void>?
  }

  /// The configuration that it was connected with.
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

  /// The received streams, in the order in which they were added.
  public var receiverStreams: [MediaStream] {
    streams.filter { $0.streamId != configuration.publisherStreamId }
  }

  /// All streams, including the local one; not on the page.
  public var streams: [MediaStream] { state.withLock { $0.streams } }

  /// The local stream; nil if nothing is sent; not on the page.
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

  /// Reports the result of connecting, once: first to the closure passed to `connect`.
  func answer(_ error: (any Error)?) {
    let told = state.withLock { state in
      defer { state.handler = nil }
      return state.handler
    }
    guard let told else { return }
    // The handlers hold the channel until now, and must not keep it any longer.
    state.withLock { $0.handlers }?.onConnect = nil
    calls.call {
      told.value(error == nil ? self : nil, error)
      self.configuration.mediaChannelHandlers.onConnect?(error)
    }
  }

  /// Connects; the room's handlers report the result, once the audio session has the category and
  /// mode of a call.
  func connect(_ machine: MachineSession) async {
    do {
      let (session, audio) = try machine.begin()
      var native = configuration.core
      let handlers = RoomClient.MediaChannelHandlers()
      configuration.mediaChannelHandlers.follow(handlers, self)
      state.withLock { $0.handlers = handlers }
      native.mediaChannelHandlers = handlers
      var config = RoomConfig()
      // The SDK plays all received audio, whoever speaks.
      config.audioOccupants = nil
      let room = Room(
        .sora(native), config: config, session: session, label: "Sora", audio: audio)
      let media = native.role == .recvonly ? nil : try Self.media(native)
      let isGivenUp = state.withLock { state in
        (state.room, state.media, state.audio) = (room, media, audio)
        return state.isGivenUp
      }
      guard !isGivenUp else { throw RoomError(.invalidState, "the attempt was given up") }
      if let media { try await room.publish(media) }
      try await room.connect(roomId: configuration.channelId)
    } catch {
      answer(error)
    }
  }

  /// Camera and microphone; black frames without a camera.
  private static func media(_ configuration: SoraConfiguration) throws(RoomError) -> LocalMedia {
    var options = LocalMediaOptions()
    options.hasVideo = configuration.videoEnabled
    options.hasAudio = configuration.audioEnabled
    return try LocalMedia(
      options: options, permissions: AVCaptureDevice.permissions,
      cameras: { AVCaptureDevice.capturer($0) ?? BlackVideoCapturer() })
  }

  /// Leaves the channel; not on the page.
  public func disconnect() {
    let room = state.withLock { state in
      state.isGivenUp = true
      return state.room
    }
    room?.beginDisconnecting()
  }

  // MARK: Beyond the page

  /// The W3C statistics of the channel; not on the page.
  public func getStats(handler: @escaping (RTCStatisticsReport) -> Void) {
    let told = Handed(handler)
    let room = state.withLock { $0.room }
    Task { [calls] in
      let report = RTCStatisticsReport(await room?.getStats() ?? StatsReport())
      calls.call { told.value(report) }
    }
  }

  /// Stops or restarts the microphone itself; not on the page.
  /// - Throws: the device's error.
  public func setAudioHardMute(_ isMuted: Bool) async throws {
    let audio = state.withLock { $0.audio }
    if isMuted { try audio?.pauseRecording() } else { try audio?.resumeRecording() }
  }
}
