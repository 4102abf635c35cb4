import Testing
import Wire

@testable import Flow

/// Tests each part of a path's bandwidth estimate separately.
struct CongestionPartTests {
  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func arrived(_ ticks: Int64, _ bytes: Int) -> SentLog.Acknowledged {
    SentLog.Acknowledged(sentAt: .zero, arrivalTicks: ticks, bytes: bytes)
  }

  // MARK: Arrivals

  @Test func anArrivalRateNeedsEnoughTime() {
    var arrivals = ArrivalRate()
    #expect(arrivals.bitrate == nil)
    arrivals.receive(arrived(0, 1000))
    arrivals.receive(arrived(599, 1000))
    #expect(arrivals.bitrate == nil)
    // 150 ms, in which 3000 bytes arrived.
    arrivals.receive(arrived(600, 1000))
    #expect(arrivals.bitrate == 3000 * 8 / 0.15)
  }

  @Test func arrivalsOlderThanHalfASecondAreForgotten() {
    var arrivals = ArrivalRate()
    arrivals.receive(arrived(0, 1_000_000))
    arrivals.receive(arrived(1000, 500))
    arrivals.receive(arrived(2000, 500))
    #expect(arrivals.bitrate == 1_001_000 * 8 / 0.5)
    arrivals.receive(arrived(2001, 500))
    #expect(arrivals.bitrate == 1500 * 8 / (1001 * 0.000_25))
    // A packet out of order does not set the clock back.
    arrivals.receive(arrived(1500, 500))
    #expect(arrivals.bitrate == 2000 * 8 / (1001 * 0.000_25))
  }

  // MARK: Loss

  @Test func aLossFractionNeedsEnoughPackets() {
    var loss = LossFraction()
    loss.receive(arrived: 9, missing: 10)
    #expect(loss.value == 0)
    loss.receive(arrived: 1, missing: 0)
    #expect(loss.value == 0.5)
    // The next loss share is computed from new packets only.
    loss.receive(arrived: 10, missing: 9)
    #expect(loss.value == 0.5)
    loss.receive(arrived: 20, missing: 1)
    #expect(loss.value == 0.25)
  }

  @Test func aReceiverReportSetsTheLossFraction() {
    var loss = LossFraction()
    loss.receive(64)
    #expect(loss.value == 0.25)
    loss.receive(0)
    #expect(loss.value == 0)
  }

  // MARK: Bounds

  @Test func aRateIsKeptWithinItsBounds() {
    var bounds = BitrateBounds()
    #expect([0, 60_000, 3e6].map(bounds.clamp) == [50_000, 60_000, 2_500_000])
    bounds.set(maximum: 1_000_000, minimum: 100)
    // The pacer needs at least 5 kbit/s.
    #expect([0, 60_000, 3e6].map(bounds.clamp) == [5000, 60_000, 1_000_000])
    bounds.set(maximum: 10_000, minimum: nil)
    #expect(bounds.minimum == 50_000 && bounds.maximum == 50_000)
    bounds.set(maximum: .max, minimum: .max)
    #expect(bounds.minimum == Double(1 << 40 as UInt64) && bounds.maximum == bounds.minimum)
  }

  @Test func thePeersLimitIsASeparateBound() {
    var bounds = BitrateBounds()
    #expect(!bounds.isLimitedByPeer && bounds.clampToPeer(9e6) == 9e6)
    bounds.set(remoteMaximum: 300_000)
    #expect(bounds.isLimitedByPeer && bounds.clampToPeer(9e6) == 300_000)
    #expect(bounds.clampToPeer(200_000) == 200_000)
    #expect([50_000, 300_000, 2_500_000].allSatisfy(bounds.isBound))
    #expect(!bounds.isBound(299_999))
    bounds.set(remoteMaximum: 2_500_000)
    #expect(!bounds.isLimitedByPeer)
  }

  // MARK: Capacity

  @Test func decreasesWaitForTheEffectOfThePreviousOne() {
    var capacity = PathCapacity()
    #expect(capacity.mayCut(at: at(0)))
    capacity.cut(from: 1_000_000, arrivalRate: 800_000, at: at(100))
    #expect(capacity.fullAt == 800_000 && capacity.carriedAtCut == 0.85 * 800_000)
    #expect(capacity.cutAt == at(100))
    #expect(!capacity.mayCut(at: at(349)) && capacity.mayCut(at: at(350)))
  }

  /// Even if packets arrive faster than the estimate, the path's capacity is never set above it.
  @Test func thePathsCapacityNeverExceedsTheEstimate() {
    var capacity = PathCapacity()
    capacity.cut(from: 500_000, arrivalRate: 800_000, at: at(0))
    #expect(capacity.fullAt == 500_000 && capacity.carriedAtCut == 0.85 * 800_000)
    capacity.cut(from: 400_000, arrivalRate: nil, at: at(300))
    #expect(capacity.fullAt == 400_000 && capacity.carriedAtCut == 0.85 * 400_000)
  }

  @Test func aRateGrowsSlowlyNearTheLastKnownCapacity() {
    var capacity = PathCapacity()
    #expect(capacity.growth(of: 1, at: at(0)) == 1)
    capacity.cut(from: 1_000_000, arrivalRate: nil, at: at(0))
    #expect(capacity.growth(of: 850_000, at: at(100)) == 0.25)
    #expect(capacity.growth(of: 850_001, at: at(100)) == 0.04)
    #expect(capacity.isRecent(at: at(9999)) && !capacity.isRecent(at: at(10_000)))
    #expect(capacity.growth(of: 850_001, at: at(10_000)) == 0.25)
  }
}
