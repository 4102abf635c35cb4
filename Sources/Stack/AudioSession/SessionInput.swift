/// Whether the microphone may be used, and whether its recording is paused.
struct SessionInput {
  /// Whether it was asked for and may be used.
  private(set) var isAllowed = false
  private(set) var isPaused = false

  /// Handles the answer of who was asked.
  mutating func allow(_ isAllowed: Bool) { self.isAllowed = isAllowed }

  mutating func pause(_ isPaused: Bool) { self.isPaused = isPaused }
}
