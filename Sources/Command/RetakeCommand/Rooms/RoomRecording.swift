import CallRecording
import Live
import RoomClient
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
  /// Whether the service takes video.
  var takesVideo = true

  /// How long to wait before joining again, in seconds: twice as long each time.
  private static let pauses = [0.5, 1, 2, 4, 8]

  /// Records until a stop is asked for, the time is over, or the room ends.
  func run() async throws {
    let stop = StopSignal()
    let deadline = options.seconds.map { ContinuousClock.now + .seconds($0) }
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
        // It was there at first: what was recorded is kept.
        failure = error as? CommandFailure
        break
      }
      var take = try open ?? openTake()
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
      // What was recorded before it is told all the same.
      if !report.takes.isEmpty { try report.show(json: options.json) }
      throw failure
    }
    try report.conclude(with: failures, json: options.json)
  }

  /// A take that is being recorded, with the stays in it so far.
  private struct OpenTake {
    let session: Session
    let path: String
    var rooms: [Room] = []
    /// Whether a room was entered.
    var wasThere = false

    mutating func add(_ stay: Stay) {
      rooms.append(stay.room)
      wasThere = wasThere || stay.wasThere
    }
  }

  private func openTake() throws -> OpenTake {
    let path = try options.takePath(prefix: name)
    return OpenTake(session: try openSession(options.sessionOptions(take: path)), path: path)
  }

  /// Completes a take; one of nothing but a refusal is of no use to anybody.
  private func complete(
    _ take: OpenTake, _ failure: String?, _ visitor: RoomVisitor, _ report: inout RecordingReport
  ) async throws {
    let summary = try await finish(take.session, take.path)
    let words = visitor.takeSummary()
    guard take.wasThere || failure == nil else { return discard(take.path) }
    report.add(
      summary, take.rooms.flatMap(\.connections).map { RecordingReport.Peer($0) }, media: words)
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
    // Without --play there is a microphone at most, which local audio has by itself.
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
