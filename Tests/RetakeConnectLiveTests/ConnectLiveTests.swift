import AudioSession
import Dispatch
import Foundation
import Live
import Media
import RetakeRTC
import RoomServers
import Synchronization
import Testing

@testable import RetakeConnectLive

/// Makes the calls of the SDK's guide in Retake's own rooms.
///
/// All tests share the process's one SDK and its devices.
@Suite(.timeLimit(.minutes(10)), .serialized, .machineAlone) struct ConnectLiveTests {
  private static let queue = DispatchQueue(label: "ConnectLive")

  /// The test's machine: its audio device and a server with rooms.
  private final class Machine {
    let desk: Desk
    let rooms: HostedRooms
    private let sessions = Mutex<[Session]>([])

    init(_ desk: Desk = Desk(), secret: String? = nil) async throws {
      self.desk = desk
      rooms = try await HostedRooms(secret: secret)
      RTCAudioSession.sharedInstance().use(nil)
      AVCaptureDevice.useAccess()
      AVCaptureDevice.useDevices([])
      ConnectLive.callbackQueue = ConnectLiveTests.queue
      ConnectLive.use(rooms: rooms.url)
      try use(desk)
    }

    /// Makes all rooms that are created later use another device.
    func use(_ desk: Desk) throws {
      RTCAudioDeviceModule.useDevice { desk }
      let session = try Session(HostedRooms.options)
      sessions.withLock { $0.append(session) }
      ConnectLive.use(session)
    }

    func end() async throws {
      for session in sessions.withLock({ $0 }) { try await session.finish() }
      ConnectLive.use(nil as Session?)
      ConnectLive.use(rooms: nil)
      RTCAudioDeviceModule.useDevice(nil)
      RTCAudioSession.sharedInstance().use(nil)
      AVCaptureDevice.useDevices(nil)
      AVCaptureDevice.useAccess()
      try await rooms.end()
    }
  }

  /// Runs a closure on the queue of the application's delegates.
  private func on<Value: Sendable>(
    _ person: Handed<Caller>, _ body: @escaping @Sendable (Caller) -> Value
  ) async -> Value {
    await withCheckedContinuation { continuation in
      Self.queue.async { continuation.resume(returning: body(person.value)) }
    }
  }

  private func hears(_ text: String, _ person: Handed<Caller>) async throws {
    try await eventually(text) { await on(person) { $0.log.contains(text) } }
  }

  private func person() async throws -> Handed<Caller> {
    let person = Handed(Caller())
    await on(person) { $0.signIn() }
    try await hears("signed in", person)
    return person
  }

  private static func pushes(_ options: inout RetakeConnectLive.LocalMediaOptions) {
    options.source = .bypass
    options.extraValue = "camera"
    // Voice processing would remove a tone.
    options.audioType = .music
  }

  private static func grey(_ number: Int) -> CMSampleBuffer {
    CMSampleBuffer(
      imageBuffer: CVPixelBuffer(
        width: 64, height: 48, pixelFormat: kCVPixelFormatType_32BGRA,
        bytes: [UInt8](repeating: 128, count: 64 * 48 * 4)),
      presentationTimeNs: Int64(number) * 66_000_000)
  }

  // KA3, KA4, KA15, KA17, KA26 to KA29: joining a room requires signing in.
  @Test func onlySignedInParticipantsEnter() async throws {
    let machine = try await Machine(secret: "serviceId:serviceSecret")
    let anna = Handed(Caller())
    await on(anna) { $0.enter("room-1") }
    try await hears("error 1106 false", anna)
    await on(anna) { $0.signIn("wrong") }
    try await hears("refused 1103", anna)
    await on(anna) { $0.signIn() }
    try await hears("signed in", anna)
    await on(anna) { $0.enter("a room") }
    try await hears("error 1301 false", anna)
    await on(anna) { $0.enter("room-1") }
    try await hears("connected 1", anna)
    let room = try #require(await on(anna) { $0.room })
    room.disconnect()
    try await hears("disconnected disconnected", anna)
    let progress = await on(anna) { caller in
      caller.log.compactMap { Int($0.replacingOccurrences(of: "connecting ", with: "")) }
    }
    #expect(progress.first ?? 0 >= 1 && progress.last == 100 && progress == progress.sorted())
    ConnectLive.signOut()
    await on(anna) { $0.enter("room-1") }
    try await eventually("no entry") {
      await on(anna) { $0.log.count { $0 == "error 1106 false" } == 2 }
    }
    // If the server is missing, the error is reported first, then the end.
    ConnectLive.use(rooms: "ws://127.0.0.1:1/rooms", tokens: machine.rooms.tokens)
    let ben = try await person()
    await on(ben) { $0.enter("room-1") }
    try await hears("disconnected disconnected", ben)
    #expect(await on(ben) { $0.log.suffix(2).first?.hasSuffix(" true") == true })
    try await machine.end()
  }

  // KA13 to KA40: two participants see, hear and write to each other.
  @Test func twoParticipantsExchangeVideoAudioAndMessages() async throws {
    let machine = try await Machine(Desk(hertz: 440))
    let anna = try await person()
    await on(anna) {
      $0.createMedia(Self.pushes)
      $0.enter("room-1")
    }
    try await hears("own published true", anna)
    let media = try #require(await on(anna) { $0.media })
    let own = try #require(await on(anna) { $0.room })
    #expect(own.localParticipant.videos[media.video.id] === media.video)
    #expect(own.localParticipant.audios[media.audio.id] === media.audio)
    #expect(media.video.owner == own.localParticipant.id && !media.video.owner.isEmpty)
    let ear = Desk()
    try machine.use(ear)
    let ben = try await person()
    await on(ben) { $0.enter("room-1") }
    try await hears("connected 2", ben)
    try await hears("entered", anna)
    try await hears("video published camera", ben)
    try await hears("voice", ben)
    let room = try #require(await on(ben) { $0.room })
    let video = try #require(await on(ben) { $0.received.first })
    let owner = try #require(room.remoteParticipants[video.owner])
    #expect(owner.videos[video.id] === video && owner === room.remoteParticipants[owner.id])
    #expect(throws: (any Error).self) { try video.setPaused(true) }
    // The view displays the video once it is subscribed to.
    let view = UIRenderView()
    video.attach(view)
    #expect(!video.viewId.isEmpty && !video.isSubscribed)
    #expect(try await room.subscribe(videoId: video.id).get() == ())
    #expect(video.isSubscribed && owner.isVideoSubscribed)
    #expect(room.getVideoOccupants()[owner.id] === owner)
    var number = 0
    try await eventually("a picture") {
      media.sendVideoFrame(sampleBuffer: Self.grey(number))
      number += 1
      return view.videoFrame != nil
    }
    #expect(view.videoFrame?.width == 64)
    try await eventually("the tone") { ear.peak > 2_000 }
    #expect(room.getAudioOccupants()[owner.id] === owner)
    try await talk(anna, ben, media, room, ear)
    // Detaching, unsubscribing and leaving.
    video.detach(UIRenderView())
    #expect(!video.viewId.isEmpty)
    video.detach(view)
    #expect(video.viewId.isEmpty && view.videoFrame == nil)
    room.unsubscribe(videoIds: [video.id])
    try await eventually("no subscription") { !video.isSubscribed }
    own.disconnect()
    try await hears("left", ben)
    #expect(room.remoteParticipants.isEmpty)
    room.disconnect()
    try await hears("disconnected disconnected", ben)
    try await machine.end()
  }

  /// Checks levels, statistics, messages, switches and mute between two participants who hear each
  /// other.
  private func talk(
    _ anna: Handed<Caller>, _ ben: Handed<Caller>, _ media: any LocalMedia, _ room: Room,
    _ ear: Desk
  ) async throws {
    let levels = await withCheckedContinuation { continuation in
      room.getAudioLevels { continuation.resume(returning: $0) }
    }
    #expect(levels.keys.map { $0 } == room.remoteParticipants.keys.map { $0 })
    let types = await withCheckedContinuation { continuation in
      room.getRemoteStatsReport { report in
        continuation.resume(
          returning: report.values.filter { $0.values["kind"] as? String == "audio" }.map(\.type))
      }
    }
    #expect(types.contains("inbound-rtp"))
    let sent = await withCheckedContinuation { continuation in
      room.getLocalStatsReport { continuation.resume(returning: $0.count) }
    }
    #expect(sent == 0)
    room.sendUserMessage(participantIds: [], message: "hello") { result in
      if case .success = result { ben.value.log.append("sent") }
    }
    try await hears("sent", ben)
    try await hears("message hello", anna)
    room.sendUserMessage(participantIds: ["nobody"], message: "hello") { result in
      if case .failure(let error as any CustomNSError) = result {
        ben.value.log.append("not sent \(error.errorCode)")
      }
    }
    try await eventually("a refusal") {
      await on(ben) { $0.log.contains { $0.hasPrefix("not sent 14") } }
    }
    media.video.active = false
    try await hears("video state false", ben)
    media.audio.active = false
    try await hears("audio state false", ben)
    media.audio.active = true
    try await hears("audio state true", ben)
    room.setMuted(true)
    try await eventually("silence") { ear.peak == 0 }
    room.setMuted(false)
    try await eventually("the tone again") { ear.peak > 2_000 }
  }

  // KA12, KA19: if a single subscription fails, its reply has the error; if a list of subscriptions
  // fails, each error is a room error.
  @Test func subscriptionsThatCannotBeAreAnswered() async throws {
    let machine = try await Machine()
    let anna = try await person()
    await on(anna) { $0.enter("room-1") }
    try await hears("connected 1", anna)
    let room = try #require(await on(anna) { $0.room })
    let refusal = await room.subscribe(videoId: 99)
    #expect { try refusal.get() } throws: { ($0 as? any CustomNSError)?.errorCode == 1_328 }
    await #expect(throws: (any Error).self) { try await room.unsubscribe(videoId: -1).get() }
    room.unsubscribe(videoId: 99) { result in
      if case .failure = result { anna.value.log.append("not unsubscribed") }
    }
    try await hears("not unsubscribed", anna)
    room.subscribe(videoIds: [])
    try await hears("error 1323 false", anna)
    room.subscribe(videoIds: [99])
    try await hears("error 1328 false", anna)
    #expect(throws: (any Error).self) { try room.publish(nil) }
    room.disconnect()
    try await machine.end()
  }

  // KA2, KA9, KA13, KA14: media from cameras and files is created, started, switched and stopped.
  @Test func aCameraIsStartedAndSwitched() async throws {
    let machine = try await Machine()
    let cameras = [AVCaptureDevice.Position.front, .back].map { position in
      AVCaptureDevice(
        uniqueID: "\(position)", localizedName: "\(position)", position: position,
        capturer: PatternVideoCapturer(
          supportedFormats: [VideoFormat(width: 64, height: 48, framesPerSecond: 10)]))
    }
    AVCaptureDevice.useDevices(cameras)
    let anna = Handed(Caller())
    await on(anna) { $0.createMedia() }
    let media = try #require(await on(anna) { $0.media })
    #expect(media.position == .front && media.isMirror && media.audioLevel == 0)
    let view = UIRenderView()
    media.video.attach(view)
    try await media.start()
    try await eventually("a picture") { view.videoFrame != nil }
    await on(anna) { $0.turnCamera() }
    try await eventually("the other camera") { media.position == .back && media.isMirror }
    media.switchCamera(position: .front, isMirror: false) { error in
      anna.value.log.append("switched \(error == nil)")
    }
    try await hears("switched true", anna)
    #expect(media.position == .front && !media.isMirror)
    media.stop()
    media.video.detach()
    #expect(media.video.viewId.isEmpty && view.videoFrame == nil)
    // Camera access is denied.
    AVCaptureDevice.useAccess { $0 != .video }
    media.start { error in anna.value.log.append("started \(error == nil)") }
    await on(anna) { $0.createMedia() }
    let refused = try #require(await on(anna) { $0.media })
    await #expect(throws: (any Error).self) { try await refused.start() }
    // Without a file, `createMedia` returns nil.
    await on(anna) { $0.createMedia { $0.source = .file } }
    #expect(await on(anna) { $0.media } == nil)
    try await machine.end()
  }

  // KA5, KA6: the audio session's settings and its events.
  @Test func theAudioSessionIsAsItWasSetAndItsEventsAreReported() async throws {
    let machine = try await Machine()
    let watcher = Handed(AudioWatcher())
    ConnectLive.setAudioSessionConfiguration(
      category: .playAndRecord, mode: .videoChat, options: [.mixWithOthers, .duckOthers],
      delegate: watcher.value)
    let anna = try await person()
    await on(anna) {
      $0.createMedia(Self.pushes)
      $0.enter("room-1")
    }
    try await hears("own published true", anna)
    #expect(
      machine.desk.operations.contains(
        .setCategory(.playAndRecord, options: [.mixWithOthers, .duckOthers])))
    #expect(machine.desk.operations.contains(.setMode(.videoChat)))
    #expect(machine.desk.operations.contains(.setPreferredIOBuffer(milliseconds: 60)))
    machine.desk.report(.interruptionBegan)
    machine.desk.report(.interruptionEnded(shouldResume: true))
    machine.desk.report(.routeChanged(.newDeviceAvailable, AudioRoute(output: "headset")))
    try await eventually("the events") {
      await on(anna) { _ in
        let wanted = ["interrupted", "resumed", "route newDeviceAvailable", "started", "did true"]
        return wanted.allSatisfy { watcher.value.log.contains($0) }
      }
    }
    await on(anna) { $0.room }?.disconnect()
    try await eventually("the end") {
      await on(anna) { _ in watcher.value.log.contains("stopped") }
    }
    ConnectLive.setAudioSessionConfiguration(
      category: .playAndRecord, mode: .voiceChat, options: [.allowBluetooth],
      ioBufferDuration: 0.02)
    #expect(AVAudioSession.sharedInstance().preferredIOBufferDuration == 0.02)
    try await machine.end()
  }

  @Test @MainActor func anApplicationOnTheMainActorIsCalledThere() async throws {
    let machine = try await Machine()
    ConnectLive.callbackQueue = .main
    let screen = RoomScreen()
    screen.enter("room-1")
    try await eventually("the room") { screen.log == ["connected 1"] }
    screen.room?.disconnect()
    try await machine.end()
  }

  // KA20 to KA22, KA41: the screen is sent from its own process to the other participants.
  @Test func aScreenIsSharedUntilTheRoomEndsIt() async throws {
    let machine = try await Machine()
    let group = FileManager.default.temporaryDirectory.path + "/share-" + UUID().uuidString
    let (anna, ben) = (try await person(), try await person())
    await on(anna) { $0.enter("room-1") }
    try await hears("connected 1", anna)
    await on(ben) { $0.enter("room-1") }
    try await hears("connected 2", ben)
    await on(anna) { $0.startScreenSharing(group) }
    try await eventually("the socket") {
      FileManager.default.fileExists(atPath: group + "/screen-share.sock")
    }
    let handler = Handed(ConnectLiveSampleHandler(group))
    let reason = Mutex("")
    handler.value.onFinish = { error in
      let words = (error as NSError).localizedFailureReason ?? ""
      reason.withLock { $0 = words }
    }
    handler.value.broadcastStarted(withSetupInfo: nil)
    try await hears("status broadcastReady", anna)
    var number = 0
    try await eventually("the video") {
      handler.value.processSampleBuffer(Self.grey(number), with: .video)
      number += 1
      return await on(ben) { $0.log.contains("video published screen") }
    }
    try await hears("status broadcastStarted", anna)
    let video = try #require(await on(ben) { $0.received.first })
    let room = try #require(await on(ben) { $0.room })
    let view = UIRenderView()
    video.attach(view)
    room.subscribe(videoIds: [video.id])
    handler.value.broadcastPaused()
    handler.value.broadcastResumed()
    try await eventually("the screen") {
      handler.value.processSampleBuffer(Self.grey(number), with: .video)
      number += 1
      return view.videoFrame != nil
    }
    // The next share cannot start for five seconds; even a slow machine requests it within that
    // time.
    await on(anna) {
      $0.stopScreenSharing()
      $0.startScreenSharing(group)
    }
    #expect(await on(anna) { $0.screenShareStatus } == .notAvailable)
    try await eventually("a refusal") {
      await on(anna) { $0.log.contains { $0.hasPrefix("not shared: ") } }
    }
    try await eventually("the words") { reason.withLock { $0.contains("ended the sharing") } }
    try await hears("video unpublished screen", ben)
    // The room has already ended the share, so the extension has nothing left to end.
    handler.value.broadcastFinished()
    // Without a room, the screen has no receiver.
    let lonely = Handed(ConnectLiveSampleHandler(group + "-other"))
    lonely.value.onFinish = { error in
      let words = (error as NSError).localizedFailureReason ?? ""
      reason.withLock { $0 = words }
    }
    lonely.value.broadcastStarted(withSetupInfo: nil)
    try await eventually("no room") { reason.withLock { $0.contains("no room is waiting") } }
    lonely.value.broadcastFinished()
    for caller in [anna, ben] { await on(caller) { $0.room }?.disconnect() }
    try await machine.end()
  }
}
