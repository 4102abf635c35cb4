import Live
import Media
import Room
import RoomClient
import Synchronization
import Testing

/// Tests video profiles and pauses in Retake's own rooms.
@Suite(.timeLimit(.minutes(10))) struct ProfileTests {
  /// Records the frames' widths.
  private final class Widths: VideoRenderer {
    private let state = Mutex<(last: Int, count: Int)>((0, 0))
    var last: Int { state.withLock { $0.last } }
    var count: Int { state.withLock { $0.count } }
    func setSize(width: Int, height: Int) {}
    func renderFrame(_ frame: VideoFrame?) {
      guard let frame else { return }
      state.withLock { $0 = (frame.displayWidth, $0.count + 1) }
    }
  }

  @Test func theLargestLayerThatFitsTheProfileIsReceived() async throws {
    let meeting = try await Meeting()
    let (first, second) = (Ear(), Ear())
    let anna = meeting.room("anna", delegate: first)
    let ben = meeting.room("ben", delegate: second)
    var options = LocalMediaOptions()
    options.videoLayers = ["l", "m", "h"]
    let source = VideoSource(.pattern(width: 320, height: 240, framesPerSecond: 10))
    try await anna.publish(LocalMedia(video: source, audio: nil, options: options))
    try await anna.connect(roomId: "room-1")
    try await first.hear("localPublished")
    try await ben.connect(roomId: "room-1")
    try await second.hear("videoPublished ")
    let owner = try #require(ben.remoteParticipants.values.first)
    let video = try #require(owner.videos.values.first)
    #expect(video.profiles == [.low, .mid, .high] && video.profile == .empty)
    await #expect {
      try await video.setProfile(.low)
    } throws: {
      ($0 as? RoomError)?.code == .notSubscribed
    }
    try await ben.subscribe(videoId: video.id)
    let widths = Widths()
    video.attach(RenderView(widths))
    try await until("the largest layer") { widths.last == 320 }
    try await video.setProfile(.low)
    #expect(video.profile == .low)
    try await until("the smallest layer") { widths.last == 80 }
    try await video.setProfile(.mid)
    try await until("the middle layer") { widths.last == 160 }
    try await video.setProfile(.high)
    try await until("the largest layer again") { widths.last == 320 }

    video.pause = true
    #expect(video.pause)
    // Frames in transit still arrive; after that, no frame arrives for a while.
    var former = -1
    let clock = ContinuousClock()
    let end = clock.now + .seconds(180)
    while former != widths.count, clock.now < end {
      former = widths.count
      try await clock.sleep(for: .seconds(2))
    }
    #expect(former == widths.count && video.pause)
    video.pause = false
    try await until("frames again") { widths.count > former + 3 }
    await ben.disconnect()
    await anna.disconnect()
    try await meeting.end()
  }

  @Test func oneLayerHasNoProfileAndUnreceivedVideoNoPause() async throws {
    let meeting = try await Meeting()
    let (first, second) = (Ear(), Ear())
    let anna = meeting.room("anna", delegate: first)
    let ben = meeting.room("ben", delegate: second)
    try await anna.publish(LocalMedia.small())
    try await anna.connect(roomId: "room-1")
    try await first.hear("localPublished")
    try await ben.connect(roomId: "room-1")
    try await second.hear("videoPublished ")
    let video = try #require(
      ben.remoteParticipants.values.first?.videos.values.first)
    #expect(video.profiles.isEmpty)
    // A rejected pause is reverted, and the error is reported.
    video.pause = true
    try await second.hear("error 1327")
    try await until("no pause") { !video.pause }
    try await ben.subscribe(videoId: video.id)
    await #expect {
      try await video.setProfile(.low)
    } throws: {
      ($0 as? RoomError)?.code == .noProfiles
    }
    await ben.disconnect()
    await anna.disconnect()
    try await meeting.end()
  }
}
