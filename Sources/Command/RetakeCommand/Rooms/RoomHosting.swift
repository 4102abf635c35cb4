import ArgumentParser
import Live
import Media
import RoomClient
import Signaling
import Synchronization

/// Whether a recorder hosts rooms, and who may enter.
struct RoomHostingOptions: ParsableArguments {
  @Flag(
    help: """
      Serve rooms at /rooms for retake record room: the media of each participant is decoded and \
      forwarded to the others.
      """)
  var rooms = false

  @Option(
    name: .customLong("room-secret"),
    help: """
      With --rooms: admit only clients with a token from /rooms/token for this KEY:SECRET. \
      \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.pair("KEY:SECRET", separator: ":")))
  var roomSecret: String?

  @Option(
    help: """
      With --rooms: how many participants may be in all rooms at once; further ones are refused \
      until one leaves. Default: \(Self.usualGuests).
      """,
    transform: Taking.whole(1...100_000))
  var guests = Self.usualGuests

  private static let usualGuests = 50

  func validate() throws {
    guard rooms || roomSecret == nil else {
      throw ValidationError("--room-secret needs --rooms: give both, or leave it out.")
    }
  }
}

/// A recorder's rooms, once its session is open.
final class RoomHosting: Sendable {
  private let host = Mutex<RoomHost?>(nil)

  static let path = "/rooms"

  var route: WebSocketRoute {
    var limits = WebSocketLimits()
    // Larger than a description with the maximum number of published tracks.
    limits.messageBytes = 256 << 10
    limits.unreadBytes = 256 << 10
    limits.unsentBytes = 1 << 20
    return WebSocketRoute(
      path: RoomHosting.path, subprotocols: RoomHost.subprotocols, limits: limits
    ) { [self] socket, _ in
      await host.withLock { $0 }?.serve(socket)
    }
  }

  func open(_ session: Session, _ options: RecordOptions, _ wanted: RoomHostingOptions) {
    var hosting = RoomHost.Options()
    hosting.connection = options.peerConfiguration
    hosting.secret = wanted.roomSecret
    hosting.guestsMaximum = wanted.guests
    let made = RoomHost(session: session, options: hosting)
    host.withLock { $0 = made }
  }

  /// Responds to HTTP requests about rooms; nil for other requests.
  func respond(to request: HTTPRequest) async -> HTTPResponse? {
    guard request.path == RoomHosting.path + "/token", request.method == "POST" else { return nil }
    return await host.withLock { $0 }?.token(request.body)
  }

  /// Closes the rooms; returns how many participants there were.
  func close() async -> Int {
    guard let host = host.withLock({ $0 }) else { return 0 }
    await host.close()
    return await host.guestCount
  }
}

// MARK: - ShareScreen

/// Shares a screen in another process's room.
struct ShareScreen: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "share-screen",
    abstract: "Share a screen, or a pattern, in the room of another process.",
    discussion: """
      It is started by a room, for example by the command share of retake record janus --commands. \
      Started by hand, it needs the folder that the room listens in.

      Examples:
        retake share-screen --group /run/user/1000/room --display :0 --size 1280x720
      """,
    shouldDisplay: false)

  @Option(
    help: "The folder that the room listens in. Default: the one that the room passed on.",
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
        .inputOutput, "no room is waiting for a screen: share from the room, or name its --group")
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
    if !isStarted { end("the screen cannot be captured") }
  }

  func captureDidEnd() { end("the screen is no longer captured") }

  /// Ends sharing, and with it the command.
  private func end(_ reason: String) {
    printError(reason)
    Task { [share] in await share.stop() }
  }

  func consumeCapturedFrame(_ frame: VideoFrame) {
    // The command ends once sharing stops; until then a lost frame does not matter.
    try? share.sendVideoFrame(frame)
  }
}
