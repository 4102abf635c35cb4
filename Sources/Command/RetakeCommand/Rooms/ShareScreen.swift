import ArgumentParser
import Live
import Media
import RoomClient

/// The process that shares a screen in the room of another one.
struct ShareScreen: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share-screen",
    abstract: "Share a screen, or a pattern, in the room of another process.",
    discussion: """
      A room starts it: the command share of retake record janus --commands, for example. By hand \
      it needs the folder that the room listens in.

      Examples:
        retake share-screen --group /run/user/1000/room --display :0 --size 1280x720
      """,
    shouldDisplay: false)

  @Option(
    help: "The folder that the room listens in. Default: the one that the room has named.",
    completion: .directory, transform: Taking.path)
  var group: String?

  @Option(help: "The X display to share. Default: a test pattern.", transform: Taking.text(2...100))
  var display: String?

  @Option(
    help: "The size. Default: 640x360.", transform: Taking.value(VideoSize.wanted))
  var size = VideoSize(width: 640, height: 360)

  @Option(
    name: [.customLong("frame-rate"), .customLong("rate")],
    help: "The frame rate. Default: 15.", transform: Taking.whole(1...60))
  var rate = 15

  func run() async throws {
    let stop = StopSignal()
    let format = VideoFormat(
      width: size.width, height: size.height, framesPerSecond: Double(rate))
    let capturer: any VideoCapturer
    if let display {
      capturer = ProcessVideoCapturer.screen(
        display: display, width: size.width, height: size.height, framesPerSecond: Double(rate))
    } else {
      capturer = PatternVideoCapturer(supportedFormats: [format])
    }
    let share: ScreenShare
    do throws(ExtensionErrorCode) {
      share = try ScreenShare(appGroup: group)
      try await share.start()
    } catch {
      throw CommandFailure(
        .inputOutput, "no room wants a screen: let the room ask for one, or name its --group")
    }
    guard let first = capturer.supportedFormats.first else { return }
    capturer.startCapture(first, consumer: SharedFrames(share))
    await stop.wait(seconds: nil) { await share.waitUntilEnded() }
    capturer.stopCapture()
    if share.ending == nil { await share.stop() }
  }
}

/// Sends captured frames to the room.
private final class SharedFrames: VideoConsumer {
  private let share: ScreenShare

  init(_ share: ScreenShare) { self.share = share }

  func captureDidStart(_ isStarted: Bool) {
    if !isStarted { printError("the screen cannot be captured") }
  }

  func consumeCapturedFrame(_ frame: VideoFrame) {
    // When sharing is over the command ends; until then a frame more or less does not count.
    try? share.sendVideoFrame(frame)
  }
}
