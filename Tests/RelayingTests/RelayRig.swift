import Foundation
import JSEP
import Live
import Media
import Peer
import SDP
import Signaling
import Synchronization
import Tape
import Testing
import Wire

@testable import Relaying

/// An application's server that answers offers with a local connection, a relay in front of it, and
/// the take that the relay records.
///
/// Both ends know only the relay's address.
final class RelayRig: Sendable {
  let server: HTTPServer
  let proxy: ProxyServer
  let relay: RelayService
  /// The session of both ends, which is not recorded.
  let ends: Session
  let answerer: PeerConnection
  private let seen = Seen()
  private let box = NoticeBox()

  /// Returns a response in place of the answer to an offer; nil answers the offer.
  typealias Respond = @Sendable (HTTPRequest) async -> HTTPResponse?

  static func options(take: String? = nil) -> Session.Options {
    var options = Session.Options()
    options.takePath = take
    options.statsInterval = nil
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    return options
  }

  init(
    take: String? = nil, sink: (any PeerSink)? = nil,
    settings: RelayService.Settings = RelayService.Settings(),
    sockets: [WebSocketRoute] = [],
    respond: @escaping Respond = { _ in nil },
    proxied adjust: (inout ProxyServer.Settings) -> Void = { _ in },
    standIn: (TakeClock) -> (any FarEndStandIn)? = { _ in nil }
  ) async throws {
    let ends = try Session(RelayRig.options())
    let answerer = ends.makePeer(label: "answerer")
    let seen = seen
    server = try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, access: AccessRules(origins: ["https://app.example"]),
      identity: nil, sockets: sockets
    ) { request in
      seen.append(request)
      if let response = await respond(request) { return response }
      return await RelayRig.answer(request, answerer)
    }
    self.ends = ends
    self.answerer = answerer
    var options = RelayRig.options(take: take)
    options.sink = sink
    let session = try Session(options)
    relay = RelayService(session, settings, standIn: standIn(session.clock))
    var proxySettings = ProxyServer.Settings(upstream: server.url)
    adjust(&proxySettings)
    let (relay, notices) = (relay, box)
    proxy = try await ProxyServer.listen(proxySettings, notice: { notices.append($0) }) {
      await relay.rewrite($0)
    }
  }

  /// The requests that arrived at the server.
  var arrived: [HTTPRequest] { seen.all }
  /// The proxy's notices.
  var said: [String] { box.all }

  /// Posts a connection's offer to the relay, and applies the answer.
  func call(_ offerer: PeerConnection, path: String = "/offer") async throws {
    try await offerer.setLocalDescription()
    try await offerer.waitForGatheringComplete(timeout: .seconds(120))
    let offer = try #require(try await offerer.localDescription)
    let jsep = JSONText.object([("type", .text("offer")), ("sdp", .text(offer.sdp))])
    let body = JSONText.object([("kind", .text("call")), ("jsep", jsep)]).text
    let response = try await HTTPClient(timeout: .seconds(120)).post(proxy.url + path, json: body)
    #expect(response.status == 200, "\(response.text)")
    let answer = try JSONValue(parsing: response.text)
    let sdp = try #require(answer["jsep"]?["sdp"]?.text)
    try await offerer.setRemoteDescription(SessionDescription(type: .answer, sdp: sdp))
  }

  static func answer(_ request: HTTPRequest, _ answerer: PeerConnection) async
    -> HTTPResponse
  {
    do {
      let offer = try JSONValue(parsing: String(decoding: request.body, as: UTF8.self))
      guard let sdp = offer["jsep"]?["sdp"]?.text else { return .refusal(400, "no offer") }
      try await answerer.setRemoteDescription(SessionDescription(type: .offer, sdp: sdp))
      try await answerer.setLocalDescription()
      try await answerer.waitForGatheringComplete(timeout: .seconds(120))
      let answer = try await answerer.localDescription
      return HTTPResponse(
        json: JSONText.object([
          (
            "jsep",
            .object([("type", .text("answer")), ("sdp", answer.map { JSONText.text($0.sdp) })])
          )
        ]).text)
    } catch {
      return .refusal(500, "\(error)")
    }
  }

  /// Ends both connections, the relay and its take.
  @discardableResult
  func finish() async throws -> TakeSummary? {
    try await ends.finish()
    await proxy.shutdown()
    await server.shutdown()
    return try await relay.finish().summary
  }

  /// Returns the closure's result for a path in a folder that is removed afterwards.
  static func inFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.path + "/relay-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try await body(folder + "/call.take")
  }

  /// Waits until a peer has decoded the given numbers of video frames and audio blocks.
  static func receive(videoFrames: Int, blocks: Int, of peer: PeerConnection) async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    let counts = Mutex((videoFrames: 0, blocks: 0))
    let subscription = peer.onMedia { media in
      let isEnough = counts.withLock { counts in
        switch media.content {
        case .audio: counts.blocks += 1
        case .videoFrame, .encodedVideo: counts.videoFrames += 1
        }
        return counts.videoFrames >= videoFrames && counts.blocks >= blocks
      }
      if isEnough { continuation.finish() }
    }
    for await _ in stream {}
    withExtendedLifetime(subscription) {}
  }
}

/// The requests that a server got.
private final class Seen: Sendable {
  private let requests = Mutex<[HTTPRequest]>([])
  var all: [HTTPRequest] { requests.withLock { $0 } }
  func append(_ request: HTTPRequest) { requests.withLock { $0.append(request) } }
}

/// Collects a proxy's notices.
private final class NoticeBox: Sendable {
  private let sentences = Mutex<[String]>([])
  var all: [String] { sentences.withLock { $0 } }
  func append(_ sentence: String) { sentences.withLock { $0.append(sentence) } }
}
