import JSEP
import Live
import Media
import Peer
import SDP
import Signaling
import Stats
import Synchronization
import Tape
import Testing
import Wire

@testable import Relaying

/// WHIP through a relay with candidates and ICE restarts in fragments (RFC 9725 section 4.3).
@Suite(.timeLimit(.minutes(10)), .serialized) struct TrickledSessionTests {
  @Test func theCandidatesOfAClientAreReplacedInFragments() async throws {
    try await RelayRig.inFolder { path in
      let server = try WHIPServer()
      let rig = try await RelayRig(take: path, respond: { await server.respond(to: $0) })
      let client = try await WHIPClient(rig)
      let candidates = try await client.offer.sections[0].candidates
      #expect(!candidates.isEmpty)

      // With another ICE session's tag, nothing is added.
      let outdated = try await client.patch(candidates, match: "\"none\"")
      #expect(outdated.status == 412)
      // Lines that the relay does not know pass unchanged, and addresses do not pass.
      let fragment = try await client.offer.fragment(candidates: candidates, hasEnded: true)
      let extended = fragment.text.replacing(
        "a=mid:0\r\n", with: "a=mid:0\r\na=x-app:7\r\na=rtcp:9 IN IP4 192.0.2.7\r\n")
      let trickled = try await client.patch(extended, match: client.entityTag)
      #expect(trickled.status == 204 && trickled.body.isEmpty)
      try await client.peer.waitUntilConnected(timeout: .seconds(120))
      await RelayRig.receive(videoFrames: 0, blocks: 20, of: server.peer)

      let request = try #require(server.patches.last)
      #expect(request.header("If-Match") == "\"1\"")
      #expect(request.header("Content-Type") == SDPFragment.mediaType)
      let text = String(decoding: request.body, as: UTF8.self)
      let shown = try SDPFragment(parsing: text)
      let own = try await client.offer.credentials
      #expect(shown.hasEnded && shown.credentials != own)
      #expect(own.map { !text.contains($0.password) } == true)
      #expect(!shown.candidates.isEmpty)
      #expect(!fragment.lines.isEmpty && fragment.lines.allSatisfy(shown.lines.contains))
      #expect(text.contains("a=x-app:7\r\n") && !text.contains("192.0.2.7"))
      #expect(Set(shown.candidates.map(\.text)).isDisjoint(with: candidates))
      // The fragment's credentials are those in the offer that the server received.
      #expect(shown.credentials == server.offer?.credentials)

      await client.peer.close()
      try await server.finish()
      try await rig.finish()
      // The leg to the client received the client's candidate, and both legs recorded their
      // signaling.
      let take = try TakeFile.openForQueries(path)
      let received = try take.integer(
        "SELECT count(*) FROM candidate WHERE peer = 1 AND type = 'remote-candidate'")
      #expect(received ?? 0 >= 1)
      let recorded = try take.integer(
        """
        SELECT count(*) FROM signaling WHERE type = 'candidate'
          AND (peer, direction) IN ((1, 'in'), (2, 'out'))
        """)
      #expect(recorded == 4)
    }
  }

  @Test func anICERestartPassesInFragmentsBothWays() async throws {
    let server = try WHIPServer()
    let rig = try await RelayRig(respond: { await server.respond(to: $0) })
    let client = try await WHIPClient(rig)
    try await client.peer.waitUntilConnected(timeout: .seconds(120))
    let (before, shownBefore) = (try await client.offer.credentials, server.offer?.credentials)

    let response = try await client.restart()
    #expect(response.status == 200)
    #expect(response.header("ETag") == "\"2\"")
    let answer = try SDPFragment(parsing: response.text)
    #expect(!answer.candidates.isEmpty)
    let ofServer = try #require(server.answer)
    #expect(answer.credentials != ofServer.credentials)
    #expect(
      Set(answer.candidates.map(\.text)).isDisjoint(with: ofServer.sections[0].candidates))
    #expect(try await client.offer.credentials != before)
    #expect(server.offer?.credentials != shownBefore)

    // Both legs find a path of the new generation, and candidates then belong to it.
    try await WHIPClient.wait(forPairs: 2, of: client.peer)
    try await WHIPClient.wait(forPairs: 2, of: server.peer)
    await RelayRig.receive(videoFrames: 0, blocks: 20, of: server.peer)
    let candidates = try await client.offer.sections[0].candidates
    let trickled = try await client.patch(candidates, match: "\"2\"")
    #expect(trickled.status == 204)
    try await server.finish()
    try await rig.finish()
  }

  @Test func aServerThatRefusesARestartGoesOnAsBefore() async throws {
    let server = try WHIPServer(restarts: false)
    let rig = try await RelayRig(respond: { await server.respond(to: $0) })
    let client = try await WHIPClient(rig)
    try await client.peer.waitUntilConnected(timeout: .seconds(120))
    let shown = server.offer?.credentials
    let restarted = try await client.offer.restarted(by: client.fragmentOfARestart)
    let refused = try await client.patch(
      try #require(restarted).fragment(candidates: [], hasEnded: false), match: "*")
    #expect(refused.status == 501)
    await RelayRig.receive(videoFrames: 0, blocks: 40, of: server.peer)
    let candidates = try await client.offer.sections[0].candidates
    let trickled = try await client.patch(candidates, match: client.entityTag)
    #expect(trickled.status == 204)
    let patch = try #require(server.patches.last)
    let text = String(decoding: patch.body, as: UTF8.self)
    #expect(try SDPFragment(parsing: text).credentials == shown)
    try await server.finish()
    try await rig.finish()
  }

  @Test func aRestartOfAnUnknownSessionIsRefused() async throws {
    let server = try WHIPServer()
    let rig = try await RelayRig(respond: { await server.respond(to: $0) })
    let client = try await WHIPClient(rig)
    var response = try await client.patch(client.fragmentOfARestart, match: "*", to: "/whip/2")
    #expect(response.status == 501 && response.text.contains("not seen begin"))
    response = try await client.patch("a=ice-ufrag:abcd\r\n", match: "*")
    #expect(response.status == 501 && response.text.contains("credentials"), "\(response.text)")
    #expect(server.patches.isEmpty)
    try await server.finish()
    try await rig.finish()
  }
}

/// A WHIP server whose answers have all its candidates.
private final class WHIPServer: Sendable {
  private struct State {
    var offer: SDPDocument?
    var answer: SDPDocument?
    var entityTag = 1
    var patches: [HTTPRequest] = []
  }

  let peer: PeerConnection
  private let session: Session
  private let restarts: Bool
  private let state = Mutex(State())

  init(restarts: Bool = true) throws {
    self.restarts = restarts
    session = try Session(RelayRig.options())
    peer = session.makePeer(label: "server")
  }

  var offer: SDPDocument? { state.withLock { $0.offer } }
  var answer: SDPDocument? { state.withLock { $0.answer } }
  var patches: [HTTPRequest] { state.withLock { $0.patches } }

  func finish() async throws { try await session.finish() }

  func respond(to request: HTTPRequest) async -> HTTPResponse? {
    do {
      switch (request.method, request.path) {
      case ("POST", "/whip"):
        let offer = try SDPDocument(parsing: String(decoding: request.body, as: UTF8.self))
        var response = HTTPResponse(
          status: 201, type: "application/sdp",
          body: Array(try await answer(to: offer).text.utf8))
        response.headers += [("Location", "whip/1"), ("ETag", "\"1\"")]
        return response
      case ("PATCH", "/whip/1"):
        state.withLock { $0.patches.append(request) }
        let fragment = try SDPFragment(parsing: String(decoding: request.body, as: UTF8.self))
        return try await receive(fragment, match: request.header("If-Match"))
      default: return .refusal(404, "there is nothing here")
      }
    } catch {
      return .refusal(500, "\(error)")
    }
  }

  private func answer(to offer: SDPDocument) async throws -> SDPDocument {
    try await peer.setRemoteDescription(SessionDescription(type: .offer, sdp: offer.text))
    try await peer.setLocalDescription()
    try await peer.waitForGatheringComplete(timeout: .seconds(120))
    let answer = try SDPDocument(parsing: try #require(try await peer.localDescription).sdp)
    state.withLock { ($0.offer, $0.answer) = (offer, answer) }
    return answer
  }

  private func receive(_ fragment: SDPFragment, match: String?) async throws -> HTTPResponse {
    let offer = try #require(offer)
    if fragment.credentials == offer.credentials {
      let tag = state.withLock { $0.entityTag }
      guard match == "\"\(tag)\"" else { return HTTPResponse(status: 412) }
      for candidate in fragment.candidates {
        try await peer.addICECandidate(
          CandidateInit(candidate: candidate.text, sdpMid: candidate.mid))
      }
      return HTTPResponse(status: 204)
    }
    guard match == "*", restarts, let restarted = offer.restarted(by: fragment) else {
      return HTTPResponse(status: 501)
    }
    let answer = try await answer(to: restarted)
    let tag = state.withLock { state in
      state.entityTag += 1
      return state.entityTag
    }
    var response = HTTPResponse(
      type: SDPFragment.mediaType,
      body: Array(
        answer.fragment(candidates: answer.sections[0].candidates, hasEnded: true).text.utf8))
    response.headers.append(("ETag", "\"\(tag)\""))
    return response
  }
}

/// A WHIP client that publishes audio and signals its candidates after its offer.
private struct WHIPClient {
  let peer: PeerConnection
  let url: String
  /// The entity tag of the session's first ICE generation.
  let entityTag: String
  private let answer: SDPDocument

  init(_ rig: RelayRig) async throws {
    peer = rig.ends.makePeer(label: "client")
    try await peer.addTrack(.audio, source: .tone(hertz: 440, pauseSeconds: 0))
    try await peer.setLocalDescription()
    try await peer.waitForGatheringComplete(timeout: .seconds(120))
    let offer = try SDPDocument(parsing: try #require(try await peer.localDescription).sdp)
    let early = try #require(
      offer.restarted(by: offer.fragment(candidates: [], hasEnded: false)))
    #expect(early.sections[0].candidates.isEmpty)
    let response = try await HTTPClient(timeout: .seconds(120)).send(
      "POST", rig.proxy.url + "/whip", body: Array(early.text.utf8), type: "application/sdp")
    #expect(response.status == 201, "\(response.text)")
    entityTag = try #require(response.header("ETag"))
    #expect(response.header("Location") == "whip/1")
    url = rig.proxy.url + "/whip/1"
    answer = try SDPDocument(parsing: response.text)
    try await peer.setRemoteDescription(SessionDescription(type: .answer, sdp: response.text))
  }

  /// The client's last offer.
  var offer: SDPDocument {
    get async throws {
      try SDPDocument(parsing: try #require(try await peer.localDescription).sdp)
    }
  }

  /// A fragment with credentials that nobody has used.
  var fragmentOfARestart: SDPFragment {
    get throws {
      try SDPFragment(
        parsing: "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n"
          + "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n")
    }
  }

  func patch(_ candidates: [String], match: String) async throws -> HTTPResponse {
    try await patch(offer.fragment(candidates: candidates, hasEnded: true), match: match)
  }

  func patch(_ fragment: SDPFragment, match: String, to path: String = "/whip/1") async throws
    -> HTTPResponse
  {
    try await patch(fragment.text, match: match, to: path)
  }

  func patch(_ text: String, match: String, to path: String = "/whip/1") async throws
    -> HTTPResponse
  {
    try await HTTPClient(timeout: .seconds(120)).send(
      "PATCH", url.replacing("/whip/1", with: path),
      headers: [("Content-Type", SDPFragment.mediaType), ("If-Match", match)],
      body: Array(text.utf8))
  }

  /// Restarts ICE with a fragment, and applies the fragment in the server's response.
  func restart() async throws -> HTTPResponse {
    try await peer.restartICE()
    try await peer.setLocalDescription()
    try await peer.waitForGatheringComplete(timeout: .seconds(120))
    let response = try await patch(
      try await offer.fragment(candidates: [], hasEnded: false), match: "*")
    let fragment = try SDPFragment(parsing: response.text)
    let restarted = try #require(answer.restarted(by: fragment))
    try await peer.setRemoteDescription(SessionDescription(type: .answer, sdp: restarted.text))
    return response
  }

  /// Waits until a connection has selected this many pairs, in succession.
  static func wait(forPairs count: Int, of peer: PeerConnection) async throws {
    while true {
      let transport = try await peer.getStats().objects.first { $0.type == "transport" }
      if case .integer(let changes) = transport?["selectedCandidatePairChanges"], changes >= count {
        return
      }
      await Task.yield()
    }
  }
}
