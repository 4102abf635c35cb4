import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests the WHIP and WHEP machines, with a server simulated by the test.
struct HTTPSessionTests {
  private static let audio = LocalMediaInfo(id: LocalMediaID(1), kind: .audio)
  private static let place = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
  private static let head = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
  private static let section =
    "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=ice-ufrag:abcd\r\n"
    + "a=ice-pwd:0123456789abcdefghijkl\r\n"
  private static let offer = SessionDescription(type: .offer, sdp: head + section)

  private static func bench<Protocol: SignalingMachine>(_ type: Protocol.Type)
    -> SignalingBench<Protocol>
  {
    SignalingBench(
      SignalingConfiguration(
        protocolName: Protocol.name, urls: ["https://live.example/whip/endpoint"]))
  }

  /// Returns a WHIP client that has posted its offer and waits for the answer.
  private static func offered() -> SignalingBench<WHIPMachine> {
    var bench = bench(WHIPMachine.self)
    bench.want(.join(RoomJoin(room: "", token: "t")))
    bench.answer(204, [("Link", #"<stun:stun.example>; rel="ice-server""#)])
    bench.want(.publish(PublicationRequest(action: ActionID(1), media: [audio])))
    bench.report(1, .description(offer, media: [place]))
    return bench
  }

  private static let created = [
    ("Location", "../session/7"), ("ETag", "\"one\""), ("Content-Type", "application/sdp"),
  ]

  private static func published() -> SignalingBench<WHIPMachine> {
    var bench = offered()
    bench.answer(201, created, head + section + "a=recvonly\r\n")
    return bench
  }

  // MARK: WHIP

  @Test func anOfferIsPostedAndItsAnswerApplied() throws {
    var bench = Self.offered()
    let asked = bench.asked
    #expect(asked.map(\.method) == ["OPTIONS", "POST"])
    #expect(
      asked[1].fields == [
        HTTPField("Content-Type", "application/sdp"), HTTPField("Accept", "application/sdp"),
        HTTPField("Authorization", "Bearer t"),
      ])
    #expect(String(decoding: asked[1].body, as: UTF8.self) == Self.offer.sdp)
    let servers = ICEServers([ICEServerConfiguration(urls: ["stun:stun.example"])])
    #expect(bench.requests() == [.open(.up, servers), .makeOffer(iceRestart: false)])
    bench.report(
      1, .candidate(CandidateInit(candidate: "candidate:1 1 udp 1 192.0.2.1 9 typ host")))
    bench.answer(201, Self.created, Self.head + Self.section)
    #expect(
      bench.requests()
        == [.setRemote(SessionDescription(type: .answer, sdp: Self.head + Self.section))])
    #expect(
      bench.events().suffix(2) == [
        .localPublished(LocalMediaID(1), MediaID(1)), .result(ActionID(1), nil),
      ])
    let patch = try #require(bench.asked.last)
    #expect(patch.method == "PATCH" && patch.url == "https://live.example/session/7")
    #expect(patch.fields.contains(HTTPField("If-Match", "\"one\"")))
    let fragment = String(decoding: patch.body, as: UTF8.self)
    #expect(fragment.contains("a=candidate:1 1 udp") && fragment.contains("a=ice-ufrag:abcd"))
    // The next candidates wait for the answer, and are sent together.
    bench.report(
      1, .candidate(CandidateInit(candidate: "candidate:2 1 udp 1 192.0.2.2 9 typ host")))
    bench.report(1, .candidate(nil))
    #expect(bench.asked.count == 3)
    bench.answer(204)
    let last = String(decoding: bench.asked.last?.body ?? [], as: UTF8.self)
    #expect(last.contains("candidate:2") && last.contains("end-of-candidates"))
  }

  @Test func aServerMayRefuseCandidates() {
    var bench = Self.published()
    bench.report(
      1, .candidate(CandidateInit(candidate: "candidate:1 1 udp 1 192.0.2.1 9 typ host")))
    bench.answer(405)
    bench.report(1, .candidate(nil))
    #expect(bench.asked.count == 3)
    #expect(bench.events().contains { if case .failed = $0 { true } else { false } } == false)
  }

  @Test func iceIsRestartedUnderAnotherTag() throws {
    var bench = Self.published()
    _ = bench.requests()
    bench.want(.restartICE(ConnectionID(1)))
    #expect(bench.requests() == [.makeOffer(iceRestart: true)])
    let next = Self.offer.sdp.replacing("abcd", with: "wxyz")
    bench.report(
      1, .description(SessionDescription(type: .offer, sdp: next), media: [Self.place]))
    let patch = try #require(bench.asked.last)
    #expect(patch.fields.contains(HTTPField("If-Match", "*")))
    #expect(String(decoding: patch.body, as: UTF8.self).contains("a=ice-ufrag:wxyz"))
    let answer = "a=ice-ufrag:efgh\r\na=ice-pwd:abcdefghijkl0123456789\r\n"
    bench.answer(
      200, [("ETag", "\"two\""), ("Content-Type", "application/trickle-ice-sdpfrag")], answer)
    guard case .setRemote(let remote)? = bench.requests().first else {
      Issue.record("the restart is not applied")
      return
    }
    #expect(remote.type == .answer && remote.sdp.contains("a=ice-ufrag:efgh"))
    bench.report(1, .candidate(nil))
    #expect(bench.asked.last?.fields.contains(HTTPField("If-Match", "\"two\"")) == true)
  }

  @Test func aRefusalIsTheResultOfPublishing() {
    var bench = Self.offered()
    _ = bench.events()
    bench.answer(403, [("Content-Type", "application/json")], #"{"error":"not here"}"#)
    #expect(
      bench.events() == [
        .result(
          ActionID(1),
          SignalingFailure(
            .publishFailed,
            "https://live.example/whip/endpoint answered with status 403: not here; check --token",
            serverCode: 403))
      ])
    #expect(bench.requests().last == .close)
  }

  @Test func aBusyServerIsRetriedAfterItsDelay() {
    var bench = Self.offered()
    bench.answer(503, [("Retry-After", "5")])
    bench.wait(4)
    #expect(bench.asked.count == 2)
    bench.wait(1)
    #expect(bench.asked.map(\.method) == ["OPTIONS", "POST", "POST"])
    for _ in 0..<3 {
      bench.answer(503, [("Retry-After", "1")])
      bench.wait(1)
    }
    #expect(bench.asked.count == 5)
    guard case .result(ActionID(1), _?)? = bench.events().last else {
      Issue.record("the server is retried forever")
      return
    }
  }

  @Test func redirectsToOtherOriginsDropTheToken() {
    var bench = Self.offered()
    bench.answer(308, [("Location", "/other")])
    #expect(bench.asked.last?.url == "https://live.example/other")
    #expect(bench.asked.last?.fields.contains(HTTPField("Authorization", "Bearer t")) == true)
    bench.answer(307, [("Location", "https://else.example:443/x")])
    #expect(bench.asked.last?.fields.contains { $0.name == "Authorization" } == false)
    for _ in 0..<4 { bench.answer(307, [("Location", "https://else.example/x")]) }
    #expect(bench.asked.count == 7)
    guard case .result(ActionID(1), let failure?)? = bench.events().last else {
      Issue.record("redirects are followed forever")
      return
    }
    #expect(failure.message.contains("redirects more than 5 times"))
  }

  @Test func leavingEndsTheSessionAtTheServer() {
    var bench = Self.published()
    _ = bench.events()
    bench.want(.leave)
    #expect(bench.asked.last?.method == "DELETE")
    #expect(bench.events() == [])
    bench.wait(3)
    #expect(
      bench.events() == [
        .localUnpublished(LocalMediaID(1)), .ended(RoomEnding(.disconnected)),
      ])
  }

  @Test func aMissingEndpointEndsTheRoom() {
    var bench = Self.bench(WHIPMachine.self)
    bench.want(.join(RoomJoin(room: "")))
    bench.step(.response(RequestID(1), .failed("no such host")))
    #expect(
      bench.events() == [
        .failed(SignalingFailure(.unreachable, "no such host", isCritical: true)),
        .ended(RoomEnding(.disconnected, message: "no such host")),
      ])
    bench.step(.response(RequestID(1), .failed("twice")))
    #expect(bench.drain().allSatisfy { if case .request = $0 { true } else { false } })
  }

  // MARK: WHEP

  private static func played(_ status: Int) -> SignalingBench<WHEPMachine> {
    var bench = bench(WHEPMachine.self)
    bench.want(.join(RoomJoin(room: "")))
    bench.answer(204)
    bench.report(1, .description(offer, media: []))
    bench.answer(status, created, head + section + "a=sendonly\r\n")
    return bench
  }

  @Test func whatTheServerPlaysIsPublishedByTheStream() {
    var bench = Self.played(201)
    #expect(
      bench.requests() == [
        .open(.down, ICEServers()), .makeOffer(iceRestart: false),
        .setRemote(
          SessionDescription(type: .answer, sdp: Self.head + Self.section + "a=sendonly\r\n")),
      ])
    let media = PublishedMedia(id: MediaID(1), owner: "stream", kind: .audio)
    #expect(
      bench.events().suffix(2) == [
        .joined(
          JoinedRoom(
            participant: "self",
            participants: [
              ParticipantInfo(id: "stream", displayName: "stream", media: [media])
            ])), .assigned(MediaID(1), ConnectionID(1), mid: "0"),
      ])
    bench.want(.leave)
    bench.answer(404)
    #expect(bench.events().last == .ended(RoomEnding(.disconnected)))
  }

  @Test func aServersOwnOfferIsAnswered() {
    var bench = Self.played(406)
    guard case .setRemote(let remote)? = bench.requests().last else {
      Issue.record("the server's offer is not applied")
      return
    }
    #expect(remote.type == .offer)
    bench.report(1, .description(SessionDescription(type: .answer, sdp: "answer"), media: []))
    #expect(bench.asked.last?.method == "PATCH")
    #expect(bench.asked.last.map { String(decoding: $0.body, as: UTF8.self) } == "answer")
    bench.answer(409, [], "too late")
    guard case .ended? = bench.events().last else {
      Issue.record("the session continues without an answer")
      return
    }
  }

  // MARK: Reference servers

  @Test(arguments: [
    ("/a", "https://h.example/a"), ("a", "https://h.example/x/a"),
    ("../a?b", "https://h.example/a?b"),
    ("../../../a", "https://h.example/a"), ("./", "https://h.example/x/"),
    ("?q", "https://h.example/x/y?q"), ("//o.example/a", "https://o.example/a"),
    ("HTTP://O.example:8080/A#f", "http://O.example:8080/A"), ("#f", "https://h.example/x/y?z"),
  ])
  func referencesAreResolved(reference: String, url: String) {
    #expect(URLReference("https://h.example/x/y?z#g").resolving(reference)?.text == url)
  }

  @Test(arguments: ["", "a b", "a\r\nb", "mailto:a@b.example", "ftp://h.example/", "https://"])
  func unusableReferencesAreRefused(reference: String) {
    #expect(URLReference("https://h.example/x/y").resolving(reference) == nil)
  }
}

extension SignalingBench {
  /// The HTTP requests so far.
  fileprivate var asked: [ServiceRequest] {
    requestsSent.map(\.request)
  }

  /// Answers the last request.
  fileprivate mutating func answer(
    _ status: Int, _ fields: [(String, String)] = [], _ body: String = ""
  ) {
    guard let id = requestsSent.last?.id else { return }
    step(
      .response(
        id,
        .answered(
          status: status, fields: fields.map { HTTPField($0.0, $0.1) }, body: Array(body.utf8))))
  }
}
