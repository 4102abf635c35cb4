import AudioSession
import Live
import Media
import Room
import RoomServers
import Synchronization
import Testing
import Wire

@testable import RoomClient

/// A Sora server's channel as seen by an application written for the service's own SDK.
@Suite(.timeLimit(.minutes(10))) struct SoraHandlerTests {
  private final class Log: Sendable {
    private let state = Mutex<[String]>([])
    var lines: [String] { state.withLock { $0 } }
    func add(_ line: String) { state.withLock { $0.append(line) } }
  }

  private static func media() -> LocalMedia {
    var options = LocalMediaOptions()
    options.hasAudio = false
    return LocalMedia(
      video: VideoSource(.pattern(width: 160, height: 120, framesPerSecond: 10)), audio: nil,
      options: options)
  }

  @Test func streamsOfBothSidesSignalingAndTheCloseReachTheHandlers() async throws {
    let channel = try await SoraChannel(sendsVoice: true)
    var config = channel.configuration(.sendrecv)
    let publisherStreamId = config.publisherStreamId
    let (log, ear) = (Log(), Ear())
    let volume = Mutex<Double?>(nil)
    config.mediaChannelHandlers.onConnect = { log.add("connect \($0.map { "\($0.code)" } ?? "")") }
    config.mediaChannelHandlers.onAddStream = { stream in
      log.add("add \(stream.id) \(stream.isRemote) \(stream.tracks.count)")
      guard stream.id != publisherStreamId else { return }
      stream.remoteAudioVolume = 3
      volume.withLock { $0 = stream.remoteAudioVolume }
    }
    config.mediaChannelHandlers.onReceiveSignaling = { text in
      log.add("signaling \((try? JSONValue(parsing: text))?["type"]?.text ?? "")")
    }
    config.mediaChannelHandlers.onDisconnect = { event in
      if case .ok(let code, let reason) = event { log.add("disconnect \(code) \(reason)") }
    }
    let room = Room(.sora(config), session: channel.clients, label: "client", delegate: ear)
    try await room.publish(Self.media())
    try await room.connect(roomId: "channel")
    #expect(channel.connectMessage?["multistream"]?.flag == true)
    try await until("both streams") { log.lines.count { $0.hasPrefix("add ") } == 2 }
    #expect(log.lines.contains("add mainStream false 1"))
    #expect(log.lines.contains("add other true 1"))
    #expect(log.lines.contains("connect ") && log.lines.contains("signaling offer"))
    try await until("a notification") { log.lines.contains("signaling notify") }
    #expect(volume.withLock { $0 } == 3)

    channel.close(code: 4_490, reason: "moved by its owner")
    try await until("the end") { log.lines.contains { $0.hasPrefix("disconnect") } }
    #expect(log.lines.last == "disconnect 4490 moved by its owner")
    #expect(
      room.closure
        == RoomClosure(reason: .kicked, code: 4_490, message: "moved by its owner"))
    try await channel.end()
  }

  @Test func aReceivedTrackExistsWhenItIsReportedAsPublished() async throws {
    /// Looks a track up during the delegate call that reports the track.
    final class Looker: RoomDelegate {
      let found = Mutex<[Bool]>([])
      func room(_ room: Room, onRemoteAudioPublished audio: RemoteAudio, of: RemoteParticipant) {
        found.withLock { $0.append(audio.track != nil) }
      }
    }
    let channel = try await SoraChannel(sendsVoice: true)
    let looker = Looker()
    let room = Room(
      .sora(channel.configuration(.recvonly)), session: channel.clients, label: "client",
      delegate: looker)
    try await room.connect(roomId: "channel")
    try await until("a voice") { looker.found.withLock { !$0.isEmpty } }
    #expect(looker.found.withLock { $0 } == [true])
    await room.disconnect()
    try await channel.end()
  }

  @Test func theCameraAndTheMicrophoneCanBeOffAtFirst() async throws {
    let channel = try await SoraChannel()
    var config = channel.configuration(.sendonly)
    (config.initialCameraEnabled, config.initialMicrophoneEnabled) = (false, false)
    let routes = Log()
    config.mediaChannelHandlers.onChangeAudioRoute = { reason, route in
      routes.add("\(reason.rawValue) \(route.output)")
    }
    let device = ManualAudioDevice()
    let audio = try channel.clients.makeAudioSession(device: device)
    let room = Room(.sora(config), session: channel.clients, label: "client", audio: audio)
    var options = LocalMediaOptions()
    options.source = .bypass
    let media = try LocalMedia(options: options)
    try await room.publish(media)
    #expect(media.video?.active == false && media.audio?.active == false)
    #expect(device.operations.contains(.pauseRecording))
    device.port?.report(.routeChanged(.newDeviceAvailable, AudioRoute(output: "headset")))
    try await until("the route") { routes.lines.contains("newDeviceAvailable headset") }
    let capturer = try #require(media.capturer as? PushedVideoCapturer)
    let frame = try VideoFrame(
      I420Buffer(width: 640, height: 480, samples: [UInt8](repeating: 1, count: 640 * 720)),
      timestampNanoseconds: 1)
    #expect(!capturer.push(frame))
    // The video is enabled at the application's request.
    try await media.start()
    media.video?.active = true
    #expect(capturer.push(frame) && media.video?.active == true)
    await room.disconnect()
    try await channel.end()
  }

  @Test func aChannelThatCannotBeEnteredIsAnErrorOfConnecting() async throws {
    let channel = try await SoraChannel()
    let log = Log()
    var config = SoraConfiguration(
      url: "ws://127.0.0.1:1/signaling", channelId: "channel", role: .recvonly)
    config.mediaChannelHandlers.onConnect = { log.add("connect \($0?.code.rawValue ?? 0)") }
    config.mediaChannelHandlers.onDisconnect = { _ in log.add("disconnect") }
    let room = Room(.sora(config), session: channel.clients, label: "client")
    await #expect(throws: RoomError.self) { try await room.connect(roomId: "channel") }
    try await until("why") { log.lines.contains("connect 1401") }
    #expect(log.lines == ["connect 1401"])
    try await channel.end()
  }
}
