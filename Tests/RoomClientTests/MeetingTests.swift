import Foundation
import Live
import Media
import Peer
import Replay
import Room
import RoomClient
import Stats
import Synchronization
import Tape
import Testing

/// A camera with two sizes and no frames.
private final class TwoSizes: VideoCapturer {
  let supportedFormats = [(640, 480), (1_280, 720)].map {
    VideoFormat(width: $0.0, height: $0.1, framesPerSecond: 20)
  }
  let isScreencast = false
  private let format = Mutex<VideoFormat?>(nil)

  var started: VideoFormat? { format.withLock { $0 } }
  func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    self.format.withLock { $0 = format }
    consumer.captureDidStart(true)
  }
  func stopCapture() {}
}

/// Tests a room's clients over real sockets, with the server in the same process.
@Suite(.timeLimit(.minutes(10))) struct MeetingTests {
  @Test func aRoomItsSignalingAndItsConnectionsReplay() async throws {
    let meeting = try await Meeting()
    let (first, second) = (Ear(), Ear())
    let anna = meeting.room("anna", delegate: first)
    let ben = meeting.room("ben", delegate: second)
    let media = LocalMedia.small(extraValue: "camera")
    try await anna.publish(media)
    #expect(anna.status == .initialized)
    try await anna.connect(roomId: "room-1")
    try await first.hear("localPublished")
    #expect(anna.localParticipant.media.first === media && media.video?.owner != nil)
    let (shownVideo, heardAudio) = (try #require(media.video), try #require(media.audio))
    try await until("both") {
      anna.localParticipant.videos.count + anna.localParticipant.audios.count == 2
    }
    #expect(anna.localParticipant.videos[shownVideo.id] === shownVideo)
    #expect(anna.localParticipant.audios[heardAudio.id] === heardAudio)

    try await ben.connect(roomId: "room-1")
    try await second.hear("videoPublished camera")
    try await first.hear("entered")
    let owner = try #require(ben.remoteParticipants.values.first)
    let video = try #require(owner.videos.values.first)
    #expect(video.owner == anna.localParticipant.id && !video.isSubscribed)
    let shown = DigestRenderer()
    let view = RenderView(shown)
    video.attach(view)
    try await ben.subscribe(videoId: video.id)
    try await until("frames") { shown.shown.count > 3 }
    #expect(video.isSubscribed && video.viewId == view.id && owner.isVideoSubscribed)
    #expect(ben.getVideoOccupants() == [owner.id])
    try await second.hear("audioSubscribed")
    try await until("a level") { (ben.getAudioLevels()[owner.id] ?? 0) > 0 }
    #expect(ben.getAudioOccupants() == [owner.id])
    // Only remote participants have a level.
    #expect(anna.getAudioLevels().isEmpty)

    try await ben.sendUserMessage(participantIds: [owner.id], message: "hello", type: "chat")
    try await first.hear("message chat hello")
    media.video?.active = false
    try await second.hear("videoState false camera")

    let local = await anna.getLocalStatsReport()
    #expect(local.statistics.values.filter { $0.type == "outbound-rtp" }.count == 2)
    #expect(local.statistics.allSatisfy { $0.key == $0.value.id && $0.value.timeStamp > 0 })
    #expect(local.statistics.values.allSatisfy { !$0.values.isEmpty })
    let remote = await ben.getRemoteStatsReport()
    #expect(remote.statistics.values.filter { $0.type == "inbound-rtp" }.count == 2)
    let ofAnna = await ben.getRemoteStatsReport(of: owner.id)
    #expect(ofAnna.count == 2)

    ben.setMuted(true)
    try await until("silence") { (ben.getAudioLevels()[owner.id] ?? 1) == 0 }
    try await ben.unsubscribe(videoId: video.id)
    #expect(!video.isSubscribed)
    try await anna.unpublish(media)
    #expect(anna.localParticipant.videos.isEmpty && anna.localParticipant.audios.isEmpty)
    try await second.hear("videoUnpublished")
    await anna.disconnect()
    try await second.hear("left")
    #expect(anna.status == .disconnected)
    await ben.disconnect()
    try await meeting.end()
    let order = first.calls.filter { $0.hasPrefix("connect") || $0.hasPrefix("disconnect") }
    #expect(order.first == "connecting 1" && order.last == "disconnected disconnected")
    try expectReplay(meeting)
  }

  /// Expects the meeting's take to replay and to contain the participants.
  private func expectReplay(_ meeting: Meeting) throws {
    let report = try Replayer(
      path: meeting.path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(report.isComplete)
    let take = try TakeFile.openForQueries(meeting.path)
    #expect(try take.integer("SELECT count(*) FROM actor WHERE kind = 'room'") == 2)
    #expect(try take.integer("SELECT count(*) FROM actor WHERE kind = 'endpoint'") == 2)
    let people = "SELECT count(*) FROM participant WHERE left_ns IS NOT NULL"
    #expect(try take.integer(people) == 4)
    let spoke = "SELECT count(DISTINCT actor) FROM participant_speaker WHERE seconds > 0.2"
    #expect(try take.integer(spoke) == 2)
    let stats = """
      SELECT count(*) FROM participant_stat
      WHERE kind = 'video' AND type = 'inbound-rtp' AND members ->> '$.framesDecoded' > 0
      """
    #expect(try take.integer(stats) ?? 0 > 0)
  }

  @Test func videoIsOfferedInItsLayers() async throws {
    let meeting = try await Meeting()
    let ear = Ear()
    let room = meeting.room("anna", delegate: ear)
    var options = LocalMediaOptions()
    options.videoLayers = ["l", "m", "h"]
    let source = VideoSource(.pattern(width: 64, height: 48, framesPerSecond: 10))
    try await room.publish(LocalMedia(video: source, audio: nil, options: options))
    try await room.connect(roomId: "room-1")
    try await ear.hear("localPublished")
    await room.disconnect()
    try await meeting.end()
    let take = try TakeFile.openForQueries(meeting.path)
    let offered = """
      SELECT count(*) FROM call_request WHERE name = 'addTransceiver'
      AND arguments ->> '$.sendEncodings[0].rid' = 'h'
      AND arguments ->> '$.sendEncodings[2].scaleResolutionDownBy' = 4
      """
    #expect(try take.integer(offered) == 1)
    let report = try Replayer(
      path: meeting.path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }

  /// KA7, KA19, KA27, KA43, tested on the application's objects.
  @Test func whatARoomIsConfiguredForHoldsAtTheClient() async throws {
    let meeting = try await Meeting()
    let (first, second) = (Ear(), Ear())
    let anna = meeting.room("anna", delegate: first)
    var config = RoomConfig()
    (config.videoReceiverInitialCount, config.videoReceiverMaximumCount) = (1, 1)
    let ben = Room(
      meeting.rooms, config: config, session: meeting.clients, label: "ben", delegate: second)
    for name in ["camera", "screen"] { try await anna.publish(LocalMedia.small(extraValue: name)) }
    try await anna.connect(roomId: "room-1")
    try await until("both videos") { anna.localParticipant.videos.count == 2 }
    try await ben.connect(roomId: "room-1")
    for name in ["camera", "screen"] { try await second.hear("videoPublished \(name)") }
    #expect(second.calls.contains("connected 2"))
    let videos = try #require(ben.remoteParticipants.values.first).videos.keys.sorted()
    try await ben.subscribe(videoId: videos[0])
    await #expect {
      try await ben.subscribe(videoId: videos[1])
    } throws: {
      ($0 as? RoomError)?.code == .receiversExhausted
    }
    // If several videos are requested, each error is reported separately.
    try await ben.subscribe(videoIds: videos)
    for code in ["1321", "1322"] { try await second.hear("error \(code)") }
    // A connection that has not started cannot be restarted.
    try await until("a connection") {
      ben.connections.contains { $0.connectionState == .connected }
    }
    try await ben.restartIce()
    try await until("ICE begins anew") {
      second.updates.contains { if case .restartingICE = $0 { true } else { false } }
    }
    await ben.disconnect()
    await anna.disconnect()
    try await meeting.end()
  }

  @Test func aViewShowsOneVideoAtATime() throws {
    let view = RenderView(DigestRenderer())
    let (first, second) = (LocalMedia.small(), LocalMedia.small())
    first.video?.attach(view)
    #expect(first.video?.viewId == view.id)
    second.video?.attach(view)
    #expect(first.video?.viewId == nil && second.video?.viewId == view.id)
    second.video?.detach()
    #expect(second.video?.viewId == nil)
  }

  @Test func tokensAreIssuedForASecret() async throws {
    let meeting = try await Meeting(secret: "key:secret")
    let ear = Ear()
    let room = meeting.room("anna", delegate: ear, needsToken: true)
    await #expect(throws: RoomError.self) { try await room.connect(roomId: "room-1") }
    await #expect {
      try await room.signIn(
        ServiceAuthenticator(
          serviceId: "s", serviceSecret: "key:wrong", endpoint: meeting.tokenURL))
    } throws: {
      ($0 as? RoomError)?.code == .signInRefused
    }
    await #expect {
      try await room.signIn(
        ServiceAuthenticator(serviceId: "s", serviceSecret: "secret", endpoint: meeting.tokenURL))
    } throws: {
      ($0 as? RoomError)?.code == .signInIncomplete
    }
    try await room.signIn(
      ServiceAuthenticator(
        serviceId: "s", serviceSecret: "key:secret", endpoint: meeting.tokenURL))
    try await room.connect(roomId: "room-1")
    await room.disconnect()
    await room.signOut()
    let stranger = meeting.room("eve", delegate: Ear())
    try await stranger.signIn(TokenAuthenticator(serviceId: "s", token: "made up"))
    await #expect {
      try await stranger.connect(roomId: "room-1")
    } throws: {
      ($0 as? RoomError)?.code == .tokenExpired
    }
    try await meeting.end()
    // Neither the key nor the secret is in the take.
    let take = try TakeFile.openForQueries(meeting.path)
    let found = "SELECT count(*) FROM call_request WHERE arguments LIKE '%secret%'"
    #expect(try take.integer(found) == 0)
  }

  @Test func ownMediaNeedsACapturerThatStarts() async throws {
    var options = LocalMediaOptions()
    (options.source, options.fileName) = (.file, "/nowhere/clip.y4m")
    #expect {
      _ = try LocalMedia(options: options)
    } throws: {
      ($0 as? RoomError)?.code == .cameraFailed
    }
    options.source = .bypass
    let pushed = try LocalMedia(options: options)
    try await pushed.start()
    let capturer = try #require(pushed.capturer as? PushedVideoCapturer)
    let frame = try VideoFrame(
      I420Buffer(width: 640, height: 480, samples: [UInt8](repeating: 128, count: 640 * 720)),
      timestampNanoseconds: 1)
    #expect(capturer.push(frame))
    await pushed.stop()
    #expect(!capturer.push(frame))
    await #expect {
      try await pushed.switchCamera(position: .back)
    } throws: {
      ($0 as? RoomError)?.code == .capturerMissing
    }
    #expect(pushed.position == .front && pushed.isMirror && pushed.audioLevel == 0)
  }

  @Test func ownMediaHasDefaultsUntilItIsPublished() async throws {
    let media = LocalMedia.small(extraValue: "x")
    let (video, audio) = (try #require(media.video), try #require(media.audio))
    #expect(video.id != audio.id && video.owner == nil && video.active && audio.active)
    #expect(video.extraValue == "x" && !video.hd && !audio.alwaysOn)
    video.extraValue = "y"
    video.hd = true
    audio.alwaysOn = true
    audio.active = false
    #expect(video.extraValue == "y" && video.hd && audio.alwaysOn && !audio.track.isEnabled)
    for (isHD, width) in [(false, 640), (true, 1_280)] {
      let camera = TwoSizes()
      let media = try LocalMedia(capturer: camera)
      media.video?.hd = isHD
      try await media.start()
      #expect(camera.started?.width == width)
      await media.stop()
    }
  }
}
