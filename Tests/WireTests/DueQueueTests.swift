import Testing
import Wire

struct DueQueueTests {
  /// Compares the queue with a linear search.
  @Test(arguments: 0..<8 as Range<UInt64>)
  func theQueueMatchesALinearSearch(_ seed: UInt64) {
    let random = Entropy(seed: [UInt8(seed)]).stream("dues")
    func below(_ bound: UInt64) -> Int { Int(random.integer(below: bound)) }
    var dues = [Instant?](repeating: nil, count: 50)
    var queue = DueQueue()
    var now = Instant.zero
    for _ in 0..<4000 {
      let index = below(50)
      let due = now + .milliseconds(Int64(below(200)))
      switch below(4) {
      case 0:
        // A deadline that moves later or is cancelled need not be reported to the queue.
        if let known = dues[index], known < due { dues[index] = due } else { dues[index] = nil }
      case 1:
        now += .milliseconds(Int64(below(40)))
        let expected = dues.indices.filter { dues[$0].map { $0 <= now } ?? false }
        #expect(queue.removeDue(until: now) { dues[$0] } == expected)
        for index in expected { dues[index] = nil }
      default:
        dues[index] = due
        queue.schedule(index, at: due)
      }
      #expect(queue.first { dues[$0] } == dues.compactMap { $0 }.min())
    }
  }

  @Test func saturatingArithmeticStopsAtTheBounds() {
    let unsigned: [UInt64] = [.max +| 5, 3 -| 5, 3 +| 4]
    #expect(unsigned == [.max, 0, 7])
    let signed: [Int64] = [.min +| -1, .max -| -1, .min -| 1, .max *| 2, .max *| -2, 6 *| 7]
    #expect(signed == [.min, .max, .min, .max, .min, 42])
    #expect(Int64(saturating: 1e300) == .max && Int64(saturating: -.infinity) == .min)
    #expect(Int64(saturating: .nan) == 0 && UInt8(saturating: 254.6) == 255)
  }
}
