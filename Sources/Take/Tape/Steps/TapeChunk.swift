package import Peer

/// Some consecutive steps with the rows that were recorded for them.
package struct TapeChunk: Sendable {
  /// A step as it was recorded.
  package struct Step: Sendable {
    package var head: StepHead
    /// The number of the peer that the step's actor is; nil when it is none.
    package var peer: UInt32?
    /// The input of an endpoint; nil for another machine.
    ///
    /// It stands in the step itself: nearly all inputs are those of endpoints, and each would have
    /// memory of its own otherwise.
    package private(set) var peerInput: PeerInput?
    private var otherInput: (any RecordedInput)?
    /// The step's rows in `rows`: first those of the input, then those of the outputs.
    package var rows: Range<Int>
    /// How many of them are the input's.
    package var inputRowCount: Int

    /// A step of an endpoint.
    init(
      head: StepHead, peer: UInt32?, input: consuming PeerInput, rows: Range<Int>,
      inputRowCount: Int
    ) {
      (self.head, self.peer, self.rows, self.inputRowCount) = (head, peer, rows, inputRowCount)
      peerInput = input
    }

    /// A step of another machine.
    init(
      head: StepHead, peer: UInt32?, other input: any RecordedInput, rows: Range<Int>,
      inputRowCount: Int
    ) {
      (self.head, self.peer, self.rows, self.inputRowCount) = (head, peer, rows, inputRowCount)
      otherInput = input
    }

    /// The input, of whatever machine.
    package var input: any RecordedInput {
      get {
        if let peerInput { return peerInput }
        return otherInput ?? UnknownInput(stepKind: head.kind)
      }
      set {
        peerInput = newValue as? PeerInput
        otherInput = peerInput == nil ? newValue : nil
      }
    }

    /// Adds the rows of the input.
    package func writeInput(to transcript: inout Transcript) {
      if let peerInput {
        transcript.append(peerInput)
      } else {
        otherInput?.write(to: &transcript)
      }
    }

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
