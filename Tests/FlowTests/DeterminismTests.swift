import RTP
import Testing
import Wire

@testable import Flow

struct DeterminismTests {
  @Test func theSameInputsGiveTheSamePacketsAndDeadlines() {
    let first = call(seed: 4)
    let second = call(seed: 4)
    let other = call(seed: 5)
    for side in 0..<2 {
      #expect(first.packets[side].map(\.bytes) == second.packets[side].map(\.bytes))
      #expect(first.packets[side].map(\.at) == second.packets[side].map(\.at))
      #expect(first.wakes[side] == second.wakes[side])
      #expect(first.flows[side].inbound == second.flows[side].inbound)
      #expect(first.flows[side].outbound == second.flows[side].outbound)
      #expect(first.packets[side].first?.bytes != other.packets[side].first?.bytes || side == 1)
    }
  }

  @Test func aCopyMadeInTheMiddleContinuesIdentically() {
    // A flow is a value type, so a copy and its original respond to the same input in the same way.
    let pair = call(seed: 6)
    var copy = pair.flows[1]
    var outboxes = [Outbox<MediaFlow.Output>(), Outbox<MediaFlow.Output>()]
    pair.flows[1].step(.requestKeyframe(mid: "v"), at: pair.now, into: &outboxes[0])
    copy.step(.requestKeyframe(mid: "v"), at: pair.now, into: &outboxes[1])
    let outputs = outboxes.map { $0.outputs.map { "\($0)" } }
    #expect(outputs[0] == outputs[1] && !outputs[0].isEmpty)
  }

  private func call(seed: UInt64) -> Pair {
    let pair = Pair(sections: Agreed.video().map { [$0] }, seed: seed)
    pair.links[0] = Link(jitter: .milliseconds(5), loss: 0.05)
    pair.film(Camera(), milliseconds: 2000)
    return pair
  }
}
