import AudioSession
public import Live
package import Room
public import Stats
import Synchronization

/// A room at a service: participants, published and received media.
///
/// Everything that happens in the room and on its connections is a step in its session's take. A
/// room can be joined only once; to join again after `disconnect`, create a new `Room`.
public final class Room: Sendable {
  /// The room's configuration.
  public let config: RoomConfig
  /// The local client as a participant.
  public let localParticipant = LocalParticipant()
  private let server: RoomServer
  private let driver: RoomDriver
  private let model: RoomModel
  private let updateSink: AsyncStream<RoomUpdate>.Continuation
  private let audience: RoomAudience
  private let audio: AudioSession?

  /// Creates a room to be joined by `connect`.
  /// - Parameters:
  ///   - server: the service.
  ///   - session: creates and records the room's connections.
  ///   - label: the room's name in the take.
  ///   - audio: an audio session of `session`, whose microphone is the default source of local
  ///     audio and whose speaker plays received audio; nil if the application supplies audio to
  ///     send and reads received audio from the tracks.
  ///   - delegate: receives events; held weakly.
  public init(
    _ server: RoomServer, config: RoomConfig = RoomConfig(), session: Session,
    label: String = "room", audio: AudioSession? = nil, delegate: (any RoomDelegate)? = nil
  ) {
    self.audio = audio
    self.config = config
    self.server = server
    let (stream, continuation) = AsyncStream.makeStream(of: RoomUpdate.self)
    updateSink = continuation
    let model = RoomModel(
      local: localParticipant, streamID: server.sora?.publisherStreamId)
    self.model = model
    let audience = RoomAudience(delegate)
    self.audience = audience
    driver = RoomDriver(
      config.configuration(server), connections: config.connection, session: session,
      label: label, sources: model.sources, audio: audio, reportsStreams: server.sora != nil
    ) { news in
      for update in model.handle(news) { continuation.yield(update) }
    }
    model.belong(to: driver)
    let weak = WeakRoom()
    weak.set(self)
    let handlers = server.sora?.currentHandlers
    if let handlers, let events = audio?.events {
      // The loop ends with the audio session.
      Task {
        for await event in events {
          guard case .didChangeRoute(let reason, _, let current) = event else { continue }
          handlers.onChangeAudioRoute?(reason, current)
        }
      }
    }
    Task {
      for await update in stream {
        model.prepare(update)
        handlers?.receive(update, closure: model.closure)
        audience.notify(update, of: weak)
      }
      audience.finish()
    }
  }

  deinit { updateSink.finish() }

  // MARK: Joining and leaving

  /// The room's state.
  public var status: RoomStatus { model.status }
  /// The service's closing message: available by the time `disconnected` is reported, nil before
  /// that.
  public var closure: RoomClosure? { model.closure }

  /// Signs in; the room uses the authenticator's token, and requests another before it expires.
  /// - Throws: `RoomError` 1101 to 1105 if the sign-in fails.
  public func signIn(_ authenticator: any Authenticator) async throws(RoomError) {
    let token = try await authenticator.token()
    model.setAuthenticator(authenticator)
    try await call(
      .signedIn(token: token.text, lifetimeMilliseconds: token.lifetimeSeconds.map { $0 * 1000 }))
  }

  /// Discards the token; call it after `disconnect`.
  public func signOut() async {
    model.setAuthenticator(nil)
    _ = await driver.call(.signOut)
  }

  /// Joins the room with this identifier.
  /// - Parameter roomId: Retake's own rooms accept 1 to 32 letters, digits and hyphens; anything
  ///   else is error 1301.
  /// - Throws: `RoomError` if joining fails, which ends the room.
  public func connect(roomId: String) async throws(RoomError) {
    try await call(.connect(join(roomId)))
  }

  /// Returns the parameters for joining a room.
  func join(_ roomId: String) -> RoomJoin {
    var join =
      server.join
      ?? RoomJoin(
        room: roomId, role: config.role.connection, displayName: config.displayName,
        metadata: config.metadata)
    join.room = roomId
    return join
  }

  /// Leaves the room; `disconnected` is reported once that is done.
  public func disconnect() async { _ = await driver.call(.disconnect) }

  /// The room's updates from now on, in order; every access returns a new stream, which ends with
  /// the room.
  public var updates: AsyncStream<RoomUpdate> { audience.stream() }

  // MARK: Participants

  /// The other participants present, by identifier.
  public var remoteParticipants: [String: RemoteParticipant] { model.participants }

  /// Returns the identifiers of the participants whose video is received, sorted.
  public func getVideoOccupants() -> [String] { model.videoOccupants }

  /// Returns the identifiers of the participants whose audio is played, sorted.
  public func getAudioOccupants() -> [String] { model.audioOccupants }

  // MARK: Local media

  /// Starts local media's capturer, and publishes the media now or as soon as the room is joined.
  /// - Throws: `RoomError` 1201 or 1202 if the capturer does not start or is missing, 1441 if the
  ///   microphone cannot be used or the service refuses the media, 1901 to 1903 if the room is
  ///   over, already has the media, or does not support it.
  public func publish(_ media: LocalMedia) async throws(RoomError) {
    try await startMedia(media)
    let parts = media.parts
    guard !parts.isEmpty else { throw RoomError(.invalidArgument, "there is no local media") }
    model.add(media)
    do throws(RoomError) {
      try await call(.publish(parts.map(\.info)))
    } catch {
      model.remove(media)
      throw error
    }
  }

  /// Starts the capturer and the microphone, unless the configuration switches them off.
  private func startMedia(_ media: LocalMedia) async throws(RoomError) {
    if let sora = server.sora, !sora.initialCameraEnabled, let video = media.video {
      video.active = false
    } else {
      try await media.start()
    }
    guard let local = media.audio else { return }
    if let audio { try local.openMicrophone(of: audio) }
    guard let sora = server.sora, !sora.initialMicrophoneEnabled else { return }
    local.active = false
    // Ignore the error: a microphone that never started does not have to be paused.
    if local.origin == .microphone { try? audio?.pauseRecording() }
  }

  /// Unpublishes local media.
  /// - Throws: `RoomError` 1902 if the media is not published, 1446 if the service does not
  ///   unpublish it.
  public func unpublish(_ media: LocalMedia) async throws(RoomError) {
    try await call(.unpublish(media.parts.map(\.info.id)))
    model.remove(media)
    media.audio?.closeMicrophone()
  }

  // MARK: Remote video

  /// Subscribes to a video.
  ///
  /// - Throws: `RoomError` 1321 to 1331 if the video cannot be subscribed to.
  public func subscribe(videoId: Int) async throws(RoomError) {
    let media = try media(videoId)
    try await call(.subscribe(media))
    model.setSubscribed(true, media)
  }

  /// Subscribes to several videos; the room reports failures as errors.
  /// - Throws: `RoomError` 1323 if the list is empty, 1325 if the room is not joined, 1328 for a
  ///   number that no video can have.
  public func subscribe(videoIds: [Int]) async throws(RoomError) {
    var media: [MediaID] = []
    for id in videoIds { media.append(try self.media(id)) }
    try await call(.subscribeAll(media))
  }

  /// Unsubscribes from a video.
  /// - Throws: `RoomError` 1325 if the room is not joined, 1327 if the video is not subscribed to,
  ///   1330 if the service refuses, 1331 if it does not answer.
  public func unsubscribe(videoId: Int) async throws(RoomError) {
    let media = try media(videoId)
    try await call(.unsubscribe(media))
    model.setSubscribed(false, media)
  }

  /// Unsubscribes from several videos.
  /// - Throws: `RoomError` 1324 if the list is empty, 1325 if the room is not joined, 1328 for a
  ///   number that no video can have.
  public func unsubscribe(videoIds: [Int]) async throws(RoomError) {
    var media: [MediaID] = []
    for id in videoIds { media.append(try self.media(id)) }
    try await call(.unsubscribeAll(media))
  }

  func media(_ id: Int) throws(RoomError) -> MediaID {
    guard let number = UInt32(exactly: id) else {
      throw RoomError(.noSuchMedia, RoomErrorCode.noSuchMedia.meaning, mediaID: id)
    }
    return MediaID(number)
  }

  // MARK: Audio and messages

  /// Mutes or unmutes all received audio, independently of the setting of each `RemoteAudio`.
  public func setMuted(_ isMuted: Bool) { driver.post(.setMuted(isMuted)) }

  /// Returns the levels of participants being played, from 0 to 100, by identifier.
  public func getAudioLevels() -> [String: Int] { model.audioLevels }

  /// Sends a message to the named participants, or to all if none are named.
  /// - Throws: `RoomError` 1403 if the message cannot be sent, 1471 if an addressee is not in the
  ///   room, 1903 if the service does not support messages.
  public func sendUserMessage(
    participantIds: [String] = [], message: String, type: String = "normal"
  ) async throws(RoomError) {
    try await call(
      .sendMessage(UserMessage(targets: participantIds, type: type, text: message)))
  }

  // MARK: Statistics

  /// Returns the statistics of the sending connection.
  public func getLocalStatsReport() async -> StatisticsReport {
    await report { $0.role != .down }.local
  }

  /// Returns the statistics of the receiving connections.
  public func getRemoteStatsReport() async -> StatisticsReport {
    await report { $0.role != .up }.remote
  }

  /// Returns the statistics of one participant's received media.
  public func getRemoteStatsReport(of participantId: String) async -> [Statistics] {
    await model.statistics(of: participantId, driver.links)
  }

  /// Returns the statistics of all connections.
  package func getStats() async -> StatsReport { await report { _ in true } }

  private func report(_ isWanted: (RoomLink) -> Bool) async -> StatsReport {
    var report = StatsReport()
    for link in driver.links where isWanted(link) {
      // A closed connection has no statistics.
      guard let part = try? await link.connection.getStats() else { continue }
      report.objects += part.objects
    }
    return report
  }

  // MARK: Network

  /// Restarts ICE on all connections.
  /// - Throws: `RoomError` 1901 if the room is not joined.
  public func restartIce() async throws(RoomError) { try await call(.restartICE) }

  /// Reports that the local addresses changed, for example from Wi-Fi to a mobile network.
  /// - Throws: `RoomError` 1901 if the room is not joined.
  public func networkChanged() async throws(RoomError) { try await call(.networkChanged) }

  func call(_ call: RoomCall) async throws(RoomError) {
    if case .failed(let failure) = await driver.call(call) { throw RoomError(failure) }
  }

  /// The connections created so far, in order.
  package var connections: [PeerConnection] { driver.connections }
  var machine: RoomDriver { driver }
  var objects: RoomModel { model }
}

/// The recipients of a room's updates: its delegate and any number of readers.
final class RoomAudience: Sendable {
  private struct State {
    weak var delegate: (any RoomDelegate)?
    var readers: [AsyncStream<RoomUpdate>.Continuation] = []
    var isOver = false
  }

  private let state: Mutex<State>
  /// The maximum number of updates buffered for a slow reader; if there are more, the oldest are
  /// dropped.
  private static let maximum = 4_096

  init(_ delegate: (any RoomDelegate)?) { state = Mutex(State(delegate: delegate)) }

  func stream() -> AsyncStream<RoomUpdate> {
    AsyncStream(bufferingPolicy: .bufferingNewest(RoomAudience.maximum)) { continuation in
      let isOver = state.withLock { state in
        if !state.isOver { state.readers.append(continuation) }
        return state.isOver
      }
      if isOver { continuation.finish() }
    }
  }

  func notify(_ update: RoomUpdate, of room: WeakRoom) {
    let (delegate, readers) = state.withLock { ($0.delegate, $0.readers) }
    for reader in readers { reader.yield(update) }
    if let delegate, let room = room.room { delegate.receive(update, of: room) }
    if case .disconnected = update { finish() }
  }

  func finish() {
    let readers = state.withLock { state in
      defer { (state.readers, state.isOver) = ([], true) }
      return state.readers
    }
    for reader in readers { reader.finish() }
  }
}

final class WeakRoom: Sendable {
  private struct Box {
    weak var room: Room?
  }
  private let box = Mutex(Box())
  func set(_ room: Room) { box.withLock { $0.room = room } }
  var room: Room? { box.withLock { $0.room } }
}

// MARK: - Calls without waiting

// Calls that do not wait, for products whose methods must not block.
//
// They throw immediate refusals, and pass later results to the closure: nil on success. The closure
// must neither block nor call the room.
extension Room {
  /// Signs in with a token, and requests another before it expires.
  package func beginSigningIn(
    _ token: RoomToken, _ authenticator: any Authenticator
  ) throws(RoomError) {
    objects.setAuthenticator(authenticator)
    let lifetime = token.lifetimeSeconds.map { $0.multipliedReportingOverflow(by: 1_000) }
    try machine.begin(
      .signedIn(
        token: token.text,
        lifetimeMilliseconds: lifetime.map { $0.overflow ? .max : $0.partialValue })
    ) { _ in }
  }

  package func beginConnecting(
    roomId: String, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) { try machine.begin(.connect(join(roomId)), answered: answered) }

  package func beginDisconnecting() { machine.post(.disconnect) }

  /// Subscribes to a video, or unsubscribes from it.
  package func beginSubscribing(
    _ isWanted: Bool, videoId: Int, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) {
    let media = try media(videoId)
    let objects = objects
    try machine.begin(isWanted ? .subscribe(media) : .unsubscribe(media)) { error in
      if error == nil { objects.setSubscribed(isWanted, media) }
      answered(error)
    }
  }

  /// Subscribes to several videos, or unsubscribes from them; the room reports a failure as an
  /// error.
  package func beginSubscribing(_ isWanted: Bool, videoIds: [Int]) throws(RoomError) {
    var media: [MediaID] = []
    for id in videoIds { media.append(try self.media(id)) }
    try machine.begin(isWanted ? .subscribeAll(media) : .unsubscribeAll(media)) { _ in }
  }

  /// Sends a message to the named participants, or to all if none are named.
  package func beginSending(
    _ message: UserMessage, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) { try machine.begin(.sendMessage(message), answered: answered) }

  /// Starts the process that shares a screen.
  package func beginSharing(
    appGroup: String, helper: ScreenShareProgram,
    completion: @escaping @Sendable (ExtensionStatus) -> Void
  ) throws(RoomError) {
    let host = ScreenShareHost(folder: appGroup, helper: helper, room: self, tell: completion)
    let former = objects.share
    objects.setShare(host)
    do throws(RoomError) {
      try machine.begin(.requestScreenShare) { _ in }
    } catch {
      objects.setShare(former)
      throw error
    }
  }

  /// Reports an error, for which no call is waiting, to the delegate and the readers of `updates`.
  package func report(_ error: RoomError) { machine.report(error) }
}
