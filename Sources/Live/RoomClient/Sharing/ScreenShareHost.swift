import FoundationEssentials
import Glibc
import Live
import Media
import NIOCore
public import Room
import Synchronization
import Tape

/// The program that shares a screen, and how to start it.
public struct ScreenShareProgram: Hashable, Sendable {
  /// The executable's path; nil if something else starts the program.
  public var executable: String?
  /// The program's arguments, which do not have to name the socket: the program finds it through
  /// the environment variable `RETAKE_SCREEN_SHARE`.
  public var arguments: [String]

  /// Creates a description of a program and its arguments.
  public init(executable: String?, arguments: [String] = []) {
    self.executable = executable
    self.arguments = arguments
  }
}

/// The receiving end of screen sharing: publishes another process's frames in the room.
final class ScreenShareHost: ScreenSharing {
  private struct State {
    var listener: (any Channel)?
    var helper: ShareChannel?
    var process: ChildProcess?
    var media: LocalMedia?
    var hasFinished = false
    var isOver = false
    /// Whether to remove the folder at the end.
    var madeFolder = false
  }

  private let folder: String
  private let helper: ScreenShareProgram
  private let room: WeakRoom
  private let state = Mutex(State())
  private let statuses: AsyncStream<ExtensionStatus>.Continuation

  init(
    folder: String, helper: ScreenShareProgram, room: Room,
    tell: @escaping @Sendable (ExtensionStatus) -> Void
  ) {
    self.folder = folder
    self.helper = helper
    self.room = WeakRoom()
    self.room.set(room)
    let (stream, continuation) = AsyncStream.makeStream(of: ExtensionStatus.self)
    statuses = continuation
    // Report outside of the room's step, so that a listener may call the room.
    Task { for await status in stream { tell(status) } }
  }

  deinit { statuses.finish() }

  func carryOut(_ order: ShareOrder) {
    switch order {
    case .launch: Task { await launch() }
    case .accept: state.withLock { $0.helper }?.send(.accept)
    case .end(let isLeaving): end(isLeaving: isLeaving)
    }
  }

  func reported(_ status: ExtensionStatus) { statuses.yield(status) }

  private func report(_ report: ShareReport) {
    room.room?.machine.step(.share(report))
  }

  private func launch() async {
    let path = ScreenShare.socketPath(appGroup: folder)
    switch NewFile.makeFolder(folder) {
    case .success(let isNew): state.withLock { $0.madeFolder = isNew }
    case .failure(let code): return report(.failed("\(folder): it cannot be created: \(code)"))
    }
    do {
      let listener = try await ShareChannel.listen(path: path) { [weak self] channel in
        guard let self else { return channel.close() }
        Task { await self.follow(channel) }
      }
      state.withLock { $0.listener = listener }
    } catch {
      return report(.failed("\(path): no helper can connect there: \(error)"))
    }
    guard let executable = helper.executable else { return }
    var environment = ProcessInfo.processInfo.environment
    environment[ScreenShare.variable] = folder
    do throws(SystemError) {
      let process = try ChildProcess(
        executable, helper.arguments, environment: environment, input: .inherited
      ) { [weak self] ending in
        switch ending {
        case .exited(let code), .killed(let code): self?.didEnd(code)
        }
      }
      state.withLock { $0.process = process }
    } catch {
      report(.failed("\(executable) cannot be started: \(error.description)"))
    }
  }

  /// Handles the process's exit; if the process sent no final message, it has crashed.
  private func didEnd(_ status: Int32) {
    let isSudden = state.withLock { state in
      defer { state.isOver = true }
      return !state.hasFinished && !state.isOver
    }
    if isSudden { report(.crashed(code: status)) }
    close()
  }

  private func follow(_ channel: ShareChannel) async {
    let isFirst = state.withLock { state in
      guard state.helper == nil, !state.isOver else { return false }
      state.helper = channel
      return true
    }
    guard isFirst else {
      channel.send(.refused)
      return channel.finish()
    }
    for await message in channel.messages { await handle(message) }
    let isSudden = state.withLock { state in
      // If there is a process, wait for its exit status instead.
      guard state.process == nil else { return false }
      defer { state.isOver = true }
      return !state.hasFinished && !state.isOver
    }
    if isSudden { report(.crashed(code: nil)) }
    await withdraw()
  }

  private func handle(_ message: ShareMessage) async {
    switch message {
    case .hello: report(.connected)
    case .started(let width, let height):
      report(.started(width: width, height: height))
      await publish()
    case .frame(let width, let height, let time, let samples):
      let media = state.withLock { $0.media }
      let buffer = I420Buffer(width: width, height: height, samples: samples)
      guard let frame = try? VideoFrame(buffer, timestampNanoseconds: time) else { return }
      media?.video?.source.capture(frame)
    case .paused: report(.paused)
    case .resumed: report(.resumed)
    case .finished:
      state.withLock { $0.hasFinished = true }
      report(.finished)
    case .accept, .stop, .refused: break
    }
  }

  private func publish() async {
    var options = LocalMediaOptions()
    options.videoExtraValue = ScreenShare.extraValue
    let media = LocalMedia(video: VideoSource(contentHint: .detail), audio: nil, options: options)
    state.withLock { $0.media = media }
    // The room reports a failure as an error.
    try? await room.room?.publish(media)
  }

  private func withdraw() async {
    let media = state.withLock { state in
      defer { state.media = nil }
      return state.media
    }
    if let media { try? await room.room?.unpublish(media) }
  }

  private func end(isLeaving: Bool) {
    let (helper, process) = state.withLock { state in
      state.hasFinished = true
      return (state.helper, state.process)
    }
    helper?.send(.stop(isLeaving: isLeaving))
    helper?.finish()
    Task {
      await withdraw()
      // The process may clean up during the pause that the room requires between two shares.
      try? await Task.sleep(for: .seconds(5))
      process?.terminate()
    }
    close()
  }

  private func close() {
    let (listener, madeFolder) = state.withLock { state in
      defer { (state.listener, state.madeFolder) = (nil, false) }
      return (state.listener, state.madeFolder)
    }
    listener?.close(promise: nil)
    guard madeFolder else { return }
    unlink(ScreenShare.socketPath(appGroup: folder))
    rmdir(folder)
  }
}

extension Room {
  /// Starts a process that shares a screen; its frames are published as another video with the
  /// extra value `screen`.
  /// - Parameters:
  ///   - appGroup: the socket's folder, which both processes use.
  ///   - helper: the program to start.
  ///   - completion: receives every status.
  /// - Throws: `RoomError` 1901 if the room is not joined, a process is running, or less than five
  ///   seconds have passed since the previous process ended.
  public func requestScreenShare(
    appGroup: String, helper: ScreenShareProgram,
    completion: @escaping @Sendable (ExtensionStatus) -> Void = { _ in }
  ) async throws(RoomError) {
    // There is nothing to await: the room answers immediately.
    try beginSharing(appGroup: appGroup, helper: helper, completion: completion)
  }

  /// Ends sharing immediately, without an event; sharing may start again after five seconds.
  public func stopScreenShare(isLeftRoom: Bool = false) {
    machine.post(.stopScreenShare(isLeaving: isLeftRoom))
  }
}
