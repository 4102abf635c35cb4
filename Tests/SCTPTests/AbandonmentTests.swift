import Foundation
import SCTP
import Seeded
import Testing
import Wire

/// Compares what unreliable channels deliver with a record of what the network did to each message.
struct AbandonmentTests {
  /// How many networks to test; `RETAKE_DELIVERY_SEEDS=N` sets another number.
  private static let seeds =
    ProcessInfo.processInfo.environment["RETAKE_DELIVERY_SEEDS"].flatMap { UInt64($0) } ?? 20

  private static let count = 400
  private static let size = 1000

  /// Records what the network did to each of the first side's messages.
  private struct Journal {
    var transmissions = [Int](repeating: 0, count: AbandonmentTests.count)
    var arrivals = [Int](repeating: 0, count: AbandonmentTests.count)
    /// When a message was last sent, with which number, and when the peer was first asked to skip
    /// that number.
    var lastSent = [Instant?](repeating: nil, count: AbandonmentTests.count)
    var numbers = [UInt32?](repeating: nil, count: AbandonmentTests.count)
    var passedOver = [Instant?](repeating: nil, count: AbandonmentTests.count)
    var dice: SeededGenerator

    /// Delivers or loses a packet from the first side.
    mutating func carry(_ packet: [UInt8], at now: Instant) -> [UInt8]? {
      let isLost = dice.happens(20)
      var place = 12
      func word(_ offset: Int) -> UInt32 {
        packet[(place + offset)..<(place + offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
      }
      while place + 8 <= packet.count {
        let length = Int(packet[place + 2]) << 8 | Int(packet[place + 3])
        // A data chunk with one message; its payload starts with the number.
        let header = packet[place] == 64 ? 20 : 16
        if [0, 64].contains(packet[place]), length == header + AbandonmentTests.size {
          let number = Int(packet[place + header]) << 8 | Int(packet[place + header + 1])
          transmissions[number] += 1
          if !isLost { arrivals[number] += 1 }
          lastSent[number] = now
          numbers[number] = word(4)
        } else if [192, 194].contains(packet[place]) {
          let end = word(4)
          for (index, number) in numbers.enumerated() where passedOver[index] == nil {
            if let number, Int32(bitPattern: end &- number) >= 0 { passedOver[index] = now }
          }
        }
        place += (max(4, length) + 3) & ~3
      }
      return isLost ? nil : packet
    }
  }

  private struct Outcome {
    var journal: Journal
    /// When each message was passed to `send`.
    var sentAt: [Instant] = []
    var got: [Int] = []
    var abandoned = 0
  }

  /// Sends numbered messages over a channel of one kind through a network that loses a fifth.
  private func run(_ options: DataChannelInit, seed: UInt64) -> Outcome {
    var journal = Journal(dice: SeededGenerator(seed: seed))
    var sentAt: [Instant] = []
    var link = Link(seed: seed)
    link.connect { $1.offersInterleaving = seed % 2 == 0 }
    let channel = link.open(0, options)
    link.run(for: .seconds(1))
    withoutActuallyEscaping({ (side: Int, packet: [UInt8], now: Instant) -> [UInt8]? in
      side == 0 ? journal.carry(packet, at: now) : packet
    }) { carry in
      link.tamper = carry
      for number in 0..<AbandonmentTests.count {
        var bytes = [UInt8](repeating: 0, count: AbandonmentTests.size)
        bytes[0] = UInt8(number >> 8)
        bytes[1] = UInt8(number & 0xff)
        sentAt.append(link.now)
        link.step(0, .send(channel, binary: true, bytes))
        link.run(for: .milliseconds(3))
      }
      link.run(for: .seconds(60))
      link.tamper = nil
    }
    let got = link.seen[1].messages.map { Int($0.bytes[0]) << 8 | Int($0.bytes[1]) }
    // Every message that arrived was delivered, once and in order.
    let missing = journal.arrivals.indices.filter {
      journal.arrivals[$0] > 0 && !got.contains($0)
    }
    #expect(missing == [], "seed \(seed)")
    #expect(Set(got).count == got.count, "seed \(seed)")
    if options.ordered { #expect(got == got.sorted(), "seed \(seed)") }
    #expect(link.sides[0].statistics.unacknowledgedChunks == 0, "seed \(seed)")
    return Outcome(
      journal: journal, sentAt: sentAt, got: got,
      abandoned: Int(link.sides[0].counters(of: channel)?.messagesAbandoned ?? 0))
  }

  @Test(.timeLimit(.minutes(60)), arguments: [0, 1, 3], [true, false])
  func aMessageIsDroppedAfterItsAllowedRetransmissions(limit: UInt16, ordered: Bool) {
    for seed in 0..<AbandonmentTests.seeds {
      let outcome = run(DataChannelInit(ordered: ordered, maxRetransmits: limit), seed: seed)
      let transmissions = outcome.journal.transmissions
      let allowed = Int(limit) + 1
      #expect(transmissions.allSatisfy { (1...allowed).contains($0) }, "seed \(seed)")
      let isFair = transmissions.indices.allSatisfy {
        outcome.journal.arrivals[$0] > 0 || transmissions[$0] == allowed
      }
      #expect(isFair, "seed \(seed): a message was abandoned too early")
      #expect(outcome.got.count < AbandonmentTests.count || limit == 3, "seed \(seed)")
    }
  }

  @Test(.timeLimit(.minutes(60)), arguments: [60, 150, 1000], [true, false])
  func aMessageIsDroppedAfterItsLifetime(lifetime: UInt16, ordered: Bool) {
    for seed in 0..<AbandonmentTests.seeds {
      let outcome = run(DataChannelInit(ordered: ordered, maxPacketLifeTime: lifetime), seed: seed)
      let journal = outcome.journal
      let ends = outcome.sentAt.map { $0 + .milliseconds(Int64(lifetime)) }
      let late = ends.indices.filter { index in
        journal.lastSent[index].map { $0 >= ends[index] } ?? false
      }
      #expect(late == [], "seed \(seed): messages were sent after their lifetime")
      let early = ends.indices.filter { index in
        journal.arrivals[index] == 0 && journal.passedOver[index].map { $0 < ends[index] } ?? false
      }
      #expect(early == [], "seed \(seed): messages were abandoned before their lifetime")
      // A message that did not arrive was abandoned; a message that arrived without being
      // acknowledged may be abandoned, too.
      let lost = AbandonmentTests.count - outcome.got.count
      #expect(outcome.abandoned >= lost, "seed \(seed)")
      #expect(lost > 0 || lifetime == 1000, "seed \(seed)")
    }
  }
}
