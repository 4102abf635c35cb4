import Lab
import Room
import Testing
import Wire

@Suite struct PeopleTests {
  @Test func participantsJoinAndLeave() {
    let room = VirtualRoom()
    room.enter()
    room.clear()
    room.serve(.participantEntered(.named("anna", .video(1, of: "anna"))))
    room.serve(.participantEntered(.named("anna")))
    room.serve(.participantLeft("anna", .timedOut))
    room.serve(.participantLeft("anna", .left))
    #expect(
      room.events == [
        .participantEntered("anna"), .remotePublished(.video(1, of: "anna")),
        .remoteUnpublished(.video(1, of: "anna")), .participantLeft("anna", .timedOut),
      ])
  }

  @Test func aReturningParticipantIsTheSamePerson() {
    let room = VirtualRoom()
    room.enter([.named("anna"), .named("ben")])
    room.serve(.participantLeft("anna", .left))
    room.serve(.participantEntered(.named("carl")))
    room.serve(.participantEntered(.named("anna")))
    #expect(
      room.snapshot.participants.map { "\($0.number) \($0.id)" } == [
        "1 me", "2 anna", "3 ben", "4 carl",
      ])
    #expect(room.people.last == .entered(number: 2, id: "anna", name: "ANNA", isLocal: false))
  }

  @Test func aParticipantMayHaveSeveralVideos() {
    let room = VirtualRoom()
    room.enter([
      .named("anna", .video(1, of: "anna"), .video(2, of: "anna", extraValue: "screen"))
    ])
    room.receive(1, mid: "0", transceiver: 1)
    room.receive(2, mid: "1", transceiver: 2)
    let carried = room.people.compactMap {
      if case .carried(let media) = $0 { "\(media.participant) \(media.extraValue)" } else { nil }
    }
    #expect(carried == ["2 ", "2 screen"])
  }

  @Test func switchingMediaOnAndOffIsReported() {
    let room = VirtualRoom()
    room.enter([.named("anna", .video(1, of: "anna"))])
    room.clear()
    var changed = PublishedMedia.video(1, of: "anna")
    changed.isActive = false
    room.serve(.mediaChanged(changed), .mediaChanged(changed))
    #expect(room.events == [.remoteStateChanged(changed)])
    // The owner and the kind cannot change.
    changed.owner = "ben"
    changed.extraValue = "x"
    room.serve(.mediaChanged(changed))
    guard case .remoteStateChanged(let change) = room.events.last else {
      Issue.record("\(room.events)")
      return
    }
    #expect(change.owner == "anna" && change.extraValue == "x")
  }

  @Test func audioIsSubscribedToAsItIsPublished() {
    let room = VirtualRoom(abilities: [.subscriptions])
    room.enter([.named("anna", .audio(1, of: "anna"))])
    room.serve(.published(owner: "anna", [.audio(2, of: "anna"), .video(3, of: "anna")]))
    let asked = room.intents.compactMap {
      if case .subscribe(_, let media) = $0 { media } else { nil }
    }
    #expect(asked == [[MediaID(1)], [MediaID(2)]])
  }

  @Test func onlySpeakersWithSlotsAreAudible() {
    let room = VirtualRoom(abilities: [.subscriptions])
    room.enter([.named("anna", .audio(1, of: "anna"))])
    room.confirm()
    room.serve(.open(.down, ICEServers()), of: 2)
    #expect(room.orders.contains { $0.order == .limitAudio(4) })
    room.serve(.assigned(MediaID(1), ConnectionID(2), mid: "0"))
    room.report(.receiving(mid: "0", transceiver: 7), of: 2)
    room.clear()
    room.report(.audioSlot(transceiver: 7, isHeld: true), of: 2)
    room.report(.audioSlot(transceiver: 7, isHeld: true), of: 2)
    room.report(.audioSlot(transceiver: 7, isHeld: false), of: 2)
    room.report(.audioSlot(transceiver: 99, isHeld: true), of: 2)
    #expect(room.events == [.audioOccupied(MediaID(1)), .audioVacated(MediaID(1))])
  }

  @Test func alwaysOnAudioIsAudibleWithoutASlot() {
    let room = VirtualRoom(abilities: [.subscriptions])
    var audio = PublishedMedia.audio(1, of: "anna")
    audio.isAlwaysOn = true
    room.enter([.named("anna", audio)])
    room.confirm()
    room.serve(.open(.down, ICEServers()), of: 2)
    room.serve(.assigned(MediaID(1), ConnectionID(2), mid: "0"))
    room.clear()
    room.report(.receiving(mid: "0", transceiver: 7), of: 2)
    #expect(room.events.last == .audioOccupied(MediaID(1)))
    // Always-on audio does not use a slot, so the end of a slot does not end the audio.
    room.report(.audioSlot(transceiver: 7, isHeld: false), of: 2)
    #expect(room.events.last == .audioOccupied(MediaID(1)))
    audio.isAlwaysOn = false
    room.serve(.mediaChanged(audio))
    #expect(room.events.last == .audioVacated(MediaID(1)))
    room.report(.audioSlot(transceiver: 7, isHeld: true), of: 2)
    #expect(room.events.last == .audioOccupied(MediaID(1)))
    audio.isAlwaysOn = true
    room.serve(.mediaChanged(audio))
    room.serve(.unassigned(MediaID(1)))
    #expect(room.events.last == .audioVacated(MediaID(1)))
    #expect(
      room.orders.map(\.order) == [
        .exemptAudio(transceiver: 7, true), .exemptAudio(transceiver: 7, false),
        .exemptAudio(transceiver: 7, true), .exemptAudio(transceiver: 7, false),
      ])
  }

  @Test func aServiceThatSelectsVoicesDeterminesWhoIsAudible() {
    let room = VirtualRoom(abilities: [.subscriptions, .audioSelection])
    room.enter([.named("anna", .audio(1, of: "anna"))])
    #expect(!room.intents.contains { if case .subscribe = $0 { true } else { false } })
    room.serve(.open(.down, ICEServers()), of: 2)
    #expect(!room.orders.contains { $0.order == .limitAudio(4) })
    room.serve(.assigned(MediaID(1), ConnectionID(2), mid: "0"))
    room.report(.receiving(mid: "0", transceiver: 7), of: 2)
    #expect(room.events.last == .audioOccupied(MediaID(1)))
    room.serve(.unassigned(MediaID(1)))
    #expect(room.events.last == .audioVacated(MediaID(1)))
  }

  @Test func allReceivedAudioIsMutedSeparatelyFromEach() {
    let room = VirtualRoom(abilities: [.subscriptions])
    room.enter([.named("anna", .audio(1, of: "anna"), .audio(2, of: "anna"))])
    room.confirm()
    room.serve(.open(.down, ICEServers()), of: 2)
    for number: UInt32 in [1, 2] {
      room.serve(.assigned(MediaID(number), ConnectionID(2), mid: "\(number)"))
      room.report(.receiving(mid: "\(number)", transceiver: number), of: 2)
    }
    room.clear()
    room.call(.setMediaMuted(MediaID(1), true))
    room.call(.setMuted(true))
    room.call(.setMuted(false))
    room.call(.setMediaMuted(MediaID(1), false))
    #expect(
      room.orders.map(\.order) == [
        .setAudible(transceiver: 1, false),
        .setAudible(transceiver: 1, false), .setAudible(transceiver: 2, false),
        .setAudible(transceiver: 1, false), .setAudible(transceiver: 2, true),
        .setAudible(transceiver: 1, true),
      ])
    // A participant who joins later is muted like the room.
    room.call(.setMuted(true))
    room.serve(.published(owner: "anna", [.audio(3, of: "anna")]))
    room.confirm()
    room.serve(.assigned(MediaID(3), ConnectionID(2), mid: "3"))
    room.report(.receiving(mid: "3", transceiver: 3), of: 2)
    #expect(room.orders.last?.order == .setAudible(transceiver: 3, false))
  }

  @Test func messagesAreSentToSomeOrAll() {
    let room = VirtualRoom()
    room.enter([.named("anna")])
    room.clear()
    let message = UserMessage(targets: ["anna"], type: "chat", text: "hello")
    #expect(room.call(.sendMessage(message)) == nil)
    room.call(.sendMessage(UserMessage(text: "to all")))
    room.confirm()
    #expect(room.reply(to: room.lastNumber) == .done)
    #expect(
      room.call(.sendMessage(UserMessage(targets: ["nobody"], text: "hello"))).code
        == .userMessageInvalid)
    room.serve(.message(UserMessage(sender: "anna", type: "normal", text: "hi")))
    #expect(room.events == [.message(UserMessage(sender: "anna", type: "normal", text: "hi"))])
    room.call(.sendMessage(UserMessage(text: "lost")))
    room.wait(.seconds(11))
    #expect(room.reply(to: room.lastNumber).code == .messageFailed)
  }

  @Test func everyErrorHasANumberAndAMeaning() {
    let numbers = RoomErrorCode.known.map(\.rawValue)
    #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
    #expect(numbers.allSatisfy { (1101...1907).contains($0) })
    for code in RoomErrorCode.known { #expect(code.meaning.hasSuffix("."), "\(code)") }
    // The meaning of an unknown error number follows from its range.
    #expect(RoomErrorCode(rawValue: 1465).meaning == "A message of the session could not be read.")
    #expect(RoomErrorCode(rawValue: 9).meaning == "The service reports error 9.")
  }
}
