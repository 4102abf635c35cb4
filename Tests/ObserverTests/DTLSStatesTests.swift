import Secure
import Testing

@testable import Observer

/// Tests the states of an observed DTLS association at both ends.
struct DTLSStatesTests {
  @Test func aRepeatedHandshakeChangesNothing() {
    var states = DTLSStates()
    #expect(states.move(0, to: .connecting) == .new)
    #expect(states.move(0, to: .connecting) == nil)
    #expect(states.move(0, to: .connected) == .connecting)
    #expect(states.move(0, to: .connecting) == nil)
    #expect(states.move(1, to: .connecting) == .new, "the ends have separate states")
    #expect(states.move(0, to: .closed) == .connected)
    #expect(states.move(0, to: .failed) == nil)
  }

  @Test func closeNotifyClosesAndAnyOtherAlertFails() {
    var states = DTLSStates()
    _ = states.move(0, to: .connected)
    #expect(states.state(after: 0, of: 0) == .closed)
    #expect(states.state(after: 40, of: 0) == .failed)
    #expect(states.state(after: nil, of: 0) == .closed, "an encrypted one after the handshake")
    #expect(states.state(after: nil, of: 1) == .failed, "an encrypted one during it")
  }
}
