import Lab
import Room
import Testing
import Wire

@Suite struct ScreenShareTests {
  private func entered() -> VirtualRoom {
    let room = VirtualRoom()
    room.enter()
    room.clear()
    return room
  }

  @Test func aHelperIsReadyThenStartedThenClosed() {
    let room = entered()
    #expect(room.call(.requestScreenShare) == .done)
    room.report(.connected)
    room.report(.started(width: 320, height: 180))
    room.report(.paused)
    room.report(.resumed)
    room.report(.finished)
    #expect(
      room.events == [
        .screenShare(.broadcastReady), .screenShare(.broadcastStarted),
        .screenShare(.broadcastClosed),
      ])
    #expect(room.shares == [.launch, .accept])
    #expect(
      [0, 1, 2, 3].map { ExtensionStatus(rawValue: $0) } == [
        .notAvailable, .broadcastReady, .broadcastStarted, .broadcastClosed,
      ])
  }

  @Test func theNextShareWaitsFiveSeconds() {
    let room = entered()
    room.call(.requestScreenShare)
    #expect(room.call(.requestScreenShare).code == .invalidState)
    room.report(.connected)
    room.call(.stopScreenShare(isLeaving: false))
    // Stopping is immediate, and causes no report.
    #expect(room.events == [.screenShare(.broadcastReady)])
    #expect(room.shares.last == .end(isLeaving: false))
    room.wait(.milliseconds(4_999))
    guard case .failed(let failure) = room.call(.requestScreenShare) else {
      Issue.record("the helper was ready too early")
      return
    }
    #expect(failure.message.contains("1 ms"))
    room.wait(.milliseconds(1))
    #expect(room.call(.requestScreenShare) == .done)
  }

  @Test func aCrashedHelperIsAnEventAndDoesNotEndTheRoom() {
    let room = entered()
    room.call(.requestScreenShare)
    room.report(.connected)
    room.report(.started(width: 320, height: 180))
    room.clear()
    room.report(.crashed(code: 9))
    #expect(room.names == ["screenShare", "failed"])
    #expect(room.errors == [.shareUnreachable])
    #expect(room.snapshot.state == .connected)
    // The share's later events are ignored.
    room.report(.started(width: 320, height: 180))
    #expect(room.names.count == 2)
  }

  @Test func aMissingHelperIsAnError() {
    let room = entered()
    room.call(.requestScreenShare)
    room.wait(.seconds(31))
    #expect(room.errors == [.shareRoomMissing])
    #expect(room.events.first == .screenShare(.notAvailable))
  }

  @Test func leavingTheRoomEndsTheHelper() {
    let room = entered()
    room.call(.requestScreenShare)
    room.report(.connected)
    room.call(.disconnect)
    room.serve(.ended(RoomEnding(.disconnected)))
    #expect(room.shares.last == .end(isLeaving: true))
    #expect(VirtualRoom().call(.requestScreenShare).code == .invalidState)
  }
}
