import Testing
import Wire

@testable import ICE

/// Tests each part of a candidate pair separately.
struct PairPartTests {
  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func check(_ number: UInt64, at sentAt: Instant) -> CheckRound.Check {
    CheckRound.Check(
      transaction: STUNTransactionID(high: 0, low: number), sentAt: sentAt, nominates: false,
      role: .controlling)
  }

  // MARK: Rounds

  @Test func aRoundRemembersItsNewestRequests() {
    var round = CheckRound()
    for number in 0..<10 {
      round.remember(check(UInt64(number), at: at(Int64(number))), atMost: 8)
    }
    #expect(round.checks.count == 8)
    #expect(round.checks.first?.sentAt == at(2))
    #expect(round.remove(1).sentAt == at(3))
    #expect(round.checks.map(\.sentAt).prefix(2) == [at(2), at(4)])
  }

  @Test func aRoundContinuesUntilItIsAnswered() {
    var round = CheckRound()
    round.goOn(at: at(500))
    round.goOn(at: at(1_500))
    #expect(round.attempts == 2 && round.nextAttempt == at(1_500))
    // A new round starts at once, but its next request keeps the scheduled time.
    round.begin()
    #expect(round.attempts == 0 && round.nextAttempt == at(1_500))
    round.finish()
    #expect(round.nextAttempt == nil)
    round.goOn(at: at(2_000))
    round.stop()
    #expect(round.attempts == 1 && round.nextAttempt == nil)
  }

  @Test func aConnectionIsRequestedOnce() {
    var round = CheckRound()
    round.connect(7, until: at(900))
    #expect(round.connectionID == 7 && round.attempts == 1 && round.nextAttempt == at(900))
    round.connected()
    #expect(round.connectionID == nil && round.attempts == 0 && round.nextAttempt == at(900))
    round.connect(8, until: at(950))
    round.fail()
    #expect(round.connectionID == nil && round.nextAttempt == nil)
    round.connect(9, until: at(960))
    round.restart()
    #expect(round.connectionID == nil && round.attempts == 0 && round.nextAttempt == nil)
  }

  @Test func threeConsecutiveRefusalsAreTooMany() {
    var round = CheckRound()
    #expect([round.isRefusedTooOften(), round.isRefusedTooOften()] == [false, false])
    round.forgetRefusals()
    #expect([round.isRefusedTooOften(), round.isRefusedTooOften()] == [false, false])
    let third = round.isRefusedTooOften()
    round.restart()
    let anew = round.isRefusedTooOften()
    #expect(third && !anew)
  }

  // MARK: Nomination

  @Test func aPairIsNominatedOnce() {
    var nomination = PairNomination()
    #expect([nomination.setNominated(), nomination.setNominated()] == [true, false])
    #expect(nomination.isNominated)
  }

  @Test func anEarlyNominationIsReportedOnce() {
    var nomination = PairNomination()
    nomination.choose(at: at(1), works: true)
    let early = nomination.removeEarlyChoice()
    #expect(!early)
    nomination.choose(at: at(2), works: false)
    #expect(nomination.timesChosen == 2 && nomination.chosenAt == at(2))
    #expect([nomination.removeEarlyChoice(), nomination.removeEarlyChoice()] == [true, false])
    nomination.chooseOther()
    #expect(nomination.timesChosen == 0 && nomination.chosenAt == at(2))
  }

  @Test func aRoleChangeForgetsNominations() {
    var nomination = PairNomination()
    nomination.begin()
    nomination.choose(at: at(1), works: false)
    #expect(nomination.isNominating)
    nomination.forgetChoices()
    let early = nomination.removeEarlyChoice()
    #expect(!nomination.isNominating && !early)
    nomination.begin()
    nomination.end()
    #expect(!nomination.isNominating)
  }

  // MARK: Traffic

  @Test func trafficCountsChecksAndTimesOfArrival() throws {
    var traffic = PairTraffic()
    traffic.countRequest()
    traffic.countRequest()
    traffic.countConsentRequest()
    traffic.receiveResponse(to: at(10), at: at(40))
    #expect(traffic.receivedAt == at(40) && traffic.consentedAt == nil)
    traffic.answer(at: at(40))
    traffic.receiveResponse(to: at(50), at: at(60))
    #expect(traffic.answeredAt == at(40) && traffic.consentedAt == at(40))
    traffic.receiveRequests(3, at: at(70))
    traffic.receiveData(at: at(80))
    #expect(traffic.consentedAt == at(70) && traffic.receivedAt == at(80))
    let candidate = ICECandidate(
      foundation: "1", priority: 1, host: .address(IPAddress(ipv4: 1)), port: 9, kind: .host)
    var report = ICEPairReport(
      id: 1, local: candidate, remote: candidate, base: SocketAddress(IPAddress(ipv4: 1), port: 9),
      state: .succeeded, nominated: true, selected: true, priority: 1)
    traffic.count(in: &report)
    #expect(report.requestsSent == 2 && report.consentRequestsSent == 1)
    #expect(report.responsesReceived == 2 && report.requestsReceived == 3)
    #expect(report.responsesSent == 3)
    #expect(report.currentRoundTrip == .milliseconds(10))
    #expect(report.totalRoundTrip == .milliseconds(40))
  }
}
