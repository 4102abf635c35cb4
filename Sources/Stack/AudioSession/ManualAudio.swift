/// Whether the application decides when audio may be played and recorded, and what it decided.
struct ManualAudio {
  private(set) var isManual = false
  private(set) var isEnabled = false
  /// What was told of it.
  private var reported = true

  var canPlayOrRecord: Bool { !isManual || isEnabled }

  mutating func setManual(_ isManual: Bool) { self.isManual = isManual }
  mutating func setEnabled(_ isEnabled: Bool) { self.isEnabled = isEnabled }

  /// Whether audio may be played, when that is news; nil when it was told.
  mutating func consumeChange() -> Bool? {
    guard canPlayOrRecord != reported else { return nil }
    reported = canPlayOrRecord
    return reported
  }
}
