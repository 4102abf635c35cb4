import Foundation
import SCTP
import Testing
import Wire

/// Unreliable channels against a record of what the network did to each message.
@Suite struct AbandonmentTests {
  /// How many networks; `RETAKE_DELIVERY_SEEDS=N` asks for another number.
  private static let seeds =
    ProcessInfo.processInfo.environment["RETAKE_DELIVERY_SEEDS"].flatMap { UInt64($0) } ?? 20

  private static let count = 400
  private static let size = 1000

  /// What happened to the messages of the first side, by number.
  private struct Journal {
    var transmissions = [Int](repeating: 0, count: AbandonmentTests.count)
    var arrivals = [Int](repeating: 0, count: AbandonmentTests.count)
    var dice: Dice

    /// Lets a packet of the first side through, or loses it.
    mutating func carry(_ packet: [UInt8]) -> [UInt8]? {
      let isLost = dice.happens(20)
      var place = 12
      while place + 20 < packet.count {
        let length = Int(packet[place + 2]) << 8 | Int(packet[place + 3])
        // A chunk of data that is one message; its payload begins with the number.
        let header = packet[place] == 64 ? 20 : 16
        if [0, 64].contains(packet[place]), length == header + AbandonmentTests.size {
          let number = Int(packet[place + header]) << 8 | Int(packet[place + header + 1])
          transmissions[number] += 1
          if !isLost { arrivals[number] += 1 }
        }
        place += (max(4, length) + 3) & ~3
      }
      return isLost ? nil : packet
    }
  }

  @Test(.timeLimit(.minutes(60)), arguments: [0, 1, 3], [true, false])
  func onlyWhatWasLostAsOftenAsAllowedIsDropped(limit: UInt16, ordered: Bool) {
    for seed in 0..<AbandonmentTests.seeds {
      var journal = Journal(dice: Dice(seed))
      var link = Link(seed: seed)
      link.connect { $1.offersInterleaving = seed % 2 == 0 }
      let channel = link.open(0, DataChannelInit(ordered: ordered, maxRetransmits: limit))
      link.run(for: .seconds(1))
      withoutActuallyEscaping({ (side: Int, packet: [UInt8]) -> [UInt8]? in
        side == 0 ? journal.carry(packet) : packet
      }) { carry in
        link.tamper = carry
        for number in 0..<AbandonmentTests.count {
          var bytes = [UInt8](repeating: 0, count: AbandonmentTests.size)
          bytes[0] = UInt8(number >> 8)
          bytes[1] = UInt8(number & 0xff)
          link.step(0, .send(channel, binary: true, bytes))
          link.run(for: .milliseconds(3))
        }
        link.run(for: .seconds(60))
        link.tamper = nil
      }
      let got = link.seen[1].messages.map { Int($0.bytes[0]) << 8 | Int($0.bytes[1]) }
      let numbers = 0..<AbandonmentTests.count
      // What reached the other side was handed out, once and in order; nothing else was dropped.
      let missing = numbers.filter { journal.arrivals[$0] > 0 && !got.contains($0) }
      #expect(missing == [], "seed \(seed)")
      #expect(Set(got).count == got.count, "seed \(seed)")
      if ordered { #expect(got == got.sorted(), "seed \(seed)") }
      let allowed = Int(limit) + 1
      #expect(journal.transmissions.allSatisfy { (1...allowed).contains($0) }, "seed \(seed)")
      let isFair = numbers.allSatisfy {
        journal.arrivals[$0] > 0 || journal.transmissions[$0] == allowed
      }
      #expect(isFair, "seed \(seed): a message was given up too early")
      #expect(got.count < AbandonmentTests.count || limit == 3, "seed \(seed)")
    }
  }
}
