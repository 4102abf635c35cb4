import Seeded
import Testing
import Wire

@testable import SCTP

struct PacketTests {
  @Test func theChecksumMatchesThePublishedVectors() {
    func value(_ bytes: [UInt8]) -> UInt32 { CRC32C.value(of: bytes.span.bytes) }
    #expect(value(Array("123456789".utf8)) == 0xe306_9283)
    #expect(value([UInt8](repeating: 0, count: 32)) == 0x8a91_36aa)
    #expect(value([UInt8](repeating: 0xff, count: 32)) == 0x62a8_ab43)
    #expect(value(Array(0..<32)) == 0x46dd_794e)
  }

  @Test(arguments: RecordedPackets.all)
  func recordedPacketsHaveValidChecksums(hex: String) {
    let bytes = RecordedPackets.bytes(hex)
    let sum = CRC32C.checksum(of: bytes.span.bytes)
    #expect((0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) } == Array(bytes[8..<12]))
  }

  @Test func recordedAnnouncementsRoundTrip() throws {
    let bytes = Array(RecordedPackets.bytes(RecordedPackets.announcement)[28...])
    let message = try ChannelMessage(bytes.span.bytes)
    guard case .open(let options) = message else {
      Issue.record("not an announcement")
      return
    }
    #expect(options == DataChannelInit(label: "chat", priority: .veryLow))
    var written = message.bytes
    // aiortc's priority 0 belongs to no class.
    written[3] = 0
    #expect(written == bytes)
  }

  @Test func recordedInitsReportTheirSendersCapabilities() throws {
    for (hex, tag, first) in [
      (RecordedPackets.chromiumInitiation, 0xcaa2_79d4 as UInt32, 0x2114_e986 as UInt32),
      (RecordedPackets.aiortcAnswer, 0xcd5a_6ded, 0xb28c_eee2),
    ] {
      let bytes = Array(RecordedPackets.bytes(hex)[16...])
      var cookie: [UInt8] = []
      var unrecognized: [[UInt8]] = []
      let read = try Initiation(bytes.span.bytes, cookie: &cookie, unrecognized: &unrecognized)
      #expect(read.tag == tag && read.firstNumber == first)
      #expect(read.features == [.forward, .reconfiguration])
      #expect(unrecognized == [])
    }
  }

  /// Plays Chromium's part of the recorded call to an association with aiortc's tag.
  @Test func aRecordedCallIsReplayed() {
    var machine = SCTPAssociation(entropy: Entropy(seed: [1]).stream("sctp"))
    var outbox = Outbox<SCTPAssociation.Output>()
    machine.start(
      SCTPParameters(isClient: false), RecordedPackets.identity, at: .zero, into: &outbox)
    let channel = machine.nextChannel
    machine.step(.open(DataChannelInit(label: "chat", id: 1)), at: .zero, into: &outbox)
    var now = Instant.zero
    func feed(_ hex: String) {
      now += .milliseconds(1)
      machine.step(.packet(RecordedPackets.bytes(hex)), at: now, into: &outbox)
    }
    feed(RecordedPackets.chromiumInitiation)
    feed(RecordedPackets.chromiumAnswer)
    #expect(machine.state == .connecting)
    feed(RecordedPackets.cookieAcknowledgement)
    #expect(machine.state == .connected && machine.state(of: channel) == .open)
    feed(RecordedPackets.acknowledgement)
    feed(RecordedPackets.acceptance)
    machine.step(.send(channel, binary: false, Array("hello".utf8)), at: now, into: &outbox)
    _ = outbox.drain()
    feed(RecordedPackets.echo)
    let messages = outbox.outputs.compactMap { output -> [UInt8]? in
      guard case .message(channel, false, let bytes) = output else { return nil }
      return bytes
    }
    #expect(messages == [Array("echo:hello".utf8)])
    #expect(machine.statistics.unacknowledgedChunks == 0)
    #expect(machine.statistics.dropped == 0)
  }

  @Test func alteredCookiesAreRefused() throws {
    // The digest is the published one for the message 00 01 ... 0e.
    let key = CookieKey(first: 0x0706_0504_0302_0100, second: 0x0f0e_0d0c_0b0a_0908)
    #expect(key.digest(of: Array(0..<15)) == 0xa129_ca61_49be_45e5)
    var peer = Initiation()
    peer.tag = 5
    peer.features = [.forward, .zeroChecksum]
    let cookie = StateCookie(
      made: .zero + .seconds(3), localTag: 1, localTieTag: 2, remoteTieTag: 3, peer: peer)
    let sealed = cookie.sealed(key)
    #expect(try StateCookie(sealed.span.bytes, key) == cookie)
    for index in sealed.indices {
      var altered = sealed
      altered[index] ^= 1
      #expect(throws: ReadError.self) { try StateCookie(altered.span.bytes, key) }
    }
  }

  @Test func receivedNumbersAreKeptAsRanges() {
    for seed in 0..<200 as Range<UInt64> {
      var dice = SeededGenerator(seed: seed)
      var numbers = ReceivedNumbers(first: .max - 20)
      var seen = Set<Int64>()
      let first = numbers.cumulative + 1
      for _ in 0..<150 {
        let number = first + Int64(dice.below(60))
        let wire = UInt32(truncatingIfNeeded: number)
        #expect(numbers.extend(wire) == number)
        #expect(numbers.insert(number) == (seen.insert(number).inserted ? .new : .duplicate))
        var cumulative = first - 1
        while seen.contains(cumulative + 1) { cumulative += 1 }
        #expect(numbers.cumulative == cumulative)
        let ranged = numbers.ranges.flatMap { Array($0) }
        #expect(ranged == seen.filter { $0 > cumulative }.sorted())
      }
    }
  }
}
