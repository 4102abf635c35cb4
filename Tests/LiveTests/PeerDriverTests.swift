import Glibc
import Live
import Peer
import Tape
import Testing
import Wire

struct PeerDriverTests {
  @Test func aPeerBeginsWithItsGenesisAndItsInterfaces() {
    let fixture = DriverFixture()
    fixture.driver.begin(DriverFixture.genesis, interfaces: [DriverFixture.local.ip])
    #expect(fixture.engine.inputs == ["0 genesis", "0 interfaces [127.0.0.1]"])
  }

  @Test func effectsOfAStepFollowAllItsOutputsInOrder() {
    let fixture = DriverFixture { _, input, _, outbox in
      guard case .interfaces = input else { return }
      outbox.append(.request(.bindSocket(id: 7, DriverFixture.local.ip)))
      outbox.append(.datagram(DriverFixture.datagram([1])))
      outbox.append(.request(.bindSocket(id: 8, DriverFixture.local.ip)))
      outbox.append(.request(.resolveName(id: 9, "host.invalid")))
    }
    fixture.port.sendCode = ENETUNREACH
    fixture.driver.receive(.interfaces([]))
    #expect(
      fixture.engine.inputs == [
        "0 interfaces []", "0 bound 7 127.0.0.1:1000", "0 bound 8 127.0.0.1:1001",
        "0 refused 127.0.0.1:2000 \(ENETUNREACH)",
      ])
    #expect(fixture.port.names == ["9 host.invalid"])
  }

  @Test func aSocketThatCannotBeOpenedIsAnInput() {
    let fixture = DriverFixture { _, input, _, outbox in
      if case .interfaces = input {
        outbox.append(.request(.bindSocket(id: 1, DriverFixture.local.ip)))
      }
    }
    fixture.port.bindCode = -EMFILE
    fixture.driver.receive(.interfaces([]))
    #expect(fixture.engine.inputs.last == "0 failed 1 \(EMFILE)")
  }

  @Test func aRefusedPathIsReportedOncePerTurn() {
    let fixture = DriverFixture { _, input, _, outbox in
      guard case .interfaces = input else { return }
      for byte in 0..<5 { outbox.append(.datagram(DriverFixture.datagram([UInt8(byte)]))) }
    }
    fixture.port.sendCode = EPERM
    fixture.driver.receive(.interfaces([]))
    #expect(fixture.engine.inputs.count == 2)
    fixture.driver.receive(.interfaces([]))
    #expect(fixture.engine.inputs.count == 4)
  }

  @Test func datagramsOfABurstGoOutTogetherAndNeverMuchLater() {
    let fixture = DriverFixture { _, input, _, outbox in
      if case .datagram = input { outbox.append(.datagram(DriverFixture.datagram([7]))) }
    }
    func take() {
      fixture.driver.receive(DriverFixture.datagram([1]), arrivalMonotonicNanoseconds: 0)
    }
    for _ in 0..<2 { take() }
    #expect(fixture.port.flushes == 2)
    fixture.driver.beginBurst()
    for _ in 0..<10 { take() }
    #expect(fixture.port.flushes == 2)
    fixture.driver.endBurst()
    #expect(fixture.port.flushes == 3)
    fixture.driver.beginBurst()
    take()
    fixture.clock.advance(by: PeerDriver.burstMaximum + .microseconds(1))
    take()
    #expect(fixture.port.flushes == 4)
    fixture.port.sendCode = EPERM
    take()
    fixture.driver.endBurst()
    #expect(fixture.engine.inputs.last == "0 refused 127.0.0.1:2000 \(EPERM)")
  }

  @Test func aPeerThatAnswersEveryRefusalWithAPacketDoesNotHoldTheLoop() {
    let fixture = DriverFixture { _, _, _, outbox in
      outbox.append(.datagram(DriverFixture.datagram([0])))
    }
    fixture.port.sendCode = EAGAIN
    fixture.driver.receive(.interfaces([]))
    #expect(fixture.engine.inputs.count == 1 + PeerDriver.turnMaximum)
    #expect(fixture.driver.nextTurn == .zero)
  }

  @Test func deadlinesFireLateAtTheRealInstantUntilNoneIsDue() {
    let fixture = DriverFixture { engine, input, now, _ in
      switch input {
      case .genesis: engine.deadline = now + .milliseconds(10)
      // Three deadlines were missed; the engine gets each of them.
      case .deadline: engine.deadline = engine.deadline.map { $0 + .milliseconds(10) }
      default: break
      }
    }
    fixture.driver.begin(DriverFixture.genesis, interfaces: [])
    #expect(fixture.driver.nextTurn == Instant(nanoseconds: 10_000_000))
    fixture.clock.advance(by: .milliseconds(9))
    fixture.driver.runTurn()
    #expect(fixture.engine.inputs.count == 2)
    fixture.clock.advance(by: .milliseconds(26))
    fixture.driver.runTurn()
    #expect(fixture.engine.inputs.suffix(3) == ["35 deadline", "35 deadline", "35 deadline"])
    #expect(fixture.driver.nextTurn == Instant(nanoseconds: 40_000_000))
  }

  @Test func anEngineWhoseDeadlineNeverMovesDoesNotHoldTheLoop() {
    let fixture = DriverFixture { engine, _, now, _ in engine.deadline = now }
    fixture.driver.begin(DriverFixture.genesis, interfaces: [])
    fixture.driver.runTurn()
    #expect(fixture.engine.inputs.count == 2 + PeerDriver.turnMaximum)
  }

  @Test func instantsNeverGoBackAndArrivalsAreNeverAfterTheirStep() {
    let fixture = DriverFixture()
    fixture.clock.advance(by: .milliseconds(50))
    fixture.driver.receive(
      DriverFixture.datagram([1]), arrivalMonotonicNanoseconds: 5_000 + 20_000_000)
    fixture.clock.advance(by: .milliseconds(-30))
    fixture.driver.receive(
      DriverFixture.datagram([2]), arrivalMonotonicNanoseconds: 5_000 + 90_000_000)
    fixture.driver.receive(DriverFixture.datagram([3]), arrivalMonotonicNanoseconds: 0)
    #expect(
      fixture.engine.inputs == ["50 datagram [1] 20", "50 datagram [2] 50", "50 datagram [3] 0"])
  }

  @Test(arguments: [true, false]) func everyStepIsHandedToTheTapeWithItsOutputs(records: Bool) {
    let fixture = DriverFixture(records: records) { engine, input, now, outbox in
      engine.deadline = now + .seconds(1)
      if case .interfaces = input {
        outbox.append(.request(.bindSocket(id: 1, DriverFixture.local.ip)))
      }
      if case .answer(.socketBound) = input {
        outbox.append(.datagram(DriverFixture.datagram([5])))
        outbox.append(.event(.negotiationNeeded))
      }
    }
    fixture.driver.begin(DriverFixture.genesis, interfaces: [])
    #expect(fixture.port.sent == [DriverFixture.datagram([5])])
    #expect(fixture.events.all == ["0 negotiationNeeded"])
    let steps = fixture.steps.all
    guard records else {
      #expect(steps.isEmpty)
      return
    }
    let inputs = steps.map { $0.peerInput?.word }
    #expect(inputs == ["genesis", "interfaces []", "bound 1 127.0.0.1:1000"])
    #expect(steps.map(\.outputs.count) == [0, 1, 2])
    #expect(steps.map(\.entropyDrawn) == [1, 2, 3])
    #expect(steps.allSatisfy { $0.actor == 3 && $0.deadline == Instant.zero + .seconds(1) })
  }

  @Test func aReplyReachesItsCallerAndACallThatIsNeverAnsweredIsRefused() {
    let fixture = DriverFixture { _, input, _, outbox in
      if case .call(let id, .createAnswer) = input {
        outbox.append(.reply(id: id, .failure(PeerError(name: "InvalidStateError", message: "m"))))
      }
    }
    let replies = Collector<String>()
    fixture.driver.receive(.createAnswer) { replies.append("first \($0)") }
    fixture.driver.receive(.restartICE) { _ in replies.append("second") }
    #expect(replies.all.count == 1)
    #expect(replies.all.first?.contains("first failure") == true)
    fixture.driver.abandon()
    fixture.driver.abandon()
    #expect(replies.all.last == "second")
    #expect(replies.all.count == 2)
  }

  @Test func aCallerGetsItsReplyAfterAllOtherOutputsOfTheStep() {
    let fixture = DriverFixture { _, input, _, outbox in
      guard case .call(let id, _) = input else { return }
      outbox.append(.reply(id: id, .done))
      outbox.append(.event(.negotiationNeeded))
    }
    let events = fixture.events
    let heard = Collector<Int>()
    fixture.driver.receive(.close) { _ in heard.append(events.all.count) }
    #expect(heard.all == [1])
  }

  @Test func statsAreSampledOnAGridAndOnceMoreBeforeClosing() {
    let fixture = DriverFixture(statsInterval: .milliseconds(100))
    fixture.clock.advance(by: .milliseconds(30))
    fixture.driver.begin(DriverFixture.genesis, interfaces: [])
    #expect(fixture.driver.nextTurn == Instant.zero + .milliseconds(100))
    for milliseconds: Int64 in [60, 15, 310, 5] {
      fixture.clock.advance(by: .milliseconds(milliseconds))
      fixture.driver.runTurn()
    }
    fixture.driver.receive(.close) { _ in }
    fixture.clock.advance(by: .seconds(5))
    fixture.driver.runTurn()
    #expect(fixture.driver.nextTurn == nil)
    #expect(
      fixture.engine.inputs.dropFirst(2) == [
        "105 call 1 getStats(of: nil, codecTimes: nil)",
        "415 call 2 getStats(of: nil, codecTimes: nil)",
        "420 call 3 getStats(of: nil, codecTimes: nil)", "420 call 4 close",
      ])
  }
}
