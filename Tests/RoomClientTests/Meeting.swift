import Foundation
import Live
import Media
import Room
import RoomClient
import Signaling
import Synchronization
import Tape
import Wire

/// A server with rooms on a free local port, and a recorded session of clients.
final class Meeting: Sendable {
  let host: RoomHost
  let server: HTTPServer
  let clients: Session
  let path: String
  private let hosting: Session
  private let folder: String

  init(secret: String? = nil, bytesPerSecond: Int? = nil) async throws {
    folder = FileManager.default.temporaryDirectory.path + "/rooms-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    path = folder + "/meeting.take"
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    hosting = try Session(options)
    options.takePath = path
    options.statsInterval = .milliseconds(200)
    clients = try Session(options)
    var hosted = RoomHost.Options()
    hosted.secret = secret
    // All socket tests run in parallel; on a busy machine a join can take far longer than 10 s.
    hosted.joinSeconds = 120
    if let bytesPerSecond { hosted.speechBytesPerSecond = bytesPerSecond }
    let host = RoomHost(session: hosting, options: hosted)
    self.host = host
    let route = WebSocketRoute(path: "/rooms", subprotocols: RoomHost.subprotocols) { socket, _ in
      await host.serve(socket)
    }
    server = try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, identity: nil, sockets: [route]
    ) { request in
      request.path == "/token" ? await host.token(request.body) : .refusal(404, "not here")
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  var rooms: RoomServer { .retake("ws://127.0.0.1:\(server.port)/rooms") }
  var tokenURL: String { "http://127.0.0.1:\(server.port)/token" }

  func room(_ name: String, delegate: Ear, needsToken: Bool = false) -> Room {
    var config = RoomConfig()
    config.displayName = name
    return Room(
      .retake("ws://127.0.0.1:\(server.port)/rooms", needsToken: needsToken), config: config,
      session: clients, label: name, delegate: delegate)
  }

  /// Ends the server and the session, and completes the take.
  func end() async throws {
    await host.close()
    _ = try await clients.finish()
    _ = try await hosting.finish()
    await server.shutdown()
  }
}

/// Records a room's events.
final class Ear: RoomDelegate {
  private let heard = Mutex<[RoomUpdate]>([])
  private let names = Mutex<[String]>([])

  /// The delegate methods called so far, by name.
  var calls: [String] { names.withLock { $0 } }
  var updates: [RoomUpdate] { heard.withLock { $0 } }

  private func note(_ name: String) { names.withLock { $0.append(name) } }

  func room(_ room: Room, onConnecting progress: Float) { note("connecting \(Int(progress))") }
  func room(_ room: Room, onConnected ids: [String]) { note("connected \(ids.count)") }
  func room(_ room: Room, onDisconnected reason: DisconnectReason) {
    note("disconnected \(reason)")
  }
  func room(_ room: Room, onError code: Int, message: String, isCritical: Bool) {
    note("error \(code)")
  }
  func room(_ room: Room, onParticipantEntered participant: RemoteParticipant) { note("entered") }
  func room(_ room: Room, onParticipantLeft participant: RemoteParticipant) { note("left") }
  func room(_ room: Room, onLocalMediaPublished media: LocalMedia) { note("localPublished") }
  func room(_ room: Room, onLocalMediaUnpublished media: LocalMedia) { note("localUnpublished") }
  func room(_ room: Room, onRemoteVideoPublished video: RemoteVideo, of: RemoteParticipant) {
    note("videoPublished \(video.extraValue)")
  }
  func room(_ room: Room, onRemoteVideoUnpublished video: RemoteVideo, of: RemoteParticipant) {
    note("videoUnpublished")
  }
  func room(_ room: Room, onRemoteAudioPublished audio: RemoteAudio, of: RemoteParticipant) {
    note("audioPublished")
  }
  func room(_ room: Room, onRemoteAudioSubscribed audio: RemoteAudio, of: RemoteParticipant) {
    note("audioSubscribed")
  }
  func room(_ room: Room, onRemoteVideoStateChanged video: RemoteVideo, of: RemoteParticipant) {
    note("videoState \(video.active) \(video.extraValue)")
  }
  func room(_ room: Room, onUserMessage message: String, type: String, senderID: String) {
    note("message \(type) \(message)")
  }
  func room(_ room: Room, onUpdate update: RoomUpdate) { heard.withLock { $0.append(update) } }

  /// Waits until a method has been called, for minutes if necessary.
  func hear(_ name: String) async throws { try await until(name) { self.calls.contains(name) } }
}

/// Waits until a condition holds; throws if it does not hold within three minutes.
func until(_ what: String, _ holds: () -> Bool) async throws {
  let clock = ContinuousClock()
  let end = clock.now + .seconds(180)
  while !holds() {
    guard clock.now < end else { throw Unheard(what: what) }
    try await clock.sleep(for: .milliseconds(5))
  }
}

struct Unheard: Error {
  var what: String
}

extension LocalMedia {
  /// Returns generated media: a small pattern and a tone.
  static func small(extraValue: String = "") -> LocalMedia {
    var options = LocalMediaOptions()
    options.videoExtraValue = extraValue
    return LocalMedia(
      video: VideoSource(.pattern(width: 64, height: 48, framesPerSecond: 10)),
      audio: AudioSource(.tone(hertz: 440, pauseSeconds: 0)), options: options)
  }
}
