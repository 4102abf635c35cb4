import Lab
import Room
import Testing
import Wire

@Suite struct EnteringTests {
  @Test func progressIncreasesFromOneToAHundred() {
    let room = VirtualRoom()
    room.call(.signedIn(token: "t", lifetimeMilliseconds: nil))
    room.call(.connect(RoomJoin(room: "room-1")))
    room.open()
    room.serve(.progress(.attached), .progress(.joining), .progress(.attached))
    room.serve(.open(.up, ICEServers()), .makeOffer(iceRestart: false), of: 1)
    room.report(.report(.state(.connecting)))
    room.report(.secured)
    room.serve(.joined(JoinedRoom(participant: "me")))
    let progress = room.events.compactMap {
      if case .connecting(let progress) = $0 { progress } else { nil }
    }
    #expect(progress == [1, 10, 30, 45, 60, 70, 80, 90, 100])
    #expect(
      room.states.filter { $0.hasPrefix("room:") } == [
        "room: initialized -> connecting", "room: connecting -> connected",
      ])
  }

  @Test func participantsAreReportedOnEntryLocalFirst() {
    let room = VirtualRoom()
    room.enter([
      .named("anna", .audio(1, of: "anna"), .video(2, of: "anna")), .named("ben"),
    ])
    #expect(room.events.contains(.connected(["me", "anna", "ben"])))
    // Media already published is reported after that.
    #expect(
      room.names.suffix(3) == ["connected", "remotePublished", "remotePublished"])
    #expect(room.snapshot.participants.map(\.number) == [1, 2, 3])
    #expect(room.reply(to: 1) == .done)
  }

  @Test(arguments: ["", "a room", "room/1", "zimmer_1", String(repeating: "a", count: 33), "é"])
  func anIdentifierInAnotherFormatIsRefused(room name: String) {
    let room = VirtualRoom()
    #expect(room.call(.connect(RoomJoin(room: name))).code == .invalidRoomID)
    #expect(room.states.isEmpty && room.intents.isEmpty)
    #expect(room.call(.connect(RoomJoin(room: "Room-1"))) == nil)
  }

  @Test func servicesMayAcceptOtherIdentifiers() {
    let room = VirtualRoom { $0.checksRoomID = false }
    #expect(room.call(.connect(RoomJoin(room: "channel@group#project"))) == nil)
  }

  @Test func enteringRequiresSigningIn() {
    let room = VirtualRoom { $0.needsToken = true }
    #expect(room.call(.connect(RoomJoin(room: "room-1"))).code == .notSignedIn)
    room.call(.signedIn(token: "secret", lifetimeMilliseconds: 60_000))
    room.call(.signOut)
    #expect(room.call(.connect(RoomJoin(room: "room-1"))).code == .notSignedIn)
    room.call(.signedIn(token: "secret", lifetimeMilliseconds: 60_000))
    room.enter()
    guard case .join(let join) = room.intents.first else {
      Issue.record("\(room.intents)")
      return
    }
    #expect(join.token == "secret")
  }

  @Test func aTokenIsRenewedBeforeItExpires() {
    let room = VirtualRoom()
    room.call(.signedIn(token: "first", lifetimeMilliseconds: 60_000))
    room.enter()
    room.wait(.seconds(47))
    #expect(room.tokensWanted == 0)
    room.wait(.seconds(2))
    #expect(room.tokensWanted == 1)
    room.call(.signedIn(token: "second", lifetimeMilliseconds: 60_000))
    #expect(room.intents.last == .renewToken("second"))
    room.wait(.seconds(49))
    #expect(room.tokensWanted == 2)
  }

  @Test func aSilentServiceEndsTheAttempt() {
    let room = VirtualRoom()
    room.call(.connect(RoomJoin(room: "room-1")))
    room.wait(.seconds(29))
    #expect(room.reply(to: 1) == nil)
    room.wait(.seconds(2))
    #expect(room.reply(to: 1).code == .unreachable)
    #expect(room.names.suffix(2) == ["failed", "disconnected"])
  }

  @Test func aRoomIsEnteredOnce() {
    let room = VirtualRoom()
    room.enter()
    #expect(room.call(.connect(RoomJoin(room: "room-1"))).code == .invalidState)
    room.call(.disconnect)
    room.serve(.ended(RoomEnding(.disconnected)))
    #expect(room.call(.connect(RoomJoin(room: "room-1"))).code == .invalidState)
  }

  @Test func anUnknownProtocolIsRefused() {
    let room = VirtualRoom { $0.signaling.protocolName = "carrier pigeon" }
    #expect(room.call(.connect(RoomJoin(room: "room-1"))).code == .notSupported)
  }
}
