import Live
import RetakeRTC
import Room
import RoomClient
import Synchronization

/// A room: who is in it, what they publish, what of it is received.
///
/// Its methods return at once, and may be called from any thread and from delegates.
public final class Room: Sendable {
  private let core: RoomClient.Room?
  private let objects = RoomObjects()
  private let forwarder: RoomForwarder
  /// This side.
  public let localParticipant: any LocalParticipant

  init(_ config: Config, _ delegate: any RoomDelegate) {
    forwarder = RoomForwarder(delegate, objects)
    // Without a thread there is no room: connecting says so.
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

  // MARK: Coming and going

  /// Has local media sent in this room: at once, or when the room is there.
  ///
  /// What goes wrong later, as a camera that does not start, is an error of the room.
  /// - Throws: an error where there is no media.
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

  /// Enters a room; the delegate is notified of the result.
  ///
  /// - Parameter roomId: 1 to 32 letters, digits and hyphens.
  public func connect(roomId: String) {
    attempt { () throws(RoomError) in
      let room = try self.room()
      if let entry = ConnectLive.entry {
        try room.beginSigningIn(entry.present, entry.authenticator)
      }
      // What ends connecting is told as an error and as the end.
      try room.beginConnecting(roomId: roomId) { _ in }
    }
  }

  /// Leaves the room; the delegate is notified when that is done.
  public func disconnect() { core?.beginDisconnecting() }

  // MARK: Participants

  /// The others that are there, by identifier.
  public var remoteParticipants: [String: any RemoteParticipant] {
    (core?.remoteParticipants ?? [:]).mapValues { objects.participant($0) }
  }

  /// Those whose video was subscribed to.
  public func getVideoOccupants() -> [String: any RemoteParticipant] {
    occupants(core?.getVideoOccupants() ?? [])
  }

  /// Those whose audio the server has chosen to be heard.
  public func getAudioOccupants() -> [String: any RemoteParticipant] {
    occupants(core?.getAudioOccupants() ?? [])
  }

  private func occupants(_ ids: [String]) -> [String: any RemoteParticipant] {
    remoteParticipants.filter { ids.contains($0.key) }
  }

  // MARK: Video of others

  /// Subscribes to several videos; what goes wrong is an error of the room.
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

  /// Subscribes to several videos no longer; what goes wrong is an error of the room.
  public func unsubscribe(videoIds: [Int]) { subscribe(false, videoIds) }

  /// Subscribes to a video no longer.
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

  /// Mutes all that is received, or no longer.
  public func setMuted(_ isMuted: Bool) { core?.setMuted(isMuted) }

  /// Sends a message to participants; to everyone where none is named.
  public func sendUserMessage(
    participantIds: [String], message: String,
    completion: @escaping (Result<Void, any Error>) -> Void
  ) {
    begin(answer(completion)) { done throws(RoomError) in
      try self.room().beginSending(
        UserMessage(targets: participantIds, text: message), answered: done)
    }
  }

  // MARK: The screen

  /// Asks for the process that shares the screen: its frames are published as a further video.
  /// - Parameters:
  ///   - appGroup: what both processes call their common folder: a path, or a name that stands for
  ///     a folder of the user's.
  ///   - extensionName: the program to start, by its path or its name; if there is none of this
  ///     name, the room waits for whoever calls `createScreenShare` with the group.
  ///   - completion: called with each of its states.
  /// - Throws: an error where there is no room, where one shares already, or within the five
  ///   seconds that the one before needs to clean up.
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

  /// Ends sharing at once, without an event; the next one may begin after five seconds.
  public func stopScreenShare(isLeftRoom: Bool) { core?.stopScreenShare(isLeftRoom: isLeftRoom) }

  /// The same, as the guide spells it in one place.
  public func stopScreenSahre(isLeftRoom: Bool) { stopScreenShare(isLeftRoom: isLeftRoom) }

  // MARK: Statistics

  /// How loud the others are whose audio is heard: 0 to 100, by identifier.
  public func getAudioLevels(completion: @escaping ([String: Int]) -> Void) {
    let told = Handed(completion)
    let levels = core?.getAudioLevels() ?? [:]
    ConnectLive.calls.call { told.value(levels) }
  }

  /// The statistics of what is sent, by identifier.
  public func getLocalStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
    let told = Handed(completion)
    Task { [core] in
      let report = await core?.getLocalStatsReport()
      ConnectLive.calls.call { told.value(Statistics.all(report)) }
    }
  }

  /// The statistics of what is received, by identifier.
  public func getRemoteStatsReport(completion: @escaping ([String: Statistics]) -> Void) {
    let told = Handed(completion)
    Task { [core] in
      let report = await core?.getRemoteStatsReport()
      ConnectLive.calls.call { told.value(Statistics.all(report)) }
    }
  }

  // MARK: Answers

  /// Makes a call whose refusal is an error of the room.
  private func attempt(_ body: () throws(RoomError) -> Void) {
    do throws(RoomError) {
      try body()
    } catch {
      forwarder.report(error)
    }
  }

  /// Makes a call that is answered at once or later, once.
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

  /// Hands a closure of the application its answer on the callback queue.
  private func answer(
    _ completion: @escaping (Result<Void, any Error>) -> Void
  ) -> @Sendable (Result<Void, any Error>) -> Void {
    let told = Handed(completion)
    return { result in ConnectLive.calls.call { told.value(result) } }
  }
}
