import Lab
import Room
import Testing
import Wire

@Suite struct EndingTests {
  @Test func leavingEndsInBeingDisconnected() {
    let room = VirtualRoom()
    room.enter([.named("anna", .video(1, of: "anna"))])
    room.receive(1, mid: "0", transceiver: 1)
    room.clear()
    room.call(.disconnect)
    #expect(room.intents == [.leave] && room.events.isEmpty)
    room.serve(.ended(RoomEnding(.disconnected)))
    #expect(room.events == [.disconnected(RoomEnding(.disconnected))])
    #expect(
      room.states == [
        "room: connected -> disconnecting", "room: disconnecting -> disconnected",
      ])
    #expect(room.orders.contains { $0.order == .request(.close) && $0.connection == 2 })
    #expect(room.reply(to: room.lastNumber) == .done)
    #expect(room.deadline == nil)
  }

  @Test func disconnectingDoesNotNeedTheServicesAnswer() {
    let room = VirtualRoom()
    room.enter()
    room.call(.disconnect)
    room.wait(.seconds(4))
    #expect(room.snapshot.state == .disconnecting)
    room.wait(.seconds(2))
    #expect(room.snapshot.state == .disconnected)
    #expect(room.reply(to: room.lastNumber) == .done)
  }

  @Test(arguments: [RoomEnding.Reason.destroyed, .kicked, .disconnected])
  func theServicesReasonIsReported(reason: RoomEnding.Reason) {
    let room = VirtualRoom()
    room.enter()
    room.clear()
    room.serve(.ended(RoomEnding(reason, code: 4490, message: "that is it")))
    #expect(
      room.events == [.disconnected(RoomEnding(reason, code: 4490, message: "that is it"))])
  }

  @Test func anErrorIsReportedBeforeTheEndItCauses() {
    let room = VirtualRoom()
    room.enter()
    room.clear()
    room.serve(
      .failed(SignalingFailure(.serviceError, "gone", isCritical: true)),
      .ended(RoomEnding(.destroyed)))
    #expect(room.names == ["failed", "disconnected"])

    let other = VirtualRoom()
    other.enter()
    other.clear()
    other.transport(.failed("the network is unreachable"))
    #expect(other.names == ["failed", "disconnected"])
  }

  @Test func nothingIsReportedAfterTheEnd() {
    let room = VirtualRoom()
    room.enter()
    room.serve(.ended(RoomEnding(.kicked)))
    room.clear()
    room.serve(.participantEntered(.named("anna")))
    room.report(.report(.state(.failed)))
    room.wait(.seconds(100))
    #expect(room.events.isEmpty && room.orders.isEmpty && room.states.isEmpty)
    for call in [
      RoomCall.publish([.camera]), .subscribe(MediaID(1)), .restartICE, .networkChanged,
      .sendMessage(UserMessage(text: "hello")), .requestScreenShare,
    ] {
      #expect(room.call(call).code != nil, "\(call)")
    }
  }

  @Test func pendingCallsAreAnsweredAtTheEnd() {
    let room = VirtualRoom()
    room.enter([.named("anna", .video(1, of: "anna"))])
    room.call(.subscribe(MediaID(1)))
    let subscription = room.lastNumber
    room.call(.sendMessage(UserMessage(text: "hello")))
    let message = room.lastNumber
    room.serve(.ended(RoomEnding(.destroyed)))
    #expect(room.reply(to: subscription).code == .invalidState)
    #expect(room.reply(to: message).code == .invalidState)
  }

  @Test func aConnectionWithoutAPathEndsTheRoom() {
    let room = VirtualRoom()
    room.enter()
    room.serve(.open(.up, ICEServers()), .makeOffer(iceRestart: false), of: 1)
    room.report(.report(.state(.connected)))
    room.clear()
    room.report(.report(.state(.disconnected)))
    room.wait(.seconds(60))
    let restarts = room.events.filter { $0.name == "restartingICE" }
    #expect(restarts.count == 4)
    #expect(room.names.suffix(2) == ["failed", "disconnected"])
    #expect(room.errors == [.connectionFailed])
  }

  @Test func aRecoveredPathEndsTheRestarts() {
    let room = VirtualRoom()
    room.enter()
    room.serve(.open(.up, ICEServers()), .makeOffer(iceRestart: false), of: 1)
    room.report(.report(.state(.connected)))
    room.clear()
    room.report(.report(.state(.disconnected)))
    room.wait(.seconds(2))
    room.report(.report(.state(.connected)))
    room.wait(.seconds(60))
    #expect(room.events.isEmpty)
    room.report(.report(.state(.failed)))
    room.wait(.milliseconds(1))
    #expect(room.intents.last == .restartICE(ConnectionID(1)))
    #expect(room.events == [.restartingICE(ConnectionID(1), attempt: 1)])
  }

  @Test func aChangeOfTheNetworkRestartsICEOnAllConnections() {
    let room = VirtualRoom()
    room.enter()
    room.serve(.open(.up, ICEServers()), of: 1)
    room.serve(.open(.down, ICEServers()), of: 2)
    for connection: UInt32 in [1, 2] {
      room.report(.report(.state(.connected)), of: connection)
    }
    room.clear()
    #expect(room.call(.networkChanged) == .done)
    room.wait(.milliseconds(1))
    #expect(
      room.intents.prefix(3) == [
        .networkChanged, .restartICE(ConnectionID(1)), .restartICE(ConnectionID(2)),
      ])
    // An offer that restarts ICE is made the usual way.
    room.serve(.makeOffer(iceRestart: true), of: 1)
    #expect(room.orders.contains { $0.order == .request(.makeOffer(iceRestart: true)) })
  }

  /// The connection may be established between the call and its restart.
  @Test func aRequestedRestartIsNotCancelled() {
    let room = VirtualRoom()
    room.enter()
    room.serve(.open(.up, ICEServers()), of: 1)
    room.report(.report(.state(.connecting)), of: 1)
    room.clear()
    #expect(room.call(.restartICE) == .done)
    room.report(.report(.state(.connected)), of: 1)
    room.wait(.milliseconds(1))
    #expect(room.intents.contains(.restartICE(ConnectionID(1))))
    // ICE is restarted only once; later state changes cause no further restart.
    for state in [PeerState.connecting, .connected] {
      room.report(.report(.state(state)), of: 1)
    }
    room.clear()
    room.wait(.seconds(60))
    #expect(!room.intents.contains(.restartICE(ConnectionID(1))))
  }

  /// An application may see that a connection is established before its room does.
  @Test(arguments: [true, nil])
  func aRestartBeforeTheFirstStateWaitsForTheConnection(remembers: Bool?) {
    let room = VirtualRoom { $0.restartsOnceConnected = remembers }
    room.enter()
    room.serve(.open(.up, ICEServers()), of: 1)
    room.clear()
    #expect(room.call(.restartICE) == .done)
    room.wait(.seconds(1))
    #expect(room.intents.isEmpty)
    for state in [PeerState.connecting, .connected] {
      room.report(.report(.state(state)), of: 1)
    }
    room.wait(.milliseconds(1))
    #expect(room.intents.contains(.restartICE(ConnectionID(1))) == (remembers == true))
    for state in [PeerState.connecting, .connected] {
      room.report(.report(.state(state)), of: 1)
    }
    room.clear()
    room.wait(.seconds(60))
    #expect(!room.intents.contains(.restartICE(ConnectionID(1))))
  }

  @Test func aRefusedDescriptionIsAnError() {
    let room = VirtualRoom()
    room.enter()
    room.serve(.open(.down, ICEServers()), of: 1)
    room.clear()
    room.report(
      .report(.refused(PeerFailure.syntax)))
    #expect(room.errors == [.remoteDescriptionFailed])
    #expect(room.reports.count == 1)
  }
}
