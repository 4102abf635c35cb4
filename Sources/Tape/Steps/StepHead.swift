package import Peer
package import Wire

/// What a step's input was.
///
/// The numbers are stored and hashed and must never change.
package enum StepKind: UInt8, CaseIterable, Sendable {
  case genesis = 0
  case interfaces = 1
  case datagram = 2
  case deadline = 3
  case call = 4
  case captured = 5
  case socketBound = 6
  case socketFailed = 7
  case nameResolved = 8
  case sendFailed = 9
  case signaling = 10
  case send = 11
  case streamAccepted = 12

  /// The kind of an input.
  package init(_ input: borrowing PeerInput) {
    switch input {
    case .genesis: self = .genesis
    case .interfaces: self = .interfaces
    case .datagram: self = .datagram
    case .deadline: self = .deadline
    case .call: self = .call
    case .captured: self = .captured
    case .socketBound: self = .socketBound
    case .socketFailed: self = .socketFailed
    case .nameResolved: self = .nameResolved
    case .sendFailed: self = .sendFailed
    case .signaling: self = .signaling
    case .send: self = .send
    case .streamAccepted: self = .streamAccepted
    }
  }
}

/// A step without its rows: what the `tape` table keeps of it.
package struct StepHead: Hashable, Sendable {
  /// The number of the step, counted from 1 over all peers.
  package var number: Int
  package var kind: StepKind
  package var peer: UInt32
  package var at: Instant
  /// The machine's deadline after the step.
  package var deadline: Instant?
  /// The random bytes drawn by the peer since its genesis, after the step.
  package var entropyDrawn: UInt64
  /// How many rows the step has in the other tables.
  package var rowCount: Int
  /// The first four bytes of the chained digest after the step.
  package var check: UInt32 = 0

  package init(
    number: Int, kind: StepKind, peer: UInt32, at: Instant, deadline: Instant?,
    entropyDrawn: UInt64, rowCount: Int
  ) {
    self.number = number
    self.kind = kind
    self.peer = peer
    self.at = at
    self.deadline = deadline
    self.entropyDrawn = entropyDrawn
    self.rowCount = rowCount
  }
}
