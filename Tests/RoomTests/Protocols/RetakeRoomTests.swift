import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests a participant in a room with Retake's own protocol, and the protocol's messages.
struct RetakeRoomTests {
  private typealias Bench = SignalingBench<RetakeRoomMachine>

  private static let audio = LocalMediaInfo(id: LocalMediaID(1), kind: .audio, extraValue: "mic")
  private static let ben = RoomMember(
    id: "ben", displayName: "Ben", metadata: #"{"a":1}"#,
    media: [
      RoomMedia(number: 40, kind: .audio, isAlwaysOn: true),
      RoomMedia(number: 41, kind: .video, extraValue: "screen", profiles: [.low, .high]),
    ])

  private static func joined() throws -> Bench {
    var bench = Bench(
      SignalingConfiguration(protocolName: "room", urls: ["ws://rooms.example/rooms"]))
    bench.want(.join(RoomJoin(room: "lobby", displayName: "Ann")))
    bench.open()
    try bench.notify(
      .joined(
        participant: "ann", session: "s1", isResumed: false, members: [ben], ICEServers()))
    return bench
  }

  // MARK: Messages

  private static let candidate = CandidateInit(
    candidate: "candidate:1", sdpMid: "0", sdpMLineIndex: 0, usernameFragment: "u")

  private static let requests: [RoomRequest] = [
    .join(
      RoomJoin(
        room: "r", role: .down, displayName: "n", participant: "p", token: "t",
        metadata: #"{"k":[1,2]}"#), resumes: "s"),
    .join(RoomJoin(room: "r"), resumes: nil),
    .offer(
      request: 1, sdp: "v=0\r\n",
      media: [
        RoomLocalMedia(mid: "0", local: 2, kind: .video, isActive: false, layers: ["l", "h"])
      ]
    ),
    .answer(sdp: "v=0\r\n"), .candidate(.up, candidate), .candidate(.down, nil), .stop(request: 2),
    .update(RoomMedia(number: 3, kind: .audio, isActive: false, extraValue: "é\n")),
    .subscribe(request: 3, [1, 2]), .unsubscribe(request: 4, []),
    .profile(request: 5, media: 1, .mid), .pause(request: 6, media: 1, isPaused: true),
    .message(request: 7, UserMessage(targets: ["a"], type: "chat", text: "hi \"you\"")),
    .restart, .renew(token: "t2"), .leave,
  ]

  private static let notices: [RoomNotice] = [
    .joined(
      participant: "p", session: "s", isResumed: true, members: [ben],
      ICEServers(
        [ICEServerConfiguration(urls: ["turn:t.example"], username: "u", credential: "c")],
        policy: .relay)),
    .answer(sdp: "v=0\r\n"), .offer(sdp: "v=0\r\n", media: [RoomPlace(number: 40, mid: "0")]),
    .candidate(.down, candidate), .candidate(.up, nil), .result(request: 1, nil),
    .result(request: 2, RoomFault(.noSuchMedia, "nobody")),
    .local([RoomLocalNumber(local: 1, number: 50)]), .entered(ben),
    .left(participant: "b", .timedOut),
    .published(participant: "b", ben.media), .unpublished(participant: "b", [40, 41]),
    .changed(participant: "b", ben.media[0]), .talking(participant: "b", true, level: -20),
    .talking(participant: "b", false, level: nil), .muted(local: 1, true),
    .layers(
      mid: "1",
      [
        SendLayer(
          rid: "l", isActive: false, maximumBitrate: 100_000, maximumFrameRate: 7.5,
          scaleResolutionDownBy: 4, scalabilityMode: "L1T2")
      ]),
    .message(UserMessage(sender: "b", targets: ["p"], text: "hi")),
    .error(RoomFault(.joinRefused, "no"), isCritical: true),
    .ended(RoomEnding(.kicked, code: 3, message: "bye")), .moved(url: "ws://two.example"),
  ]

  @Test func everyMessageRoundTrips() throws {
    for request in Self.requests { #expect(try RoomRequest(parsing: request.text) == request) }
    for notice in Self.notices { #expect(try RoomNotice(parsing: notice.text) == notice) }
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"type":7}"#, #"{"type":"dance"}"#, #"{"type":"join","role":"up"}"#,
    #"{"type":"join","room":"r","role":"sideways"}"#, #"{"type":"stop","request":-1}"#,
    #"{"type":"subscribe","request":1,"media":["x"]}"#, #"{"type":"candidate"}"#,
    #"{"type":"subscribe","request":4294967296,"media":[]}"#,
  ])
  func invalidMessagesAreRefused(text: String) {
    #expect(throws: JSONError.self) { try RoomRequest(parsing: text) }
    #expect(throws: JSONError.self) { try RoomNotice(parsing: text) }
  }

  @Test func messagesHaveLimits() {
    let many = RoomRequest.subscribe(request: 1, [UInt32](repeating: 1, count: 257))
    #expect(throws: JSONError.self) { try RoomRequest(parsing: many.text) }
    let long = RoomRequest.join(RoomJoin(room: String(repeating: "r", count: 257)), resumes: nil)
    #expect(throws: JSONError.self) { try RoomRequest(parsing: long.text) }
  }

  // MARK: State machine

  @Test func aRoomIsEntered() throws {
    var bench = try Self.joined()
    #expect(
      try RoomRequest(parsing: bench.sent().json)
        == .join(RoomJoin(room: "lobby", displayName: "Ann"), resumes: nil))
    let media = [
      PublishedMedia(id: MediaID(1), owner: "ben", kind: .audio, isAlwaysOn: true),
      PublishedMedia(
        id: MediaID(2), owner: "ben", kind: .video, extraValue: "screen", profiles: [.low, .high]),
    ]
    #expect(
      bench.events().last
        == .joined(
          JoinedRoom(
            participant: "ann", session: "s1",
            participants: [
              ParticipantInfo(
                id: "ben", displayName: "Ben", metadata: #"{"a":1}"#, media: media)
            ])))
  }

  @Test func localMediaIsPublishedUnderTheServersNumber() throws {
    var bench = try Self.joined()
    _ = bench.drain()
    bench.want(.publish(PublicationRequest(action: ActionID(1), media: [Self.audio])))
    #expect(bench.requests() == [.open(.up, ICEServers()), .makeOffer(iceRestart: false)])
    let place = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(
      1, .description(SessionDescription(type: .offer, sdp: "offer"), media: [place]))
    #expect(
      try RoomRequest(parsing: bench.sent().json)
        == .offer(
          request: 1, sdp: "offer",
          media: [RoomLocalMedia(mid: "0", local: 1, kind: .audio, extraValue: "mic")]))
    try bench.notify(.answer(sdp: "answer"))
    try bench.notify(.local([RoomLocalNumber(local: 1, number: 50)]))
    try bench.notify(.result(request: 1, nil))
    #expect(
      bench.requests() == [.setRemote(SessionDescription(type: .answer, sdp: "answer"))])
    #expect(
      bench.events() == [
        .localPublished(LocalMediaID(1), MediaID(3)), .result(ActionID(1), nil),
      ])
    var muted = Self.audio
    muted.isActive = false
    bench.want(.updateLocal(muted))
    #expect(
      try RoomRequest(parsing: bench.sent().json)
        == .update(RoomMedia(number: 50, kind: .audio, isActive: false, extraValue: "mic")))
    try bench.notify(.muted(local: 1, true))
    #expect(bench.events() == [.localMuted(LocalMediaID(1), true)])
    bench.want(.unpublish(ActionID(2), [LocalMediaID(1)]))
    #expect(try RoomRequest(parsing: bench.sent().json) == .stop(request: 2))
    try bench.notify(.result(request: 2, nil))
    #expect(
      bench.events() == [.result(ActionID(2), nil), .localUnpublished(LocalMediaID(1))])
  }

  @Test func remoteMediaIsReceived() throws {
    var bench = try Self.joined()
    _ = bench.drain()
    bench.want(.subscribe(ActionID(1), [MediaID(2)]))
    #expect(try RoomRequest(parsing: bench.sent().json) == .subscribe(request: 1, [41]))
    try bench.notify(.result(request: 1, nil))
    try bench.notify(.offer(sdp: "one", media: [RoomPlace(number: 41, mid: "0")]))
    #expect(
      bench.events() == [
        .result(ActionID(1), nil), .assigned(MediaID(2), ConnectionID(1), mid: "0"),
      ])
    // A second offer waits until this side has answered the first.
    try bench.notify(.offer(sdp: "two", media: []))
    #expect(bench.events() == [])
    bench.report(1, .description(SessionDescription(type: .answer, sdp: "answer"), media: []))
    #expect(try RoomRequest(parsing: bench.sent().json) == .answer(sdp: "answer"))
    #expect(bench.events() == [.unassigned(MediaID(2))])
    #expect(
      bench.requests() == [.setRemote(SessionDescription(type: .offer, sdp: "two"))])
    bench.want(.setProfile(ActionID(2), MediaID(2), .high))
    #expect(
      try RoomRequest(parsing: bench.sent().json) == .profile(request: 2, media: 41, .high))
    try bench.notify(.result(request: 2, RoomFault(.noProfiles, "no")))
    #expect(
      bench.events() == [
        .result(ActionID(2), SignalingFailure(.noProfiles, "no", media: MediaID(2)))
      ])
  }

  @Test func anEarlierSessionIsResumedWithItsConnections() throws {
    var bench = try Self.joined()
    bench.want(.sendMessage(ActionID(1), UserMessage(text: "hello")))
    _ = bench.drain()
    bench.transport(.closed(code: 1006, reason: ""))
    #expect(
      bench.events() == [
        .result(ActionID(1), SignalingFailure(.messageFailed, "the way to the server was lost")),
        .reconnecting(attempt: 1, reason: "the server closed with 1006 "),
      ])
    bench.wait(1)
    bench.open()
    var join = RoomJoin(room: "lobby", displayName: "Ann")
    join.participant = "ann"
    #expect(try RoomRequest(parsing: bench.sent().json) == .join(join, resumes: "s1"))
    try bench.notify(
      .joined(participant: "ann", session: "s1", isResumed: true, members: [], ICEServers()))
    #expect(
      bench.events() == [
        .unpublished(owner: "ben", [MediaID(1), MediaID(2)]), .participantLeft("ben", .left),
        .reconnected,
      ])
  }

  @Test func theServerRedirectsToAnother() throws {
    var bench = try Self.joined()
    _ = bench.drain()
    try bench.notify(.moved(url: "ws://two.example/rooms"))
    #expect(bench.opened == ["ws://two.example/rooms"])
    #expect(bench.events().first == .redirected("ws://two.example/rooms"))
  }

  @Test func aRefusalPrecedesTheEnd() throws {
    var bench = Bench(SignalingConfiguration(protocolName: "room", urls: ["ws://rooms.example"]))
    bench.want(.join(RoomJoin(room: "lobby")))
    bench.open()
    _ = bench.drain()
    try bench.notify(.error(RoomFault(.tokenExpired, "the token is old"), isCritical: true))
    #expect(
      bench.events() == [
        .failed(
          SignalingFailure(
            .tokenExpired, "the token is old", isCritical: true, serverCode: 1105)),
        .ended(RoomEnding(.disconnected, message: "the token is old")),
      ])
  }

  @Test func aJoinWithoutAnAnswerTimesOut() {
    var bench = Bench(SignalingConfiguration(protocolName: "room", urls: ["ws://rooms.example"]))
    bench.want(.join(RoomJoin(room: "lobby")))
    bench.open()
    bench.wait(11)
    guard case .ended? = bench.events().last else {
      Issue.record("the machine still waits")
      return
    }
  }
}

extension SignalingBench {
  fileprivate mutating func notify(_ notice: RoomNotice) throws { receive(notice.text) }
}
