import Testing
import Wire

@testable import SCTP

/// Tests how the congestion window changes (RFC 9260 section 7.2), for chunks of up to 1,148 bytes.
struct CongestionWindowTests {
  private let chunk = 1148

  private func window() -> CongestionWindow { CongestionWindow(packetSize: chunk + 12) }

  @Test func aNewPathGetsFourPackets() {
    #expect((3 * chunk + 1...4 * chunk).contains(window().bytes))
    #expect(CongestionWindow(packetSize: 10_000).bytes == 2 * (10_000 - 12))
    #expect(CongestionWindow(packetSize: 500).bytes == 4 * (500 - 12))
  }

  @Test func slowStartGrowsByTheAcknowledgedBytesUpToTwoChunks() {
    var window = window()
    let first = window.bytes
    window.acknowledge(chunk, flight: first)
    #expect(window.bytes == first + chunk)
    window.acknowledge(9 * chunk, flight: window.bytes)
    #expect(window.bytes == first + 3 * chunk)
  }

  @Test func anUnusedWindowDoesNotGrow() {
    var window = window()
    let first = window.bytes
    window.acknowledge(chunk, flight: first - 1)
    #expect(window.bytes == first)
  }

  @Test func avoidanceGrowsByOneChunkPerRoundTrip() {
    var window = window()
    for _ in 0..<20 { window.acknowledge(2 * chunk, flight: window.bytes) }
    var began = window.lose(lastInFlight: 0)
    #expect(began)
    // During recovery, a window at its threshold keeps its size, and further losses change nothing.
    let half = window.bytes
    window.acknowledge(2 * chunk, flight: half)
    began = window.lose(lastInFlight: 5)
    #expect(!began && window.bytes == half)
    window.advance(to: 0)
    window.acknowledge(chunk, flight: half)
    for _ in 0..<10 {
      let before = window.bytes
      var left = before
      while left > 0 {
        window.acknowledge(min(left, 2 * chunk), flight: window.bytes)
        left -= 2 * chunk
      }
      #expect((chunk * 9 / 10...chunk).contains(window.bytes - before))
    }
  }

  @Test func aLossHalvesAndATimeoutLeavesOnePacket() {
    var window = window()
    for _ in 0..<20 { window.acknowledge(2 * chunk, flight: window.bytes) }
    let before = window.bytes
    var began = window.lose(lastInFlight: 0)
    #expect(began && window.bytes == before / 2)
    window.timeOut()
    #expect(window.bytes == chunk && window.isProbing)
    window.acknowledge(chunk, flight: chunk)
    #expect(window.bytes == 2 * chunk && !window.isProbing)
    // Halving after a loss stops at four chunks (RFC 9260 section 7.2.3).
    var small = self.window()
    began = small.lose(lastInFlight: 0)
    #expect(began && small.bytes == 4 * chunk)
  }

  @Test func idleTimeHalvesTheWindowAndSlowStartRestoresIt() {
    var window = window()
    for _ in 0..<20 { window.acknowledge(2 * chunk, flight: window.bytes) }
    let before = window.bytes
    window.idle(for: .milliseconds(2500), timeout: .seconds(1))
    #expect(window.bytes == before / 4)
    // In slow start the window grows again.
    window.acknowledge(2 * chunk, flight: window.bytes)
    #expect(window.bytes == before / 4 + 2 * chunk)
    window.idle(for: .seconds(100), timeout: .seconds(1))
    #expect(window.bytes == 4 * chunk)
  }
}
