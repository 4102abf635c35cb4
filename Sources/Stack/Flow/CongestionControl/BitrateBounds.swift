/// The range of bit rates that may be tried and the peer's limit, in bits per second.
struct BitrateBounds: Sendable {
  /// Below this rate video is useless.
  private static let usefulMinimum = 50_000.0
  /// The floor for any application setting: the pacer needs some rate.
  private static let leastMinimum = 5_000.0
  /// Far above any real rate; keeps sums from overflowing.
  private static let most: UInt64 = 1 << 40

  private(set) var minimum = BitrateBounds.usefulMinimum
  private(set) var maximum = 2_500_000.0
  /// The peer's own estimate (REMB); nil until it sent one.
  private(set) var remoteMaximum: Double?

  /// Whether the peer's limit is below the maximum.
  var isLimitedByPeer: Bool { remoteMaximum.map { $0 < maximum } ?? false }

  /// Sets the bounds; the default minimum is the least rate at which video is useful.
  mutating func set(maximum: UInt64, minimum: UInt64?) {
    self.minimum =
      minimum.map { max(BitrateBounds.bounded($0), BitrateBounds.leastMinimum) }
      ?? BitrateBounds.usefulMinimum
    self.maximum = max(BitrateBounds.bounded(maximum), self.minimum)
  }

  mutating func set(remoteMaximum: UInt64) { self.remoteMaximum = Double(remoteMaximum) }

  /// Clamps a rate to the bounds.
  func clamp(_ rate: Double) -> Double { min(max(rate, minimum), maximum) }

  /// Clamps a rate to the peer's limit.
  func clampToPeer(_ rate: Double) -> Double { remoteMaximum.map { min(rate, $0) } ?? rate }

  /// Whether a rate is at its minimum or maximum.
  func isBound(_ rate: Double) -> Bool {
    rate <= minimum || rate >= maximum || rate == remoteMaximum
  }

  /// Converts a requested rate, clamped to the supported range.
  static func bounded(_ rate: UInt64) -> Double { Double(min(rate, most)) }
}
