import Media
import Peer
import Testing
import Wire

@testable import Live

/// Tests how datagrams from unknown senders are limited.
struct StrayTests {
  private static func datagram(_ bytes: [UInt8], port: UInt16) -> Datagram {
    Datagram(
      local: DriverFixture.local, remote: SocketAddress(DriverFixture.remote.ip, port: port),
      bytes: bytes)
  }

  @Test func someAreDeliveredAndTheRestIsCounted() {
    var filter = StrayFilter()
    func admits(_ byte: UInt8, from port: UInt16, isRecognized: Bool = false) -> Bool {
      filter.admits(Self.datagram([byte], port: port)) { isRecognized }
    }
    let admitted = (0..<2_000 as Range<UInt16>).filter { admits(0x80, from: $0) }
    #expect(admitted.count == StrayFilter.most && filter.dropped == 1_500)
    // The peer is admitted first because of its credentials, and later because it received a
    // response.
    let before = (admits(0, from: 5_000), admits(0, from: 5_000, isRecognized: true))
    #expect(before == (false, true))
    filter.sent(Self.datagram([0x01, 0x01], port: 5_000))
    let after = (admits(0, from: 5_000), admits(0x80, from: 5_000))
    #expect(after == (true, true))
    // An error response to an unknown sender does not admit it.
    filter.sent(Self.datagram([0x01, 0x11], port: 6_000))
    let stranger = admits(0, from: 6_000)
    #expect(!stranger)
  }

  @Test func largeOnesAreFewer() {
    var filter = StrayFilter()
    let large = [UInt8](repeating: 0, count: 60_000)
    let admitted = (1...100).filter { port in
      filter.admits(Self.datagram(large, port: UInt16(port))) { false }
    }
    #expect(admitted.count == StrayFilter.mostBytes / 60_000)
  }

  /// A peer recognizes its own checks before they become inputs, and rejects an unknown sender's.
  @Test func anEndpointDistinguishesItsPeerFromUnknownOnes() {
    let machine = PeerMachine(codecs: LibraryCodecs())
    let stray = Self.datagram(
      [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 1, count: 12), port: 1)
    #expect(!machine.recognizes(stray))
    var outbox = Outbox<PeerOutput>()
    machine.step(.genesis(DriverFixture.genesis), at: .zero, into: &outbox)
    #expect(!machine.recognizes(stray))
  }
}
