import DequeModule
import Seeded
import Testing
import Wire

@testable import SCTP

struct QueueTests {
  @Test func queuesReleaseTheirStorageAfterAPeak() throws {
    var link = Link(seed: 2, LinkQuality(loss: 5))
    link.connect()
    let channel = link.open(0, DataChannelInit(ordered: true))
    let small = 5000
    for number in 0..<small {
      link.step(0, .send(channel, binary: true, [UInt8(truncatingIfNeeded: number)]))
    }
    link.step(0, .send(channel, binary: true, [UInt8](repeating: 7, count: 200_000)))
    link.run { $0.sides[0].sender.queues.isEmpty(0) }
    #expect(!hasNoSpace(link.sides[0].sender.sent.chunks))
    link.run { $0.seen[1].messages.count > small && $0.sides[0].sender.sent.isEmpty }
    #expect(link.seen[1].messages.count == small + 1)
    #expect(hasNoSpace(link.sides[0].sender.queues.messages(of: 0)))
    #expect(hasNoSpace(link.sides[0].sender.sent.chunks))
    #expect(link.sides[1].receiver.streams.streams.allSatisfy { hasNoSpace($0.ordered) })
    #expect(!hasNoSpace(Deque([1])))
  }

  @Test func channelsAreServedInTheOrderOfTheirVirtualTimes() {
    var schedule = SendSchedule()
    var dice = SeededGenerator(seed: 4)
    var waiting: [(time: UInt64, channel: Int)] = []
    for channel in 0..<200 {
      let time = UInt64(dice.below(40))
      schedule.push(channel, time: time)
      waiting.append((time, channel))
    }
    for channel in stride(from: 0, to: 200, by: 7) {
      schedule.remove(channel)
      waiting.removeAll { $0.channel == channel }
    }
    waiting.sort { $0 < $1 }
    var order: [Int] = []
    while let first = schedule.first {
      order.append(first)
      schedule.popFirst()
    }
    #expect(order == waiting.map(\.channel))
    #expect(schedule.now == waiting.last?.time)
  }

  /// Returns whether a queue uses the shared storage of never-filled queues.
  private func hasNoSpace<Element>(_ queue: Deque<Element>) -> Bool {
    unsafeBitCast(queue, to: UInt.self) == unsafeBitCast(Deque<Element>(), to: UInt.self)
  }
}
