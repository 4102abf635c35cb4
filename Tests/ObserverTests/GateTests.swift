import ICE
import Testing
import Wire

@testable import Observer

/// Tests what the gate lets through to the observer when many senders get no answer.
struct GateTests {
  private func tuple(_ number: Int) -> FiveTuple {
    FiveTuple(
      .udp,
      from: SocketAddress(
        IPAddress(ipv4: 0x0a00_0000 + UInt32(number / 60_000)),
        port: UInt16(1024 + number % 60_000)),
      to: SocketAddress(IPAddress(ipv4: 0xc000_0201), port: 5000))
  }

  private let request: [UInt8] =
    [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 0, count: 12)
  private let response: [UInt8] =
    [1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 0, count: 12)

  private func rtp(_ number: Int) -> [UInt8] {
    [0x80, 0, 0, UInt8(number)] + [UInt8](repeating: 1, count: 8 + 160)
  }

  private func admit(
    _ gate: inout CallGate, _ tuple: FiveTuple, _ bytes: [UInt8], at seconds: Int64 = 0,
    isFull: Bool = false
  ) -> Int {
    let verdict = gate.examine(
      tuple, bytes, isTruncated: false, at: Instant.zero + .seconds(seconds), isKnown: false,
      isRelay: false, isFull: isFull)
    switch verdict {
    case .admitted: return 1
    case .admittedWith(let packets): return packets.count
    case .waiting, .refused: return 0
    }
  }

  @Test func unansweredPathsAreLimited() {
    var gate = CallGate(pathsMaximum: 800)
    let admitted = (0..<10_000).reduce(0) { $0 + admit(&gate, tuple($1), request) }
    #expect(admitted == 100)
    // The next senders arrive ten minutes later.
    let later = (10_000..<20_000).reduce(0) { $0 + admit(&gate, tuple($1), request, at: 601) }
    #expect(later == 100)
  }

  @Test func anAnswerAdmitsThePathWithItsWaitingPackets() {
    var gate = CallGate(pathsMaximum: 80)
    for number in 0..<1000 { _ = admit(&gate, tuple(number), request) }
    let before = admit(&gate, tuple(5000), request) + admit(&gate, tuple(5000), request)
    #expect(before == 0)
    let whole = admit(&gate, tuple(5000).reversed, response)
    #expect(whole == 3)
    // Answers alone admit nothing.
    let other = admit(&gate, tuple(6000).reversed, response)
    #expect(other == 0)
  }

  @Test func answersFreePlacesForOtherPaths() {
    var gate = CallGate(pathsMaximum: 80)
    for number in 0..<5000 {
      let admitted = admit(&gate, tuple(number), request)
      let answer = admit(&gate, tuple(number).reversed, response)
      #expect(admitted == 1 && answer == 1)
    }
  }

  @Test func mediaWaitsLikeChecksUntilItIsAnswered() {
    var gate = CallGate(pathsMaximum: 80)
    for number in 0..<1000 { _ = admit(&gate, tuple(number), request) }
    let before = (0..<3).reduce(0) { $0 + admit(&gate, tuple(7000), rtp($1)) }
    #expect(before == 0)
    let answered = admit(&gate, tuple(7000).reversed, rtp(9))
    #expect(answered == 4)
  }

  @Test func aFullObserverAdmitsNoPath() {
    var gate = CallGate()
    let admitted = admit(&gate, tuple(1), request, isFull: true)
    #expect(admitted == 0)
  }

  /// Three large packets reveal a call just as three small ones do.
  @Test func packetLengthDoesNotMatterForProbation() {
    for length in [100, 4100, 9500, 60_000] {
      var gate = CallGate()
      let padding = [UInt8](repeating: 3, count: length)
      let admitted = (0..<3).map { admit(&gate, tuple(3), rtp($0) + padding) }
      #expect(admitted[..<2] == [0, 0] && admitted[2] == (length < 9000 ? 3 : 1))
    }
  }

  /// When addresses are reused, ended connections do not cause newer ones to be evicted.
  @Test func endedConnectionsDoNotEvictNewerOnes() {
    var table = TCPConnections()
    func connection(_ number: Int) -> FiveTuple {
      let path = tuple(number)
      return FiveTuple(.tcp, from: path.source, to: path.destination)
    }
    func open(_ number: Int, isEnd: Bool = false) {
      _ = table.receive(connection(number), [1, 2, 3], lost: 0, isEnd: isEnd)
    }
    open(0)
    open(0, isEnd: true)
    for number in 1..<2000 { open(number) }
    open(0)
    for number in 2000..<2100 { open(number) }
    #expect(table.undecidedBytes(connection(0)) == [1, 2, 3])
    #expect(table.undecidedBytes(connection(1)).isEmpty)
  }

  /// An unterminated line would be searched again with every byte, so it is abandoned.
  @Test func anUnterminatedLineIsAbandoned() {
    var reader = HTTPReader()
    reader.append(Array("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
    for _ in 0..<100 { reader.append([UInt8](repeating: 0x30, count: 1000)) }
    #expect(reader.problem != nil)
  }
}
