import Peer
import SDP
import Testing
import Wire

@testable import Room

/// Tests how a session with a Sora server ends, and what happens after it is lost.
struct SoraLossTests {
  @Test func leavingStatesTheReason() {
    var pair = SoraPair.joined()
    _ = pair.drainEvents()
    pair.bench.want(.leave)
    pair.talk()
    #expect(pair.server.disconnectReason == "NO-ERROR")
    pair.bench.transport(.closed(code: 1000, reason: "TYPE-DISCONNECT"))
    pair.talk()
    #expect(
      pair.drainEvents().last
        == .ended(RoomEnding(.disconnected, code: 1000, message: "TYPE-DISCONNECT")))
  }

  @Test func leavingDoesNotWaitForeverForTheServersClose() {
    var pair = SoraPair.switched()
    pair.bench.want(.leave)
    pair.talk()
    guard case .sendOnChannel("signaling", _)? = pair.drainRequests().first else {
      Issue.record("leaving is not sent on the channel")
      return
    }
    pair.bench.wait(3)
    pair.talk()
    #expect(pair.drainEvents().last == .ended(RoomEnding(.disconnected)))
  }

  @Test func closeCodesBeforeAnOfferAreRefusals() {
    var pair = SoraPair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    pair.talk()
    pair = SoraPair()
    pair.bench.want(.join(RoomJoin(room: "sora")))
    pair.bench.open()
    _ = pair.bench.drain()
    pair.bench.transport(.closed(code: 4490, reason: "AUTHENTICATION-FAILED"))
    #expect(
      pair.bench.events() == [
        .failed(
          SignalingFailure(
            .joinRefused, "AUTHENTICATION-FAILED", isCritical: true, serverCode: 4490)),
        .ended(RoomEnding(.disconnected, code: 4490, message: "AUTHENTICATION-FAILED")),
      ])
  }

  @Test(arguments: [false, true]) func aLostSessionIsRecreated(byConnection: Bool) {
    var pair = SoraPair.joined()
    _ = (pair.drainEvents(), pair.drainRequests())
    if byConnection {
      pair.bench.report(1, .state(.failed))
    } else {
      pair.bench.transport(.closed(code: 1006, reason: ""))
    }
    pair.talk()
    #expect(pair.drainRequests() == [.close])
    let events = pair.drainEvents()
    #expect(events.prefix(2) == [.localUnpublished(LocalMediaID(1)), .unassigned(MediaID(1))])
    guard case .reconnecting(attempt: 1, _)? = events.last else {
      Issue.record("the machine does not reconnect")
      return
    }
    pair.bench.wait(1)
    pair.bench.open()
    pair.talk()
    #expect(pair.drainOtherEvents().first == .reconnected)
    // The earlier media is sent again, over another connection.
    pair.bench.report(
      2, .description(SoraPair.answer, media: [LocalMediaPlace(media: LocalMediaID(1), mid: "a")]))
    pair.talk()
    #expect(pair.drainOtherEvents().contains(.localPublished(LocalMediaID(1), MediaID(4))))
  }
}
