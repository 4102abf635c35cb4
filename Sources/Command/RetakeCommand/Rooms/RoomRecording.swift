import CallRecording
import FoundationEssentials
import Importing
import Live
import Room
import RoomClient
import Synchronization
import Tape

/// Records one stay in a room, or several in succession.
struct RoomRecording {
  let server: RoomServer
  let roomID: String
  /// The command's name: `janus`, `sora`, `room`.
  let name: String
  let options: RecordOptions
  let room: RoomOptions
  let role: RoomRole
  var authenticator: (any Authenticator)?
  var metadata: String?
  /// Whether the service supports video.
  var takesVideo = true

  /// The pauses before rejoining, in seconds.
  private static let pauses = [0.5, 1, 2, 4, 8]

  /// Records until a stop is requested, the time is up, or the room ends.
  func run() async throws {
    let stop = StopSignal()
    let ring = options.ringPlan()
    let deadline = options.session.seconds.map { ContinuousClock.now + .seconds($0) }
    let visitor = RoomVisitor(readsCommands: room.commands)
    let failures = SendFailures.onTerminal()
    let plan = try room.devicePlan()
    let devices = plan.isEmpty ? nil : LocalDevices(plan, telling: failures)
    var report = RecordingReport()
    var attempt = 0
    var open: OpenTake?
    var failure: CommandFailure?
    while true {
      let own: RoomOptions.Own?
      do {
        own = try room.media(takesVideo: takesVideo, plan)
      } catch  where open != nil {
        // A take is already open, so keep what it has recorded.
        failure = error as? CommandFailure
        break
      }
      var take = try open ?? openTake(ring)
      let stay = try await stay(take.session, own, devices, stop, until: deadline, visitor)
      take.add(stay)
      open = take
      let isOver = !room.reconnect || stay.isWanted || deadline.map { $0 <= .now } ?? false
      if isOver || options.isFolder {
        open = nil
        try await complete(take, stay.failure, visitor, &report)
      }
      if isOver {
        failure = stay.failure.map { CommandFailure(.inputOutput, $0) }
        break
      }
      attempt = stay.wasThere ? 0 : attempt + 1
      let pause = Self.pauses[min(attempt, Self.pauses.count - 1)]
      printError("\(stay.failure ?? "the room ended"); joining again in \(pause) s")
      await stop.wait(seconds: pause)
      if stop.isRequested { break }
    }
    if let open { try await complete(open, nil, visitor, &report) }
    if let failure {
      // Earlier takes are reported even though this one failed.
      if !report.takes.isEmpty { try report.show(json: options.json) }
      throw failure
    }
    try report.conclude(with: failures, json: options.json)
  }

  /// A take that is being recorded, with its stays so far.
  private struct OpenTake {
    let session: Session
    let path: String
    var rooms: [Room] = []
    /// Whether the room was joined.
    var wasThere = false

    mutating func add(_ stay: Stay) {
      rooms.append(stay.room)
      wasThere = wasThere || stay.wasThere
    }
  }

  private func openTake(_ ring: RingPlan?) throws -> OpenTake {
    let path = try options.newTakePath(prefix: name)
    let session = try openSession(options.sessionOptions(take: path, ring: ring))
    return OpenTake(session: session, path: path)
  }

  /// Completes a take, or removes it if the room could not be joined.
  private func complete(
    _ take: OpenTake, _ failure: String?, _ visitor: RoomVisitor, _ report: inout RecordingReport
  ) async throws {
    let summary = try await finish(take.session, take.path)
    let words = visitor.summaryOfTake()
    guard take.wasThere || failure == nil else { return discard(take.path) }
    report.add(
      summary, take.rooms.flatMap(\.connections).map { RecordingReport.Peer($0) }, media: words)
  }

  /// The outcome of one stay in the room.
  private struct Stay {
    var room: Room
    /// Whether the room was joined.
    var wasThere: Bool
    /// Whether the stay ended as requested, rather than because the room ended or failed.
    var isWanted: Bool
    var failure: String?
  }

  private func stay(
    _ session: Session, _ own: RoomOptions.Own?, _ devices: LocalDevices?,
    _ stop: StopSignal,
    until deadline: ContinuousClock.Instant?, _ visitor: RoomVisitor
  ) async throws -> Stay {
    var config = RoomConfig()
    config.displayName = room.name
    config.role = role
    config.metadata = metadata
    config.videoReceiverMaximumCount = room.receivers
    config.videoReceiverInitialCount = min(room.receivers, config.videoReceiverInitialCount)
    config.connection = options.peerConfiguration
    // Without --play there is at most a microphone, which local audio opens itself.
    let loudspeaker = devices?.plan.plays == true ? devices?.audio(in: session) : nil
    let made = Room(
      server, config: config, session: session, label: name, audio: loudspeaker)
    let opened = own?.microphone.map { devices?.open($0, in: session) ?? [] } ?? []
    defer { withExtendedLifetime(opened) {} }
    visitor.enter(made, own?.media, subscribes: room.subscribe == .all)
    var failure: String?
    var isWanted = false
    do {
      let entered: Void? = try await stop.interrupting {
        if let authenticator { try await made.signIn(authenticator) }
        if let own { try await made.publish(own.media) }
        try await made.connect(roomId: roomID)
      }
      if entered == nil {
        isWanted = true
      } else {
        let left = deadline.map { max(0, (ContinuousClock.now.duration(to: $0)) / .seconds(1)) }
        let progress = Progress("in the room", seconds: left)
        await stop.wait(seconds: left) {
          await withTaskGroup(of: Void.self) { group in
            group.addTask { await visitor.waitUntilOver() }
            group.addTask { await progress.run { (devices?.level ?? "") + visitor.present } }
            _ = await group.next()
            group.cancelAll()
          }
        }
        progress.clear()
        isWanted = made.status == .connected || visitor.hasLeft
      }
    } catch let error as RoomError {
      failure = "\(name) \(roomID): \(error.message)"
    }
    await made.disconnect()
    withExtendedLifetime(own?.file) {}
    return Stay(
      room: made, wasThere: visitor.wasThere, isWanted: isWanted,
      failure: failure ?? (isWanted ? nil : visitor.failure.map { "\(name) \(roomID): \($0)" }))
  }
}

// MARK: - RoomVisitor

/// The command's own participant in a room: subscribes to videos, counts participants and videos,
/// and executes typed commands.
final class RoomVisitor: Sendable {
  private struct State {
    var room: Room?
    var media: LocalMedia?
    var people = 0
    var videos = 0
    /// The identifiers of the participants met during a take, and the number of received videos.
    var met: Set<String> = []
    var received = 0
    var wasThere = false
    var hasLeft = false
    var failure: String?
    var over: [AsyncStream<Never>.Continuation] = []
    var isOver = true

    mutating func enter(_ room: Room, _ media: LocalMedia?) {
      (self.room, self.media, people, videos) = (room, media, 0, 0)
      (wasThere, hasLeft, failure, over, isOver) = (false, false, nil, [], false)
    }
  }

  private let state = Mutex(State())
  private let readsCommands: Bool

  init(readsCommands: Bool) {
    self.readsCommands = readsCommands
    guard readsCommands else { return }
    startWorker(named: "commands") { [weak self] in
      while let line = readLine() {
        guard let self else { return }
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard let first = words.first else { continue }
        Task { await self.perform(first, words.count > 1 ? words[1] : "") }
      }
    }
  }

  /// Follows a room and subscribes to all videos as they are published.
  func enter(_ room: Room, _ media: LocalMedia?, subscribes: Bool) {
    state.withLock { $0.enter(room, media) }
    let updates = room.updates
    Task { [weak self] in
      for await update in updates { await self?.apply(update, room, subscribes) }
      self?.end()
    }
  }

  private func end() {
    let waiting = state.withLock { state in
      state.isOver = true
      defer { state.over = [] }
      return state.over
    }
    for continuation in waiting { continuation.finish() }
  }

  private func apply(_ update: RoomUpdate, _ room: Room, _ subscribes: Bool) async {
    switch update {
    case .connected(let ids):
      state.withLock { state in
        (state.wasThere, state.people) = (true, ids.count)
        state.met.formUnion(ids.dropFirst())
      }
    case .participantEntered(let who):
      state.withLock { state in
        state.people += 1
        state.met.insert(who.id)
      }
      show("\(who.title) entered")
    case .participantLeft(let who):
      state.withLock { $0.people -= 1 }
      show("\(who.title) left")
    case .remoteVideoPublished(_, let video):
      guard subscribes else { break }
      do throws(RoomError) {
        try await room.subscribe(videoId: video.id)
      } catch {
        // The video was unpublished meanwhile, or there are too many; the take records the error.
        record(error)
      }
    case .remoteVideoSubscribed:
      state.withLock { state in
        state.videos += 1
        state.received += 1
      }
    case .remoteVideoUnsubscribed: state.withLock { $0.videos -= 1 }
    case .userMessage(let sender, let message, _):
      show("\(room.remoteParticipants[sender]?.title ?? sender): \(message)")
    case .error(let error): record(error)
    default: break
    }
  }

  private func record(_ error: RoomError) {
    state.withLock { state in
      if error.isCritical { state.failure = error.message }
    }
    if !error.isCritical { printError("\(error)") }
  }

  /// Prints an event in the room if the command reads typed commands.
  private func show(_ words: String) {
    if readsCommands { printError(words) }
  }

  /// Returns once the room has ended or the task is cancelled.
  func waitUntilOver() async {
    let (stream, continuation) = AsyncStream<Never>.makeStream()
    let isOver = state.withLock { state in
      if !state.isOver { state.over.append(continuation) }
      return state.isOver
    }
    guard !isOver else { return }
    for await _ in stream {}
  }

  var wasThere: Bool { state.withLock { $0.wasThere } }
  var hasLeft: Bool { state.withLock { $0.hasLeft } }
  var failure: String? { state.withLock { $0.failure } }

  /// A phrase that states the numbers of participants and received videos.
  var present: String {
    let (people, videos) = state.withLock { ($0.people, $0.videos) }
    return "\(counted(people, "participant")), \(counted(videos, "video")) received"
  }

  /// Returns a phrase that states the numbers of participants met and videos received since the
  /// last take.
  func summaryOfTake() -> String {
    let (met, received) = state.withLock { state in
      defer { (state.met, state.received) = ([], 0) }
      return (state.met.count, state.received)
    }
    return "\(counted(met, "other participant")), \(counted(received, "video")) received"
  }

  private func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }

  // MARK: Commands

  /// The typed commands, for the help.
  static let commands = [
    "mute audio", "unmute audio", "mute video", "unmute video", "publish", "unpublish",
    "message TEXT", "restart-ice", "network-changed", "share [DISPLAY]", "unshare", "levels",
    "profile low|mid|high", "leave",
  ]

  private func perform(_ command: String, _ rest: String) async {
    let (room, media) = state.withLock { ($0.room, $0.media) }
    guard let room else { return }
    do throws(RoomError) {
      switch (command, rest) {
      case ("mute", "audio"), ("unmute", "audio"):
        published(media?.audio, "audio")?.active = command == "unmute"
      case ("mute", "video"), ("unmute", "video"):
        published(media?.video, "video")?.active = command == "unmute"
      case ("publish", _):
        if let media = published(media, "media") { try await room.publish(media) }
      case ("unpublish", _):
        if let media = published(media, "media") { try await room.unpublish(media) }
      case ("message", _): try await room.sendUserMessage(message: rest)
      case ("restart-ice", _): try await room.restartIce()
      case ("network-changed", _): try await room.networkChanged()
      case ("levels", _): printError(levels(room))
      case ("profile", _) where VideoProfile(rawValue: rest) != nil:
        if let profile = VideoProfile(rawValue: rest) { try await show(profile, room) }
      case ("share", _): try await share(rest, room)
      case ("unshare", _): room.stopScreenShare()
      case ("leave", _):
        state.withLock { $0.hasLeft = true }
        await room.disconnect()
      default:
        let typed = rest.isEmpty ? command : "\(command) \(rest)"
        printError(
          "there is no command \(typed); the commands are "
            + "\(RoomVisitor.commands.joined(separator: ", "))")
      }
    } catch {
      printError("\(command): \(error)")
    }
  }

  /// Returns the local media, audio or video that a command refers to; prints a message if there is
  /// none.
  private func published<Part>(_ part: Part?, _ kind: String) -> Part? {
    if part == nil { printError("there is no local \(kind): give it to --publish") }
    return part
  }

  private func levels(_ room: Room) -> String {
    let levels = room.getAudioLevels().map { id, level in
      let title =
        id == room.localParticipant.id
        ? "\(room.config.displayName) (local)" : room.remoteParticipants[id]?.title ?? id
      return "\(title): \(level)"
    }
    return levels.isEmpty ? "nobody speaks" : levels.sorted().joined(separator: ", ")
  }

  /// Requests a layer for each received simulcast video.
  private func show(_ profile: VideoProfile, _ room: Room) async throws(RoomError) {
    let videos = room.remoteParticipants.values.flatMap { $0.videos.values }
    for video in videos.sorted(by: { $0.id < $1.id })
    where video.isSubscribed && video.profiles.contains(profile) {
      try await video.setProfile(profile)
    }
  }

  private func share(_ display: String, _ room: Room) async throws(RoomError) {
    // An unpredictable name, so that no other user can create the folder first.
    let folder = FileManager.default.temporaryDirectory.path + "/retake-share-\(UUID().uuidString)"
    try await room.requestScreenShare(
      appGroup: folder,
      helper: ScreenShareProgram(
        executable: "/proc/self/exe",
        arguments: ["share-screen"] + (display.isEmpty ? [] : ["--display", display])))
  }
}

extension RemoteParticipant {
  /// The display name, or else the identifier.
  fileprivate var title: String { name.isEmpty ? id : name }
}
