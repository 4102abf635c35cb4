public import Foundation
import Live
import RetakeRTC
import Room
public import RoomClient
import Synchronization

/// A room: its participants, and what they publish and receive.
///
/// Its methods return at once, and may be called from any thread and from delegates.
public final class Room: Sendable {
  private let core: RoomClient.Room?
  private let objects = RoomObjects()
  private let forwarder: RoomForwarder
  /// The local participant.
  public let localParticipant: any LocalParticipant

  init(_ config: Config, _ delegate: any RoomDelegate) {
    forwarder = RoomForwarder(delegate, objects)
    // If no thread can be created there is no room; `connect` reports it.
    core = (try? ConnectLive.machine.begin()).map { [forwarder] session, audio in
      RoomClient.Room(
        .retake(ConnectLive.service.rooms, needsToken: true), config: config.core,
        session: session, label: "ConnectLive", audio: audio, delegate: forwarder)
    }
    localParticipant = LocalParticipantObject(core?.localParticipant, objects)
  }

  private static let noRoom = RoomError(
    .invalidState, "the system refuses a thread for the room; end others")

  private func room() throws(RoomError) -> RoomClient.Room {
    guard let core else { throw Room.noRoom }
    return core
  }

  // MARK: Connecting

  /// Publishes local media in this room, at once or when the room is connected.
  ///
  /// Later failures, such as a camera that does not start, are errors of the room.
  /// - Throws: an error when there is no media.
  public func publish(_ media: (any LocalMedia)?) throws {
    guard let media = media as? LocalMediaObject, let core else {
      throw RoomError(.invalidArgument, "there is no own media; createLocalMedia makes it")
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
      // A failure is reported as an error and as a disconnection.
      try room.beginConnecting(roomId: roomId) { _ in }
    }
  }

  /// Leaves the room; the delegate is notified when that is done.
  public func disconnect() { core?.beginDisconnecting() }

  // MARK: Participants

  /// The remote participants, by identifier.
  public var remoteParticipants: [String: any RemoteParticipant] {
    (core?.remoteParticipants ?? [:]).mapValues { objects.participant($0) }
  }

  /// The participants whose video is subscribed to.
  public func getVideoOccupants() -> [String: any RemoteParticipant] {
    occupants(core?.getVideoOccupants() ?? [])
  }

  /// The participants whose audio the server has selected.
  public func getAudioOccupants() -> [String: any RemoteParticipant] {
    occupants(core?.getAudioOccupants() ?? [])
  }

  private func occupants(_ ids: [String]) -> [String: any RemoteParticipant] {
    remoteParticipants.filter { ids.contains($0.key) }
  }

  // MARK: Remote video

  /// Subscribes to several videos; failures are errors of the room.
  public func subscribe(videoIds: [Int]) { subscribe(true, videoIds) }

  /// Subscribes to a video.
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

  /// Unsubscribes from several videos; failures are errors of the room.
  public func unsubscribe(videoIds: [Int]) { subscribe(false, videoIds) }

  /// Unsubscribes from a video.
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

  /// Sends a message to participants; to everyone if none is named.
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

  /// Requests the screen-sharing process, whose frames are published as another video.
  /// - Parameters:
  ///   - appGroup: the name of the folder that both processes share: a path, or a name that stands
  ///     for a folder of the user.
  ///   - extensionName: the program to start, by its path or its name; if there is no such program,
  ///     the room waits for a process that calls `createScreenShare` with the group.
  ///   - completion: called with each of its states.
  /// - Throws: an error when there is no room, when a screen is already shared, or within five
  ///   seconds of the end of the previous one.
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

  /// Stops sharing at once, without an event; another can start after five seconds.
  public func stopScreenShare(isLeftRoom: Bool) { core?.stopScreenShare(isLeftRoom: isLeftRoom) }

  /// Stops sharing; the guide spells it so in one place.
  public func stopScreenSahre(isLeftRoom: Bool) { stopScreenShare(isLeftRoom: isLeftRoom) }

  // MARK: Statistics

  /// Returns the levels of the selected remote audio: 0 to 100, by identifier.
  public func getAudioLevels(completion: @escaping ([String: Int]) -> Void) {
    let told = Handed(completion)
    let levels = core?.getAudioLevels() ?? [:]
    ConnectLive.calls.call { told.value(levels) }
  }

  /// Returns the statistics of what is sent, by identifier.
  public func getLocalStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
    let told = Handed(completion)
    Task { [core] in
      let report = await core?.getLocalStatsReport()
      ConnectLive.calls.call { told.value(Statistics.all(report)) }
    }
  }

  /// Returns the statistics of what is received, by identifier.
  public func getRemoteStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
    let told = Handed(completion)
    Task { [core] in
      let report = await core?.getRemoteStatsReport()
      ConnectLive.calls.call { told.value(Statistics.all(report)) }
    }
  }

  // MARK: Calls

  /// Makes a call whose failure is reported as an error of the room.
  private func attempt(_ body: () throws(RoomError) -> Void) {
    do throws(RoomError) {
      try body()
    } catch {
      forwarder.report(error)
    }
  }

  /// Makes a call that completes at once or later, exactly once.
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

/// An observable property, in place of Combine's wrapper.
///
/// It may be set and read on any thread.
@propertyWrapper public final class Published<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var readers: [Int: AsyncStream<Value>.Continuation] = [:]
    var last = 0
  }

  private let state: Mutex<State>

  /// Creates the property with an initial value.
  public init(wrappedValue: Value) { state = Mutex(State(value: wrappedValue)) }

  deinit { for reader in state.withLock({ $0.readers.values.map(\.self) }) { reader.finish() } }

  /// The value.
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

  /// The current value and every later one; each access returns a new stream.
  public var projectedValue: AsyncStream<Value> {
    AsyncStream { continuation in
      state.withLock { state in
        state.last += 1
        let id = state.last
        state.readers[id] = continuation
        continuation.onTermination = { [weak self] _ in
          // Not within this call, which holds the lock.
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
  /// A description of the error.
  public var errorDescription: String? { message }
  /// The domain of the error codes.
  public static var errorDomain: String { "Retake.RoomError" }
  /// The error code.
  public var errorCode: Int { code.rawValue }
}
