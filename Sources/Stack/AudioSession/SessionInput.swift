/// Whether the microphone may be used, and whether it is paused.
struct SessionInput {
  /// Whether permission was granted.
  private(set) var isAllowed = false
  private(set) var isPaused = false

  /// Records the user's decision.
  mutating func allow(_ isAllowed: Bool) { self.isAllowed = isAllowed }

  mutating func pause(_ isPaused: Bool) { self.isPaused = isPaused }
}
