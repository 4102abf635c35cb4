import ICE
import Peer
import Testing
import Wire

@testable import Live

@Suite(.timeLimit(.minutes(1))) struct StateStreamTests {
  @Test func aStreamThatBeginsWhileAStateChangesStillSeesTheChange() async {
    for _ in 0..<2_000 {
      let observers = PeerObservers()
      let change = Task.detached {
        observers.observe(
          .state(StateTransition(machine: "ice-gathering", from: "new", to: "complete")), at: .zero)
      }
      let waiting = Task.detached {
        for await states in observers.stateStream() where states.iceGathering == .complete {
          return true
        }
        return false
      }
      await change.value
      #expect(await waiting.value)
      observers.finish()
    }
  }
}
