import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests the Janus machine after silence, a lost WebSocket, and a session that the server has lost.
struct JanusLossTests {
  @Test func keepalivesAreSentDuringSilence() throws {
    var bench = try JanusServer.joined()
    _ = bench.drain()
    bench.wait(25)
    let keepalive = try bench.sent()
    #expect(keepalive["janus"] == "keepalive" && keepalive["session_id"] == 11)
    bench.reply(#"{"janus":"ack","session_id":11}"#, keepalive)
    bench.wait(25)
    #expect(try bench.sent()["janus"] == "keepalive")
    // The second keepalive is not answered, so the connection is dead.
    bench.wait(10)
    guard case .reconnecting(attempt: 1, _)? = bench.events().first else {
      Issue.record("the machine did not reconnect")
      return
    }
  }

  @Test func aLostTransportIsReopenedAndTheSessionClaimed() throws {
    var bench = try JanusServer.subscribed()
    bench.report(1, .description(JanusServer.answer, media: []))
    _ = bench.drain()
    bench.transport(.failed("reset"))
    #expect(bench.events() == [.reconnecting(attempt: 1, reason: "reset")])
    bench.wait(1)
    bench.open()
    let claim = try bench.sent()
    #expect(claim["janus"] == "claim" && claim["session_id"] == 11)
    bench.reply(#"{"janus":"success","session_id":11}"#, claim)
    // The answer may have been lost with the connection, so the subscription is requested again.
    #expect(try bench.sent()["body"]?["request"] == "subscribe")
    #expect(bench.events() == [.reconnected])
    #expect(bench.requests() == [])
  }

  @Test func pendingRequestsAreAnsweredAfterALoss() throws {
    var bench = try JanusServer.subscribed()
    bench.report(1, .description(JanusServer.answer, media: []))
    bench.replyToLast(JanusServer.event(#"{"started":"ok"}"#, sender: 22))
    bench.want(.setPaused(ActionID(2), MediaID(2), true))
    _ = bench.drain()
    bench.transport(.failed("reset"))
    let lost = SignalingFailure(.pauseFailed, "the way to the server was lost")
    #expect(
      bench.events() == [.reconnecting(attempt: 1, reason: "reset"), .result(ActionID(2), lost)])
    bench.want(.publish(PublicationRequest(action: ActionID(3), media: [JanusServer.audio])))
    bench.want(.subscribe(ActionID(4), [MediaID(1)]))
    bench.want(.leave)
    bench.wait(10)
    let over = SignalingFailure(.invalidState, "the room is over")
    #expect(
      bench.events().filter { if case .result = $0 { true } else { false } } == [
        .result(ActionID(3), over), .result(ActionID(4), over),
      ])
  }

  /// Found by fuzzing: no result was reported when the request could not be sent, or when the
  /// server no longer knew the handle (error 459).
  @Test(arguments: [true, false])
  func aSettingWithoutATransportIsAnsweredToo(isSent: Bool) throws {
    var bench = try JanusServer.subscribed()
    bench.report(1, .description(JanusServer.answer, media: []))
    bench.replyToLast(JanusServer.event(#"{"started":"ok"}"#, sender: 22))
    if !isSent { bench.transport(.failed("reset")) }
    bench.want(.setPaused(ActionID(2), MediaID(2), true))
    if isSent { bench.replyToLast(#"{"janus":"error","error":{"code":459,"reason":"none"}}"#) }
    let lost = SignalingFailure(.pauseFailed, "the way to the server was lost")
    #expect(bench.events().contains(.result(ActionID(2), lost)))
  }

  @Test func anEchoIsRestoredAfterALoss() throws {
    var bench = JanusServer.bench(["plugin": "echotest"])
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

  @Test func aLostSessionIsRecreatedWithEverythingWanted() throws {
    var bench = try JanusServer.subscribed()
    bench.report(1, .description(JanusServer.answer, media: []))
    bench.replyToLast(JanusServer.event(#"{"started":"ok"}"#, sender: 22))
    bench.want(.publish(PublicationRequest(action: ActionID(2), media: [JanusServer.audio])))
    let place = LocalMediaPlace(media: LocalMediaID(1), mid: "0")
    bench.report(2, .description(JanusServer.offer, media: [place]))
    bench.replyToLast(JanusServer.event(#"{"configured":"ok"}"#, jsep: JanusServer.jsepAnswer))
    _ = bench.drain()

    bench.receive(#"{"janus":"timeout","session_id":11}"#)
    _ = bench.drain()
    bench.wait(1)
    bench.open()
    try bench.answer(#"{"janus":"success","data":{"id":12}}"#, to: "create")
    // The old session's connections are closed before new ones are made.
    #expect(bench.requests() == [.close, .close])
    #expect(
      bench.events() == [
        .localUnpublished(LocalMediaID(1)), .unassigned(MediaID(1)), .unassigned(MediaID(2)),
      ])
    try bench.answer(#"{"janus":"success","session_id":12,"data":{"id":31}}"#, to: "attach")
    // Ben's video is gone, and a new participant has joined.
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

  /// After a restart, all participants return at once: those already in the room have published
  /// nothing yet.
  @Test func mediaFromBeforeAServerRestartIsRemoved() throws {
    var bench = try JanusServer.subscribed()
    bench.report(1, .description(JanusServer.answer, media: []))
    bench.replyToLast(JanusServer.event(#"{"started":"ok"}"#, sender: 22))
    bench.transport(.failed("reset"))
    bench.wait(1)
    bench.open()
    bench.replyToLast(#"{"janus":"error","error":{"code":458,"reason":"none"}}"#)
    bench.replyToLast(#"{"janus":"success","data":{"id":12}}"#)
    bench.replyToLast(#"{"janus":"success","session_id":12,"data":{"id":31}}"#)
    _ = bench.drain()
    bench.replyToLast(
      #"{"janus":"event","session_id":12,"sender":31,"plugindata":{"data":{"videoroom":"joined","#
        + #""id":5,"publishers":[],"attendees":[{"id":7,"display":"Ben"}]}}}"#)
    #expect(bench.events() == [.unpublished(owner: "7", [MediaID(1), MediaID(2)]), .reconnected])
    #expect(!bench.outputs.contains { if case .transport = $0 { true } else { false } })
    bench.receive(
      #"{"janus":"event","session_id":12,"sender":31,"plugindata":{"data":{"videoroom":"event","#
        + #""publishers":\#(JanusServer.publishers)}}}"#)
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
}
