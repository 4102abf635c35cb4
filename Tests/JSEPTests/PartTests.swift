import SDP
import Testing
import Wire

@testable import JSEP

/// Tests each part of a description exchange separately.
struct PartTests {
  private func table() -> TransceiverTable { TransceiverTable(Entropy(seed: [2]).stream("jsep")) }

  private func slot(_ mid: String, _ kind: SectionKind = .audio, transport: Int = 0) -> SectionSlot
  {
    SectionSlot(
      kind: kind, mid: mid, transportNumber: transport, transport: "UDP/TLS/RTP/SAVPF",
      formats: ["96"])
  }

  private func document(_ fragment: String = "abcd", sections: Int = 1) throws -> SDPDocument {
    var text = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
    for index in 0..<sections {
      text += "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:\(index)\r\n"
      text += "a=ice-ufrag:\(fragment)fragment\r\na=setup:active\r\n"
    }
    return try SDPDocument(parsing: text)
  }

  private func remote(_ number: Int, _ fragment: String = "f") -> RemoteTransport {
    RemoteTransport(
      number: number, usernameFragment: fragment, password: "p", isLite: false, fingerprints: [],
      localIsDTLSClient: nil, candidates: [], endOfCandidates: false)
  }

  // MARK: Sections

  @Test func midsAreNeverReused() {
    var sections = SectionTable()
    sections.apply([slot("0"), slot("2")])
    #expect(sections.freeMID(besides: []) == "1" && sections.freeMID(besides: ["1"]) == "3")
    sections.end(0)
    sections.apply([])
    #expect(sections.freeMID(besides: []) == "1")
  }

  @Test func anEndedSectionKeepsItsIndexAndCarriesNothing() {
    var sections = SectionTable()
    var data = slot("1", .application)
    data.isData = true
    sections.apply([slot("0"), data])
    #expect(sections.carryData && sections.index(of: "1") == 1)
    sections.move(1, to: 3)
    #expect(sections.slots[1].uses(3))
    sections.end(1)
    #expect(!sections.carryData && sections.index(of: "1") == nil && sections.slots.count == 2)
    #expect(!sections.slots[1].uses(3))
  }

  @Test func anOfferReusesRejectedSections() {
    var sections = SectionTable()
    sections.apply([slot("0"), slot("1", .video), slot("2", .video)])
    for index in 0..<3 { sections.end(index) }
    var transceivers = table()
    _ = transceivers.make(.video, .sendrecv, by: .addTrack(hasTrack: true))
    let plan = OfferPlan(
      sections, transceivers, Bundling(.balanced), .usual, needsData: true)
    // Video reuses a video section; the data association uses the first section left over.
    #expect(plan.slots.map(\.mid) == ["4", "3", "2"])
    #expect(plan.slots.map(\.isData) == [true, false, false])
    #expect(plan.slots.map(\.isDead) == [false, false, true])
    let without = OfferPlan(
      sections, transceivers, Bundling(.balanced), .usual, needsData: false)
    #expect(without.slots.map(\.mid) == ["0", "3", "2"])
  }

  // MARK: Transceivers

  @Test func identifiersIncreaseAndSourcesDiffer() {
    var transceivers = table()
    for _ in 0..<3 { _ = transceivers.make(.audio, .sendrecv, by: .remoteOffer) }
    let all = transceivers.all
    #expect(all.map(\.id) == [1, 2, 3])
    #expect(Set(all.flatMap { [$0.ssrc, $0.rtxSSRC] }).count == 6)
    #expect(Set(all.map(\.trackID)).count == 3)
    #expect(throws: JSEPError.self) { try transceivers.place(of: 4) }
    #expect(transceivers.index(of: nil) == nil)
  }

  @Test func aTrackReusesATransceiverThatNeverSent() {
    var transceivers = table()
    let index = transceivers.make(.audio, .recvonly, by: .addTransceiver(hasTrack: false))
    #expect(transceivers.assign(track: "t", .video, []) == nil)
    #expect(transceivers.assign(track: "t", .audio, ["s"]) == 1 && transceivers.sends("t"))
    #expect(transceivers.all[index].direction == .sendrecv)
    #expect(transceivers.assign(track: nil, .audio, []) == nil)
    transceivers.change(index) { $0.removeTrack() }
    #expect(transceivers.all[index].direction == .recvonly && !transceivers.sends("t"))
    _ = transceivers.change(index) { $0.settle(.sendrecv, nil) }
    // A transceiver whose sending was negotiated is not reused.
    #expect(transceivers.assign(track: "u", .audio, []) == nil)
  }

  @Test func aRollbackRemovesTransceiversOfTheOfferWithoutTracks() throws {
    var transceivers = table()
    let section = try document().sections[0]
    let served = transceivers.serve(section, mid: "0", isAccepted: true, .sendrecv)
    let kept = try #require(served)
    #expect(kept.isNew)
    transceivers.change(kept.index) { $0.associate("0", 0) }
    let again = transceivers.serve(section, mid: "0", isAccepted: true, .sendrecv)
    #expect(again?.index == kept.index && again?.isNew == false)
    #expect(transceivers.serve(section, mid: "9", isAccepted: false, .sendrecv) == nil)
    let reported = transceivers.change(kept.index) { $0.applyRemote(section, sends: true) }
    #expect(reported == [.trackAdded(transceiver: 1, streamIDs: [])])
    let other = transceivers.make(.audio, .recvonly, by: .remoteOffer)
    _ = transceivers.change(other) { $0.applyRemote(section, sends: true) }
    #expect(transceivers.assign(track: nil, .audio, []) == 1)
    let changes = transceivers.roll(backTo: []) { _ in true }
    #expect(
      changes == [
        .trackRemoved(transceiver: 1), .trackRemoved(transceiver: 2),
        .transceiverStopped(id: 2),
      ])
    #expect(transceivers.all.map(\.mid) == [nil] && transceivers.all[0].wasMadeByAddTrack)
  }

  @Test func aRollbackRestoresAssociations() throws {
    var transceivers = table()
    let section = try document().sections[0]
    let index = transceivers.make(.audio, .sendrecv, by: .addTrack(hasTrack: true))
    transceivers.change(index) { $0.associate("0", 0) }
    _ = transceivers.change(index) { $0.applyRemote(section, sends: true) }
    let stable = StableState(SectionTable(), RemoteTransports(), transceivers)
    let changes = transceivers.change(index) {
      $0.associate("7", 3)
      return $0.applyRemote(section, sends: false)
    }
    #expect(changes == [.trackRemoved(transceiver: 1)])
    let back = transceivers.roll(backTo: stable.associations) { $0.mid == "7" }
    #expect(back == [.trackAdded(transceiver: 1, streamIDs: [])])
    #expect(transceivers.all[index].mid == "0" && transceivers.all[index].mLineIndex == 0)
  }

  @Test func stoppedTransceiversWithoutASectionAreRemoved() {
    var transceivers = table()
    for _ in 0..<2 { _ = transceivers.make(.audio, .sendrecv, by: .addTrack(hasTrack: true)) }
    transceivers.change(0) { $0.associate("0", 0) }
    for index in 0..<2 { transceivers.change(index) { $0.stop() } }
    // The second transceiver was never negotiated, so there is nothing left to negotiate.
    #expect(transceivers.all.map(\.currentDirection) == [nil, .stopped])
    #expect(transceivers.removeStopped() == [.transceiverStopped(id: 2)])
    #expect(throws: JSEPError.self) { try transceivers.livePlace(of: 1) }
    #expect(transceivers.remove(0).stopped == .transceiverStopped(id: 1))
    #expect(transceivers.all.isEmpty)
  }

  // MARK: Descriptions

  @Test func aDescriptionIsPendingUntilAnAnswerCompletesIt() throws {
    var descriptions = SignaledDescriptions()
    let offer = SessionDescription(type: .offer, sdp: "offer")
    let answer = SessionDescription(type: .answer, sdp: "answer")
    descriptions.pend(local: offer, try document("own"))
    #expect(descriptions.currentLocal == nil && descriptions.remote == nil)
    descriptions.complete(remote: answer, try document("peer"))
    #expect(descriptions.currentLocal?.description == offer && descriptions.pendingLocal == nil)
    #expect(descriptions.localUsernameFragments == ["ownfragment"])
    descriptions.pend(remote: SessionDescription(type: .offer, sdp: "next"), try document("new"))
    #expect(descriptions.remote?.description.sdp == "next")
    descriptions.endExchange()
    #expect(descriptions.remote?.description == answer)
  }

  @Test func aCandidateIsKeptInTheDescriptionOfItsGeneration() throws {
    var descriptions = SignaledDescriptions()
    let text = "v=0\r\nm=audio 9 X 1\r\n"
    descriptions.pend(remote: SessionDescription(type: .offer, sdp: text), try document("old"))
    descriptions.complete(
      local: SessionDescription(type: .answer, sdp: "answer"), try document("own"))
    descriptions.pend(remote: SessionDescription(type: .offer, sdp: text), try document("new"))
    descriptions.add(remoteCandidate: "candidate:1", atMLine: 0, of: "newfragment")
    descriptions.add(remoteCandidate: "candidate:2", atMLine: 0, of: "otherfragment")
    descriptions.add(remoteCandidate: "candidate:3", atMLine: 4, of: "newfragment")
    #expect(descriptions.pendingRemote?.description.sdp == text + "a=candidate:1\r\n")
    #expect(descriptions.currentRemote?.description.sdp == text)
  }

  @Test func onlyTheLastDescriptionOfEachKindMayBeSet() throws {
    var created = CreatedDescriptions(sessionID: 5)
    let bundling = Bundling(.balanced)
    let first = created.store(try document("a"), [], bundling, .offer, [])
    let same = created.store(try document("a"), [], bundling, .offer, [])
    let second = created.store(try document("b"), [], bundling, .offer, [])
    // The version counts changes (RFC 9429 section 5.2.2).
    #expect(first == same && first.sdp.contains("o=- 5 1 ") && second.sdp.contains("o=- 5 2 "))
    #expect(throws: JSEPError.self) { try created.created(for: first, .stable) }
    let empty = SessionDescription(type: .offer, sdp: "")
    #expect(try created.created(for: empty, .stable).description == second)
    #expect(throws: JSEPError.self) { try created.created(for: second, .haveRemoteOffer) }
    #expect(throws: JSEPError.self) {
      try created.created(for: SessionDescription(type: .answer, sdp: ""), .haveRemoteOffer)
    }
    created.overtake()
    #expect(throws: JSEPError.self) { try created.created(for: second, .stable) }
  }

  // MARK: Remote transports and directions

  @Test func remoteTransportChangesAreReportedOnce() throws {
    var transports = RemoteTransports()
    let adopted = [remote(0), remote(0), remote(0, "g"), remote(1)].map { transports.adopt($0) }
    #expect(
      adopted == [[.remoteTransport(0)], [], [.remoteTransport(0)], [.remoteTransport(1)]])
    let roles = transports.settleRoles(
      bySetupOf: try document(sections: 2), [slot("0"), slot("1", transport: 7)])
    #expect(roles == [.remoteTransport(0)] && transports[0]?.localIsDTLSClient == true)
    var stable = RemoteTransports()
    _ = stable.adopt(remote(1))
    #expect(transports.roll(backTo: stable) == [.remoteTransport(0)])
    transports.removeAll(besides: [0])
    #expect(transports.all.isEmpty)
  }

  @Test func aRestartIsWantedUntilTheCredentialsAreReplaced() {
    var wishes = OpenWishes()
    wishes.wantRestart(of: [])
    #expect(!wishes.hasRestart)
    wishes.wantRestart(of: ["a", "b"])
    wishes.recordAgreed(["c", "b"])
    #expect(wishes.hasRestart)
    wishes.recordAgreed(["c", "d"])
    #expect(!wishes.hasRestart)
    wishes.wantData()
    wishes.dropData()
    #expect(!wishes.hasData)
  }
}
