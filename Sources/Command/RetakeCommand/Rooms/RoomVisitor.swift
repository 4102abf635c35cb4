import FoundationEssentials
import Live
import Room
import RoomClient
import Synchronization
import Tape

/// Takes part in a room on behalf of the command line: subscribes, counts, and does what is typed.
final class RoomVisitor: Sendable {
  private struct State {
    var room: Room?
    var media: LocalMedia?
    var people = 0
    var videos = 0
    /// Whom this side met in a take, by room and identifier, and how many videos came.
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

  /// Starts to follow a room, subscribing to all videos as they are published.
  func enter(_ room: Room, _ media: LocalMedia?, subscribes: Bool) {
    state.withLock { $0.enter(room, media) }
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
      tell("\(who.title) entered")
    case .participantLeft(let who):
      state.withLock { $0.people -= 1 }
      tell("\(who.title) left")
    case .remoteVideoPublished(_, let video):
      guard subscribes else { break }
      do throws(RoomError) {
        try await room.subscribe(videoId: video.id)
      } catch {
        // It was taken back meanwhile, or there are too many; the take has it.
        note(error)
      }
    case .remoteVideoSubscribed:
      state.withLock { state in
        state.videos += 1
        state.received += 1
      }
    case .remoteVideoUnsubscribed: state.withLock { $0.videos -= 1 }
    case .userMessage(let sender, let message, _):
      tell("\(room.remoteParticipants[sender]?.title ?? sender): \(message)")
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

  /// Tells who types commands what happens in the room.
  private func tell(_ words: String) {
    if readsCommands { printError(words) }
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
  var present: String {
    let (people, videos) = state.withLock { ($0.people, $0.videos) }
    return "\(counted(people, "participant")), \(counted(videos, "video")) received"
  }

  /// Whom this side met and what came since the last take was completed, in words.
  func takeSummary() -> String {
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

  /// What can be typed.
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
          "there is no command \(typed); there are \(RoomVisitor.commands.joined(separator: ", "))")
      }
    } catch {
      printError("\(command): \(error)")
    }
  }

  /// What a command is about; says so when there is none.
  private func published<Part>(_ part: Part?, _ kind: String) -> Part? {
    if part == nil { printError("there is no own \(kind): --publish says what is published") }
    return part
  }

  private func levels(_ room: Room) -> String {
    let levels = room.getAudioLevels().map { id, level in
      let title =
        id == room.localParticipant.id
        ? "\(room.config.displayName) (this side)" : room.remoteParticipants[id]?.title ?? id
      return "\(title): \(level)"
    }
    return levels.isEmpty ? "nobody is heard" : levels.sorted().joined(separator: ", ")
  }

  /// Asks for a layer of each video that is received and has some.
  private func show(_ profile: VideoProfile, _ room: Room) async throws(RoomError) {
    let videos = room.remoteParticipants.values.flatMap { $0.videos.values }
    for video in videos.sorted(by: { $0.id < $1.id })
    where video.isSubscribed && video.profiles.contains(profile) {
      try await video.setProfile(profile)
    }
  }

  private func share(_ display: String, _ room: Room) async throws(RoomError) {
    // Nobody can foresee it, and put a folder of his own there.
    let folder = FileManager.default.temporaryDirectory.path + "/retake-share-\(UUID().uuidString)"
    try await room.requestScreenShare(
      appGroup: folder,
      helper: ScreenShareProgram(
        executable: "/proc/self/exe",
        arguments: ["share-screen"] + (display.isEmpty ? [] : ["--display", display])))
  }
}

extension RemoteParticipant {
  /// What people call it.
  fileprivate var title: String { name.isEmpty ? id : name }
}
