public import Foundation
import Live
import RetakeRTC
import Room
public import RoomClient
import Synchronization

/// A room with its participants and their published media.
///
/// Its methods return at once, and may be called from any thread and from delegates.
public final class Room: Sendable {
  private let core: RoomClient.Room?
  private let objects = RoomObjects()
  private let forwarder: RoomForwarder
  /// The application's own participant.
  public let localParticipant: any LocalParticipant

  init(_ config: Config, _ delegate: any RoomDelegate) {
    forwarder = RoomForwarder(delegate, objects)
    // If no thread can be created, `core` stays nil and `connect` reports the failure.
    core = (try? ConnectLive.machine.begin()).map { [forwarder] session, audio in
      RoomClient.Room(
        .retake(ConnectLive.service.rooms, needsToken: true), config: config.core,
        session: session, label: "ConnectLive", audio: audio, delegate: forwarder)
    }
    localParticipant = LocalParticipantObject(core?.localParticipant, objects)
  }

  private static let noRoom = RoomError(
    .invalidState, "the system cannot start another thread for the room; close other rooms")

  private func room() throws(RoomError) -> RoomClient.Room {
    guard let core else { throw Room.noRoom }
    return core
  }

  // MARK: Connecting

  /// Publishes local media in this room immediately, or as soon as the room is connected.
  ///
  /// Later failures, such as a camera that does not start, are reported as room errors.
  /// - Throws: an error if there is no media or no room.
  public func publish(_ media: (any LocalMedia)?) throws {
    guard let media = media as? LocalMediaObject, let core else {
      throw RoomError(.invalidArgument, "there is no local media; create it with createLocalMedia")
    }
    objects.add(media)
    Task { [forwarder] in
      do throws(RoomError) {
        try await core.publish(media.core)
      } catch {
        forwarder.report(error)
      }
    }
  }

  /// Connects to a room; the delegate receives the result.
  /// - Parameter roomId: 1 to 32 letters, digits and hyphens.
  public func connect(roomId: String) {
    attempt { () throws(RoomError) in
      let room = try self.room()
      if let entry = ConnectLive.entry {
        try room.beginSigningIn(entry.present, entry.authenticator)
      }
      // A failure is reported both as an error and as a disconnection.
      try room.beginConnecting(roomId: roomId) { _ in }
    }
  }

  /// Leaves the room; the delegate's `onDisconnected` follows.
  public func disconnect() { core?.beginDisconnecting() }

  // MARK: Participants

  /// Remote participants, by identifier.
  public var remoteParticipants: [String: any RemoteParticipant] {
    (core?.remoteParticipants ?? [:]).mapValues { objects.participant($0) }
  }

  /// Returns the participants whose video is subscribed to.
  public func getVideoOccupants() -> [String: any RemoteParticipant] {
    occupants(core?.getVideoOccupants() ?? [])
  }

  /// Returns the participants whose audio the server has selected.
  public func getAudioOccupants() -> [String: any RemoteParticipant] {
    occupants(core?.getAudioOccupants() ?? [])
  }

  private func occupants(_ ids: [String]) -> [String: any RemoteParticipant] {
    remoteParticipants.filter { ids.contains($0.key) }
  }

  // MARK: Remote video

  /// Subscribes to several videos; failures are reported as room errors.
  public func subscribe(videoIds: [Int]) { subscribe(true, videoIds) }

  /// Subscribes to a video and returns the result.
  public func subscribe(videoId: Int) async -> Result<Void, any Error> {
    await withCheckedContinuation { continuation in
      subscribe(true, videoId) { continuation.resume(returning: $0) }
    }
  }

  /// Subscribes to a video; the closure receives the result.
  public func subscribe(
    videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void
  ) {
    subscribe(true, videoId, answer(completion))
  }

  /// Unsubscribes from several videos; failures are reported as room errors.
  public func unsubscribe(videoIds: [Int]) { subscribe(false, videoIds) }

  /// Unsubscribes from a video and returns the result.
  public func unsubscribe(videoId: Int) async -> Result<Void, any Error> {
    await withCheckedContinuation { continuation in
      subscribe(false, videoId) { continuation.resume(returning: $0) }
    }
  }

  /// Unsubscribes from a video; the closure receives the result.
  public func unsubscribe(
    videoId: Int, completion: @escaping (Result<Void, any Error>) -> Void
  ) {
    subscribe(false, videoId, answer(completion))
  }

  private func subscribe(_ isWanted: Bool, _ videoIds: [Int]) {
    attempt { () throws(RoomError) in
      try self.room().beginSubscribing(isWanted, videoIds: videoIds)
    }
  }

  private func subscribe(
    _ isWanted: Bool, _ videoId: Int,
    _ answer: @escaping @Sendable (Result<Void, any Error>) -> Void
  ) {
    begin(answer) { done throws(RoomError) in
      try self.room().beginSubscribing(isWanted, videoId: videoId, answered: done)
    }
  }

  // MARK: Audio and messages

  /// Mutes or unmutes all received audio.
  public func setMuted(_ isMuted: Bool) { core?.setMuted(isMuted) }

  /// Sends a message to the named participants, or to all if none are named.
  public func sendUserMessage(
    participantIds: [String], message: String,
    completion: @escaping (Result<Void, any Error>) -> Void
  ) {
    begin(answer(completion)) { done throws(RoomError) in
      try self.room().beginSending(
        UserMessage(targets: participantIds, text: message), answered: done)
    }
  }

  // MARK: Screen sharing

  /// Starts the screen-sharing process, or waits for it, and publishes its frames as another video.
  /// - Parameters:
  ///   - appGroup: the folder that both processes share: a path, or the name of a folder in the
  ///     user's runtime or cache folder.
  ///   - extensionName: the path or name of the program to start; if there is no such program, the
  ///     room waits for a process that calls `createScreenShare` with the group.
  ///   - completion: called with each of the process's states.
  /// - Throws: an error if there is no room, if a screen is already shared, or if sharing ended
  ///   less than five seconds ago.
  public func requestScreenShare(
    appGroup: String, extensionName: String,
    completion: @escaping (ScreenShareData.ExtensionStatus) -> Void
  ) throws {
    let told = Handed(completion)
    try room().beginSharing(
      appGroup: ShareFolder.path(appGroup), helper: ShareFolder.program(extensionName)
    ) { status in
      let status = ScreenShareData.ExtensionStatus(status)
      ConnectLive.calls.call { told.value(status) }
    }
  }

  /// Stops sharing immediately, without an event; sharing may start again after five seconds.
  public func stopScreenShare(isLeftRoom: Bool) { core?.stopScreenShare(isLeftRoom: isLeftRoom) }

  /// Stops sharing; the SDK's guide misspells the name in this way.
  public func stopScreenSahre(isLeftRoom: Bool) { stopScreenShare(isLeftRoom: isLeftRoom) }

  // MARK: Statistics

  /// Calls the closure with the selected remote participants' audio levels, from 0 to 100, by
  /// identifier.
  public func getAudioLevels(completion: @escaping ([String: Int]) -> Void) {
    let told = Handed(completion)
    let levels = core?.getAudioLevels() ?? [:]
    ConnectLive.calls.call { told.value(levels) }
  }

  /// Calls the closure with the statistics of sent media, by the identifiers of the statistics
  /// objects.
  public func getLocalStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
    let told = Handed(completion)
    Task { [core] in
      let report = await core?.getLocalStatsReport()
      ConnectLive.calls.call { told.value(Statistics.all(report)) }
    }
  }

  /// Calls the closure with the statistics of received media, by the identifiers of the statistics
  /// objects.
  public func getRemoteStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
    let told = Handed(completion)
    Task { [core] in
      let report = await core?.getRemoteStatsReport()
      ConnectLive.calls.call { told.value(Statistics.all(report)) }
    }
  }

  // MARK: Calls

  /// Runs a closure and reports its failure as a room error.
  private func attempt(_ body: () throws(RoomError) -> Void) {
    do throws(RoomError) {
      try body()
    } catch {
      forwarder.report(error)
    }
  }

  /// Starts a call and passes on its result exactly once, immediately or later.
  private func begin(
    _ answer: @escaping @Sendable (Result<Void, any Error>) -> Void,
    _ body: (@escaping @Sendable (RoomError?) -> Void) throws(RoomError) -> Void
  ) {
    do throws(RoomError) {
      try body { error in answer(error.map { .failure($0) } ?? .success(())) }
    } catch {
      answer(.failure(error))
    }
  }

  /// Calls the application's completion closure on the callback queue.
  private func answer(
    _ completion: @escaping (Result<Void, any Error>) -> Void
  ) -> @Sendable (Result<Void, any Error>) -> Void {
    let told = Handed(completion)
    return { result in ConnectLive.calls.call { told.value(result) } }
  }
}

// MARK: - Published

/// A property wrapper that replaces Combine's `Published`.
///
/// It may be set and read on any thread.
@propertyWrapper public final class Published<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var readers: [Int: AsyncStream<Value>.Continuation] = [:]
    var last = 0
  }

  private let state: Mutex<State>

  /// Creates a property with an initial value.
  public init(wrappedValue: Value) { state = Mutex(State(value: wrappedValue)) }

  deinit { for reader in state.withLock({ $0.readers.values.map(\.self) }) { reader.finish() } }

  /// The current value.
  public var wrappedValue: Value {
    get { state.withLock { $0.value } }
    set {
      let readers = state.withLock { state in
        state.value = newValue
        return Array(state.readers.values)
      }
      for reader in readers { reader.yield(newValue) }
    }
  }

  /// A stream of the current value and every later one; each access returns a new stream.
  public var projectedValue: AsyncStream<Value> {
    AsyncStream { continuation in
      state.withLock { state in
        state.last += 1
        let id = state.last
        state.readers[id] = continuation
        continuation.onTermination = { [weak self] _ in
          // Deferred to a task, because `projectedValue` may still hold the lock here.
          Task { self?.state.withLock { $0.readers[id] = nil } }
        }
        continuation.yield(state.value)
      }
    }
  }
}

// MARK: - RoomError: Foundation

// For applications that handle only Foundation's errors.
extension RoomError: LocalizedError, CustomNSError {
  /// The message, which is also the `localizedDescription`.
  public var errorDescription: String? { message }
  /// The error codes' domain.
  public static var errorDomain: String { "Retake.RoomError" }
  /// The error code's number, which `NSError` returns as its `code`.
  public var errorCode: Int { code.rawValue }
}
