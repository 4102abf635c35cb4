import Observer
import Testing
import Wire

struct ChecksTests {
  private let tuple = FiveTuple(from: Messages.a, to: Messages.b)

  private func states(_ seen: Seen, _ end: Int) -> [String] {
    seen.states.filter { $0.end == end && $0.machine == "ice-connection" }.map(\.to)
  }

  @Test func aNominatedPairConnectsBothEnds() throws {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    #expect(states(call.seen, 0) == ["checking", "connected"])
    #expect(states(call.seen, 1) == ["checking", "connected"])
    let pair = try #require(call.seen.pairs.last)
    #expect(pair.isSelected && pair.isNominated && pair.hasSucceeded == [true, true])
    #expect(pair.roundTrips == [.milliseconds(30), .milliseconds(20)])
    #expect(pair.addresses == [Messages.a, Messages.b])
    #expect(call.seen.transports.last?.usernameFragments == ["aaaa", "bbbb"])
    #expect(call.seen.candidates.map(\.address) == [Messages.a, Messages.b])
  }

  @Test func silenceDisconnectsAndMissingConsentFails() {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    call.send(Messages.rtp(1), tuple, to: &observer, after: 6000)
    #expect(states(call.seen, 0).last == "disconnected")
    // A packet from the other end reconnects this one.
    call.send(Messages.rtp(1, ssrc: 5), tuple.reversed, to: &observer)
    #expect(states(call.seen, 0).last == "connected")
    for number in 2..<40 {
      call.send(Messages.rtp(number), tuple, to: &observer, after: 1000)
      call.send(Messages.rtp(number, ssrc: 5), tuple.reversed, to: &observer)
    }
    #expect(states(call.seen, 0).last == "failed")
  }

  @Test func aRestartKeepsTheCall() {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    call.connect(&observer, tuple, names: ("cccc", "dddd"))
    #expect(call.seen.calls.count == 1)
    #expect(call.seen.transports.map(\.usernameFragments).last == ["cccc", "dddd"])
  }

  @Test func anotherAddressWithTheSameUsernamesIsAnotherPair() throws {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    var other = tuple
    other.source.port = 5555
    call.connect(&observer, other)
    #expect(call.seen.calls.count == 1)
    #expect(observer.pairs.map(\.isSelected) == [false, true])
  }

  @Test func streamsContinueAfterARestartOnOtherAddresses() throws {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    for number in 0..<20 { call.send(Messages.rtp(number), tuple, to: &observer) }
    var other = tuple
    (other.source.port, other.destination.port) = (7000, 7001)
    call.connect(&observer, other, names: ("eeee", "ffff"))
    for number in 20..<40 { call.send(Messages.rtp(number), other, to: &observer) }
    #expect(observer.streams.count == 1)
    #expect(observer.statistics(of: 1)?.packets == 40)
    #expect(call.seen.transports.last?.isMoved == true)
    #expect(call.seen.transports.last?.call == 1)
  }

  @Test func callsAreDistinguished() {
    var observer = Observer()
    var call = SyntheticCall()
    for number in 0..<50 {
      var path = tuple
      path.source.port = UInt16(1000 + number)
      call.connect(&observer, path, names: ("left\(number)", "right\(number)"))
      for sequence in 0..<3 { call.send(Messages.rtp(sequence), path, to: &observer) }
    }
    #expect(call.seen.calls.map(\.number) == Array(1...50))
    #expect(observer.streams.map(\.transport) == Array(1...50))
  }

  @Test func packetsOutsideCallsAreCountedAndNotReported() {
    var observer = Observer()
    var call = SyntheticCall()
    let names = FiveTuple(
      from: Messages.a, to: SocketAddress(IPAddress(ipv4: 1), port: 53))
    for number in 0..<20 {
      call.send([0x80, 8] + [UInt8](repeating: UInt8(number), count: 40), names, to: &observer)
      call.send([0xff, 1, 2, 3], tuple, to: &observer)
    }
    #expect(call.seen.calls.isEmpty && call.seen.packets.isEmpty)
    #expect(observer.coverage(.ignored) == 40)
  }
}
