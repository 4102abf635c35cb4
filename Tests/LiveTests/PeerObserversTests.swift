import ICE
import Peer
import Synchronization
import Testing
import Wire

@testable import Live

@Suite struct PeerObserversTests {
  @Test func aStateThatChangesWhileAStreamBeginsIsNotMissed() async {
    for round in 0..<800 {
      let observers = PeerObservers()
      let turns = Spinner()
      let change = Task.detached {
        turns.meet()
        for _ in 0..<round % 40 { turns.idle() }
        observers.observe(
          .state(StateTransition(machine: "ice-gathering", from: "gathering", to: "complete")),
          at: .zero)
      }
      turns.meet()
      let stream = observers.stateStream()
      await change.value
      observers.finish()
      var last: PeerConnectionStates?
      for await states in stream { last = states }
      guard last?.iceGathering == .complete else {
        Issue.record("the stream ended with \(String(describing: last?.iceGathering))")
        return
      }
    }
  }

  /// Two that wait for each other, as near to the same moment as they can.
  private final class Spinner: Sendable {
    private let count = Atomic<Int>(0)
    private let steps = Atomic<Int>(0)

    func meet() {
      count.add(1, ordering: .acquiringAndReleasing)
      // With one core alone the other never comes while this one waits, so the wait has an end.
      var left = 100_000
      while count.load(ordering: .acquiring) < 2, left > 0 { left -= 1 }
    }

    func idle() { steps.add(1, ordering: .relaxed) }
  }
}
