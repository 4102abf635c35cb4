package import Peer

/// Some consecutive steps with the rows that were recorded for them.
package struct TapeChunk: Sendable {
  /// A step as it was recorded.
  package struct Step: Sendable {
    package var head: StepHead
    /// The number of the peer that the step's actor is; nil when it is none.
    package var peer: UInt32?
    package var input: any RecordedInput
    /// The step's rows in `rows`: first those of the input, then those of the outputs.
    package var rows: Range<Int>
    /// How many of them are the input's.
    package var inputRowCount: Int

    /// The input of an endpoint; nil for another machine.
    package var peerInput: PeerInput? { input as? PeerInput }

    /// How the actor is called: `peer 1`, or `actor 2`.
    package var actorName: String { ActorWords.name(actor: head.actor, peer: peer) }

    /// The rows of the outputs.
    package var outputRows: Range<Int> { rows.lowerBound + inputRowCount..<rows.upperBound }
    /// The rows of the input.
    package var inputRows: Range<Int> { rows.lowerBound..<rows.lowerBound + inputRowCount }
  }

  package internal(set) var steps: [Step] = []
  package internal(set) var rows = RowList()

  package init() {}

  /// Forgets all steps and keeps the memory.
  mutating func removeAll() {
    steps.removeAll(keepingCapacity: true)
    rows.removeAll()
  }
}
