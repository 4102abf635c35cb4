/// Whether the application controls when the device may run, and its decision.
struct ManualAudio {
  private(set) var isManual = false
  private(set) var isEnabled = false
  /// The value last reported.
  private var reported = true

  var canPlayOrRecord: Bool { !isManual || isEnabled }

  mutating func setManual(_ isManual: Bool) { self.isManual = isManual }
  mutating func setEnabled(_ isEnabled: Bool) { self.isEnabled = isEnabled }

  /// Returns whether the device may run, if that changed since the last call.
  mutating func consumeChange() -> Bool? {
    guard canPlayOrRecord != reported else { return nil }
    reported = canPlayOrRecord
    return reported
  }
}
