import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests the Sora machine with a server modelled on the public documentation.
///
/// Data channels are tested in `SoraChannelTests`, and the end of a session in `SoraLossTests`.
struct SoraTests {
  // MARK: Connecting

  @Test func aChannelIsEnteredAndItsOfferAnsweredWithLocalMedia() {
    var pair = SoraPair(["video": "false", "audio": #"{"codec_type":"OPUS"}"#, "spotlight": "true"])
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
    #expect(pair.drainRequests() == [.open(.both, servers)])
    #expect(
      pair.drainEvents() == [
        .progress(.opened), .progress(.joining),
        .joined(JoinedRoom(participant: "OWN0", session: "SESSION")),
      ])
    pair.bench.want(.publish(PublicationRequest(action: ActionID(1), media: [SoraPair.audio])))
    pair.talk()
    guard case .setRemote(let offer)? = pair.drainRequests().first else {
      Issue.record("the offer is not applied")
      return
    }
    #expect(offer.type == .offer && offer.sdp.contains("a=msid:OTHER"))
    pair.bench.report(
      1, .description(SoraPair.answer, media: [LocalMediaPlace(media: LocalMediaID(1), mid: "a")]))
    pair.bench.report(1, .candidate(CandidateInit(candidate: "candidate:1 1 udp")))
    pair.bench.report(1, .candidate(nil))
    pair.talk()
    #expect(pair.server.answers.map(\.sdp) == ["answer"])
    #expect(pair.server.candidates == ["candidate:1 1 udp"])
    #expect(
      pair.drainOtherEvents() == [
        .participantEntered(ParticipantInfo(id: "OTHER")),
        .published(
          owner: "OTHER", [PublishedMedia(id: MediaID(1), owner: "OTHER", kind: .audio)]),
        .assigned(MediaID(1), ConnectionID(1), mid: "mOTHER"),
        .localPublished(LocalMediaID(1), MediaID(2)), .result(ActionID(1), nil),
      ])
  }

  @Test func withoutMediaToSendTheOfferIsAnsweredAfterAWhile() {
    var pair = SoraPair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    pair.talk()
    #expect(pair.drainRequests().count == 1)
    pair.bench.wait(2)
    pair.talk()
    guard case .setRemote? = pair.drainRequests().first else {
      Issue.record("the offer waits forever")
      return
    }
  }

  @Test func aLimitedNumberOfRedirectsIsFollowed() {
    var pair = SoraPair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    for round in 0..<6 {
      pair.bench.open()
      #expect(pair.bench.lastSent?["redirect"]?.flag == (round == 0 ? nil : true))
      pair.deliver([
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
    var pair = SoraPair(["simulcast": "true"])
    let encodings: JSONValue = .list([
      .members(("rid", "r0"), ("active", true), ("scaleResolutionDownBy", 4)),
      .members(("rid", "r1"), ("active", false), ("maxBitrate", 500_000)),
    ])
    pair.server.offerMembers = [.init("encodings", encodings)]
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    pair.talk()
    #expect(
      pair.drainRequests().last
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
    #expect(configuration.multistreamEnabled == nil)
    #expect(configuration.publisherStreamId == "mainStream")
    #expect(configuration.initialCameraEnabled && configuration.initialMicrophoneEnabled)
    let alone = SoraConfiguration(
      url: "wss://sora.example/signaling", channelId: "sora", role: .sendrecv,
      multistreamEnabled: false)
    var legacy = SignalingBench<SoraMachine>(alone.signaling)
    legacy.want(.join(alone.join))
    legacy.open()
    #expect(legacy.lastSent?["multistream"]?.flag == false)
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

  /// The events that the SDKs report: connecting, streams, signaling, data channels and their
  /// messages, the end.
  @Test func everyEventOfAChannelIsReported() {
    var pair = SoraPair(["tells_signaling": "true"])
    pair.server.offerMembers = [.init("data_channels", SoraPair.channels)]
    _ = pair.server.arrive("OTHER")
    pair.bench.want(.join(RoomJoin(room: "sora", role: .down)))
    pair.bench.open()
    pair.talk()
    pair.bench.report(1, .channelOpened(label: "#chat"))
    pair.bench.report(1, .channelOpened(label: "signaling"))
    pair.bench.report(
      1, .channelMessage(label: "#chat", .binary(Zlib.compressed(Array("hello".utf8)))))
    pair.deliver([.members(("type", "push"), ("data", 1))])
    pair.bench.report(1, .description(SoraPair.answer, media: []))
    pair.deliver(pair.server.leave("OTHER"))
    pair.bench.transport(.closed(code: 1000, reason: "bye"))
    pair.talk()
    let events = pair.drainEvents()
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

  // MARK: Other participants

  @Test(arguments: ["re-offer", "update"]) func otherParticipantsJoinAndLeave(type: String) {
    var pair = SoraPair.joined()
    _ = (pair.drainEvents(), pair.drainRequests())
    pair.deliver(pair.server.arrive("THIRD", type: type))
    pair.talk()
    #expect(
      pair.drainOtherEvents() == [
        .participantEntered(ParticipantInfo(id: "THIRD", displayName: "client-THIRD")),
        .published(
          owner: "THIRD", [PublishedMedia(id: MediaID(3), owner: "THIRD", kind: .audio)]),
        .assigned(MediaID(3), ConnectionID(1), mid: "mTHIRD"),
      ])
    pair.bench.report(1, .description(SoraPair.answer, media: []))
    pair.talk()
    #expect(pair.server.answers.last?.type == (type == "update" ? "update" : "re-answer"))
    pair.deliver(pair.server.leave("OTHER"))
    pair.talk()
    #expect(
      pair.drainOtherEvents() == [
        .unpublished(owner: "OTHER", [MediaID(1)]), .unassigned(MediaID(1)),
        .participantLeft("OTHER", .left),
      ])
  }

  @Test func ofOffersReceivedWhileAnsweringTheLastIsAnswered() {
    var pair = SoraPair.joined()
    _ = pair.drainRequests()
    pair.deliver(pair.server.arrive("THIRD"))
    pair.deliver(pair.server.arrive("FOURTH"))
    pair.deliver(pair.server.arrive("FIFTH"))
    pair.talk()
    #expect(pair.drainRequests().count == 1)
    pair.bench.report(1, .description(SoraPair.answer, media: []))
    pair.talk()
    guard case .setRemote(let last)? = pair.drainRequests().first else {
      Issue.record("the last offer is not answered")
      return
    }
    #expect(last.sdp.contains("FIFTH"))
  }

  @Test func pingsAreAnsweredWithStatisticsWhenRequested() {
    var pair = SoraPair.joined()
    _ = pair.drainRequests()
    pair.deliver([.members(("type", "ping"))])
    pair.deliver([.members(("type", "ping"), ("stats", true))])
    pair.deliver([.members(("type", "ping"), ("stats", true))])
    pair.talk()
    #expect(pair.drainRequests() == [.getStats(ActionID(1))])
    pair.bench.report(1, .stats(ActionID(1), #"[{"id":"T01","type":"transport"}]"#))
    pair.bench.report(1, .stats(ActionID(9), "[]"))
    pair.talk()
    #expect(
      pair.server.pongs.map(\.json) == [
        #"{"type":"pong"}"#, #"{"type":"pong","stats":[{"id":"T01","type":"transport"}]}"#,
      ])
  }

  @Test func pushedMessagesAreReportedUnchanged() {
    var pair = SoraPair.joined()
    _ = pair.drainEvents()
    pair.deliver([
      .members(("type", "push"), ("data", .members(("a", 1)))),
      .members(
        ("type", "notify"), ("event_type", "spotlight.focused"), ("connection_id", "OTHER")),
      .members(("type", "of-tomorrow"), ("x", 1)), .members(("kind", "nothing")),
    ])
    pair.talk()
    #expect(
      pair.drainEvents() == [
        .notification(type: "push", #"{"a":1}"#),
        .notification(
          type: "notify",
          #"{"type":"notify","event_type":"spotlight.focused","connection_id":"OTHER"}"#),
        .talking(participant: "OTHER", true, level: nil),
        .notification(type: "of-tomorrow", #"{"type":"of-tomorrow","x":1}"#),
      ])
  }
}
