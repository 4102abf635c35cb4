import Peer
import RoomSignaling
import SDP
import Testing
import Wire

@testable import RoomProtocols

/// The Janus machine against what the server's documentation says, and against what a server does
/// wrong; what a real server said is in `TranscriptTests`.
struct JanusTests {
  private typealias Bench = SignalingBench<JanusMachine>

  private static func bench(
    _ options: [String: String] = [:], urls: [String] = ["ws://one.example"]
  )
    -> Bench
  {
    Bench(SignalingConfiguration(protocolName: "janus", urls: urls, options: options))
  }

  /// A videoroom with one other participant, who publishes audio and a video of three layers.
  private static func joined(_ options: [String: String] = [:]) throws -> Bench {
    var bench = bench(options)
    bench.want(.join(RoomJoin(room: "1234", displayName: "Ann")))
    try enter(&bench)
    return bench
  }

  private static let publishers = """
    [{"id":7,"display":"Ben","streams":[{"type":"audio","mid":"0","codec":"opus"},\
    {"type":"video","mid":"1","codec":"vp8","simulcast":true,"description":"cat"}]}]
    """

  private static func enter(_ bench: inout Bench, publishers: String = publishers) throws {
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":11}}"#, to: "create")
    try bench.answer(#"{"janus":"success","session_id":11,"data":{"id":21}}"#, to: "attach")
    try bench.answer(
      event(
        #"{"videoroom":"joined","room":1234,"id":5,"private_id":9,"publishers":\#(publishers)}"#),
      to: "join")
  }

  private static func event(_ data: String, sender: Int = 21, jsep: String? = nil) -> String {
    let description = jsep.map { #","jsep":\#($0)"# } ?? ""
    return #"{"janus":"event","session_id":11,"sender":\#(sender),"plugindata":{"plugin":"p","#
      + #""data":\#(data)}\#(description)}"#
  }

  private static let offer = SessionDescription(type: .offer, sdp: "v=0 offer")
  private static let answer = SessionDescription(type: .answer, sdp: "v=0 answer")
  private static let jsepOffer = #"{"type":"offer","sdp":"v=0 offer"}"#
  private static let jsepAnswer = #"{"type":"answer","sdp":"v=0 answer"}"#
  private static let audio = LocalMediaInfo(id: LocalMediaID(1), kind: .audio, extraValue: "mic")

  // MARK: Entering

  @Test func theMachineIsKnownByItsName() {
    let configuration = SignalingConfiguration(protocolName: "janus", urls: [])
    #expect(SignalingProtocols.all.machine(configuration, entropy: Entropy(seed: [])) != nil)
  }

  @Test func aRoomIsEnteredWithWhoIsThere() throws {
    var bench = Self.bench(["pin": "4", "apisecret": "s"])
    bench.want(
      .join(RoomJoin(room: "1234", displayName: "Ann", participant: "5", token: "t")))
    #expect(
      bench.take() == [
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
      Self.event(
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

  @Test func anotherAddressIsTriedBeforeGivingUp() {
    var bench = Self.bench(urls: ["ws://one.example", "ws://two.example"])
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

  @Test func aRoomThatIsNotThereIsAnErrorAndThenTheEnd() throws {
    var bench = Self.bench()
    bench.want(.join(RoomJoin(room: "1")))
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":11}}"#, to: "create")
    try bench.answer(#"{"janus":"success","data":{"id":21}}"#, to: "attach")
    _ = bench.events()
    try bench.answer(
      Self.event(#"{"videoroom":"event","error_code":426,"error":"No such room (1)"}"#), to: "join")
    #expect(
      bench.events() == [
        .failed(
          SignalingFailure(.joinRefused, "No such room (1)", isCritical: true, serverCode: 426)),
        .ended(RoomEnding(.disconnected, code: 426, message: "No such room (1)")),
      ])
  }

  // MARK: Publishing

  @Test func ownMediaIsPublishedAndTakenBack() throws {
    var bench = try Self.joined(["bitrate": "128000"])
    _ = bench.take()
    bench.want(.publish(PublicationRequest(action: ActionID(1), media: [Self.audio])))
    #expect(bench.requests() == [.open(.up, ICEServers()), .makeOffer(iceRestart: false)])
    let place = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(1, .description(Self.offer, media: [place]))
    let publish = try bench.sent()
    #expect(
      publish["body"]?.json == #"{"request":"publish","bitrate":128000,"#
        + #""descriptions":[{"mid":"0","description":"mic"}]}"#)
    #expect(publish["jsep"]?.json == Self.jsepOffer)
    bench.reply(
      Self.event(#"{"videoroom":"event","configured":"ok"}"#, jsep: Self.jsepAnswer), publish)
    #expect(bench.requests() == [.setRemote(Self.answer)])
    #expect(
      bench.events() == [
        .localPublished(LocalMediaID(1), MediaID(3)), .result(ActionID(1), nil),
      ])
    var muted = Self.audio
    muted.isActive = false
    bench.want(.updateLocal(muted))
    #expect(
      try bench.sent()["body"]?.json == #"{"request":"configure","streams":[{"mid":"0","#
        + #""send":false}],"descriptions":[{"mid":"0","description":"mic (off)"}]}"#)
    bench.want(.unpublish(ActionID(2), [LocalMediaID(1)]))
    try bench.answer(Self.event(#"{"videoroom":"event","unpublished":"ok"}"#), to: "unpublish")
    #expect(
      bench.events() == [.result(ActionID(2), nil), .localUnpublished(LocalMediaID(1))])
    #expect(bench.requests() == [.close])
  }

  @Test func whatThePublisherAsksMeanwhileFollowsWithAnotherOffer() throws {
    var bench = try Self.joined()
    bench.want(.publish(PublicationRequest(action: ActionID(1), media: [Self.audio])))
    let video = LocalMediaInfo(id: LocalMediaID(2), kind: .video)
    bench.want(.publish(PublicationRequest(action: ActionID(2), media: [video])))
    let one = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(1, .description(Self.offer, media: [one]))
    _ = bench.take()
    bench.replyToLast(
      Self.event(#"{"videoroom":"event","configured":"ok"}"#, jsep: Self.jsepAnswer))
    #expect(bench.requests() == [.setRemote(Self.answer), .makeOffer(iceRestart: false)])
    #expect(bench.events().last == .result(ActionID(1), nil))
    let two = LocalMediaPlace(media: LocalMediaID(2), mid: "1")
    bench.report(1, .description(Self.offer, media: [one, two]))
    try bench.answer(
      Self.event(#"{"videoroom":"event","error_code":432,"error":"full"}"#), to: "configure")
    #expect(
      bench.events() == [
        .result(ActionID(2), SignalingFailure(.publishFailed, "full", serverCode: 432))
      ])
  }

  // MARK: Receiving

  private static func subscribed() throws -> Bench {
    var bench = try joined()
    _ = bench.take()
    bench.want(.subscribe(ActionID(1), [MediaID(1), MediaID(2)]))
    try bench.answer(#"{"janus":"success","session_id":11,"data":{"id":22}}"#, to: "attach")
    try bench.answer(event(attached("attached"), sender: 22, jsep: jsepOffer), to: "join")
    return bench
  }

  private static func attached(_ word: String, isVideoActive: Bool = true) -> String {
    #"{"videoroom":"\#(word)","streams":[{"mid":"0","active":true,"feed_id":7,"feed_mid":"0"},"#
      + #"{"mid":"1","active":\#(isVideoActive),"feed_id":7,"feed_mid":"1"}]}"#
  }

  @Test func mediaOfOthersIsChosenAndAssigned() throws {
    var bench = try Self.subscribed()
    #expect(bench.requests() == [.open(.down, ICEServers()), .setRemote(Self.offer)])
    #expect(
      bench.events() == [
        .assigned(MediaID(1), ConnectionID(1), mid: "0"),
        .assigned(MediaID(2), ConnectionID(1), mid: "1"),
      ])
    bench.report(1, .description(Self.answer, media: []))
    let start = try bench.sent()
    #expect(start["body"]?["request"] == "start" && start["jsep"]?.json == Self.jsepAnswer)
    bench.reply(Self.event(#"{"videoroom":"event","started":"ok"}"#, sender: 22), start)
    #expect(bench.events() == [.result(ActionID(1), nil)])

    bench.want(.setProfile(ActionID(2), MediaID(2), .low))
    let profile = try bench.sent()
    #expect(
      profile["body"]?.json == #"{"request":"configure","streams":[{"mid":"1","substream":0,"#
        + #""spatial_layer":0}]}"#)
    bench.reply(Self.event(#"{"videoroom":"event","configured":"ok"}"#, sender: 22), profile)
    bench.want(.setProfile(ActionID(3), MediaID(1), .low))
    #expect(
      bench.events() == [
        .result(ActionID(2), nil),
        .result(
          ActionID(3), SignalingFailure(.noProfiles, "the video has no layers", media: MediaID(1))),
      ])
  }

  @Test func anOfferThatComesWhileAnsweringIsAnsweredNext() throws {
    var bench = try Self.subscribed()
    _ = bench.take()
    bench.receive(
      Self.event(Self.attached("updated", isVideoActive: false), sender: 22, jsep: Self.jsepOffer))
    #expect(bench.requests() == [])
    bench.report(1, .description(Self.answer, media: []))
    try bench.answer(Self.event(#"{"started":"ok"}"#, sender: 22), to: "start")
    #expect(bench.requests() == [.setRemote(Self.offer)])
    #expect(bench.events() == [.result(ActionID(1), nil), .unassigned(MediaID(2))])
  }

  @Test func whoLeavesTakesItsMediaAlong() throws {
    var bench = try Self.joined()
    _ = bench.take()
    bench.receive(Self.event(#"{"videoroom":"event","leaving":7}"#))
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

  // MARK: What servers do wrong

  @Test func doubledAndUnknownMessagesChangeNothing() throws {
    var bench = try Self.joined()
    _ = bench.take()
    let entered = Self.event(#"{"videoroom":"event","joining":{"id":8,"display":"Cid"}}"#)
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
    #expect(bench.take() == [])
  }

  @Test func aLateAnswerIsPassedOver() throws {
    var bench = try Self.joined()
    _ = bench.take()
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
    #expect(bench.take() == [])
  }

  @Test func silenceIsAnsweredWithSignsOfLife() throws {
    var bench = try Self.joined()
    _ = bench.take()
    bench.wait(25)
    let keepalive = try bench.sent()
    #expect(keepalive["janus"] == "keepalive" && keepalive["session_id"] == 11)
    bench.reply(#"{"janus":"ack","session_id":11}"#, keepalive)
    bench.wait(25)
    #expect(try bench.sent()["janus"] == "keepalive")
    // This one is not answered: the way is dead.
    bench.wait(10)
    guard case .reconnecting(attempt: 1, _)? = bench.events().first else {
      Issue.record("the machine did not reconnect")
      return
    }
  }

  @Test func aLostWayIsOpenedAnewAndTheSessionClaimed() throws {
    var bench = try Self.subscribed()
    bench.report(1, .description(Self.answer, media: []))
    _ = bench.take()
    bench.transport(.failed("reset"))
    #expect(bench.events() == [.reconnecting(attempt: 1, reason: "reset")])
    bench.wait(1)
    bench.open()
    let claim = try bench.sent()
    #expect(claim["janus"] == "claim" && claim["session_id"] == 11)
    bench.reply(#"{"janus":"success","session_id":11}"#, claim)
    // The answer of which nobody knows whether it arrived: the subscription is asked for again.
    #expect(try bench.sent()["body"]?["request"] == "subscribe")
    #expect(bench.events() == [.reconnected])
    #expect(bench.requests() == [])
  }

  @Test func whateverTheRoomWantedIsAnsweredAtLast() throws {
    var bench = try Self.subscribed()
    bench.report(1, .description(Self.answer, media: []))
    bench.replyToLast(Self.event(#"{"started":"ok"}"#, sender: 22))
    bench.want(.setPaused(ActionID(2), MediaID(2), true))
    _ = bench.take()
    bench.transport(.failed("reset"))
    let lost = SignalingFailure(.pauseFailed, "the way to the server was lost")
    #expect(
      bench.events() == [.reconnecting(attempt: 1, reason: "reset"), .result(ActionID(2), lost)])
    bench.want(.publish(PublicationRequest(action: ActionID(3), media: [Self.audio])))
    bench.want(.subscribe(ActionID(4), [MediaID(1)]))
    bench.want(.leave)
    bench.wait(10)
    let over = SignalingFailure(.invalidState, "the room is over")
    #expect(
      bench.events().filter { if case .result = $0 { true } else { false } } == [
        .result(ActionID(3), over), .result(ActionID(4), over),
      ])
  }

  /// Found by a million inputs: a setting that could not be sent, and one whose answer says that
  /// the server knows the handle no longer, were never answered.
  @Test(arguments: [true, false])
  func aSettingWithoutAWayToTheServerIsAnsweredToo(isSent: Bool) throws {
    var bench = try Self.subscribed()
    bench.report(1, .description(Self.answer, media: []))
    bench.replyToLast(Self.event(#"{"started":"ok"}"#, sender: 22))
    if !isSent { bench.transport(.failed("reset")) }
    bench.want(.setPaused(ActionID(2), MediaID(2), true))
    if isSent { bench.replyToLast(#"{"janus":"error","error":{"code":459,"reason":"none"}}"#) }
    let lost = SignalingFailure(.pauseFailed, "the way to the server was lost")
    #expect(bench.events().contains(.result(ActionID(2), lost)))
  }

  @Test func anEchoIsThereAgainAfterALoss() throws {
    var bench = Self.bench(["plugin": "echotest"])
    bench.want(.join(RoomJoin(room: "")))
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":11}}"#, to: "create")
    try bench.answer(#"{"janus":"success","data":{"id":21}}"#, to: "attach")
    _ = bench.events()
    bench.transport(.failed("reset"))
    bench.wait(1)
    bench.open()
    bench.replyToLast(#"{"janus":"error","error":{"code":458,"reason":"none"}}"#)
    bench.replyToLast(#"{"janus":"success","data":{"id":12}}"#)
    bench.replyToLast(#"{"janus":"success","data":{"id":22}}"#)
    #expect(bench.events().last == .reconnected)
  }

  @Test func aLostSessionIsMadeAnewWithAllThatWasWanted() throws {
    var bench = try Self.subscribed()
    bench.report(1, .description(Self.answer, media: []))
    bench.replyToLast(Self.event(#"{"started":"ok"}"#, sender: 22))
    bench.want(.publish(PublicationRequest(action: ActionID(2), media: [Self.audio])))
    let place = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(2, .description(Self.offer, media: [place]))
    bench.replyToLast(Self.event(#"{"configured":"ok"}"#, jsep: Self.jsepAnswer))
    _ = bench.take()

    bench.receive(#"{"janus":"timeout","session_id":11}"#)
    _ = bench.take()
    bench.wait(1)
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":12}}"#, to: "create")
    // The connections of the old session are closed before new ones are made.
    #expect(bench.requests() == [.close, .close])
    #expect(
      bench.events() == [
        .localUnpublished(LocalMediaID(1)), .unassigned(MediaID(1)), .unassigned(MediaID(2)),
      ])
    try bench.answer(#"{"janus":"success","session_id":12,"data":{"id":31}}"#, to: "attach")
    // Ben has no video any longer, and somebody is new.
    let publishers = """
      [{"id":7,"display":"Ben","streams":[{"type":"audio","mid":"0"}]},\
      {"id":8,"display":"Cid","streams":[]}]
      """
    let join = try bench.sent()
    #expect(join["body"]?["id"] == 5)
    bench.reply(
      #"{"janus":"event","session_id":12,"sender":31,"plugindata":{"data":{"videoroom":"joined","#
        + #""id":5,"publishers":\#(publishers)}}}"#, join)
    #expect(
      bench.events()
        == [
          .unpublished(owner: "7", [MediaID(2)]),
          .mediaChanged(PublishedMedia(id: MediaID(1), owner: "7", kind: .audio)),
          .participantEntered(ParticipantInfo(id: "8", displayName: "Cid")), .reconnected,
        ].filter { if case .mediaChanged = $0 { false } else { true } })
    #expect(bench.requests() == [.open(.up, ICEServers()), .makeOffer(iceRestart: false)])
    try bench.answer(#"{"janus":"success","session_id":12,"data":{"id":32}}"#, to: "attach")
    #expect(
      try bench.sent()["body"]?["streams"]?.json == #"[{"feed":7,"mid":"0"}]"#)
  }

  /// Everybody returns at once: who is there already has published nothing yet.
  @Test func mediaFromBeforeARestartOfTheServerIsGone() throws {
    var bench = try Self.subscribed()
    bench.report(1, .description(Self.answer, media: []))
    bench.replyToLast(Self.event(#"{"started":"ok"}"#, sender: 22))
    bench.transport(.failed("reset"))
    bench.wait(1)
    bench.open()
    bench.replyToLast(#"{"janus":"error","error":{"code":458,"reason":"none"}}"#)
    bench.replyToLast(#"{"janus":"success","data":{"id":12}}"#)
    bench.replyToLast(#"{"janus":"success","session_id":12,"data":{"id":31}}"#)
    _ = bench.take()
    bench.replyToLast(
      #"{"janus":"event","session_id":12,"sender":31,"plugindata":{"data":{"videoroom":"joined","#
        + #""id":5,"publishers":[],"attendees":[{"id":7,"display":"Ben"}]}}}"#)
    #expect(bench.events() == [.unpublished(owner: "7", [MediaID(1), MediaID(2)]), .reconnected])
    #expect(!bench.outputs.contains { if case .transport = $0 { true } else { false } })
    bench.receive(
      #"{"janus":"event","session_id":12,"sender":31,"plugindata":{"data":{"videoroom":"event","#
        + #""publishers":\#(Self.publishers)}}}"#)
    #expect(
      bench.events() == [
        .published(
          owner: "7",
          [
            PublishedMedia(id: MediaID(3), owner: "7", kind: .audio),
            PublishedMedia(
              id: MediaID(4), owner: "7", kind: .video, extraValue: "cat",
              profiles: [.low, .mid, .high]),
          ])
      ])
  }

  @Test(arguments: [
    (#"{"videoroom":"event","leaving":"ok","reason":"kicked"}"#, RoomEnding.Reason.kicked),
    (#"{"videoroom":"destroyed","room":1234}"#, .destroyed),
  ])
  func theServerEndsTheRoom(data: String, reason: RoomEnding.Reason) throws {
    var bench = try Self.joined()
    _ = bench.take()
    bench.receive(Self.event(data))
    guard case .ended(let ending)? = bench.events().last else {
      Issue.record("the room is not over")
      return
    }
    #expect(ending.reason == reason)
    bench.receive(Self.event(#"{"videoroom":"event","joining":{"id":8}}"#))
    bench.want(.leave)
    #expect(bench.events() == [])
  }

  @Test func leavingIsOverInTimeWhateverTheServerDoes() throws {
    var bench = try Self.joined()
    _ = bench.take()
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
