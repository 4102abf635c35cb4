import Testing
import Wire

@testable import Room

/// Tests each part of a room separately.
struct RoomPartTests {
  private let link = ConnectionID(2)

  /// Returns a table with one connection, whose peer has the number 9 and receives the section
  /// `mid`.
  private func links(mid: String? = nil, transceiver: UInt32 = 5) -> ConnectionTable {
    var links = ConnectionTable(delay: .zero, maximum: 1)
    _ = links.open(link, .both)
    links.setPeer(9, of: link)
    if let mid { links.setTransceiver(transceiver, of: mid, on: link) }
    return links
  }

  /// Returns a table with Ann and her published media.
  private func people(_ media: PublishedMedia...) -> ParticipantTable {
    var people = ParticipantTable()
    _ = people.enter("ann", name: "Ann")
    for media in media { _ = people.publish(media) }
    return people
  }

  private func carried(
    media: UInt32?, _ kind: MediaKind, isInbound: Bool, transceiver: UInt32 = 5
  ) -> CarriedMedia {
    CarriedMedia(
      participant: 1, media: media, kind: kind, isInbound: isInbound, peer: 9,
      transceiver: transceiver, extraValue: "")
  }

  // MARK: Local media

  @Test func localMediaIsCarriedOnceItsOwnerHasEntered() {
    var table = LocalMediaTable()
    table.add([.voice], phase: .publishing)
    #expect(table.place(LocalMediaInfo.voice.id, on: link, 5, over: links()).isEmpty)
    let place = carried(media: nil, .audio, isInbound: false)
    #expect(table.enter(as: 1, over: links()) == [.person(.carried(place))])
    // Another transceiver replaces the first.
    let next = carried(media: nil, .audio, isInbound: false, transceiver: 6)
    #expect(
      table.place(LocalMediaInfo.voice.id, on: link, 6, over: links())
        == [.person(.ended(place)), .person(.carried(next))])
    #expect(table.place(LocalMediaInfo.voice.id, on: link, 6, over: links()).isEmpty)
    #expect(table.lose(link) == [.person(.ended(next))])
    #expect(table.lose(link).isEmpty)
  }

  @Test func localMediaThatTheServiceLostIsRepublished() {
    let id = LocalMediaInfo.voice.id
    var table = LocalMediaTable()
    table.add([.voice], phase: .publishing)
    #expect(table.confirm(id, as: MediaID(7)) == [.event(.localMediaPublished(id, MediaID(7)))])
    #expect(table.confirm(id, as: MediaID(8)).isEmpty)
    #expect(table.withdraw(id) == [.event(.localMediaUnpublished(id))])
    #expect(table[id]?.phase == .publishing && table[id]?.media == nil)
    #expect(table.withdraw(id).isEmpty)
  }

  @Test func unpublishedLocalMediaIsRemoved() {
    let id = LocalMediaInfo.voice.id
    var table = LocalMediaTable()
    table.add([.voice], phase: .publishing)
    _ = table.place(id, on: link, 5, over: links())
    _ = table.confirm(id, as: MediaID(7))
    #expect(table.canUnpublish([id]) && !table.canUnpublish([]))
    #expect(table.beginUnpublishing([id]) == [.connection(link, .detach(id))])
    #expect(!table.canUnpublish([id]) && table.attached.isEmpty)
    #expect(table.endUnpublishing([id]) == [.event(.localMediaUnpublished(id))])
    #expect(table[id] == nil && table.endUnpublishing([id]).isEmpty)
  }

  @Test func refusedLocalMediaIsRemovedFromItsConnection() {
    let id = LocalMediaInfo.camera.id
    var table = LocalMediaTable()
    table.add([.camera], phase: .publishing)
    _ = table.enter(as: 1, over: links())
    _ = table.place(id, on: link, 5, over: links())
    let place = carried(media: nil, .video, isInbound: false)
    #expect(table.refuse([id]) == [.connection(link, .detach(id)), .person(.ended(place))])
    #expect(table.entries.isEmpty)
  }

  @Test func changesToPublishedMediaAreSentToTheService() {
    var table = LocalMediaTable()
    var other = LocalMediaInfo.voice
    other.extraValue = "x"
    #expect(table.update(other) == nil)
    table.add([.voice], phase: .deferred)
    #expect(table.update(.voice) == false && table.update(other) == false)
    #expect(table.removeDeferred() == [other])
    #expect(table.update(.voice) == true)
  }

  // MARK: Received media

  private func pool(_ voices: ReceiverPool.Voices = .all) -> ReceiverPool {
    ReceiverPool(initial: 1, maximum: 2, growth: 1, voices: voices)
  }

  @Test func mediaIsCarriedWhileItsTransceiverExists() throws {
    let media = PublishedMedia.video(3, of: "ann")
    let people = people(media)
    var pool = pool()
    #expect(try pool.assign(media.id, isVideo: true).isEmpty)
    #expect(pool.assign(media, to: "a", on: link, people, links()).isEmpty)
    #expect(pool[media.id]?.phase == .subscribed)
    let place = carried(media: 3, .video, isInbound: true)
    #expect(
      pool.receive("a", by: 5, on: link, people, links())
        == [
          .person(.carried(place)), .event(.remoteSubscribed(media.id, link, transceiver: 5)),
        ])
    #expect(pool.receive("a", by: 5, on: link, people, links()).isEmpty)
    let connection = try #require(links()[link])
    #expect(pool.lose(connection, people) == [.person(.ended(place))])
    #expect(pool[media.id]?.connection == nil && pool[media.id]?.phase == .subscribed)
  }

  @Test func newMediaInASectionReplacesTheFormer() {
    let (first, second) = (PublishedMedia.audio(3, of: "ann"), PublishedMedia.audio(4, of: "ann"))
    let people = people(first, second)
    let links = links(mid: "a")
    var pool = pool()
    #expect(pool.assign(first, to: "a", on: link, people, links).count == 3)
    #expect(
      pool.assign(second, to: "a", on: link, people, links)
        == [
          .event(.audioVacated(first.id)),
          .person(.ended(carried(media: 3, .audio, isInbound: true))),
          .person(.carried(carried(media: 4, .audio, isInbound: true))),
          .event(.remoteSubscribed(second.id, link, transceiver: 5)),
          .event(.audioOccupied(second.id)),
        ])
  }

  @Test func alwaysOnAudioNeedsNoSlot() {
    var media = PublishedMedia.audio(3, of: "ann")
    let people = people(media)
    var pool = pool(.slots(silences: false))
    #expect(pool.assign(media, to: "a", on: link, people, links(mid: "a")).count == 2)
    #expect(pool.recordSlot(true, of: 5, on: link) == [.event(.audioOccupied(media.id))])
    #expect(pool.recordSlot(true, of: 5, on: link).isEmpty)
    media.isAlwaysOn = true
    #expect(pool.exempt(media) == [.connection(link, .exemptAudio(transceiver: 5, true))])
    #expect(pool.exempt(media).isEmpty)
    #expect(pool.recordSlot(false, of: 5, on: link).isEmpty)
    #expect(
      pool.unassign(media.id, people, links(mid: "a"))
        == [
          .connection(link, .exemptAudio(transceiver: 5, false)),
          .event(.audioVacated(media.id)),
          .person(.ended(carried(media: 3, .audio, isInbound: true))),
        ])
  }

  @Test func mediaWithoutASlotIsSilencedWhenTheClientSelects() {
    var media = PublishedMedia.audio(3, of: "ann")
    let people = people(media)
    var pool = pool(.slots(silences: true))
    func silenced(_ isSilenced: Bool) -> RoomOutput {
      .connection(link, .setSilenced(transceiver: 5, isSilenced))
    }
    #expect(pool.assign(media, to: "a", on: link, people, links(mid: "a")).last == silenced(true))
    #expect(
      pool.recordSlot(true, of: 5, on: link) == [silenced(false), .event(.audioOccupied(media.id))])
    #expect(
      pool.recordSlot(false, of: 5, on: link) == [silenced(true), .event(.audioVacated(media.id))])
    media.isAlwaysOn = true
    #expect(
      pool.exempt(media) == [
        .connection(link, .exemptAudio(transceiver: 5, true)), silenced(false),
        .event(.audioOccupied(media.id)),
      ])
  }

  @Test func theServiceReportsWhichVoicesItSends() {
    let (first, second) = (PublishedMedia.audio(3, of: "ann"), PublishedMedia.audio(4, of: "ann"))
    let people = people(first, second)
    var pool = pool(.reported)
    // The service may report that it sends a voice before a receiver is assigned to the voice.
    #expect(pool.setVoices([second.id]).isEmpty)
    #expect(pool.assign(first, to: "a", on: link, people, links(mid: "a")).count == 2)
    #expect(pool.setVoices([first.id]) == [.event(.audioOccupied(first.id))])
    #expect(pool.setVoices([first.id, first.id, second.id]).isEmpty)
    #expect(pool.setVoices([]) == [.event(.audioVacated(first.id))])
    #expect(pool.recordSlot(true, of: 5, on: link) == [.event(.audioOccupied(first.id))])
  }

  @Test func mutingAppliesToOneOrAllReceivedMedia() throws {
    let media = PublishedMedia.audio(3, of: "ann")
    let people = people(media)
    var pool = pool()
    #expect(throws: SignalingFailure.self) { try pool.setMuted(true, media.id) }
    #expect(pool.setMuted(true).isEmpty && pool.isMuted)
    let quiet = RoomOutput.connection(link, .setAudible(transceiver: 5, false))
    #expect(pool.assign(media, to: "a", on: link, people, links(mid: "a")).last == quiet)
    #expect(try pool.setMuted(true, media.id) == [quiet])
    #expect(pool.setMuted(false) == [quiet])
    let audible = RoomOutput.connection(link, .setAudible(transceiver: 5, true))
    #expect(try pool.setMuted(false, media.id) == [audible])
  }

  @Test func aReceiverIsFreeOnceTheServiceHasReleasedIt() throws {
    let media = [PublishedMedia.video(3, of: "ann"), .video(4, of: "ann"), .video(5, of: "ann")]
    let people = people(media[0], media[1], media[2])
    var pool = pool()
    #expect(try pool.assign(media[0].id, isVideo: true).isEmpty)
    #expect(try pool.assign(media[1].id, isVideo: true) == [.event(.receiversGrown(2))])
    #expect(throws: SignalingFailure.self) { try pool.assign(media[2].id, isVideo: true) }
    pool.endSubscribing([media[0].id], isRefused: false)
    try pool.beginUnsubscribing(media[0].id)
    #expect(throws: SignalingFailure.self) { try pool.beginUnsubscribing(media[0].id) }
    #expect(pool.endUnsubscribing([media[0].id], isRefused: true, people, links()).isEmpty)
    #expect(pool[media[0].id]?.phase == .subscribed)
    try pool.beginUnsubscribing(media[0].id)
    #expect(
      pool.endUnsubscribing([media[0].id], isRefused: false, people, links())
        == [.event(.remoteUnsubscribed(media[0].id))])
    #expect(try pool.assign(media[2].id, isVideo: true).isEmpty)
  }

  // MARK: Pending calls

  @Test func pendingCallsAreAnsweredOnce() {
    var waiting = WaitingCalls()
    waiting.awaitRoom(1)
    waiting.awaitEnd(2)
    waiting.awaitEnd(3)
    #expect(waiting.enter() == [.reply(call: 1, .done)])
    #expect(waiting.enter().isEmpty)
    #expect(waiting.refuse(SignalingFailure(.invalidState, "")).isEmpty)
    #expect(waiting.leave() == [.reply(call: 2, .done), .reply(call: 3, .done)])
    #expect(waiting.leave().isEmpty)
  }
}
