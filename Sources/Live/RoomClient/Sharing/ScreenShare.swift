import FoundationEssentials
import Live
public import Media
public import Room
import Synchronization

/// The reason that screen sharing failed or ended.
public enum ExtensionErrorCode: Int, Error, Hashable, Sendable {
  /// A frame cannot be sent.
  case invalidData = 0
  /// The room ended sharing.
  case stopBroadcast = 1
  /// The participant left the room.
  case meetingFinished = 2
  /// No room accepts the frames.
  case broadcastFailed = 3
  /// The room is gone.
  case broadcastClosed = 4

  /// The room SDK's error code; nil if sharing ended without an error.
  public var roomError: RoomErrorCode? {
    switch self {
    case .invalidData: .shareEncodingFailed
    case .broadcastFailed: .shareRoomMissing
    case .broadcastClosed: .shareUnreachable
    case .stopBroadcast, .meetingFinished: nil
    }
  }
}

/// The sending end of screen sharing: passes a screen's frames to a room in another process.
public final class ScreenShare: Sendable {
  private struct State {
    var channel: ShareChannel?
    var isPaused = false
    var isAccepted = false
    var hasStarted = false
    var ending: ExtensionErrorCode?
    var stopped: [CheckedContinuation<Void, Never>] = []
  }

  private let appGroup: String
  private let state = Mutex(State())

  /// The environment variable that names the folder shared with the room.
  public static let variable = "RETAKE_SCREEN_SHARE"
  /// A shared screen's extra value.
  public static let extraValue = "screen"

  /// Creates the sending end, in the process that captures the screen.
  /// - Parameter appGroup: the folder that both processes use; nil for the folder that the
  ///   environment variable names.
  /// - Throws: `ExtensionErrorCode.broadcastFailed` if there is no folder.
  public init(appGroup: String? = nil) throws(ExtensionErrorCode) {
    guard let folder = appGroup ?? ProcessInfo.processInfo.environment[ScreenShare.variable] else {
      throw .broadcastFailed
    }
    self.appGroup = folder
  }

  static func socketPath(appGroup: String) -> String { appGroup + "/screen-share.sock" }

  /// Connects to the room, and returns once the room accepts frames.
  /// - Throws: `ExtensionErrorCode` if there is no room, or the room does not accept frames.
  public func start() async throws(ExtensionErrorCode) {
    let channel: ShareChannel
    do {
      channel = try await ShareChannel.connect(path: ScreenShare.socketPath(appGroup: appGroup))
    } catch {
      throw .broadcastFailed
    }
    state.withLock { $0.channel = channel }
    channel.send(.hello)
    var messages = channel.messages.makeAsyncIterator()
    guard await messages.next() == .accept else {
      channel.close()
      state.withLock { $0.channel = nil }
      throw .broadcastFailed
    }
    state.withLock { $0.isAccepted = true }
    Task { [weak self] in
      for await message in channel.messages {
        if case .stop(let isLeaving) = message {
          self?.end(isLeaving ? .meetingFinished : .stopBroadcast)
        }
      }
      self?.end(.broadcastClosed)
    }
  }

  private func end(_ reason: ExtensionErrorCode) {
    let waiting = state.withLock { state in
      if state.ending == nil { state.ending = reason }
      defer { state.stopped = [] }
      return state.stopped
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Why sharing ended; nil while it continues.
  public var ending: ExtensionErrorCode? { state.withLock { $0.ending } }

  /// Returns once the room has ended sharing or is gone.
  public func waitUntilEnded() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.ending == nil { state.stopped.append(continuation) }
        return state.ending != nil
      }
      if isOver { continuation.resume() }
    }
  }

  /// Drops frames until `resume` is called, and notifies the room's process.
  public func pause() { setPaused(true) }
  /// Sends frames again after `pause`, and notifies the room's process.
  public func resume() { setPaused(false) }

  private func setPaused(_ isPaused: Bool) {
    let channel = state.withLock { state in
      state.isPaused = isPaused
      return state.channel
    }
    channel?.send(isPaused ? .paused : .resumed)
  }

  /// Sends a frame; drops it while paused or if too much is queued.
  /// - Throws: `ExtensionErrorCode` if sharing has ended or has not started, or if a side of the
  ///   frame is not 2 to 4096 pixels long.
  public func sendVideoFrame(_ frame: VideoFrame) throws(ExtensionErrorCode) {
    let (channel, isPaused, ending) = state.withLock { state in
      (state.isAccepted ? state.channel : nil, state.isPaused, state.ending)
    }
    if let ending { throw ending }
    guard let channel else { throw .broadcastFailed }
    guard !isPaused else { return }
    let buffer = frame.videoFrame()
    let (width, height) = (buffer.width, buffer.height)
    guard width <= 4_096, height <= 4_096, width > 1, height > 1 else { throw .invalidData }
    let isFirst = state.withLock { state in
      defer { state.hasStarted = true }
      return !state.hasStarted
    }
    if isFirst { channel.send(.started(width: width, height: height)) }
    channel.send(
      .frame(
        width: width, height: height, time: frame.timestampNanoseconds, samples: buffer.samples))
  }

  /// Ends sharing, and returns once the room has been informed; returns immediately if sharing has
  /// not started.
  public func stop() async {
    guard let channel = state.withLock({ $0.channel }) else { return }
    channel.send(.finished)
    channel.finish()
    await waitUntilEnded()
  }
}

/// Passes a room's orders to the process that shares a screen.
protocol ScreenSharing: Sendable {
  func carryOut(_ order: ShareOrder)
  /// Handles a status that the room has reported.
  func reported(_ status: ExtensionStatus)
}
