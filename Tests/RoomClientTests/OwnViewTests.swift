import Foundation
import Live
import Media
import Room
import Synchronization
import Testing

@testable import RoomClient

/// Tests the view, the cameras and the files of local media.
@Suite(.timeLimit(.minutes(10))) struct OwnViewTests {
  private final class Rows: VideoRenderer {
    private let state = Mutex<[UInt8]>([])
    /// The last frame's first row.
    var row: [UInt8] { state.withLock { $0 } }
    func setSize(width: Int, height: Int) {}
    func renderFrame(_ frame: VideoFrame?) {
      guard let frame = frame?.videoFrame() else { return }
      state.withLock { $0 = Array(frame.samples.prefix(frame.width)) }
    }
  }

  private static let size = VideoFormat(width: 640, height: 480, framesPerSecond: 20)

  /// Makes a frame whose luma rises from left to right.
  private static func ramp() throws -> VideoFrame {
    let row = (0..<640).map { UInt8($0 / 4) }
    let samples = (0..<480).flatMap { _ in row } + Array(repeating: 128, count: 640 * 240)
    return try VideoFrame(
      I420Buffer(width: 640, height: 480, samples: samples), timestampNanoseconds: 1)
  }

  @Test func theLocalViewIsMirroredAndSentVideoIsNot() async throws {
    var options = LocalMediaOptions()
    options.source = .bypass
    let media = try LocalMedia(options: options)
    let video = try #require(media.video)
    let (shown, sent) = (Rows(), Rows())
    let view = RenderView(shown)
    video.attach(view)
    video.track.add(sent)
    try await media.start()
    let capturer = try #require(media.capturer as? PushedVideoCapturer)
    let ramp = try Self.ramp()
    #expect(capturer.push(ramp))
    try await until("a frame") { !shown.row.isEmpty && !sent.row.isEmpty }
    #expect(media.isMirror && shown.row == sent.row.reversed() && sent.row.first == 0)
    // Another video in the same view is not mirrored.
    video.detach()
    #expect(!view.isMirrored)
    await media.stop()

    options.isMirror = false
    let plain = try LocalMedia(options: options)
    plain.video?.attach(view)
    try await plain.start()
    let pushing = try #require(plain.capturer as? PushedVideoCapturer)
    #expect(pushing.push(ramp))
    try await until("a frame") { shown.row == sent.row }
    await plain.stop()
  }

  @Test func aCameraIsSwitchedByItsPositionAndByACall() async throws {
    let made = Mutex<[CameraPosition: PushedVideoCapturer]>([:])
    let media = try LocalMedia(
      cameras: { position in
        let capturer = PushedVideoCapturer(supportedFormats: [Self.size])
        made.withLock { $0[position] = capturer }
        return capturer
      })
    try await media.start()
    let ramp = try Self.ramp()
    let first = made.withLock { $0[.front] }
    let front = try #require(first)
    #expect(media.position == .front && front.push(ramp))
    let shown = Rows()
    media.video?.attach(RenderView(shown))
    media.position = .back
    try await until("the other camera") { media.position == .back }
    try await until("its frames") {
      guard let back = made.withLock({ $0[.back] }) else { return false }
      return back.push(ramp) && !shown.row.isEmpty
    }
    #expect(!front.push(ramp) && media.failure == nil && media.isMirror)
    try await media.switchCamera(position: .front, isMirror: false)
    #expect(media.position == .front && !media.isMirror)
    let second = made.withLock { $0[.front] }
    let again = try #require(second)
    #expect(again !== front && again.push(ramp))
    try await until("the picture as it is") { shown.row.first == 0 }
    await media.stop()
  }

  @Test func aFailedSwitchHasAReason() async throws {
    var options = LocalMediaOptions()
    options.source = .bypass
    let media = try LocalMedia(options: options)
    media.position = .back
    try await until("a reason") { media.failure?.code == .capturerMissing }
    #expect(media.position == .front)
  }

  /// Makes a one-second clip that Retake reads without ffmpeg.
  private static func clip() throws -> String {
    let path = FileManager.default.temporaryDirectory.path + "/own-\(UUID().uuidString).y4m"
    var bytes = Data("YUV4MPEG2 W64 H48 F20:1 Ip A1:1 C420jpeg\n".utf8)
    for _ in 0..<20 {
      bytes += Data("FRAME\n".utf8) + Data(repeating: 100, count: 64 * 48 * 3 / 2)
    }
    try bytes.write(to: URL(fileURLWithPath: path))
    return path
  }

  @Test(.enabled(if: !FileManager.default.fileExists(atPath: "/dev/video0"), "there is a camera"))
  func withoutACameraTheFileIsSent() async throws {
    var options = LocalMediaOptions()
    options.fileName = try Self.clip()
    defer { try? FileManager.default.removeItem(atPath: options.fileName) }
    let media = try LocalMedia(options: options)
    let shown = Rows()
    media.video?.attach(RenderView(shown))
    try await media.start()
    try await until("a frame of the file") { shown.row.count == 64 }
    #expect(media.capturer is FileVideoCapturer)
    await media.stop()
    // If there is no file either, the camera's error is reported.
    options.fileName = "/nowhere/sample.mov"
    let none = try LocalMedia(options: options)
    await #expect {
      try await none.start()
    } throws: {
      ($0 as? RoomError)?.code == .cameraFailed
    }
  }

  @Test func aFileThatIsNotThereIsReportedAtOnce() throws {
    var options = LocalMediaOptions()
    (options.source, options.fileName) = (.file, "/nowhere/sample.mov")
    #expect {
      _ = try LocalMedia(options: options)
    } throws: {
      ($0 as? RoomError)?.code == .cameraFailed
    }
  }

  /// Makes a program that imitates ffmpeg on a file: it outputs grey frames, or a square wave if
  /// there is no video, and records its arguments.
  private static func standIn(_ folder: String) throws -> String {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let frame = Data(repeating: 90, count: 64 * 48 * 3 / 2)
    try frame.write(to: URL(fileURLWithPath: folder + "/frame"))
    let wave = Data((0..<960).flatMap { $0 / 48 % 2 == 0 ? [0, 16] : [0, 240] as [UInt8] })
    try wave.write(to: URL(fileURLWithPath: folder + "/wave"))
    let script = """
      #!/bin/sh
      what=frame
      for word; do [ "$word" = -vn ] && what=wave; done
      echo "$@" > \(folder)/$what.words
      while cat \(folder)/$what; do sleep 0.02; done
      """
    let path = folder + "/ffmpeg"
    try script.write(toFile: path, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    return path
  }

  @Test func aFileOfAnyFormatIsDecodedWithItsSound() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/own-\(UUID().uuidString)"
    let program = try Self.standIn(folder)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var options = LocalMediaOptions()
    (options.source, options.fileName) = (.file, folder + "/sample.mov")
    (options.videoWidth, options.videoHeight) = (64, 48)
    try Data([1]).write(to: URL(fileURLWithPath: options.fileName))
    let meeting = try await Meeting()
    let (first, second) = (Ear(), Ear())
    let anna = meeting.room("anna", delegate: first)
    let ben = meeting.room("ben", delegate: second)
    let media = try LocalMedia(options: options, program: MediaProgram(path: program))
    try await anna.publish(media)
    try await anna.connect(roomId: "room-1")
    try await first.hear("localPublished")
    try await ben.connect(roomId: "room-1")
    try await second.hear("videoPublished ")
    let owner = try #require(ben.remoteParticipants.values.first)
    let video = try #require(owner.videos.values.first)
    let shown = Rows()
    video.attach(RenderView(shown))
    try await ben.subscribe(videoId: video.id)
    try await until("frames") { shown.row.count == 64 }
    try await until("sound") { (ben.getAudioLevels()[owner.id] ?? 0) > 0 }
    let words = try String(contentsOfFile: folder + "/frame.words", encoding: .utf8)
    #expect(words.contains("-stream_loop -1 -i file:\(options.fileName)"))
    await media.stop()
    await ben.disconnect()
    await anna.disconnect()
    try await meeting.end()
  }
}
