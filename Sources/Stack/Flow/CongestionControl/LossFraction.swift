/// The share of packets recently lost on the path.
struct LossFraction: Sendable {
  /// The share counts only after this many packets were reported.
  private static let fewest = 20

  /// The share, 0 to 1.
  private(set) var value = 0.0
  private var arrived = 0
  private var missing = 0

  /// Counts packets reported by transport-wide feedback.
  mutating func receive(arrived: Int, missing: Int) {
    self.arrived += arrived
    self.missing += missing
    guard self.arrived + self.missing >= LossFraction.fewest else { return }
    value = Double(self.missing) / Double(self.arrived + self.missing)
    self.arrived = 0
    self.missing = 0
  }

  /// Handles the share in a receiver report, in 1/256 (RFC 3550 section 6.4.1).
  mutating func receive(_ fraction: UInt8) { value = Double(fraction) / 256 }
}
