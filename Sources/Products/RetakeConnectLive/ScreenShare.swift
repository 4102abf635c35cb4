import Foundation
import Live
public import RetakeRTC
import Room
import RoomClient
import Synchronization

typealias CoreStatus = ExtensionStatus

/// The types that a room and its screen-sharing process exchange.
public enum ScreenShareData {
  /// The screen-sharing process's state.
  public enum ExtensionStatus: Int, Sendable {
    /// No process is running.
    case notAvailable = 0
    /// The process is waiting for the room.
    case broadcastReady = 1
    /// The process is sending frames.
    case broadcastStarted = 2
    /// The process ended.
    case broadcastClosed = 3

    init(_ core: CoreStatus) {
      self = ExtensionStatus(rawValue: core.rawValue) ?? .notAvailable
    }
  }

  /// The reason that a screen is not shared, or is no longer shared.
  public enum ExtensionErrorCode: Int, Error, Sendable {
    /// A frame cannot be sent.
    case invalidData = 0
    /// The room stopped sharing.
    case stopBroadcast = 1
    /// The participant left the room.
    case meetingFinished = 2
    /// No room accepts the frames.
    case broadcastFailed = 3
    /// The room no longer exists.
    case broadcastClosed = 4

    init(_ core: RoomClient.ExtensionErrorCode) {
      self = ExtensionErrorCode(rawValue: core.rawValue) ?? .broadcastFailed
    }

    fileprivate var text: String {
      switch self {
      case .invalidData: "a screen image cannot be sent"
      case .stopBroadcast: "the room has ended the sharing of the screen"
      case .meetingFinished: "the room was left"
      case .broadcastFailed: "no room is waiting for the screen"
      case .broadcastClosed: "the room is gone"
      }
    }
  }
}

/// Sends the screen to a room, in the process that captures it.
public final class ScreenShare: Sendable {
  private struct State {
    var completion: Handed<(ScreenShareData.ExtensionErrorCode, String) -> Void>?
  }

  private let core: RoomClient.ScreenShare
  private let state = Mutex(State())

  init(appGroup: String) throws {
    core = try RoomClient.ScreenShare(appGroup: ShareFolder.path(appGroup))
  }

  /// Starts sharing, once the room requests it.
  /// - Parameter completion: called once when sharing has ended or did not start, with a message
  ///   for the user; not called after `stop`.
  public func start(
    completion: @escaping (ScreenShareData.ExtensionErrorCode, String) -> Void
  ) {
    let told = Handed(completion)
    state.withLock { $0.completion = told }
    Task { [core] in
      do throws(RoomClient.ExtensionErrorCode) {
        try await core.start()
        await core.waitUntilEnded()
        self.end(ScreenShareData.ExtensionErrorCode(core.ending ?? .broadcastClosed))
      } catch {
        self.end(ScreenShareData.ExtensionErrorCode(error))
      }
    }
  }

  private func end(_ reason: ScreenShareData.ExtensionErrorCode) {
    let told = state.withLock { state in
      defer { state.completion = nil }
      return state.completion
    }
    if let told { ConnectLive.calls.call { told.value(reason, reason.text) } }
  }

  /// Pauses sending frames.
  public func pause() { core.pause() }

  /// Resumes sending frames.
  public func resume() { core.resume() }

  /// Stops sharing; the closure is called once the room has been notified.
  public func stop(completion: @escaping () -> Void) {
    let told = Handed(completion)
    state.withLock { $0.completion = nil }
    Task { [core] in
      await core.stop()
      ConnectLive.calls.call { told.value() }
    }
  }

  /// Sends an image; drops it while paused, or if too many images are queued.
  public func sendVideoFrame(sampleBuffer: CMSampleBuffer) {
    do throws(RoomClient.ExtensionErrorCode) {
      guard let frame = sampleBuffer.videoFrame else { throw .invalidData }
      try core.sendVideoFrame(frame)
    } catch {
      // The end of sharing is reported separately, and before the start there is nothing to report.
      if error == .invalidData { end(.invalidData) }
    }
  }
}

/// The folder through which a room and its screen-sharing process find each other.
enum ShareFolder {
  /// Returns a group's folder.
  ///
  /// A path is returned unchanged. A name becomes a folder in the user's runtime or cache folder.
  static func path(_ group: String) -> String {
    if group.hasPrefix("/") { return group }
    let environment = ProcessInfo.processInfo.environment
    let base =
      environment["XDG_RUNTIME_DIR"].map { $0 + "/retake" }
      ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.cache/retake"
    let name = group.map { $0.isLetter || $0.isNumber || ".-_".contains($0) ? $0 : "_" }
    return base + "/" + (name.isEmpty ? "screen" : "group-" + String(name))
  }

  /// Returns the program at a path, or the program with that name in `PATH`.
  ///
  /// If `PATH` has no such program, the room waits for a process that is started separately.
  static func program(_ name: String) -> ScreenShareProgram {
    if name.contains("/") { return ScreenShareProgram(executable: name) }
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    let found = folders.lazy.map { "\($0)/\(name)" }.first {
      !name.isEmpty && FileManager.default.isExecutableFile(atPath: $0)
    }
    return ScreenShareProgram(executable: found)
  }
}
