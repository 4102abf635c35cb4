import Foundation
import Live
public import RetakeRTC
import Room
import RoomClient
import Synchronization

typealias CoreStatus = ExtensionStatus

/// Events between a room and the process that shares its screen.
public enum ScreenShareData {
  /// How far that process is.
  public enum ExtensionStatus: Int, Sendable {
    /// There is none.
    case notAvailable = 0
    /// It waits for the room.
    case broadcastReady = 1
    /// Its frames are sent.
    case broadcastStarted = 2
    /// It has ended.
    case broadcastClosed = 3

    init(_ core: CoreStatus) {
      self = ExtensionStatus(rawValue: core.rawValue) ?? .notAvailable
    }
  }

  /// Why it does not share, or shares no longer.
  public enum ExtensionErrorCode: Int, Error, Sendable {
    /// A frame that cannot be sent.
    case invalidData = 0
    /// The room has ended sharing.
    case stopBroadcast = 1
    /// The room was left.
    case meetingFinished = 2
    /// No room wants the frames.
    case broadcastFailed = 3
    /// The room is gone.
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

/// The side of the process that shares the screen.
public final class ScreenShare: Sendable {
  private struct State {
    var completion: Handed<(ScreenShareData.ExtensionErrorCode, String) -> Void>?
  }

  private let core: RoomClient.ScreenShare
  private let state = Mutex(State())

  init(appGroup: String) throws {
    core = try RoomClient.ScreenShare(appGroup: ShareFolder.path(appGroup))
  }

  /// Starts to share, once the room wants it.
  /// - Parameter completion: called once when sharing is over, or did not begin, with words for its
  ///   user; not where this side ended it.
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

  /// Sends no pictures for a while.
  public func pause() { core.pause() }

  /// Sends pictures again.
  public func resume() { core.resume() }

  /// Ends sharing; the closure is called when the room knows.
  public func stop(completion: @escaping () -> Void) {
    let told = Handed(completion)
    state.withLock { $0.completion = nil }
    Task { [core] in
      await core.stop()
      ConnectLive.calls.call { told.value() }
    }
  }

  /// Sends a picture; while paused, and while too much waits, it is left out.
  public func sendVideoFrame(sampleBuffer: CMSampleBuffer) {
    do throws(RoomClient.ExtensionErrorCode) {
      guard let frame = sampleBuffer.videoFrame else { throw .invalidData }
      try core.sendVideoFrame(frame)
    } catch {
      // What ended sharing is told by itself, and before its beginning there is nothing to tell.
      if error == .invalidData { end(.invalidData) }
    }
  }
}

/// Where a room and the process that shares a screen find one another.
enum ShareFolder {
  /// The folder of a group: itself where it is a path, else one of the user's.
  static func path(_ group: String) -> String {
    if group.hasPrefix("/") { return group }
    let environment = ProcessInfo.processInfo.environment
    let base =
      environment["XDG_RUNTIME_DIR"].map { $0 + "/retake" }
      ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.cache/retake"
    let name = group.map { $0.isLetter || $0.isNumber || ".-_".contains($0) ? $0 : "_" }
    return base + "/" + (name.isEmpty ? "screen" : "group-" + String(name))
  }

  /// The program of a name, by its path or on `PATH`; one that somebody else starts if there is
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
