import SCTP
import Seeded
import Testing
import Wire

/// Tests the text that describes packets.
struct TextTests {
  /// Returns the titles of a short conversation's packets, in sending order.
  private func conversation(interleaving: Bool) -> [String] {
    var titles: [String] = []
    var link = Link()
    withoutActuallyEscaping({ (_: Int, bytes: [UInt8], _: Instant) -> [UInt8]? in
      titles.append(SCTPText.title(bytes.span.bytes))
      return bytes
    }) { watch in
      link.tamper = watch
      link.connect { $1.offersInterleaving = interleaving }
      let channel = link.open(0, DataChannelInit(label: "chat"))
      link.send(0, channel, "hello")
      link.step(0, .send(channel, binary: true, [UInt8](repeating: 1, count: 2500)))
      link.run(for: .seconds(1))
      link.step(0, .close(channel))
      link.run(for: .seconds(1))
      link.step(0, .shutdown)
      link.run(for: .seconds(1))
      link.tamper = nil
    }
    return titles
  }

  @Test(arguments: [true, false]) func anExchangeIsDescribedInOrder(interleaving: Bool) {
    let all = conversation(interleaving: interleaving).joined(separator: "\n")
    let data = interleaving ? "I-DATA" : "DATA"
    for expected in [
      "SCTP INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK", "OPEN \"chat\"", "OPEN acknowledged",
      "SCTP \(data) ", " on stream 0, message 1, text, 5 bytes", "first part", "last part",
      "SACK up to ", "RE-CONFIG resets 0", "RE-CONFIG performed", "SHUTDOWN", "SHUTDOWN COMPLETE",
    ] {
      #expect(all.contains(expected), "\(expected) is not in\n\(all)")
    }
  }

  @Test func anyBytesAreDescribed() {
    var dice = SeededGenerator(seed: 5)
    for hex in RecordedPackets.all {
      let packet = RecordedPackets.bytes(hex)
      for length in 0...packet.count {
        var bytes = Array(packet.prefix(length))
        if !bytes.isEmpty { bytes[dice.below(bytes.count)] = UInt8(dice.below(256)) }
        #expect(SCTPText.title(bytes.span.bytes).hasPrefix("SCTP "))
      }
    }
  }
}
