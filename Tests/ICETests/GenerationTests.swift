import Testing
import Wire

@testable import ICE

/// Tests, without an agent, how both sides' credentials and candidates are tracked across restarts.
struct GenerationTests {
  private let own = ICECredentials(usernameFragment: "own", password: "p")
  private let peer = ICECredentials(usernameFragment: "peer", password: "q")
  private let next = ICECredentials(usernameFragment: "next", password: "r")

  private func candidate(
    _ last: UInt32, _ kind: ICECandidate.Kind = .host, name: String? = nil
  ) -> ICECandidate {
    ICECandidate(
      foundation: "1", priority: 1, host: name.map { .name($0) } ?? .address(IPAddress(ipv4: last)),
      port: 9, kind: kind)
  }

  @Test func credentialsAreCurrentOrAnnounceARestart() {
    var generations = Generations(own)
    let long = ICECredentials(
      usernameFragment: String(repeating: "x", count: 257), password: "p")
    let results = [long, peer, peer, next].map { generations.apply($0, lite: false) }
    #expect(results == [.unusable, .present(isNew: true), .present(isNew: false), .upcoming])
    #expect(generations.present.remote == peer && generations.isUpcoming(nil))
    #expect(generations.isUpcoming("next") && !generations.isUpcoming("peer"))
    let kept = (0...60).map { generations.hold(candidate($0)) }
    #expect(kept.filter { !$0 } == [false])
    let isAnnounced = generations.endUpcoming()
    #expect(isAnnounced)
    let upcoming = generations.restart(own, keeping: nil)
    #expect(upcoming?.credentials == next && upcoming?.candidates.count == 60)
    #expect(upcoming?.hasEnded == true && generations.present.remote == nil)
    let isKept = [generations.endUpcoming(), generations.hold(candidate(1))]
    #expect(isKept == [false, false] && !generations.isUpcoming(nil))
  }

  @Test func theSelectedPairsGenerationIsValidUntilItRetires() {
    var generations = Generations(own)
    _ = generations.apply(peer, lite: true)
    _ = generations.restart(next, keeping: 0)
    #expect(generations.generation(0)?.remote == peer && generations.generation(1)?.remote == nil)
    #expect(generations.generation(ofFragment: "own")?.number == 0)
    #expect(generations.generation(ofFragment: "next")?.number == 1)
    // Another restart keeps the generation that the pair belongs to.
    _ = generations.restart(own, keeping: 0)
    #expect(generations.generation(1) == nil && generations.earlier?.remoteIsLite == true)
    generations.recordPath(at: .zero)
    generations.recordPath(at: .zero + .seconds(1))
    #expect(generations.retireAt == Instant.zero + ICETiming.retirement)
    let early = generations.retire(at: .zero)
    let due = generations.retire(at: .zero + ICETiming.retirement)
    #expect(!early && due && generations.earlier == nil && generations.retireAt == nil)
    generations.recordPath(at: .zero)
    #expect(generations.retireAt == nil)
  }

  @Test func aPeerReflexiveCandidateIsRenamedOnce() {
    var side = RemoteSide()
    let address = SocketAddress(IPAddress(ipv4: 5), port: 9)
    let reflexive = side.reflexive(address, priority: 7, isTCP: false)
    #expect(reflexive.foundation == "prflx1" && reflexive.kind == .peerReflexive)
    let learned = [reflexive, candidate(5), candidate(5), reflexive].map { side.learn($0) }
    #expect(learned == [.new, .renamed, .known, .known])
    #expect(side.candidate(at: address)?.kind == .host && side.candidates.count == 1)
    let rest = (100..<160 as Range<UInt32>).map { side.learn(candidate($0)) }
    #expect(rest.last == .full && side.candidates.count == 60)
  }

  @Test func inputBeforeTheCredentialsIsKeptWithinLimits() {
    var side = RemoteSide()
    func check(_ port: UInt16, uses: Bool) -> RemoteSide.EarlyCheck {
      let address = SocketAddress(IPAddress(ipv4: 1), port: port)
      return RemoteSide.EarlyCheck(
        local: address, remote: address, fragment: "f", priority: 1, usesCandidate: uses)
    }
    let held = (1...33 as ClosedRange<UInt16>).map { side.hold(check($0, uses: false)) }
    #expect(held.filter { !$0 }.count == 1)
    let again = [side.hold(check(1, uses: true)), side.hold(candidate(1))]
    #expect(again == [true, true])
    let (candidates, checks) = side.removeHeld()
    #expect(candidates.count == 1 && checks.count == 32)
    #expect(checks.first?.count == 2 && checks.first?.usesCandidate == true)
    let rest = side.removeHeld()
    #expect(rest.checks.isEmpty && rest.candidates.isEmpty)
  }

  @Test func namesArePendingUntilTheyAreResolved() {
    var side = RemoteSide()
    var numbers = RequestNumbers(ordinal: 0)
    #expect(!side.hasChanges)
    let named = candidate(0, name: "a.local")
    let asked = [side.resolve(named, &numbers), side.resolve(named, &numbers)]
    #expect(asked == [.asked(1), .known] && side.hasChanges)
    side.end()
    #expect(!side.isComplete)
    let results = [side.removeNamed(1), side.removeNamed(1)]
    #expect(results == [named, nil] && side.isComplete)
    let rest = (0..<33).map { side.resolve(candidate(0, name: "\($0).local"), &numbers) }
    #expect(rest.last == .full && numbers.last == 33)
  }

  @Test func countersAreCountedByName() {
    var counters = ICECounters()
    counters.count(.malformed)
    counters.count(.foreignFragment, 3)
    counters.count(.sendFailures)
    #expect(counters.malformed == 1 && counters.foreignFragment == 3)
    #expect(counters.sendFailures == 1 && counters.overflows == 0)
  }
}
