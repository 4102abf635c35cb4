import Lab
import Room
import SDP
import Testing
import Wire

@Suite struct PublishingTests {
  @Test func mediaPublishedBeforeEnteringWaits() {
    let room = VirtualRoom()
    #expect(room.call(.publish([.voice, .camera])) == .done)
    #expect(room.snapshot.ownMedia.map(\.phase) == ["deferred", "deferred"])
    room.enter()
    guard case .publish(let request) = room.intents.last else {
      Issue.record("\(room.intents)")
      return
    }
    #expect(request.media == [.voice, .camera])
    room.acceptPublication((.voice, 11), (.camera, 12))
    #expect(
      room.events.suffix(2) == [
        .localMediaPublished(LocalMediaID(1), MediaID(11)),
        .localMediaPublished(LocalMediaID(2), MediaID(12)),
      ])
    #expect(room.snapshot.ownMedia.map(\.phase) == ["published", "published"])
  }

  /// Found by fuzzing: local media that was carried before the service named this participant was
  /// reported as no longer carried, but never as carried.
  @Test func localMediaIsCarriedOnceItsOwnerHasAName() {
    let room = VirtualRoom()
    room.call(.publish([.voice]))
    room.call(.connect(RoomJoin(room: "room-1")))
    room.open()
    room.serve(.open(.both, ICEServers()), of: 1)
    room.report(.opened(peer: 4))
    room.report(.sending(LocalMediaID(1), transceiver: 1))
    #expect(room.people.isEmpty)
    room.serve(.joined(JoinedRoom(participant: "me")))
    let media = CarriedMedia(
      participant: 1, media: nil, kind: .audio, isInbound: false, peer: 4, transceiver: 1,
      extraValue: "")
    #expect(
      room.people == [.entered(number: 1, id: "me", name: "", isLocal: true), .carried(media)])
    room.serve(.close, of: 1)
    #expect(room.people.last == .ended(media))
  }

  @Test func localMediaIsNeverCarriedInARoomLeftEarly() {
    let room = VirtualRoom()
    room.call(.publish([.voice]))
    room.call(.connect(RoomJoin(room: "room-1")))
    room.open()
    room.serve(.open(.both, ICEServers()), of: 1)
    room.report(.sending(LocalMediaID(1), transceiver: 1))
    room.serve(.close, of: 1)
    room.serve(.joined(JoinedRoom(participant: "me")))
    #expect(room.people.count == 1)
  }

  @Test func localMediaIsAddedBeforeTheOffer() {
    let room = VirtualRoom()
    room.call(.publish([.camera]))
    room.enter()
    room.serve(.open(.up, ICEServers()), .makeOffer(iceRestart: false), of: 1)
    #expect(room.orders.map(\.order).prefix(2).last == .attach(.camera))
    guard case .description(let offer, let media) = room.reports.last else {
      Issue.record("\(room.reports)")
      return
    }
    #expect(offer.type == .offer)
    #expect(media == [LocalMediaPlace(media: LocalMediaID(2), mid: "0")])
    // Further media uses the existing connection.
    room.clear()
    room.call(.publish([.voice]))
    #expect(room.orders.map(\.order) == [.attach(.voice)])
  }

  @Test func aReceivingConnectionGetsNoLocalMedia() {
    let room = VirtualRoom()
    room.call(.publish([.camera]))
    room.enter()
    room.serve(.open(.down, ICEServers()), of: 1)
    #expect(!room.orders.contains { $0.order == .attach(.camera) })
  }

  @Test func unpublishedMediaIsRemovedFromItsConnection() {
    let room = VirtualRoom()
    room.call(.publish([.camera]))
    room.enter()
    room.serve(.open(.up, ICEServers()), .makeOffer(iceRestart: false), of: 1)
    room.acceptPublication((.camera, 5))
    room.clear()
    room.call(.unpublish([LocalMediaID(2)]))
    #expect(room.orders.map(\.order) == [.detach(LocalMediaID(2))])
    room.serve(.localUnpublished(LocalMediaID(2)))
    room.confirm()
    #expect(room.events == [.localMediaUnpublished(LocalMediaID(2))])
    #expect(room.reply(to: room.lastNumber) == .done)
    #expect(room.snapshot.ownMedia.isEmpty)
    // The camera can be published again.
    #expect(room.call(.publish([.camera])) == nil)
  }

  @Test func aRefusedPublicationIsAnErrorAndIsRemoved() {
    let room = VirtualRoom()
    room.enter()
    room.call(.publish([.camera]))
    room.confirm(SignalingFailure(.publishFailed, "too many publishers", serverCode: 432))
    #expect(room.reply(to: room.lastNumber).code == .publishFailed)
    #expect(room.snapshot.ownMedia.isEmpty)
  }

  @Test func theSameMediaIsPublishedOnce() {
    let room = VirtualRoom()
    room.enter()
    room.call(.publish([.camera]))
    #expect(room.call(.publish([.camera])).code == .invalidArgument)
    #expect(room.call(.publish([])).code == .invalidArgument)
    #expect(room.call(.unpublish([LocalMediaID(9)])).code == .invalidArgument)
  }

  @Test func activityAndExtraValuesReachOtherParticipants() {
    let room = VirtualRoom()
    room.call(.publish([.camera]))
    room.enter()
    room.acceptPublication((.camera, 5))
    room.clear()
    var changed = LocalMediaInfo.camera
    changed.isActive = false
    changed.extraValue = "screen"
    #expect(room.call(.updateLocal(changed)) == .done)
    #expect(room.intents == [.updateLocal(changed)])
    // An unchanged value is not reported.
    room.call(.updateLocal(changed))
    #expect(room.intents.count == 1)
    changed.kind = .audio
    #expect(room.call(.updateLocal(changed)).code == .invalidArgument)
  }

  @Test func aModeratorMayMuteLocalMedia() {
    let room = VirtualRoom()
    room.call(.publish([.voice]))
    room.enter()
    room.acceptPublication((.voice, 5))
    room.serve(.localMuted(LocalMediaID(1), true))
    #expect(room.events.last == .localMediaMuted(LocalMediaID(1), true))
    #expect(room.snapshot.ownMedia.first?.info.isActive == false)
  }

  @Test func aMissingAnswerIsAnError() {
    let room = VirtualRoom()
    room.enter()
    room.call(.publish([.camera]))
    room.wait(.seconds(11))
    #expect(room.reply(to: room.lastNumber).code == .publishFailed)
  }
}
