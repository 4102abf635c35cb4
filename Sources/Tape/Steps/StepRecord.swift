package import Peer
package import Wire

/// One step of one peer: what came in, when, and everything that followed.
package struct StepRecord: Sendable {
  /// The number of the peer in its take, counted from 1.
  package var peer: UInt32
  package var at: Instant
  package var input: PeerInput
  package var outputs: [PeerOutput]
  /// The machine's deadline after the step.
  package var deadline: Instant?
  /// The random bytes drawn by the peer since its genesis, after the step.
  package var entropyDrawn: UInt64

  package init(
    peer: UInt32, at: Instant, input: PeerInput, outputs: [PeerOutput], deadline: Instant?,
    entropyDrawn: UInt64
  ) {
    self.peer = peer
    self.at = at
    self.input = input
    self.outputs = outputs
    self.deadline = deadline
    self.entropyDrawn = entropyDrawn
  }
}
