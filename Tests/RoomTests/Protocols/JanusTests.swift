import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests the Janus machine with the server's documented messages, and with a faulty server.
///
/// A real server's messages are in `TranscriptTests`, and losses are in `JanusLossTests`.
struct JanusTests {
  // MARK: Joining

  @Test func theMachineIsFoundByItsName() {
    let configuration = SignalingConfiguration(protocolName: "janus", urls: [])
    #expect(SignalingProtocols.all.machine(configuration, entropy: Entropy(seed: [])) != nil)
  }

  @Test func aRoomIsEnteredWithItsParticipants() throws {
    var bench = JanusServer.bench(["pin": "4", "apisecret": "s"])
    bench.want(
      .join(RoomJoin(room: "1234", displayName: "Ann", participant: "5", token: "t")))
    #expect(
      bench.drain() == [
        .transport(
          TransportID(1),
          .open(url: "ws://one.example", subprotocols: ["janus-protocol"], headers: []))
      ])
    bench.open()
    let create = try bench.sent()
    #expect(create["janus"] == "create" && create["apisecret"] == "s")
    bench.reply(#"{"janus":"success","data":{"id":11}}"#, create)
    try bench.answer(#"{"janus":"success","session_id":11,"data":{"id":21}}"#, to: "attach")
    let join = try bench.sent()
    #expect(join["session_id"] == 11 && join["handle_id"] == 21)
    #expect(
      join["body"]?.json == #"{"request":"join","ptype":"publisher","room":1234,"id":5,"#
        + #""display":"Ann","token":"t","pin":"4"}"#)
    _ = bench.events()
    let publishers = #"[{"id":7,"display":"Ben","streams":[{"type":"audio","mid":"0"}]}]"#
    bench.reply(
      JanusServer.event(
        #"{"videoroom":"joined","id":5,"private_id":9,"publishers":\#(publishers),"#
          + #""attendees":[{"id":8,"display":"Cid"}]}"#), join)
    let media = PublishedMedia(id: MediaID(1), owner: "7", kind: .audio)
    #expect(
      bench.events() == [
        .joined(
          JoinedRoom(
            participant: "5", session: "9",
            participants: [
              ParticipantInfo(id: "8", displayName: "Cid"),
              ParticipantInfo(id: "7", displayName: "Ben", media: [media]),
            ]))
      ])
  }

  @Test func anotherAddressIsTriedBeforeFailing() {
    var bench = JanusServer.bench(urls: ["ws://one.example", "ws://two.example"])
    bench.want(.join(RoomJoin(room: "1")))
    bench.transport(.failed("refused"))
    #expect(bench.opened == ["ws://one.example", "ws://two.example"])
    bench.transport(.failed("refused too"))
    #expect(
      bench.events() == [
        .failed(SignalingFailure(.unreachable, "refused too", isCritical: true)),
        .ended(RoomEnding(.disconnected, message: "refused too")),
      ])
    #expect(bench.machine.deadline == nil)
  }

  @Test func aMissingRoomIsAnErrorAndThenTheEnd() throws {
    var bench = JanusServer.bench()
    bench.want(.join(RoomJoin(room: "1")))
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":11}}"#, to: "create")
    try bench.answer(#"{"janus":"success","data":{"id":21}}"#, to: "attach")
    _ = bench.events()
    try bench.answer(
      JanusServer.event(#"{"videoroom":"event","error_code":426,"error":"No such room (1)"}"#),
      to: "join")
    #expect(
      bench.events() == [
        .failed(
          SignalingFailure(.joinRefused, "No such room (1)", isCritical: true, serverCode: 426)),
        .ended(RoomEnding(.disconnected, code: 426, message: "No such room (1)")),
      ])
  }

  // MARK: Publishing

  @Test func localMediaIsPublishedAndUnpublished() throws {
    var bench = try JanusServer.joined(["bitrate": "128000"])
    _ = bench.drain()
    bench.want(.publish(PublicationRequest(action: ActionID(1), media: [JanusServer.audio])))
    #expect(bench.requests() == [.open(.up, ICEServers()), .makeOffer(iceRestart: false)])
    let place = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(1, .description(JanusServer.offer, media: [place]))
    let publish = try bench.sent()
    #expect(
      publish["body"]?.json == #"{"request":"publish","bitrate":128000,"#
        + #""descriptions":[{"mid":"0","description":"mic"}]}"#)
    #expect(publish["jsep"]?.json == JanusServer.jsepOffer)
    bench.reply(
      JanusServer.event(#"{"videoroom":"event","configured":"ok"}"#, jsep: JanusServer.jsepAnswer),
      publish)
    #expect(bench.requests() == [.setRemote(JanusServer.answer)])
    #expect(
      bench.events() == [
        .localPublished(LocalMediaID(1), MediaID(3)), .result(ActionID(1), nil),
      ])
    var muted = JanusServer.audio
    muted.isActive = false
    bench.want(.updateLocal(muted))
    #expect(
      try bench.sent()["body"]?.json == #"{"request":"configure","streams":[{"mid":"0","#
        + #""send":false}],"descriptions":[{"mid":"0","description":"mic (off)"}]}"#)
    bench.want(.unpublish(ActionID(2), [LocalMediaID(1)]))
    try bench.answer(
      JanusServer.event(#"{"videoroom":"event","unpublished":"ok"}"#), to: "unpublish")
    #expect(
      bench.events() == [.result(ActionID(2), nil), .localUnpublished(LocalMediaID(1))])
    #expect(bench.requests() == [.close])
  }

  @Test func mediaPublishedDuringAnOfferFollowsInAnother() throws {
    var bench = try JanusServer.joined()
    bench.want(.publish(PublicationRequest(action: ActionID(1), media: [JanusServer.audio])))
    let video = LocalMediaInfo(id: LocalMediaID(2), kind: .video)
    bench.want(.publish(PublicationRequest(action: ActionID(2), media: [video])))
    let one = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(1, .description(JanusServer.offer, media: [one]))
    _ = bench.drain()
    bench.replyToLast(
      JanusServer.event(#"{"videoroom":"event","configured":"ok"}"#, jsep: JanusServer.jsepAnswer))
    #expect(bench.requests() == [.setRemote(JanusServer.answer), .makeOffer(iceRestart: false)])
    #expect(bench.events().last == .result(ActionID(1), nil))
    let two = LocalMediaPlace(media: LocalMediaID(2), mid: "1")
    bench.report(1, .description(JanusServer.offer, media: [one, two]))
    try bench.answer(
      JanusServer.event(#"{"videoroom":"event","error_code":432,"error":"full"}"#), to: "configure")
    #expect(
      bench.events() == [
        .result(ActionID(2), SignalingFailure(.publishFailed, "full", serverCode: 432))
      ])
  }

  // MARK: Receiving

  @Test func remoteMediaIsSubscribedAndAssigned() throws {
    var bench = try JanusServer.subscribed()
    #expect(bench.requests() == [.open(.down, ICEServers()), .setRemote(JanusServer.offer)])
    #expect(
      bench.events() == [
        .assigned(MediaID(1), ConnectionID(1), mid: "0"),
        .assigned(MediaID(2), ConnectionID(1), mid: "1"),
      ])
    bench.report(1, .description(JanusServer.answer, media: []))
    let start = try bench.sent()
    #expect(start["body"]?["request"] == "start" && start["jsep"]?.json == JanusServer.jsepAnswer)
    bench.reply(JanusServer.event(#"{"videoroom":"event","started":"ok"}"#, sender: 22), start)
    #expect(bench.events() == [.result(ActionID(1), nil)])

    bench.want(.setProfile(ActionID(2), MediaID(2), .low))
    let profile = try bench.sent()
    #expect(
      profile["body"]?.json == #"{"request":"configure","streams":[{"mid":"1","substream":0,"#
        + #""spatial_layer":0}]}"#)
    bench.reply(JanusServer.event(#"{"videoroom":"event","configured":"ok"}"#, sender: 22), profile)
    bench.want(.setProfile(ActionID(3), MediaID(1), .low))
    #expect(
      bench.events() == [
        .result(ActionID(2), nil),
        .result(
          ActionID(3), SignalingFailure(.noProfiles, "the video has no layers", media: MediaID(1))),
      ])
  }

  @Test func anOfferReceivedWhileAnsweringIsAnsweredNext() throws {
    var bench = try JanusServer.subscribed()
    _ = bench.drain()
    bench.receive(
      JanusServer.event(
        JanusServer.attached("updated", isVideoActive: false), sender: 22,
        jsep: JanusServer.jsepOffer))
    #expect(bench.requests() == [])
    bench.report(1, .description(JanusServer.answer, media: []))
    try bench.answer(JanusServer.event(#"{"started":"ok"}"#, sender: 22), to: "start")
    #expect(bench.requests() == [.setRemote(JanusServer.offer)])
    #expect(bench.events() == [.result(ActionID(1), nil), .unassigned(MediaID(2))])
  }

  @Test func aLeavingParticipantsMediaIsRemoved() throws {
    var bench = try JanusServer.joined()
    _ = bench.drain()
    bench.receive(JanusServer.event(#"{"videoroom":"event","leaving":7}"#))
    #expect(
      bench.events() == [
        .unpublished(owner: "7", [MediaID(1), MediaID(2)]), .participantLeft("7", .left),
      ])
    bench.want(.subscribe(ActionID(1), [MediaID(1)]))
    #expect(
      bench.events() == [
        .result(
          ActionID(1),
          SignalingFailure(.noSuchMedia, "nobody publishes such media", media: MediaID(1)))
      ])
  }

  // MARK: Server faults

  @Test func duplicateAndUnknownMessagesChangeNothing() throws {
    var bench = try JanusServer.joined()
    _ = bench.drain()
    let entered = JanusServer.event(#"{"videoroom":"event","joining":{"id":8,"display":"Cid"}}"#)
    bench.receive(entered)
    bench.receive(entered)
    #expect(
      bench.events() == [.participantEntered(ParticipantInfo(id: "8", displayName: "Cid"))])
    for text in [
      #"{"janus":"success","transaction":"nobody-1","data":{"id":99}}"#, #"{"janus":"ack"}"#,
      #"{"janus":"event","session_id":99,"sender":21,"plugindata":{"data":{"leaving":8}}}"#,
      #"{"janus":"event","session_id":11,"sender":99,"plugindata":{"data":{"leaving":8}}}"#,
      #"{"janus":"hangup","session_id":11,"sender":99}"#, #"{"janus":7}"#, "[]", "not JSON", "",
    ] {
      bench.receive(text)
    }
    bench.transport(.frame(.binary([1, 2, 3])))
    #expect(bench.drain() == [])
  }

  @Test func aLateAnswerIsIgnored() throws {
    var bench = try JanusServer.joined()
    _ = bench.drain()
    bench.want(.subscribe(ActionID(1), [MediaID(1)]))
    let attach = try bench.sent()
    bench.wait(11)
    #expect(
      bench.events() == [
        .result(
          ActionID(1),
          SignalingFailure(.subscribeFailed, "the server gave no answer within 10 s"))
      ])
    bench.reply(#"{"janus":"success","session_id":11,"data":{"id":22}}"#, attach)
    #expect(bench.drain() == [])
  }

  @Test(arguments: [
    (#"{"videoroom":"event","leaving":"ok","reason":"kicked"}"#, RoomEnding.Reason.kicked),
    (#"{"videoroom":"destroyed","room":1234}"#, .destroyed),
  ])
  func theServerEndsTheRoom(data: String, reason: RoomEnding.Reason) throws {
    var bench = try JanusServer.joined()
    _ = bench.drain()
    bench.receive(JanusServer.event(data))
    guard case .ended(let ending)? = bench.events().last else {
      Issue.record("the room is not over")
      return
    }
    #expect(ending.reason == reason)
    bench.receive(JanusServer.event(#"{"videoroom":"event","joining":{"id":8}}"#))
    bench.want(.leave)
    #expect(bench.events() == [])
  }

  @Test func leavingEndsInTimeWhateverTheServerDoes() throws {
    var bench = try JanusServer.joined()
    _ = bench.drain()
    bench.want(.leave)
    #expect(try bench.sent()["janus"] == "destroy")
    bench.want(.subscribe(ActionID(1), [MediaID(1)]))
    #expect(
      bench.events() == [
        .result(ActionID(1), SignalingFailure(.invalidState, "the room is being left"))
      ])
    bench.wait(10)
    #expect(bench.events() == [.ended(RoomEnding(.disconnected))])
  }
}
