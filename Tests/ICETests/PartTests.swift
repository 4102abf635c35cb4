import Testing
import Wire

@testable import ICE

/// Tests each part of an agent separately.
struct PartTests {
  private let entropy = Entropy(seed: [7]).stream("ice")

  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func candidate(
    _ last: UInt32, priority: UInt32 = 100, _ kind: ICECandidate.Kind = .host,
    foundation: String = "1"
  ) -> ICECandidate {
    ICECandidate(
      foundation: foundation, priority: priority, host: .address(IPAddress(ipv4: last)), port: 9,
      kind: kind)
  }

  /// Makes a checklist with one pair per remote priority, in that order.
  private func checklist(_ priorities: [UInt32], foundations: [String]? = nil) -> Checklist {
    var checklist = Checklist(after: 10)
    for (index, priority) in priorities.enumerated() {
      let remote = candidate(
        UInt32(index + 1), priority: priority, foundation: foundations?[index] ?? "\(index)")
      let base = SocketAddress(IPAddress(ipv4: 99), port: 5000)
      guard let target = remote.address else { continue }
      _ = checklist.add(
        candidate(99, priority: 500), base: base, remote, target, .controlling, keeping: nil)
    }
    return checklist
  }

  // MARK: Connections

  @Test(
    arguments: [
      (.tls, .secureServer, "turn.example"), (.tcp, .server, "turn.example"), (nil, .peer, ""),
    ] as [(ICEServer.Transport?, StreamTarget.Kind, String)])
  func aConnectionNamesItsTarget(
    transport: ICEServer.Transport?, kind: StreamTarget.Kind, name: String
  ) {
    let server = transport.map { ICEServer(host: .name("turn.example"), port: 443, transport: $0) }
    let (local, remote) = (IPAddress(ipv4: 1), SocketAddress(IPAddress(ipv4: 2), port: 443))
    #expect(
      StreamTarget(from: local, to: remote, server: server)
        == StreamTarget(local: local, remote: remote, kind: kind, name: name))
  }

  // MARK: Roles

  @Test func theGreaterTieBreakerControls() {
    var roles = RoleSettlement(tieBreaker: 10)
    #expect(roles.settle(controlling: nil, controlled: 5) == .agreed)
    // With equal values, the agent that was asked keeps its role (RFC 8445 section 7.3.1.1).
    #expect(roles.settle(controlling: 10, controlled: nil) == .refused)
    #expect(roles.settle(controlling: 11, controlled: nil) == .changed)
    #expect(roles.role == .controlled)
    #expect(roles.settle(controlling: 1, controlled: nil) == .agreed)
    #expect(roles.settle(controlling: nil, controlled: 11) == .refused)
    #expect(roles.settle(controlling: nil, controlled: 10) == .changed)
    #expect(roles.role == .controlling && roles.tieBreaker == 10)
  }

  @Test func aRoleConflictSwitchesOnceWithANewTieBreaker() {
    var roles = RoleSettlement(tieBreaker: 10)
    let gaveWay = [
      roles.concede(.controlling, entropy), roles.concede(.controlling, entropy),
      roles.setRole(.controlled),
    ]
    #expect(gaveWay == [true, false, false])
    #expect(roles.role == .controlled && roles.tieBreaker != 10)
  }

  // MARK: Consent

  @Test func aPairBecomesSilentBeforeItsConsentExpires() {
    var list = checklist([1])
    var consent = Consent()
    consent.select(11)
    consent.begin(list[0], entropy, at: .zero)
    #expect(consent.isDue(list[0], at: .zero))
    consent.recordRequest(entropy, at: .zero)
    // Consent checks are five seconds apart, plus or minus a fifth (RFC 7675 section 5.1), but half
    // a second while no answer arrives.
    #expect(consent.nextCheckAt.map { (at(4000)...at(6000)).contains($0) } == true)
    #expect(!consent.isDue(list[0], at: at(499)) && consent.isDue(list[0], at: at(500)))
    consent.recordResponse(of: 12)
    #expect(consent.isDue(list[0], at: at(500)))
    consent.recordResponse(of: 11)
    #expect(!consent.isDue(list[0], at: at(3999)))
    #expect(consent.judge(list[0], at: at(6999)) == .nothing)
    #expect(consent.judge(list[0], at: at(7000)) == .silent && consent.isSilent)
    #expect(consent.graceEnd(list[0]) == at(8000))
    // Traffic shows that the peer is alive, but is not consent.
    list.change(0) { $0.traffic.receiveData(at: .zero + .seconds(20)) }
    #expect(consent.judge(list[0], at: .zero + .seconds(20)) == .resumed)
    #expect(consent.judge(list[0], at: at(29_999)) == .silent)
    #expect(consent.judge(list[0], at: at(30_000)) == .expired)
    list.change(0) { $0.recordResponse(at: .zero + .seconds(20)) }
    #expect(consent.judge(list[0], at: at(30_000)) == .nothing)
  }

  /// With a shorter disconnection timeout, the peer is checked more often, so that it does not seem
  /// silent even if it sends nothing else.
  @Test func aShorterSilenceTimeoutChecksMoreOften() {
    let list = checklist([1])
    var consent = Consent(silence: .milliseconds(1_500))
    consent.select(11)
    consent.begin(list[0], entropy, at: .zero)
    consent.recordRequest(entropy, at: .zero)
    #expect(consent.nextCheckAt == at(750))
    #expect(consent.judge(list[0], at: at(1_499)) == .nothing)
    #expect(consent.judge(list[0], at: at(1_500)) == .silent)
    #expect(consent.judge(list[0], at: at(30_000)) == .expired)
  }

  @Test func rightAfterAnAnswerTheFirstConsentCheckWaits() {
    var list = checklist([1])
    list.change(0) { $0.recordResponse(at: .zero) }
    var consent = Consent()
    consent.select(11)
    consent.begin(list[0], entropy, at: at(999))
    #expect(consent.nextCheckAt.map { $0 >= at(4000) } == true)
    consent.begin(list[0], entropy, at: at(1000))
    #expect(consent.nextCheckAt == at(1000))
    consent.select(nil)
    #expect(consent.pairID == nil && consent.nextCheckAt == nil)
  }

  // MARK: Progress

  @Test func theStateFollowsThePath() {
    var progress = CheckProgress()
    let good = CheckProgress.Path(isPresent: true, isSilent: false)
    #expect(progress.settle(nil, isDone: false) == [])
    progress.begin(at: .zero)
    #expect(progress.patienceEnd == at(30_000))
    #expect(progress.settle(nil, isDone: false) == [.checking])
    progress.recordPath()
    #expect(progress.settle(good, isDone: true) == [.connected, .completed])
    progress.recordSilence()
    #expect(
      progress.settle(.init(isPresent: true, isSilent: true), isDone: false) == [.disconnected])
    #expect(progress.settle(good, isDone: false) == [.connected])
    #expect(progress.settle(nil, isDone: false) == [.disconnected])
    progress.fail()
    #expect(progress.settle(nil, isDone: false) == [.failed])
    #expect(!progress.beginAnew(at: at(5)) && progress.checkingSince == .zero)
    progress.revive(at: at(5))
    #expect(progress.settle(nil, isDone: false) == [.checking])
    #expect(progress.checkingSince == at(5))
    progress.restart()
    #expect(
      progress.settle(.init(isPresent: false, isSilent: false), isDone: false) == [.connected])
    let areNew = [1, 1, nil, 1, 2].map { progress.isNew($0) }
    #expect(areNew == [true, false, false, true, true])
  }

  // MARK: Names and numbers

  @Test func anAddressHasOneNameForTheWholeSession() {
    var names = HiddenNames()
    let first = names.name(of: IPAddress(ipv4: 1), entropy)
    let other = names.name(of: IPAddress(ipv4: 2), entropy)
    let again = names.name(of: IPAddress(ipv4: 1), entropy)
    #expect(first.isNew && other.isNew && !again.isNew)
    #expect(first.name == again.name && first.name != other.name && first.name.hasSuffix(".local"))
  }

  @Test func agentsOfOnePeerUseSeparateRequestNumbers() {
    var numbers = [RequestNumbers(ordinal: 0), RequestNumbers(ordinal: 3)]
    let ids = [numbers[0].next(), numbers[0].next(), numbers[1].next()]
    #expect(ids == [1, 2, 0x0300_0001])
    #expect(ids.map { RequestNumbers.ordinal(of: $0) } == [0, 0, 3])
  }

  // MARK: Checklist

  @Test func triggeredPairsPrecedeWaitingAndFrozenOnes() {
    var list = checklist([1, 3, 2, 9], foundations: ["a", "b", "a", "b"])
    #expect(list.pairs.map(\.state) == [.waiting, .waiting, .frozen, .frozen])
    list.trigger(2)
    list.trigger(0)
    var order: [Int?] = []
    for _ in 0..<4 {
      let next = list.next()
      order.append(next)
      if let next { list.change(next) { $0.change(to: .inProgress) } }
    }
    // The last pair waits until another check of its foundation has timed out once.
    #expect(order == [2, 0, 1, nil])
    for _ in 0..<2 { list.change(1) { $0.round.goOn(at: .zero) } }
    let thawed = list.next()
    #expect(thawed == 3)
    list.thawAll(foundation: list[3].foundation)
    #expect(list[3].state == .waiting && list.hasUnchecked)
  }

  @Test func checksKeepTheirPace() {
    var list = checklist([1, 2])
    let turns = [list.useTurn(at: .zero), list.useTurn(at: at(19)), list.useTurn(at: at(20))]
    #expect(turns == [true, false, true] && list.deadline == at(40))
    list.abandon()
    let turn = list.useTurn(at: at(100))
    #expect(!turn && list.deadline == nil && list.pairs.allSatisfy { $0.state == .failed })
  }

  @Test func aFullChecklistEvictsTheWorstPairButNotTheSelectedOne() {
    var list = checklist((1...100).map { UInt32($0) })
    func add(_ priority: UInt32, keeping kept: UInt32?) -> Checklist.Addition {
      let remote = candidate(1000 + priority, priority: priority)
      guard let target = remote.address else { return .known }
      return list.add(
        candidate(99, priority: 500), base: SocketAddress(IPAddress(ipv4: 99), port: 5000), remote,
        target, .controlling, keeping: kept)
    }
    #expect(add(1, keeping: nil) == .full)
    #expect(add(50, keeping: 11) == .added && add(50, keeping: 11) == .known)
    #expect(list.count == 100 && list[0].id == 11 && list[1].id == 13)
  }

  @Test func aRestartKeepsOnePairUntilItRetires() {
    var list = checklist([1, 2])
    list.change(1) { $0.round.goOn(at: .zero) }
    list.restart(keeping: 1)
    #expect(list.pairs.map(\.id) == [12] && !list.isPresent(0) && list.deadline == nil)
    #expect(list.best { _ in true } == nil && !list.hasUnchecked)
    list.retire()
    #expect(list.count == 0 && list.generation == 1)
  }

  @Test func changesAreReportedOnce() {
    var list = checklist([1, 2])
    #expect(list.removeChanges(selected: 12).map(\.selected) == [false, true])
    list.change(0) { $0.setNominated() }
    #expect(list.removeChanges(selected: nil).map(\.id) == [11])
    #expect(list.removeChanges(selected: nil) == [])
  }

  // MARK: Nomination

  @Test func aPendingBetterPairDelaysTheNomination() {
    var list = checklist([1, 2])
    list.succeed(0)
    var nomination = Nomination()
    let early = nomination.consider(list, firstSuccessAt: .zero, at: at(50))
    #expect(early == nil && nomination.dueAt == at(100))
    let late = nomination.consider(list, firstSuccessAt: .zero, at: at(100))
    #expect(late == 0 && nomination.dueAt == nil)
    list.change(1) { $0.fail() }
    let only = nomination.consider(list, firstSuccessAt: .zero, at: .zero)
    #expect(only == 0)
    nomination.nominate(11, at: .zero)
    #expect(nomination.choose(list, .controlling) == 0)
    list.change(0) { $0.fail() }
    let gone = nomination.choose(list, .controlling)
    #expect(gone == nil && nomination.pairID == nil)
  }

  @Test func aLowerNominationIsFollowedOnlyWhenThePeerInsists() {
    var list = checklist([1, 2])
    for index in 0..<2 { list.succeed(index) }
    var nomination = Nomination()
    list.recordChoice(1, at: .zero)
    #expect(nomination.follows(1, list, isSilent: false, at: .zero))
    list.change(1) { $0.setNominated() }
    nomination.nominate(12, at: .zero)
    list.recordChoice(0, at: at(10))
    #expect(!nomination.follows(0, list, isSilent: false, at: at(10)))
    #expect(nomination.follows(0, list, isSilent: true, at: at(10)))
    #expect(nomination.follows(0, list, isSilent: false, at: at(1000)))
    list.recordChoice(0, at: at(20))
    #expect(nomination.follows(0, list, isSilent: false, at: at(20)))
    // A pair that was abandoned is selected again when it works.
    nomination.forget(12)
    #expect(nomination.choose(list, .controlled) == 1 && nomination.pairID == 12)
  }
}
