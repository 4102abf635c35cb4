import AudioSession
public import Live
import Room
public import Stats
import Synchronization

/// A room of a service: who is in it, what they publish, what of it is received.
///
/// Everything that happens in it is a step in the take of its session, as are the steps of its
/// connections. A room is entered once; after `disconnect` another one is made.
public final class Room: Sendable {
  /// What the room behaves like.
  public let config: RoomConfig
  /// This side as a participant.
  public let localParticipant = LocalParticipant()
  private let server: RoomServer
  private let driver: RoomDriver
  private let model: RoomModel
  private let updateSink: AsyncStream<RoomUpdate>.Continuation
  private let audience: RoomAudience
  private let audio: AudioSession?

  /// Creates a room that is entered by `connect`.
  /// - Parameters:
  ///   - server: where it is.
  ///   - session: what its connections belong to, and what records them.
  ///   - label: names the room in the take.
  ///   - audio: an audio session of the same session: its microphone is what local audio sends that
  ///     has no other source, and its speaker plays what is received; nil: the application hands
  ///     audio in and gets it from the tracks.
  ///   - delegate: hears what happens; held weakly.
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
      // It ends with the audio session.
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

  // MARK: Coming and going

  /// How the room is.
  public var status: RoomStatus { model.status }
  /// What the service said when it ended the room: known when `disconnected` is told, nil before.
  public var closure: RoomClosure? { model.closure }

  /// Signs in: the room uses the token, and asks for another one before it ends.
  ///
  /// - Throws: `RoomError` 1101 to 1105.
  public func signIn(_ authenticator: any Authenticator) async throws(RoomError) {
    let token = try await authenticator.token()
    model.setAuthenticator(authenticator)
    try await call(
      .signedIn(token: token.text, lifetimeMilliseconds: token.lifetimeSeconds.map { $0 * 1000 }))
  }

  /// Forgets the token; to be called after `disconnect`.
  public func signOut() async {
    model.setAuthenticator(nil)
    _ = await driver.call(.signOut)
  }

  /// Enters the room with an identifier.
  ///
  /// - Parameter roomId: of Retake's own rooms 1 to 32 letters, digits and hyphens, else error
  ///   1301.
  /// - Throws: `RoomError`; the room is over then.
  public func connect(roomId: String) async throws(RoomError) {
    try await call(.connect(join(roomId)))
  }

  /// What is said on entering a room.
  func join(_ roomId: String) -> RoomJoin {
    var join =
      server.join
      ?? RoomJoin(
        room: roomId, role: config.role.connection, displayName: config.displayName,
        metadata: config.metadata)
    join.room = roomId
    return join
  }

  /// Leaves the room; `disconnected` is told when that is done.
  public func disconnect() async { _ = await driver.call(.disconnect) }

  /// What happens from now on, in order; every use gives a stream of its own, which ends with the
  /// room.
  public var updates: AsyncStream<RoomUpdate> { audience.stream() }

  // MARK: Participants

  /// The others that are there, by identifier.
  public var remoteParticipants: [String: RemoteParticipant] { model.participants }

  /// The participants whose video comes, in the order of their identifiers.
  public func getVideoOccupants() -> [String] { model.videoOccupants }

  /// The participants whose audio is heard, in the order of their identifiers.
  public func getAudioOccupants() -> [String] { model.audioOccupants }

  // MARK: Local media

  /// Publishes local media and starts its capturer; before the room is there, when it is.
  /// - Throws: `RoomError`.
  public func publish(_ media: LocalMedia) async throws(RoomError) {
    try await startMedia(media)
    let parts = media.parts
    guard !parts.isEmpty else { throw RoomError(.invalidArgument, "there is no own media") }
    model.add(media)
    do throws(RoomError) {
      try await call(.publish(parts.map(\.info)))
    } catch {
      model.remove(media)
      throw error
    }
  }

  /// Starts the capturer and the microphone, unless a channel is entered with them off.
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
    // A microphone that was never started needs no stop.
    if local.origin == .microphone { try? audio?.pauseRecording() }
  }

  /// Takes local media back.
  /// - Throws: `RoomError`.
  public func unpublish(_ media: LocalMedia) async throws(RoomError) {
    try await call(.unpublish(media.parts.map(\.info.id)))
    model.remove(media)
    media.audio?.closeMicrophone()
  }

  // MARK: Video of others

  /// Subscribes to a video.
  ///
  /// - Throws: `RoomError` 1321 to 1331.
  public func subscribe(videoId: Int) async throws(RoomError) {
    let media = try media(videoId)
    try await call(.subscribe(media))
    model.setSubscribed(true, media)
  }

  /// Subscribes to several videos; what goes wrong with one of them is told as an error.
  ///
  /// - Throws: `RoomError` 1323 when there are none.
  public func subscribe(videoIds: [Int]) async throws(RoomError) {
    var media: [MediaID] = []
    for id in videoIds { media.append(try self.media(id)) }
    try await call(.subscribeAll(media))
  }

  /// Subscribes to a video no longer.
  ///
  /// - Throws: `RoomError` 1327, 1330.
  public func unsubscribe(videoId: Int) async throws(RoomError) {
    let media = try media(videoId)
    try await call(.unsubscribe(media))
    model.setSubscribed(false, media)
  }

  /// Subscribes to several videos no longer.
  ///
  /// - Throws: `RoomError` 1324 when there are none.
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

  /// Mutes all that is received, or no longer; what is set on each audio stays.
  public func setMuted(_ isMuted: Bool) { driver.post(.setMuted(isMuted)) }

  /// How loud the other participants are that are heard: 0 to 100, by identifier.
  public func getAudioLevels() -> [String: Int] { model.audioLevels }

  /// Sends a message to participants; to everyone when none is named.
  ///
  /// - Throws: `RoomError` 1403 or 1471.
  public func sendUserMessage(
    participantIds: [String] = [], message: String, type: String = "normal"
  ) async throws(RoomError) {
    try await call(
      .sendMessage(UserMessage(targets: participantIds, type: type, text: message)))
  }

  // MARK: Statistics

  /// The statistics of the connection that sends.
  public func getLocalStatsReport() async -> StatisticsReport {
    await report { $0.role != .down }.local
  }

  /// The statistics of the connections that receive.
  public func getRemoteStatsReport() async -> StatisticsReport {
    await report { $0.role != .up }.remote
  }

  /// The statistics of what comes from one participant: the received streams of its media.
  public func getRemoteStatsReport(of participantId: String) async -> [Statistics] {
    await model.statistics(of: participantId, driver.links)
  }

  /// The statistics of all connections.
  package func getStats() async -> StatsReport { await report { _ in true } }

  private func report(_ isWanted: (RoomLink) -> Bool) async -> StatsReport {
    var report = StatsReport()
    for link in driver.links where isWanted(link) {
      // A connection that is over has no statistics.
      guard let part = try? await link.connection.getStats() else { continue }
      report.objects += part.objects
    }
    return report
  }

  // MARK: The network

  /// Begins ICE anew on all connections.
  ///
  /// - Throws: `RoomError` 1901 when there is no room.
  public func restartIce() async throws(RoomError) { try await call(.restartICE) }

  /// Says that the local addresses have changed, as from Wi-Fi to a mobile network.
  /// - Throws: `RoomError` 1901 when there is no room.
  public func networkChanged() async throws(RoomError) { try await call(.networkChanged) }

  func call(_ call: RoomCall) async throws(RoomError) {
    if case .failed(let failure) = await driver.call(call) { throw RoomError(failure) }
  }

  /// The connections that were made so far, in their order.
  package var connections: [PeerConnection] { driver.connections }
  var machine: RoomDriver { driver }
  var objects: RoomModel { model }
}

/// Who hears of a room: its delegate, and the readers of updates.
final class RoomAudience: Sendable {
  private struct State {
    weak var delegate: (any RoomDelegate)?
    var readers: [AsyncStream<RoomUpdate>.Continuation] = []
    var isOver = false
  }

  private let state: Mutex<State>
  /// How many updates wait for a reader that is slow; the oldest are dropped beyond that.
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
