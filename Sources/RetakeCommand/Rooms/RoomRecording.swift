import Foundation
import Live
import RoomClient
import Synchronization
import Tape

/// A recorded stay in a room, or several one after the other.
struct RoomRecording {
  let server: RoomServer
  let roomID: String
  /// What the command calls the kind of room: `janus`, `sora`, `room`.
  let name: String
  let options: RecordOptions
  let room: RoomOptions
  let role: RoomRole
  var authenticator: (any Authenticator)?
  var metadata: String?

  /// How long to wait before joining again, in seconds: twice as long each time.
  private static let pauses = [0.5, 1, 2, 4, 8]

  /// Records until a stop is asked for, the time is over, or the room ends.
  func run() async throws {
    let stop = StopSignal()
    let deadline = options.seconds.map { ContinuousClock.now + .seconds($0) }
    let visitor = RoomVisitor(readsCommands: room.commands)
    var report = RecordingReport()
    var attempt = 0
    var session: (session: Session, path: String)?
    var failure: CommandFailure?
    var rooms: [Room] = []
    while true {
      if session == nil {
        let path = try options.takePath(prefix: name)
        session = (try openSession(options.sessionOptions(take: path)), path)
      }
      guard let open = session else { break }
      let stay = try await stay(open.session, stop, until: deadline, visitor)
      rooms.append(stay.room)
      let isOver = !room.reconnect || stay.isWanted || deadline.map { $0 <= .now } ?? false
      if isOver || options.isFolder {
        report.add(
          try await finish(open.session, open.path),
          rooms.flatMap(\.connections).map { RecordingReport.Peer($0) },
          media: visitor.summary)
        session = nil
        rooms = []
      }
      if isOver {
        if let error = stay.failure { failure = CommandFailure(.inputOutput, error) }
        if stay.failure != nil, !stay.wasThere, report.takes.count == 1 { discard(open.path) }
        break
      }
      attempt = stay.wasThere ? 0 : attempt + 1
      let pause = Self.pauses[min(attempt, Self.pauses.count - 1)]
      printError("the room ended; joining again in \(pause) s")
      await stop.wait(seconds: pause) { await Self.never() }
      if stop.isRequested { break }
    }
    if let open = session {
      report.add(
        try await finish(open.session, open.path),
        rooms.flatMap(\.connections).map { RecordingReport.Peer($0) }, media: visitor.summary)
    }
    if let failure { throw failure }
    try report.conclude(with: SendFailures(), json: options.json)
  }

  private static func never() async {
    while !Task.isCancelled { try? await Task.sleep(for: .seconds(3_600)) }
  }

  /// How one stay went.
  private struct Stay {
    var room: Room
    /// Whether the room was entered.
    var wasThere: Bool
    /// Whether this side ended it.
    var isWanted: Bool
    var failure: String?
  }

  private func stay(
    _ session: Session, _ stop: StopSignal, until deadline: ContinuousClock.Instant?,
    _ visitor: RoomVisitor
  ) async throws -> Stay {
    var config = RoomConfig()
    config.displayName = room.name
    config.role = role
    config.metadata = metadata
    config.videoReceiverMaximumCount = room.receivers
    config.videoReceiverInitialCount = min(room.receivers, config.videoReceiverInitialCount)
    config.connection = options.peerConfiguration
    let own = try room.media()
    let made = Room(server, config: config, session: session, label: name)
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
            group.addTask { await progress.run { visitor.summary } }
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

/// Takes part in a room on behalf of the command line: subscribes, counts, and does what is typed.
final class RoomVisitor: Sendable {
  private struct State {
    var room: Room?
    var media: LocalMedia?
    var people = 0
    var videos = 0
    var wasThere = false
    var hasLeft = false
    var failure: String?
    var over: [AsyncStream<Never>.Continuation] = []
    var isOver = true
  }

  private let state = Mutex(State())

  init(readsCommands: Bool) {
    guard readsCommands else { return }
    let thread = Thread { [weak self] in
      while let line = readLine() {
        guard let self else { return }
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        guard let first = words.first else { continue }
        Task { await self.perform(first, words.count > 1 ? words[1] : "") }
      }
    }
    thread.name = "commands"
    thread.start()
  }

  /// Begins to follow a room, subscribing to all videos as they are published.
  func enter(_ room: Room, _ media: LocalMedia?, subscribes: Bool) {
    state.withLock { state in
      state = State()
      (state.room, state.media, state.isOver) = (room, media, false)
    }
    let updates = room.updates
    Task { [weak self] in
      for await update in updates { await self?.take(update, room, subscribes) }
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

  private func take(_ update: RoomUpdate, _ room: Room, _ subscribes: Bool) async {
    switch update {
    case .connected(let ids): state.withLock { ($0.wasThere, $0.people) = (true, ids.count) }
    case .participantEntered: state.withLock { $0.people += 1 }
    case .participantLeft: state.withLock { $0.people -= 1 }
    case .remoteVideoPublished(_, let video):
      guard subscribes else { break }
      do throws(RoomError) {
        try await room.subscribe(videoId: video.id)
      } catch {
        // It was taken back meanwhile, or there are too many; the take has it.
        note(error)
      }
    case .remoteVideoSubscribed: state.withLock { $0.videos += 1 }
    case .remoteVideoUnsubscribed: state.withLock { $0.videos -= 1 }
    case .error(let error): note(error)
    default: break
    }
  }

  private func note(_ error: RoomError) {
    state.withLock { state in
      if error.isCritical { state.failure = error.message }
    }
    if !error.isCritical { printError("\(error)") }
  }

  /// Returns when the room is over, or the task is cancelled.
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

  /// Who is there and what comes, in words.
  var summary: String {
    let (people, videos) = state.withLock { ($0.people, $0.videos) }
    return "\(people) \(people == 1 ? "participant" : "participants"), "
      + "\(videos) \(videos == 1 ? "video" : "videos") received"
  }

  // MARK: Commands

  private func perform(_ command: String, _ rest: String) async {
    let (room, media) = state.withLock { ($0.room, $0.media) }
    guard let room else { return }
    do throws(RoomError) {
      switch (command, rest) {
      case ("mute", "audio"): media?.audio?.active = false
      case ("unmute", "audio"): media?.audio?.active = true
      case ("mute", "video"): media?.video?.active = false
      case ("unmute", "video"): media?.video?.active = true
      case ("publish", _): if let media { try await room.publish(media) }
      case ("unpublish", _): if let media { try await room.unpublish(media) }
      case ("message", _): try await room.sendUserMessage(message: rest)
      case ("restart-ice", _): try await room.restartIce()
      case ("network-changed", _): try await room.networkChanged()
      case ("levels", _):
        let levels = room.getAudioLevels().sorted { $0.key < $1.key }
        printError(levels.map { "\($0.key): \($0.value)" }.joined(separator: ", "))
      case ("share", _):
        let folder = FileManager.default.temporaryDirectory.path + "/retake-share-\(getpid())"
        try await room.requestScreenShare(
          appGroup: folder,
          helper: ScreenShareProgram(
            executable: "/proc/self/exe",
            arguments: ["share-screen"] + (rest.isEmpty ? [] : ["--display", rest])))
      case ("unshare", _): room.stopScreenShare()
      case ("leave", _):
        state.withLock { $0.hasLeft = true }
        await room.disconnect()
      default: printError("there is no command \(command) \(rest)")
      }
    } catch {
      printError("\(command): \(error)")
    }
  }
}
