import Lab
import Room
import Testing
import Wire

@Suite struct ReceivingTests {
  private func crowd(_ count: Int) -> [ParticipantInfo] {
    (1...count).map { .named("p\($0)", .video(UInt32($0), of: "p\($0)")) }
  }

  @Test func receiversAreAddedUpToTheirLimit() {
    let room = VirtualRoom()
    room.enter(crowd(22))
    for number in 1...9 { room.call(.subscribe(MediaID(UInt32(number)))) }
    #expect(room.snapshot.receiverCount == 9)
    #expect(!room.names.contains("receiversGrown"))
    for number in 10...20 { room.call(.subscribe(MediaID(UInt32(number)))) }
    #expect(room.snapshot.receiverCount == 20)
    #expect(room.names.filter { $0 == "receiversGrown" }.count == 11)
    #expect(room.call(.subscribe(MediaID(21))).code == .receiversExhausted)
    room.confirm()
    // A receiver being released is not free yet.
    room.clear()
    room.call(.unsubscribe(MediaID(3)))
    #expect(room.call(.subscribe(MediaID(21))).code == .noFreeReceiver)
    room.confirm()
    #expect(room.call(.subscribe(MediaID(21))) == nil)
  }

  @Test func audioNeedsNoVideoReceiver() {
    let room = VirtualRoom(abilities: [.subscriptions]) {
      $0.videoReceiverMaximumCount = 1
    }
    room.enter([
      .named("anna", .audio(1, of: "anna"), .video(2, of: "anna"), .video(3, of: "anna"))
    ])
    #expect(room.call(.subscribe(MediaID(2))) == nil)
    #expect(room.call(.subscribe(MediaID(3))).code == .receiversExhausted)
    // Published audio is subscribed to automatically.
    #expect(room.call(.subscribe(MediaID(1))).code == .alreadySubscribed)
  }

  @Test func errorsForOneVideoAreRepliesAndForSeveralEvents() {
    let room = VirtualRoom()
    room.enter(crowd(3))
    #expect(room.call(.subscribe(MediaID(77))).code == .noSuchMedia)
    #expect(room.call(.subscribeAll([])).code == .nothingToSubscribe)
    #expect(room.call(.unsubscribeAll([])).code == .nothingToUnsubscribe)
    #expect(room.call(.unsubscribe(MediaID(1))).code == .notSubscribed)
    #expect(room.errors.isEmpty)

    room.clear()
    #expect(room.call(.subscribeAll([MediaID(1), MediaID(77), MediaID(2)])) == .done)
    #expect(room.errors == [.noSuchMedia])
    guard case .subscribe(_, let media) = room.intents.last else {
      Issue.record("\(room.intents)")
      return
    }
    #expect(media == [MediaID(1), MediaID(2)])
    #expect(room.call(.subscribe(MediaID(1))).code == .alreadySubscribed)
    #expect(room.call(.unsubscribeAll([MediaID(1), MediaID(3)])) == .done)
    #expect(room.errors == [.noSuchMedia, .notSubscribed])
  }

  @Test func withoutARoomThereIsNothingToSubscribeTo() {
    let room = VirtualRoom()
    #expect(room.call(.subscribe(MediaID(1))).code == .noDownConnection)
  }

  @Test func aSubscriptionThatIsNotAnsweredTimesOut() {
    let room = VirtualRoom()
    room.enter(crowd(1))
    room.call(.subscribe(MediaID(1)))
    room.wait(.seconds(11))
    #expect(room.reply(to: room.lastNumber).code == .subscribeTimedOut)
    // The receiver is free again.
    #expect(room.call(.subscribe(MediaID(1))) == nil)
  }

  @Test func receivedMediaIsReportedWithItsTransceiver() {
    let room = VirtualRoom()
    room.enter(crowd(1))
    room.receive(1, mid: "0", transceiver: 4)
    #expect(
      room.events.last == .remoteSubscribed(MediaID(1), ConnectionID(2), transceiver: 4))
    #expect(
      room.people.last
        == .carried(
          CarriedMedia(
            participant: 2, media: 1, kind: .video, isInbound: true, peer: 2, transceiver: 4,
            extraValue: "")))
    room.clear()
    room.call(.unsubscribe(MediaID(1)))
    room.confirm()
    #expect(room.events == [.remoteUnsubscribed(MediaID(1))])
    #expect(room.people.count == 1)
  }

  @Test func theSectionMayBeAssignedAfterItsTransceiver() {
    let room = VirtualRoom()
    room.enter(crowd(1))
    room.call(.subscribe(MediaID(1)))
    room.serve(.open(.down, ICEServers()), of: 2)
    room.report(.receiving(mid: "0", transceiver: 4), of: 2)
    room.serve(.assigned(MediaID(1), ConnectionID(2), mid: "0"))
    #expect(
      room.events.last == .remoteSubscribed(MediaID(1), ConnectionID(2), transceiver: 4))
  }

  @Test func aReusedSectionCarriesOtherMedia() {
    let room = VirtualRoom()
    room.enter(crowd(2))
    room.receive(1, mid: "0", transceiver: 1)
    room.serve(.unpublished(owner: "p1", [MediaID(1)]))
    room.clear()
    room.receive(2, mid: "0", transceiver: 1)
    #expect(
      room.people == [
        .carried(
          CarriedMedia(
            participant: 3, media: 2, kind: .video, isInbound: true, peer: 2, transceiver: 1,
            extraValue: ""))
      ])
  }

  @Test func unpublishedMediaIsUnsubscribed() {
    let room = VirtualRoom()
    room.enter(crowd(1))
    room.receive(1, mid: "0", transceiver: 1)
    room.clear()
    room.serve(.unpublished(owner: "p1", [MediaID(1)]))
    #expect(
      room.events == [
        .remoteUnsubscribed(MediaID(1)), .remoteUnpublished(.video(1, of: "p1")),
      ])
    #expect(room.snapshot.receivers.isEmpty)
  }

  @Test func profilesAndPausesNeedASubscription() {
    let room = VirtualRoom()
    room.enter([
      .named("anna", .video(1, of: "anna", profiles: [.low, .mid, .high]), .video(2, of: "anna"))
    ])
    #expect(room.call(.setProfile(MediaID(1), .low)).code == .notSubscribed)
    #expect(room.call(.setPaused(MediaID(1), true)).code == .notSubscribed)
    room.receive(1, mid: "0", transceiver: 1)
    room.receive(2, mid: "1", transceiver: 2)
    #expect(room.call(.setProfile(MediaID(2), .low)).code == .noProfiles)
    #expect(room.call(.setProfile(MediaID(1), .empty)).code == .noProfiles)
    room.clear()
    #expect(room.call(.setProfile(MediaID(1), .low)) == nil)
    let profile = room.lastNumber
    #expect(room.call(.setPaused(MediaID(1), true)) == nil)
    room.confirm()
    #expect(room.reply(to: profile) == .done && room.reply(to: room.lastNumber) == .done)
    let receiver = room.snapshot.receivers.first
    #expect(receiver?.profile == .low && receiver?.isPaused == true)
    // The video is paused already, so the service is not asked.
    #expect(room.call(.setPaused(MediaID(1), true)) == .done)
  }

  @Test func aServiceWithoutProfilesReportsIt() {
    let room = VirtualRoom(abilities: [.subscriptions])
    room.enter([.named("anna", .video(1, of: "anna", profiles: [.low, .high]))])
    room.receive(1, mid: "0", transceiver: 1)
    #expect(room.call(.setProfile(MediaID(1), .low)).code == .noProfiles)
    #expect(room.call(.setPaused(MediaID(1), true)).code == .cannotPause)
    #expect(room.call(.sendMessage(UserMessage(text: "hello"))).code == .notSupported)
  }

  @Test func aServiceThatSendsEverythingNeedsNoSubscription() {
    let room = VirtualRoom(abilities: [])
    room.enter([.named("anna", .audio(1, of: "anna"), .video(2, of: "anna"))])
    #expect(!room.intents.contains { if case .subscribe = $0 { true } else { false } })
    room.serve(.open(.both, ICEServers()), of: 1)
    room.serve(.assigned(MediaID(2), ConnectionID(1), mid: "1"))
    room.report(.receiving(mid: "1", transceiver: 2), of: 1)
    #expect(
      room.events.last == .remoteSubscribed(MediaID(2), ConnectionID(1), transceiver: 2))
  }
}
