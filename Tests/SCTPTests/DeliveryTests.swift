import Foundation
import SCTP
import Testing
import Wire

struct DeliveryTests {
  /// Makes a message of `size` bytes that begins with its number, in four bytes.
  private func message(_ number: Int, size: Int) -> [UInt8] {
    var bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    while bytes.count < size { bytes.append(UInt8(truncatingIfNeeded: number + bytes.count)) }
    return bytes
  }

  /// How many networks carry the ten thousand messages; `RETAKE_DELIVERY_SEEDS=N` sets another
  /// number.
  private static let seeds =
    ProcessInfo.processInfo.environment["RETAKE_DELIVERY_SEEDS"].flatMap { UInt64($0) } ?? 2

  @Test(.timeLimit(.minutes(60)))
  func tenThousandMessagesArriveOnceAndInOrderOverABadNetwork() {
    for seed in 0..<DeliveryTests.seeds {
      var link = Link(
        seed: seed, LinkQuality(loss: 20, duplication: 10, jitter: .milliseconds(20)))
      link.connect { $1.offersInterleaving = seed % 2 == 0 }
      let channel = link.open(0)
      for number in 0..<10_000 {
        link.step(0, .send(channel, binary: true, message(number, size: 4 + number % 50)))
      }
      link.run { $0.seen[1].messages.count >= 10_000 }
      link.run(for: .seconds(10))
      let isRight =
        link.seen[1].messages.count == 10_000
        && link.seen[1].messages.enumerated().allSatisfy {
          $1.bytes == message($0, size: 4 + $0 % 50)
        }
      #expect(isRight && link.seen[0].failures + link.seen[1].failures == [], "seed \(seed)")
    }
  }

  @Test func aThousandSeedsDeliverSmallMessagesInBothDirections() {
    for seed in 0..<1000 as Range<UInt64> {
      var link = Link(
        seed: seed,
        LinkQuality(
          loss: Int(seed % 25), duplication: Int(seed % 15),
          jitter: .milliseconds(Int64(seed % 40))))
      link.start { $1.offersInterleaving = seed % 2 == 0 }
      let ordered = link.open(0, DataChannelInit(label: "ordered"))
      let unordered = link.open(1, DataChannelInit(label: "unordered", ordered: false))
      link.run { $0.sides.allSatisfy { $0.state == .connected } }
      for number in 0..<10 {
        link.step(0, .send(ordered, binary: true, message(number, size: 4 + number * 150)))
        link.step(1, .send(unordered, binary: true, message(number, size: 4 + number * 150)))
      }
      link.run { $0.seen.allSatisfy { $0.messages.count >= 10 } }
      link.run(for: .seconds(3))
      let expected = (0..<10).map { message($0, size: 4 + $0 * 150) }
      let there = link.seen[1].messages.map(\.bytes) == expected
      let back = link.seen[0].messages.map(\.bytes).sorted { $0.count < $1.count } == expected
      #expect(there && back, "seed \(seed)")
    }
  }

  @Test(arguments: [0, 1, 1131, 1132, 1133, 5000, 65536, 262_144, 1 << 20], [true, false])
  func messagesOfAnySizeArriveIntact(size: Int, ordered: Bool) {
    var link = Link(seed: 3, LinkQuality(loss: 2, jitter: .milliseconds(5)))
    link.connect { $1.offersInterleaving = size % 2 == 0 }
    let channel = link.open(0, DataChannelInit(ordered: ordered))
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    link.step(0, .send(channel, binary: true, bytes))
    link.step(0, .send(channel, binary: false, bytes))
    link.run { $0.seen[1].messages.count >= 2 }
    #expect(link.seen[1].messages.map(\.bytes) == [bytes, bytes])
    #expect(Set(link.seen[1].messages.map(\.binary)) == [true, false])
    #expect(link.sides[0].bufferedAmount(of: channel) == 0)
  }

  @Test func anAllZeroWindowIsProbedUntilItOpens() {
    var link = Link()
    link.connect { side, parameters in parameters.offersZeroChecksum = true }
    let channel = link.open(0)
    link.run(for: .seconds(1))
    // The receiver pretends to have no space.
    link.tamper = { side, bytes, _ in
      guard side == 1, bytes[12] == 3 else { return bytes }
      var changed = bytes
      for offset in 8..<12 { changed[offset] = 0 }
      for offset in 20..<24 { changed[offset] = 0 }
      return changed
    }
    for _ in 0..<100 { link.step(0, .send(channel, binary: true, message(1, size: 1000))) }
    link.run(for: .seconds(1))
    let before = link.seen[1].messages.count
    #expect(before < 30)
    link.run(for: .seconds(60))
    // One chunk at a time gets through, and the association survives.
    #expect(link.seen[1].messages.count > before)
    link.tamper = nil
    link.run { $0.seen[1].messages.count >= 100 }
    #expect(link.seen[1].messages.count == 100)
    #expect(link.seen[0].failures == [])
  }

  @Test func aSmallReceiveWindowIsRespected() {
    var link = Link(seed: 5, LinkQuality(loss: 10))
    link.connect { $1.receiveWindow = 4000 }
    let channel = link.open(0)
    for number in 0..<300 {
      link.step(0, .send(channel, binary: true, message(number, size: 900)))
    }
    link.run { $0.seen[1].messages.count >= 300 }
    #expect(link.seen[1].messages.map(\.bytes) == (0..<300).map { message($0, size: 900) })
  }

  @Test func theSameInputsGiveTheSamePackets() {
    func trace() -> [[UInt8]] {
      var packets: [[UInt8]] = []
      var link = Link(seed: 11, LinkQuality(loss: 10, duplication: 5, jitter: .milliseconds(9)))
      withoutActuallyEscaping({ (_: Int, bytes: [UInt8], _: Instant) -> [UInt8]? in
        packets.append(bytes)
        return bytes
      }) { watch in
        link.tamper = watch
        link.connect()
        let channel = link.open(0)
        for number in 0..<50 {
          link.step(0, .send(channel, binary: true, message(number, size: 3000)))
        }
        link.run { $0.seen[1].messages.count >= 50 }
        link.tamper = nil
      }
      return packets
    }
    #expect(trace() == trace())
  }

  @Test func theCongestionWindowFillsALink() {
    // 10 Mbit/s at 50 ms, with losses only in the queue.
    var link = Link(seed: 1, LinkQuality(rate: 1_250_000))
    link.connect()
    let channel = link.open(0)
    let size = 16384
    for number in 0..<400 {
      link.step(0, .send(channel, binary: true, message(number, size: size)))
    }
    let begin = link.now
    link.run { $0.seen[1].messages.count >= 400 }
    let goodput = Double(400 * size) / (link.now - begin).seconds
    #expect(goodput > 0.85 * 1_250_000, "\(goodput)")
  }
}
