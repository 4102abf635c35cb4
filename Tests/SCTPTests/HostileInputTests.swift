import Seeded
import Testing
import Wire

@testable import SCTP

/// Tests that invalid packets do not cause a trap, and that memory stays small.
struct HostileInputTests {
  /// Changes a packet and recomputes its checksum, so that more than the checksum is tested.
  private func mutated(_ packet: [UInt8], _ dice: inout SeededGenerator) -> [UInt8] {
    var bytes = packet
    for _ in 0...dice.below(4) {
      let place = dice.below(bytes.count)
      switch dice.below(6) {
      case 0: bytes[place] = UInt8(truncatingIfNeeded: dice.next())
      case 1: bytes[place] ^= 1 << UInt8(dice.below(8))
      case 2: bytes.removeLast(min(dice.below(20), bytes.count - 16))
      case 3: bytes.append(contentsOf: (0..<dice.below(24)).map { UInt8(truncatingIfNeeded: $0) })
      case 4: bytes[place] = [0, 1, 0x7f, 0x80, 0xff][dice.below(5)]
      default:
        let end = min(bytes.count, place + dice.below(32))
        bytes.insert(contentsOf: bytes[place..<end], at: place)
      }
      if bytes.count > 1400 { bytes.removeLast(bytes.count - 1400) }
    }
    guard dice.happens(95) else { return bytes }
    bytes.replaceSubrange(0..<8, with: packet[0..<8])
    return Crafted.sealed(bytes)
  }

  private func isBounded(_ machine: SCTPAssociation) -> Bool {
    machine.receiver.streams.heldBytes <= 2 * machine.parameters.receiveWindow
      && machine.receiver.streams.heldFragments <= 2 * SCTPLimits.fragmentsHeld
      && machine.receiver.numbers.ranges.count <= SCTPLimits.gaps
      && machine.sender.sent.count <= SCTPLimits.chunksInFlight && machine.reader.early.count <= 16
  }

  @Test func mutatedPacketsOfWholeCallsNeitherTrapNorHang() {
    var packets = 0
    for seed in 0..<150 as Range<UInt64> {
      var dice = SeededGenerator(seed: seed &* 977)
      var link = Link(seed: seed, LinkQuality(loss: 5, jitter: .milliseconds(10)))
      let percent = [2, 10, 40][Int(seed % 3)]
      link.tamper = { [self] _, bytes, _ in
        dice.happens(percent) ? mutated(bytes, &dice) : bytes
      }
      link.start { $1.offersInterleaving = seed % 2 == 0 }
      let channels = [
        link.open(0), link.open(0, DataChannelInit(ordered: false, maxRetransmits: 1)),
        link.open(0, DataChannelInit(maxPacketLifeTime: 200)),
      ]
      for round in 0..<12 {
        for channel in channels {
          let bytes = [UInt8](repeating: UInt8(round), count: round * 400)
          link.step(0, .send(channel, binary: true, bytes))
          if let other = link.sides[1].channelNumbers.last {
            link.step(1, .send(other, binary: false, bytes))
          }
        }
        if round == 8 { link.step(1, .close(channels[0])) }
        link.run(for: .milliseconds(120))
        #expect(link.sides.allSatisfy(isBounded), "seed \(seed)")
      }
      link.step(0, .shutdown)
      link.run(for: .seconds(10))
      packets += link.seen[0].packets + link.seen[1].packets
    }
    #expect(packets > 10_000)
  }

  @Test func mutatedRecordedPacketsAreSafeInEveryState() {
    var dice = SeededGenerator(seed: 42)
    let recorded = RecordedPackets.all.map(RecordedPackets.bytes)
    for round in 0..<400 {
      var machine = SCTPAssociation(entropy: Entropy(seed: [UInt8(round & 0xff)]).stream("sctp"))
      var outbox = Outbox<SCTPAssociation.Output>()
      let parameters = SCTPParameters(isClient: round % 2 == 0)
      machine.start(parameters, RecordedPackets.identity, at: .zero, into: &outbox)
      if round % 4 != 0 {
        // The answer is Chromium's with arbitrary features; in two of three rounds, the
        // confirmation follows.
        var answer = Initiation()
        answer.tag = 0xcaa2_79d4
        answer.window = 65536
        answer.incomingStreams = 65535
        answer.outgoingStreams = 65535
        answer.firstNumber = 0x2114_e986
        answer.features = Initiation.Features(rawValue: UInt8(round % 16))
        let chunk = Crafted.Chunk(
          type: .initiationAcknowledgement, body: answer.body(cookie: [1, 2, 3, 4]))
        let echo = Crafted.answer(&machine, to: [chunk], at: .zero)
        #expect(echo.map(\.type) == [.cookieEcho])
        if round % 4 != 1 {
          _ = Crafted.answer(&machine, to: [.init(type: .cookieAcknowledgement)], at: .zero)
        }
        let phase = machine.handshake.phase
        #expect(phase == (round % 4 == 1 ? .cookieEchoed : .established))
      }
      for step in 0..<100 {
        let packet = mutated(recorded[dice.below(recorded.count)], &dice)
        let now = Instant.zero + .milliseconds(Int64(step))
        machine.step(.packet(packet), at: now, into: &outbox)
        if let deadline = machine.deadline, deadline <= now {
          machine.step(.deadline, at: now, into: &outbox)
        }
        outbox.removeAll()
        #expect(isBounded(machine))
      }
    }
  }

  @Test(arguments: [true, false])
  func endlessFragmentsDoNotFillTheMemory(ordered: Bool) {
    var link = Link()
    link.connect {
      $1.receiveWindow = 100_000
      $1.offersInterleaving = false
    }
    let number = link.sides[0].sender.sent.nextNumber
    // Sends only first fragments of messages, each after a gap.
    for index in 0..<5000 as Range<UInt32> {
      var body = ByteWriter()
      body.uint32(number &+ index * 2)
      body.uint32(UInt32(index % 100) << 16 | (index & 0xffff))
      body.uint32(53)
      body.zeros(200)
      var builder = PacketBuilder(limit: 1160)
      builder.begin(from: 5000, to: 5000, tag: link.sides[1].handshake.localTag)
      builder.chunk(.data, flags: ordered ? 2 : 6, body.bytes)
      link.step(1, .packet(builder.finish(checksum: true)))
    }
    #expect(isBounded(link.sides[1]))
    #expect(link.sides[1].receiver.streams.heldBytes <= 100_000)
    #expect(link.seen[1].messages.isEmpty)
  }

  @Test(arguments: [10_001, 20_000], [true, false])
  func aMessageAboveTheLimitEndsTheAssociation(size: Int, ordered: Bool) {
    var link = Link()
    link.connect { $1.localMaximumMessageSize = 10_000 }
    let channel = link.open(0, DataChannelInit(ordered: ordered))
    link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: 10_000)))
    link.run { !$0.seen[1].messages.isEmpty }
    link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: size)))
    link.run { $0.sides.allSatisfy { $0.state == .closed } }
    #expect(link.seen[1].failures == ["the peer sent too large a message"])
    #expect(link.seen[0].states.last == .closed)
  }

  @Test func packetsOfOtherAssociationsAreCountedAndDropped() {
    var link = Link()
    link.connect()
    let before = link.sides[0].statistics.dropped
    for hex in RecordedPackets.all.dropFirst(2) {
      link.step(0, .packet(RecordedPackets.bytes(hex)))
    }
    for size in 0..<20 { link.step(0, .packet([UInt8](repeating: 0, count: size))) }
    #expect(link.sides[0].statistics.dropped - before == 30)
    #expect(link.sides[0].state == .connected)
  }
}
