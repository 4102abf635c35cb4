package import Peer

/// Some consecutive steps with the rows that were recorded for them.
package struct TapeChunk: Sendable {
  /// A step as it was recorded.
  package struct Step: Sendable {
    package var head: StepHead
    package var input: any RecordedInput
    /// The step's rows in `rows`: first those of the input, then those of the outputs.
    package var rows: Range<Int>
    /// How many of them are the input's.
    package var inputRowCount: Int

    /// The input of an endpoint; nil for another machine.
    package var peerInput: PeerInput? { input as? PeerInput }

    /// The rows of the outputs.
    package var outputRows: Range<Int> { rows.lowerBound + inputRowCount..<rows.upperBound }
    /// The rows of the input.
    package var inputRows: Range<Int> { rows.lowerBound..<rows.lowerBound + inputRowCount }
  }

  package internal(set) var steps: [Step] = []
  package internal(set) var rows = RowList()

  package init() {}
}
