import Peer
import RoomSignaling
import SDP
import Testing
import Wire

@testable import RoomProtocols

/// The Sora machine with a server of its public documents.
struct SoraTests {
  /// A client and its server, which talk over whichever way is open.
  private struct Pair {
    var bench: SignalingBench<SoraMachine>
    var server = SoraServer()
    var requests: [ConnectionRequest] = []
    var events: [SignalingEvent] = []

    init(_ options: [String: String] = [:]) {
      bench = SignalingBench(
        SignalingConfiguration(
          protocolName: "sora", urls: ["wss://sora.example/signaling"], options: options))
    }

    /// Hands on what was said until nobody says anything.
    mutating func talk() {
      var said = bench.take()
      while !said.isEmpty {
        for output in said {
          switch output {
          case .transport(_, .send(.text(let text))):
            guard let value = try? JSONValue(parsing: text) else { continue }
            say(server.take(value))
          case .connection(_, let request): requests.append(request)
          case .event(let event): events.append(event)
          default: break
          }
        }
        said = bench.take()
      }
    }

    /// The server says something over the WebSocket.
    mutating func say(_ messages: [JSONValue]) {
      for message in messages { bench.receive(message.json) }
    }

    mutating func takeRequests() -> [ConnectionRequest] {
      defer { requests = [] }
      return requests
    }

    mutating func takeEvents() -> [SignalingEvent] {
      defer { events = [] }
      return events
    }

    /// What the server said, without its notifications in its own words.
    mutating func takeNews() -> [SignalingEvent] {
      takeEvents().filter { if case .notification = $0 { false } else { true } }
    }
  }

  private static let answer = SessionDescription(type: .answer, sdp: "answer")
  private static let audio = LocalMediaInfo(id: LocalMediaID(1), kind: .audio)

  /// A client that sends audio, in a channel where somebody is.
  private static func joined(_ options: [String: String] = [:]) -> Pair {
    var pair = Pair(options)
    _ = pair.server.arrive("OTHER")
    pair.bench.want(.join(RoomJoin(room: "sora", token: "t")))
    pair.bench.open()
    pair.talk()
    pair.bench.want(.publish(PublicationRequest(action: ActionID(1), media: [audio])))
    pair.talk()
    pair.bench.report(
      1, .description(answer, media: [LocalMediaPlace(media: LocalMediaID(1), mid: "a")]))
    pair.talk()
    return pair
  }

  // MARK: Connecting

  @Test func aChannelIsEnteredAndItsOfferAnsweredWithOwnMedia() {
    var pair = Pair(["video": "false", "audio": #"{"codec_type":"OPUS"}"#, "spotlight": "true"])
    _ = pair.server.arrive("OTHER")
    pair.bench.want(.join(RoomJoin(room: "sora", token: "t")))
    pair.bench.open()
    pair.talk()
    #expect(
      pair.server.connect?.json
        == #"{"type":"connect","role":"sendrecv","channel_id":"sora","multistream":true,"#
        + #""sora_client":"Retake","metadata":{"access_token":"t"},"#
        + #""audio":{"codec_type":"OPUS"},"video":false,"spotlight":true}"#)
    let servers = ICEServers(
      [
        ICEServerConfiguration(
          urls: ["turn:turn.example?transport=udp"], username: "u", credential: "c")
      ], policy: .relay)
    #expect(pair.takeRequests() == [.open(.both, servers)])
    #expect(
      pair.takeEvents() == [
        .progress(.opened), .progress(.joining),
        .joined(JoinedRoom(participant: "OWN0", session: "SESSION")),
      ])
    pair.bench.want(.publish(PublicationRequest(action: ActionID(1), media: [Self.audio])))
    pair.talk()
    guard case .setRemote(let offer)? = pair.takeRequests().first else {
      Issue.record("the offer is not applied")
      return
    }
    #expect(offer.type == .offer && offer.sdp.contains("a=msid:OTHER"))
    pair.bench.report(
      1, .description(Self.answer, media: [LocalMediaPlace(media: LocalMediaID(1), mid: "a")]))
    pair.bench.report(1, .candidate(CandidateInit(candidate: "candidate:1 1 udp")))
    pair.bench.report(1, .candidate(nil))
    pair.talk()
    #expect(pair.server.answers.map(\.sdp) == ["answer"])
    #expect(pair.server.candidates == ["candidate:1 1 udp"])
    #expect(
      pair.takeNews() == [
        .participantEntered(ParticipantInfo(id: "OTHER")),
        .published(
          owner: "OTHER", [PublishedMedia(id: MediaID(1), owner: "OTHER", kind: .audio)]),
        .assigned(MediaID(1), ConnectionID(1), mid: "mOTHER"),
        .localPublished(LocalMediaID(1), MediaID(2)), .result(ActionID(1), nil),
      ])
  }

  @Test func whoHasNothingToSendAnswersAfterAWhile() {
    var pair = Pair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    pair.talk()
    #expect(pair.takeRequests().count == 1)
    pair.bench.wait(2)
    pair.talk()
    guard case .setRemote? = pair.takeRequests().first else {
      Issue.record("the offer waits for ever")
      return
    }
  }

  @Test func aRedirectIsFollowedButNotForEver() {
    var pair = Pair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    for round in 0..<6 {
      pair.bench.open()
      #expect(pair.bench.lastSent?["redirect"]?.flag == (round == 0 ? nil : true))
      pair.say([
        .members(("type", "redirect"), ("location", .text("wss://\(round).example/signaling")))
      ])
    }
    #expect(pair.bench.opened.last == "wss://4.example/signaling")
    guard case .ended? = pair.bench.events().last else {
      Issue.record("six redirects were followed")
      return
    }
  }

  @Test func layersOfTheOfferReachTheConnection() {
    var pair = Pair(["simulcast": "true"])
    let encodings: JSONValue = .list([
      .members(("rid", "r0"), ("active", true), ("scaleResolutionDownBy", 4)),
      .members(("rid", "r1"), ("active", false), ("maxBitrate", 500_000)),
    ])
    pair.server.offerMembers = [.init("encodings", encodings)]
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    pair.talk()
    #expect(
      pair.takeRequests().last
        == .setLayers(
          mid: "v",
          [
            SendLayer(rid: "r0", scaleResolutionDownBy: 4),
            SendLayer(rid: "r1", isActive: false, maximumBitrate: 500_000),
          ]))
  }

  @Test func theConfigurationHasTheDefaultsOfTheSDK() {
    var configuration = SoraConfiguration(
      url: "wss://sora.example/signaling", channelId: "sora", role: .recvonly)
    #expect(configuration.signaling.options == ["connection_timeout": "30"])
    #expect(configuration.join == RoomJoin(room: "sora", role: .down))
    configuration.clientId = "me"
    configuration.signalingConnectMetadata = #"{"key":1}"#
    configuration.videoCodec = "VP8"
    configuration.audioEnabled = false
    configuration.simulcastEnabled = true
    configuration.spotlightEnabled = .enabled(number: 3)
    configuration.dataChannelSignaling = true
    configuration.ignoreDisconnectWebSocket = false
    configuration.messagingLabels = ["#chat"]
    var bench = SignalingBench<SoraMachine>(configuration.signaling)
    bench.want(.join(configuration.join))
    bench.open()
    #expect(
      bench.lastSent?.json
        == #"{"type":"connect","role":"recvonly","channel_id":"sora","multistream":true,"#
        + #""sora_client":"Retake","metadata":{"key":1},"client_id":"me","audio":false,"#
        + #""video":{"codec_type":"VP8"},"simulcast":true,"spotlight":true,"spotlight_number":3,"#
        + #""data_channel_signaling":true,"ignore_disconnect_websocket":false,"#
        + ##""data_channels":[{"label":"#chat","direction":"sendrecv"}]}"##)
    bench.wait(29)
    #expect(!bench.events().contains { if case .ended = $0 { true } else { false } })
    bench.wait(1)
    guard case .ended? = bench.events().last else {
      Issue.record("entering takes longer than its limit")
      return
    }
  }

  /// What the SDKs tell: connecting, streams, signaling, data channels and their messages, the end.
  @Test func everyEventOfAChannelIsTold() {
    var pair = Pair(["tells_signaling": "true"])
    pair.server.offerMembers = [.init("data_channels", Self.channels)]
    _ = pair.server.arrive("OTHER")
    pair.bench.want(.join(RoomJoin(room: "sora", role: .down)))
    pair.bench.open()
    pair.talk()
    pair.bench.report(1, .channelOpened(label: "#chat"))
    pair.bench.report(1, .channelOpened(label: "signaling"))
    pair.bench.report(
      1, .channelMessage(label: "#chat", .binary(Zlib.compressed(Array("hello".utf8)))))
    pair.say([.members(("type", "push"), ("data", 1))])
    pair.bench.report(1, .description(Self.answer, media: []))
    pair.say(pair.server.leave("OTHER"))
    pair.bench.transport(.closed(code: 1000, reason: "bye"))
    pair.talk()
    let events = pair.takeEvents()
    let signaling = events.compactMap { event -> String? in
      guard case .notification("signaling", let json) = event else { return nil }
      return JSONValue(text: json)?["type"]?.text
    }
    #expect(signaling == ["offer", "push", "re-offer", "notify"])
    let others = events.filter { event in
      if case .notification("signaling", _) = event { false } else { true }
    }
    #expect(
      others == [
        .progress(.opened), .progress(.joining),
        .joined(JoinedRoom(participant: "OWN0", session: "SESSION")),
        .participantEntered(ParticipantInfo(id: "OTHER")),
        .published(
          owner: "OTHER", [PublishedMedia(id: MediaID(1), owner: "OTHER", kind: .audio)]),
        .assigned(MediaID(1), ConnectionID(1), mid: "mOTHER"),
        .notification(type: "datachannel", ##"{"label":"#chat"}"##),
        .message(UserMessage(type: "#chat", text: "hello")),
        .notification(type: "push", "1"), .unpublished(owner: "OTHER", [MediaID(1)]),
        .unassigned(MediaID(1)),
        .notification(
          type: "notify",
          #"{"type":"notify","event_type":"connection.destroyed","connection_id":"OTHER"}"#),
        .participantLeft("OTHER", .left),
        .ended(RoomEnding(.disconnected, code: 1000, message: "bye")),
      ])
  }

  // MARK: Others

  @Test(arguments: ["re-offer", "update"]) func othersComeAndGo(type: String) {
    var pair = Self.joined()
    _ = (pair.takeEvents(), pair.takeRequests())
    pair.say(pair.server.arrive("THIRD", type: type))
    pair.talk()
    #expect(
      pair.takeNews() == [
        .participantEntered(ParticipantInfo(id: "THIRD", displayName: "client-THIRD")),
        .published(
          owner: "THIRD", [PublishedMedia(id: MediaID(3), owner: "THIRD", kind: .audio)]),
        .assigned(MediaID(3), ConnectionID(1), mid: "mTHIRD"),
      ])
    pair.bench.report(1, .description(Self.answer, media: []))
    pair.talk()
    #expect(pair.server.answers.last?.type == (type == "update" ? "update" : "re-answer"))
    pair.say(pair.server.leave("OTHER"))
    pair.talk()
    #expect(
      pair.takeNews() == [
        .unpublished(owner: "OTHER", [MediaID(1)]), .unassigned(MediaID(1)),
        .participantLeft("OTHER", .left),
      ])
  }

  @Test func offersThatComeWhileAnsweringAreAnsweredByTheLast() {
    var pair = Self.joined()
    _ = pair.takeRequests()
    pair.say(pair.server.arrive("THIRD"))
    pair.say(pair.server.arrive("FOURTH"))
    pair.say(pair.server.arrive("FIFTH"))
    pair.talk()
    #expect(pair.takeRequests().count == 1)
    pair.bench.report(1, .description(Self.answer, media: []))
    pair.talk()
    guard case .setRemote(let last)? = pair.takeRequests().first else {
      Issue.record("the last offer is not answered")
      return
    }
    #expect(last.sdp.contains("FIFTH"))
  }

  @Test func pingsAreAnsweredWithStatisticsWhenTheyAreWanted() {
    var pair = Self.joined()
    _ = pair.takeRequests()
    pair.say([.members(("type", "ping"))])
    pair.say([.members(("type", "ping"), ("stats", true))])
    pair.say([.members(("type", "ping"), ("stats", true))])
    pair.talk()
    #expect(pair.takeRequests() == [.getStats(ActionID(1))])
    pair.bench.report(1, .stats(ActionID(1), #"[{"id":"T01","type":"transport"}]"#))
    pair.bench.report(1, .stats(ActionID(9), "[]"))
    pair.talk()
    #expect(
      pair.server.pongs.map(\.json) == [
        #"{"type":"pong"}"#, #"{"type":"pong","stats":[{"id":"T01","type":"transport"}]}"#,
      ])
  }

  @Test func whatTheServerPushesIsToldInItsWords() {
    var pair = Self.joined()
    _ = pair.takeEvents()
    pair.say([
      .members(("type", "push"), ("data", .members(("a", 1)))),
      .members(
        ("type", "notify"), ("event_type", "spotlight.focused"), ("connection_id", "OTHER")),
      .members(("type", "of-tomorrow"), ("x", 1)), .members(("kind", "nothing")),
    ])
    pair.talk()
    #expect(
      pair.takeEvents() == [
        .notification(type: "push", #"{"a":1}"#),
        .notification(
          type: "notify",
          #"{"type":"notify","event_type":"spotlight.focused","connection_id":"OTHER"}"#),
        .talking(participant: "OTHER", true, level: nil),
        .notification(type: "of-tomorrow", #"{"type":"of-tomorrow","x":1}"#),
      ])
  }

  // MARK: Data channels

  private static let channels: JSONValue = .list([
    .members(("label", "signaling"), ("compress", true)),
    .members(("label", "notify"), ("compress", true)),
    .members(("label", "stats"), ("compress", false)),
    .members(
      ("label", "#chat"), ("compress", true),
      ("header", .list([.members(("type", "sender_connection_id"))]))),
  ])

  private static func switched() -> Pair {
    var pair = Pair(["data_channel_signaling": "true", "data_channels": "[]"])
    pair.server.offerMembers = [.init("data_channels", channels)]
    pair.bench.want(.join(RoomJoin(room: "sora", role: .down)))
    pair.bench.open()
    pair.talk()
    pair.bench.report(1, .description(answer, media: []))
    pair.say([.members(("type", "switched"), ("ignore_disconnect_websocket", true))])
    pair.talk()
    _ = (pair.takeRequests(), pair.takeEvents())
    return pair
  }

  private static func compressed(_ value: JSONValue) -> SignalingFrame {
    .binary(Zlib.compressed(Array(value.json.utf8)))
  }

  @Test func signalingGoesOnOverDataChannels() throws {
    var pair = Self.switched()
    for message in pair.server.arrive("THIRD") {
      let label = message["type"] == "notify" ? "notify" : "signaling"
      pair.bench.report(1, .channelMessage(label: label, Self.compressed(message)))
    }
    pair.bench.report(1, .description(Self.answer, media: []))
    pair.talk()
    guard case .sendOnChannel("signaling", .binary(let bytes))? = pair.takeRequests().last else {
      Issue.record("the answer went another way")
      return
    }
    let text = String(decoding: try Zlib.expanded(bytes, limit: 1000), as: UTF8.self)
    #expect(text == #"{"type":"re-answer","sdp":"answer"}"#)

    // The WebSocket is given up ten seconds after the first message, and its end is no loss.
    pair.bench.wait(10)
    #expect(
      pair.bench.take().contains(.transport(TransportID(1), .close(code: 1000, reason: ""))))
    pair.bench.transport(.closed(code: 1000, reason: ""))
    pair.talk()
    #expect(pair.takeNews().count == 3)
  }

  @Test func statisticsAndMessagesHaveChannelsOfTheirOwn() throws {
    var pair = Self.switched()
    pair.bench.report(1, .channelMessage(label: "stats", .text(#"{"type":"req-stats"}"#)))
    pair.bench.report(1, .stats(ActionID(1), "[]"))
    pair.bench.want(.sendMessage(ActionID(5), UserMessage(type: "#chat", text: "hi")))
    let sender = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    let message = Zlib.compressed(Array((sender + "hello").utf8))
    pair.bench.report(1, .channelMessage(label: "#chat", .binary(message)))
    // What is not compressed, or of a channel that nobody knows, is passed over.
    pair.bench.report(1, .channelMessage(label: "#chat", .text("hello")))
    pair.bench.report(1, .channelMessage(label: "#other", .text("hello")))
    pair.talk()
    #expect(
      pair.takeRequests() == [
        .getStats(ActionID(1)),
        .sendOnChannel(label: "stats", .text(#"{"type":"stats","reports":[]}"#)),
        .sendOnChannel(label: "#chat", .binary(Zlib.compressed(Array("hi".utf8)))),
      ])
    #expect(
      pair.takeEvents() == [
        .result(ActionID(5), nil),
        .message(UserMessage(sender: sender, type: "#chat", text: "hello")),
      ])
  }

  @Test func theServerMayEndTheSessionOnTheChannel() {
    var pair = Self.switched()
    let close = JSONValue.members(("type", "close"), ("code", 1000), ("reason", "DISCONNECTED-API"))
    pair.bench.report(1, .channelMessage(label: "signaling", Self.compressed(close)))
    pair.talk()
    #expect(
      pair.takeEvents().last
        == .ended(RoomEnding(.kicked, code: 1000, message: "DISCONNECTED-API")))
  }

  // MARK: Ends and losses

  @Test func leavingSaysWhy() {
    var pair = Self.joined()
    _ = pair.takeEvents()
    pair.bench.want(.leave)
    pair.talk()
    #expect(pair.server.disconnectReason == "NO-ERROR")
    pair.bench.transport(.closed(code: 1000, reason: "TYPE-DISCONNECT"))
    pair.talk()
    #expect(
      pair.takeEvents().last
        == .ended(RoomEnding(.disconnected, code: 1000, message: "TYPE-DISCONNECT")))
  }

  @Test func aServerThatDoesNotCloseIsLeftInTime() {
    var pair = Self.switched()
    pair.bench.want(.leave)
    pair.talk()
    guard case .sendOnChannel("signaling", _)? = pair.takeRequests().first else {
      Issue.record("leaving is not said on the channel")
      return
    }
    pair.bench.wait(3)
    pair.talk()
    #expect(pair.takeEvents().last == .ended(RoomEnding(.disconnected)))
  }

  @Test func codesBeforeAnOfferAreRefusals() {
    var pair = Pair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    pair.talk()
    pair = Pair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    _ = pair.bench.take()
    pair.bench.transport(.closed(code: 4490, reason: "AUTHENTICATION-FAILED"))
    #expect(
      pair.bench.events() == [
        .failed(
          SignalingFailure(
            .joinRefused, "AUTHENTICATION-FAILED", isCritical: true, serverCode: 4490)),
        .ended(RoomEnding(.disconnected, code: 4490, message: "AUTHENTICATION-FAILED")),
      ])
  }

  @Test(arguments: [false, true]) func aLostSessionIsMadeAnew(byConnection: Bool) {
    var pair = Self.joined()
    _ = (pair.takeEvents(), pair.takeRequests())
    if byConnection {
      pair.bench.report(1, .state(.failed))
    } else {
      pair.bench.transport(.closed(code: 1006, reason: ""))
    }
    pair.talk()
    #expect(pair.takeRequests() == [.close])
    let events = pair.takeEvents()
    #expect(events.prefix(2) == [.localUnpublished(LocalMediaID(1)), .unassigned(MediaID(1))])
    guard case .reconnecting(attempt: 1, _)? = events.last else {
      Issue.record("the machine does not reconnect")
      return
    }
    pair.bench.wait(1)
    pair.bench.open()
    pair.talk()
    #expect(pair.takeNews().first == .reconnected)
    // What was sent before is sent again, over another connection.
    pair.bench.report(
      2, .description(Self.answer, media: [LocalMediaPlace(media: LocalMediaID(1), mid: "a")]))
    pair.talk()
    #expect(pair.takeNews().contains(.localPublished(LocalMediaID(1), MediaID(4))))
  }
}
