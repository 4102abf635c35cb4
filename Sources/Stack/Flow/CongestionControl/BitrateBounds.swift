/// The lowest and the highest bit rate that may be tried, and what the peer allows, in bits per
/// second.
struct BitrateBounds: Sendable {
  /// Below this rate no video frame is of use.
  private static let usefulMinimum = 50_000.0
  /// What is sent in any case, whatever an application says: nothing can be paced without.
  private static let leastMinimum = 5_000.0
  /// More than this is what nobody sends.
  private static let most: UInt64 = 1 << 40

  private(set) var minimum = BitrateBounds.usefulMinimum
  private(set) var maximum = 2_500_000.0
  /// The peer's own estimate (REMB); nil before it told one.
  private(set) var remoteMaximum: Double?

  /// Whether the peer allows less than what may be tried.
  var isLimitedByPeer: Bool { remoteMaximum.map { $0 < maximum } ?? false }

  /// Sets the bounds; without a minimum it is the least of which video is of use.
  mutating func set(maximum: UInt64, minimum: UInt64?) {
    self.minimum =
      minimum.map { max(BitrateBounds.bounded($0), BitrateBounds.leastMinimum) }
      ?? BitrateBounds.usefulMinimum
    self.maximum = max(BitrateBounds.bounded(maximum), self.minimum)
  }

  /// Handles the peer's own estimate.
  mutating func set(remoteMaximum: UInt64) { self.remoteMaximum = Double(remoteMaximum) }

  /// The rate nearest to one that may be tried.
  func clamp(_ rate: Double) -> Double { min(max(rate, minimum), maximum) }

  /// A rate, or what the peer allows when that is less.
  func clampToPeer(_ rate: Double) -> Double { remoteMaximum.map { min(rate, $0) } ?? rate }

  /// Whether a rate can go no further down, or no further up.
  func isBound(_ rate: Double) -> Bool {
    rate <= minimum || rate >= maximum || rate == remoteMaximum
  }

  /// What somebody asks for, as far as it can be.
  static func bounded(_ rate: UInt64) -> Double { Double(min(rate, most)) }
}
