package import Wire

/// One step of one actor: what came in, when, and everything that followed.
package struct StepRecord: Sendable {
  /// The number of the actor in its take, counted from 1.
  package var actor: UInt32
  package var at: Instant
  package var input: any RecordedInput
  package var outputs: any RecordedOutputs
  /// The machine's deadline after the step.
  package var deadline: Instant?
  /// The random bytes drawn by the actor since its genesis, after the step.
  package var entropyDrawn: UInt64

  package init(
    actor: UInt32, at: Instant, input: any RecordedInput, outputs: any RecordedOutputs,
    deadline: Instant?, entropyDrawn: UInt64
  ) {
    self.actor = actor
    self.at = at
    self.input = input
    self.outputs = outputs
    self.deadline = deadline
    self.entropyDrawn = entropyDrawn
  }
}
