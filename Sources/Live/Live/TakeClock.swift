import CSockets
public import Wire

/// The clock of a take: nanoseconds of CLOCK_MONOTONIC since the take's zero, and one wall clock
/// reading.
///
/// Stepping or slewing the system's wall clock never affects a peer: it is read once.
public struct TakeClock: Sendable {
  /// The UTC time at the take's zero.
  public let wallClock: WallClock
  private let zeroNanoseconds: Int64
  private let monotonicNanoseconds: @Sendable () -> Int64

  /// Starts a clock at zero.
  public init() {
    self.init(
      unixNanoseconds: csockets_realtime_ns(), monotonicNanoseconds: { csockets_monotonic_ns() })
  }

  /// Starts a clock over another source of monotonic nanoseconds, for tests.
  package init(unixNanoseconds: Int64, monotonicNanoseconds: @escaping @Sendable () -> Int64) {
    zeroNanoseconds = monotonicNanoseconds()
    wallClock = WallClock(unixNanosecondsAtZero: unixNanoseconds)
    self.monotonicNanoseconds = monotonicNanoseconds
  }

  /// The current instant.
  public var now: Instant { instant(monotonicNanoseconds: monotonicNanoseconds()) }

  /// The instant of a reading of CLOCK_MONOTONIC; zero if before the take.
  func instant(monotonicNanoseconds: Int64) -> Instant {
    Instant(nanoseconds: max(0, monotonicNanoseconds - zeroNanoseconds))
  }

  /// The reading of CLOCK_MONOTONIC at an instant; saturates.
  func monotonicNanoseconds(at instant: Instant) -> Int64 {
    let (sum, overflow) = zeroNanoseconds.addingReportingOverflow(instant.nanoseconds)
    return overflow ? .max : sum
  }
}
