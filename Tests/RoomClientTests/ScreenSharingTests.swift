import Foundation
import Live
import Media
import Room
import Synchronization
import Tape
import Testing

@testable import RoomClient

/// Tests a helper process that shares a screen in a room.
@Suite(.timeLimit(.minutes(10))) struct ScreenSharingTests {
  private final class Folder {
    let path = FileManager.default.temporaryDirectory.path + "/share-" + UUID().uuidString
    deinit { try? FileManager.default.removeItem(atPath: path) }
  }

  private func frame(_ time: Int64) throws -> VideoFrame {
    try VideoFrame(
      I420Buffer(width: 32, height: 16, samples: [UInt8](repeating: 90, count: 768)),
      timestampNanoseconds: time)
  }

  @Test func aHelperSharesUntilTheRoomEndsIt() async throws {
    let meeting = try await Meeting()
    let folder = Folder()
    let (first, second) = (Ear(), Ear())
    let anna = meeting.room("anna", delegate: first)
    let ben = meeting.room("ben", delegate: second)
    let helper = ScreenShareProgram(executable: nil)
    await #expect(throws: RoomError.self) {
      try await anna.requestScreenShare(appGroup: folder.path, helper: helper)
    }
    try await anna.connect(roomId: "room-1")
    try await ben.connect(roomId: "room-1")
    let statuses = Mutex<[ExtensionStatus]>([])
    try await anna.requestScreenShare(appGroup: folder.path, helper: helper) { status in
      statuses.withLock { $0.append(status) }
    }
    let share = try ScreenShare(appGroup: folder.path)
    #expect(throws: ExtensionErrorCode.broadcastFailed) { try share.sendVideoFrame(frame(0)) }
    // The socket is created a moment later.
    try await until("the socket") {
      FileManager.default.fileExists(atPath: folder.path + "/screen-share.sock")
    }
    try await share.start()
    share.pause()
    try share.sendVideoFrame(frame(1))
    try await ContinuousClock().sleep(for: .milliseconds(200))
    #expect(!statuses.withLock { $0 }.contains(.broadcastStarted))
    share.resume()
    try share.sendVideoFrame(frame(2))
    // A frame too large for any message.
    let wide = try VideoFrame(
      I420Buffer(width: 5_000, height: 2, samples: [UInt8](repeating: 90, count: 15_000)),
      timestampNanoseconds: 2)
    #expect(throws: ExtensionErrorCode.invalidData) { try share.sendVideoFrame(wide) }
    #expect(ExtensionErrorCode.invalidData.roomError == .shareEncodingFailed)
    try await second.hear("videoPublished screen")
    let owner = try #require(ben.remoteParticipants.values.first)
    let video = try #require(owner.videos.values.first { $0.extraValue == "screen" })
    let shown = DigestRenderer()
    video.attach(RenderView(shown))
    try await ben.subscribe(videoId: video.id)
    var time: Int64 = 3
    try await until("frames of the screen") {
      time += 66_000_000
      try? share.sendVideoFrame(try frame(time))
      return !shown.shown.isEmpty
    }
    anna.stopScreenShare()
    // The next share has to wait five seconds, which may pass before the others notice the end.
    await #expect(throws: RoomError.self) {
      try await anna.requestScreenShare(appGroup: folder.path, helper: helper)
    }
    await share.waitUntilEnded()
    #expect(share.ending == .stopBroadcast)
    #expect(throws: ExtensionErrorCode.stopBroadcast) { try share.sendVideoFrame(frame(9)) }
    try await second.hear("videoUnpublished")
    #expect(statuses.withLock { $0 } == [.broadcastReady, .broadcastStarted])
    await anna.disconnect()
    await ben.disconnect()
    try await meeting.end()
    // TW20: the sender's content hint shows that the video is a screen.
    let take = try TakeFile.openForQueries(meeting.path)
    let hints =
      "SELECT count(*) FROM call_request "
      + "WHERE name = 'setContentHint' AND arguments LIKE '%detail%'"
    #expect(try take.integer(hints) == 1)
  }

  @Test func aCrashedHelperLeavesTheRoomUnchanged() async throws {
    let meeting = try await Meeting()
    let folder = Folder()
    let ear = Ear()
    let room = meeting.room("anna", delegate: ear)
    try await room.connect(roomId: "room-1")
    try await room.requestScreenShare(
      appGroup: folder.path,
      helper: ScreenShareProgram(executable: "/bin/sh", arguments: ["-c", "exit 7"]))
    try await ear.hear("error 1906")
    #expect(room.status == .connected)
    await room.disconnect()
    try await meeting.end()
  }

  @Test func aHelperWithoutARoomIsReported() async throws {
    let share = try ScreenShare(appGroup: Folder().path)
    await #expect(throws: ExtensionErrorCode.broadcastFailed) { try await share.start() }
    #expect(share.ending == nil)
  }

  @Test func aSlowReaderMissesFramesButNoOtherMessage() async throws {
    let folder = Folder()
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
    let (accepted, accept) = AsyncStream.makeStream(of: ShareChannel.self)
    let path = folder.path + "/share.sock"
    let listener = try await ShareChannel.listen(path: path) { accept.yield($0) }
    let sender = try await ShareChannel.connect(path: path)
    var channels = accepted.makeAsyncIterator()
    let receiver = try #require(await channels.next())
    while !receiver.send(.accept) { await Task.yield() }
    let frames = (0..<20).map {
      ShareMessage.frame(
        width: 4, height: 2, time: $0, samples: [UInt8](repeating: 3, count: 12))
    }
    let beginning: [ShareMessage] = [.hello, .started(width: 4, height: 2)]
    let pause: [ShareMessage] = [.paused, .resumed]
    for message in beginning + frames + pause + frames + [.finished] { sender.send(message) }
    sender.finish()
    // Read only once everything has arrived and the connection has ended.
    while receiver.send(.accept) { await Task.yield() }
    var received: [ShareMessage] = []
    for await message in receiver.messages { received.append(message) }
    #expect(received.filter { !$0.isFrame } == beginning + pause + [.finished])
    #expect(received.filter(\.isFrame) == Array(frames.prefix(8)))
    withExtendedLifetime(listener) {}
  }

  @Test func messagesAreReadAsTheyWereWritten() {
    for message in ShareMessage.samples {
      let bytes = message.bytes
      let count = ShareMessage.bodyCount(Array(bytes.prefix(5)))
      #expect(count == bytes.count - 5)
      #expect(ShareMessage(kind: bytes[0], body: Array(bytes[5...])) == message)
    }
    #expect(ShareMessage.bodyCount([3, 255, 255, 255, 255]) == nil)
    #expect(ShareMessage(kind: 3, body: [UInt8](repeating: 255, count: 20)) == nil)
    #expect(ShareMessage(kind: 99, body: []) == nil)
  }

  /// The socket may carry any bytes.
  @Test func anyBytesAreAMessageOrNone() {
    var generator = Steps()
    for sample in ShareMessage.samples {
      for _ in 0..<50 {
        var body = Array(sample.bytes[5...])
        for _ in 0..<Int.random(in: 0...3, using: &generator) where !body.isEmpty {
          body[Int.random(in: 0..<body.count, using: &generator)] = .random(
            in: 0...255, using: &generator)
        }
        body = Array(body.prefix(Int.random(in: 0...body.count, using: &generator)))
        let kind = UInt8.random(in: 0...20, using: &generator)
        if let message = ShareMessage(kind: kind, body: body) {
          #expect(Array(message.bytes[5...]).count == body.count)
        }
      }
    }
  }
}

extension ShareMessage {
  static let samples: [ShareMessage] = [
    .hello, .started(width: 320, height: 180),
    .frame(width: 4, height: 2, time: -7, samples: [UInt8](repeating: 3, count: 12)), .paused,
    .resumed, .finished, .accept, .stop(isLeaving: true), .stop(isLeaving: false), .refused,
  ]
}

/// Random numbers that are the same in every run.
private struct Steps: RandomNumberGenerator {
  private var state: UInt64 = 88_172_645_463_325_252
  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state
  }
}
