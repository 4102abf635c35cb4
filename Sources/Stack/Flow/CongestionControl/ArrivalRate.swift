import DequeModule

/// The rate at which packets recently arrived at the peer, by the peer's clock.
struct ArrivalRate: Sendable {
  /// The time over which the rate is measured, in units of 250 µs.
  private static let windowTicks: Int64 = 2000
  /// Too short a time to compute a rate from.
  private static let leastTicks: Int64 = 600

  private var arrivals = Deque<(ticks: Int64, bytes: Int)>()
  private var bytes = 0
  private var newest: Int64 = .min

  /// The rate in bits per second; nil until enough packets arrived.
  var bitrate: Double? {
    guard let first = arrivals.first, newest - first.ticks >= ArrivalRate.leastTicks else {
      return nil
    }
    return Double(bytes) * 8 / (Double(newest - first.ticks) * 0.000_25)
  }

  mutating func receive(_ packet: SentLog.Acknowledged) {
    newest = max(newest, packet.arrivalTicks)
    arrivals.append((packet.arrivalTicks, packet.bytes))
    bytes += packet.bytes
    while let first = arrivals.first, newest - first.ticks > ArrivalRate.windowTicks {
      arrivals.removeFirst()
      bytes -= first.bytes
    }
  }
}
