import Foundation
import Observer
import RTP
import Testing
import Wire

/// Tests the selected pair, its candidates, and the addresses that name the ends.
struct PairTests {
  private let tuple = FiveTuple(from: Messages.a, to: Messages.b)

  /// Sends a check from the left end, and its answer.
  private func check(
    _ number: Int, _ call: inout SyntheticCall, _ observer: inout Observer, _ tuple: FiveTuple,
    priority: UInt32, isBack: Bool = false, after: Int64 = 10
  ) {
    let (left, right) = isBack ? ("bbbb", "aaaa") : ("aaaa", "bbbb")
    let way = isBack ? tuple.reversed : tuple
    call.send(
      Messages.check(
        number, from: left, to: right, controlling: !isBack, nominates: !isBack,
        priority: priority), way, to: &observer, after: after)
    call.send(Messages.success(number, mapped: way.source), way.reversed, to: &observer)
  }

  private func selections(_ seen: Seen) -> [Int] {
    var found: [Int] = []
    for pair in seen.pairs where pair.isSelected && found.last != pair.number {
      found.append(pair.number)
    }
    return found
  }

  /// All answered pairs are nominated, again with each consent check (RFC 5245 section 8.1.1.2).
  @Test func theHighestNominatedPairIsSelected() {
    var observer = Observer()
    var call = SyntheticCall()
    let ways = (0..<4).map { number in
      var way = tuple
      way.source.port += UInt16(number)
      return way
    }
    for round in 0..<12 {
      for (number, way) in ways.enumerated() {
        // The second pair has the highest priority.
        let priority: UInt32 = [100, 400, 300, 200][number] << 8 | 0xff
        check(100 * round + 2 * number, &call, &observer, way, priority: priority, after: 200)
        check(
          100 * round + 2 * number + 1, &call, &observer, way, priority: 0x6e00_00ff, isBack: true)
      }
    }
    call.watch.end(&observer)
    #expect(selections(call.seen) == [1, 2])
    #expect(observer.pairs.map(\.isSelected) == [false, true, false, false])
    #expect(observer.pairs.allSatisfy { $0.isNominated })
  }

  @Test func eachComponentHasAPair() {
    var observer = Observer()
    var call = SyntheticCall()
    var control = tuple
    control.source.port += 1
    control.destination.port += 1
    for round in 0..<10 {
      check(10 * round, &call, &observer, tuple, priority: 0x6e00_ffff, after: 500)
      check(10 * round + 1, &call, &observer, control, priority: 0x6e00_fffe, after: 500)
    }
    #expect(observer.pairs.map(\.isSelected) == [true, true])
    #expect(call.seen.pairs.count { $0.number == 1 && !$0.isSelected && $0.isNominated } == 0)
    #expect(call.seen.calls.count == 1)
  }

  @Test func mediaDeterminesThePairInUse() {
    var observer = Observer()
    var call = SyntheticCall()
    var other = tuple
    other.source.port += 1
    check(1, &call, &observer, tuple, priority: 0x6e00_ffff)
    for number in 0..<10 {
      call.send(Messages.rtp(number), tuple, to: &observer)
      call.send(Messages.rtp(number, ssrc: 5), tuple.reversed, to: &observer)
    }
    // The other pair is nominated with a higher priority, but no media is sent on it yet.
    check(2, &call, &observer, other, priority: 0x7e00_ffff)
    #expect(observer.pairs.map(\.isSelected) == [true, false])
    for number in 10..<20 {
      call.send(Messages.rtp(number), other, to: &observer)
      call.send(Messages.rtp(number, ssrc: 5), other.reversed, to: &observer)
    }
    // A late packet changes nothing.
    call.send(Messages.rtp(9), tuple, to: &observer)
    #expect(observer.pairs.map(\.isSelected) == [false, true])
    #expect(selections(call.seen) == [1, 2])
  }

  /// The first checks are sent to addresses that do not exist.
  @Test func endsAreNamedAfterAddressesThatAnswered() {
    var observer = Observer()
    var call = SyntheticCall()
    for number in 0..<5 {
      var way = tuple
      way.destination = SocketAddress(IPAddress(ipv4: 0x0a01_0101), port: UInt16(9000 + number))
      call.send(Messages.check(number, from: "aaaa", to: "bbbb"), way, to: &observer)
    }
    #expect(call.seen.calls.isEmpty)
    check(10, &call, &observer, tuple, priority: 0x6e00_ffff)
    #expect(call.seen.calls.map(\.addresses) == [[Messages.a, Messages.b]])
    #expect(call.seen.calls.first?.began == Instant.zero + .milliseconds(10))
  }

  @Test func anUnansweredCallIsNamedAfterAWhile() {
    var observer = Observer()
    var call = SyntheticCall()
    call.send(Messages.check(1, from: "aaaa", to: "bbbb"), tuple, to: &observer)
    #expect(call.seen.calls.isEmpty && observer.deadline != nil)
    call.send(Messages.check(2, from: "aaaa", to: "bbbb"), tuple, to: &observer, after: 7000)
    #expect(call.seen.calls.map(\.addresses) == [[Messages.a, Messages.b]])
    call.watch.end(&observer)
    #expect(call.seen.calls.count == 1)
  }

  // MARK: DTLS

  /// Returns a ClientHello's datagrams, with the given number of fragments.
  private func hello(offersSRTP: Bool, fragments: Int) -> [[UInt8]] {
    var writer = ByteWriter()
    writer.uint16(0xfefd)
    writer.append([UInt8](repeating: 7, count: 32))
    writer.uint16(0)
    writer.uint16(2)
    writer.uint16(0xc02b)
    writer.uint16(0x0100)
    let extensions: [UInt8] =
      [0, 23, 0, 0] + (offersSRTP ? [0, 14, 0, 5, 0, 2, 0, 1, 0] : [0, 22, 0, 0])
    writer.uint16(UInt16(extensions.count))
    writer.append(extensions)
    let body = writer.bytes
    let size = (body.count + fragments - 1) / fragments
    return stride(from: 0, to: body.count, by: size).enumerated().map { number, begin in
      let part = body[begin..<min(begin + size, body.count)]
      func uint24(_ value: Int) -> [UInt8] { [0, UInt8(value >> 8), UInt8(value & 255)] }
      let message =
        [1] + uint24(body.count) + [0, 0] + uint24(begin) + uint24(part.count) + part
      return [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, UInt8(number), 0, UInt8(message.count)] + message
    }
  }

  /// VPNs and devices use DTLS as well.
  @Test(arguments: [1, 3])
  func aHandshakeWithoutChecksIsACallIfItOffersSRTP(_ fragments: Int) {
    for offersSRTP in [true, false] {
      var observer = Observer()
      var (gate, call) = (CallGate(), SyntheticCall())
      var admitted = 0
      for datagram in hello(offersSRTP: offersSRTP, fragments: fragments) {
        call.send(datagram, tuple, to: &observer)
        let verdict = gate.examine(
          tuple, datagram, isTruncated: false, at: call.now, isKnown: false, isRelay: false)
        if case .admittedWith(let packets) = verdict { admitted += packets.count }
      }
      #expect(admitted == (offersSRTP ? fragments : 0))
      #expect(call.seen.calls.count == (offersSRTP ? 1 : 0))
      #expect(observer.pairs.first?.packets[0] == (offersSRTP ? UInt64(fragments) : nil))
    }
  }

  /// After a restart the other end sends the first check, so the new transport numbers the ends the
  /// other way round.
  @Test func anAssociationContinuesWithTheEndsInTheOtherOrder() throws {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    for number in 0..<20 { call.send(Messages.rtp(number), tuple, to: &observer) }
    for datagram in hello(offersSRTP: true, fragments: 1) {
      call.send(datagram, tuple, to: &observer)
    }
    let begun = try #require(call.seen.states.last { $0.machine == "dtls" && $0.end == 0 })
    var other = tuple
    (other.source.port, other.destination.port) = (7000, 7001)
    call.connect(&observer, other.reversed, names: ("eeee", "ffff"))
    for number in 20..<40 { call.send(Messages.rtp(number), other, to: &observer) }
    #expect(call.seen.transports.last?.isMoved == true)
    let alert: [UInt8] = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]
    call.send(alert, other, to: &observer)
    let ended = try #require(call.seen.states.last { $0.machine == "dtls" })
    #expect(ended.transport == 2 && ended.end == 1)
    #expect(ended.from == begun.to && ended.to == "failed", "\(call.seen.states)")
  }

  @Test func aHandshakeAfterChecksIsAlwaysACall() {
    var observer = Observer()
    var call = SyntheticCall()
    call.connect(&observer, tuple)
    for datagram in hello(offersSRTP: false, fragments: 1) {
      call.send(datagram, tuple, to: &observer)
    }
    #expect(call.seen.handshakes.count == 1)
  }

  // MARK: Keys

  @Test func anUnusedKeyIsReported() throws {
    var observer = Observer()
    var call = SyntheticCall()
    let key = try SRTPKey(parsing: String(repeating: "ab", count: 30))
    call.watch.step(&observer, .srtpKey(key), at: .zero)
    call.connect(&observer, tuple)
    for number in 0..<20 {
      call.send(Messages.rtp(number, type: 111), tuple, to: &observer)
    }
    call.watch.end(&observer)
    #expect(call.seen.coverage.contains { $0.kind == .unusedKey && $0.count == 1 })
  }
}
