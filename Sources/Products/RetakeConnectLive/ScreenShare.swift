import Foundation
import Live
public import RetakeRTC
import Room
import RoomClient
import Synchronization

typealias CoreStatus = ExtensionStatus

/// Events between a room and its screen-sharing process.
public enum ScreenShareData {
  /// The state of that process.
  public enum ExtensionStatus: Int, Sendable {
    /// There is none.
    case notAvailable = 0
    /// It is waiting for the room.
    case broadcastReady = 1
    /// Its frames are being sent.
    case broadcastStarted = 2
    /// It ended.
    case broadcastClosed = 3

    init(_ core: CoreStatus) {
      self = ExtensionStatus(rawValue: core.rawValue) ?? .notAvailable
    }
  }

  /// Why it does not share, or stopped sharing.
  public enum ExtensionErrorCode: Int, Error, Sendable {
    /// A frame that cannot be sent.
    case invalidData = 0
    /// The room stopped sharing.
    case stopBroadcast = 1
    /// The room was left.
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
      case .invalidData: "a picture of the screen cannot be sent"
      case .stopBroadcast: "the room has ended the sharing of the screen"
      case .meetingFinished: "the room was left"
      case .broadcastFailed: "no room wants the screen"
      case .broadcastClosed: "the room is gone"
      }
    }
  }
}

/// The screen-sharing side, in the process that captures.
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
  /// - Parameter completion: called once when sharing ended or did not start, with a message for
  ///   the user; not when this side stopped it.
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

  /// Pauses sending.
  public func pause() { core.pause() }

  /// Resumes sending.
  public func resume() { core.resume() }

  /// Stops sharing; the closure is called when the room has been notified.
  public func stop(completion: @escaping () -> Void) {
    let told = Handed(completion)
    state.withLock { $0.completion = nil }
    Task { [core] in
      await core.stop()
      ConnectLive.calls.call { told.value() }
    }
  }

  /// Sends an image; it is dropped while paused, and while too many are queued.
  public func sendVideoFrame(sampleBuffer: CMSampleBuffer) {
    do throws(RoomClient.ExtensionErrorCode) {
      guard let frame = sampleBuffer.videoFrame else { throw .invalidData }
      try core.sendVideoFrame(frame)
    } catch {
      // The end of sharing is reported separately, and before its start there is nothing to report.
      if error == .invalidData { end(.invalidData) }
    }
  }
}

/// The folder through which a room and its screen-sharing process find each other.
enum ShareFolder {
  /// The folder of a group: a path unchanged, or a name below a folder of the user.
  static func path(_ group: String) -> String {
    if group.hasPrefix("/") { return group }
    let environment = ProcessInfo.processInfo.environment
    let base =
      environment["XDG_RUNTIME_DIR"].map { $0 + "/retake" }
      ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.cache/retake"
    let name = group.map { $0.isLetter || $0.isNumber || ".-_".contains($0) ? $0 : "_" }
    return base + "/" + (name.isEmpty ? "screen" : "group-" + String(name))
  }

  /// The program with a name, by its path or on `PATH`; one that is started externally if there is
  /// none.
  static func program(_ name: String) -> ScreenShareProgram {
    if name.contains("/") { return ScreenShareProgram(executable: name) }
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    let found = folders.lazy.map { "\($0)/\(name)" }.first {
      !name.isEmpty && FileManager.default.isExecutableFile(atPath: $0)
    }
    return ScreenShareProgram(executable: found)
  }
}
