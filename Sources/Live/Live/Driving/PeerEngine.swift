package import Peer
package import Tape
package import Wire

/// What a driver drives: the client stack of one peer, or a stand-in for it in tests.
package protocol PeerEngine: AnyObject {
  /// Applies one input and appends everything that follows from it.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// When the engine wants its deadline input next.
  var deadline: Instant? { get }
  /// How many random bytes the engine has drawn so far.
  var entropyDrawn: UInt64 { get }
  /// How long the codecs have worked so far, where that is measured.
  var codecTimes: [CodecTime] { get }
  /// Whether a datagram from an end that was never sent anything is one of the peer; asked before
  /// it becomes an input, so that it must change nothing.
  func recognizes(_ datagram: Datagram) -> Bool
}

extension PeerEngine {
  /// Nothing is measured.
  package var codecTimes: [CodecTime] { [] }
}

extension PeerMachine: PeerEngine {}

/// What keeps the steps of a take.
package protocol StepSink: Sendable {
  /// Takes a step over; must not wait for a disk.
  func record(_ step: StepRecord)
  /// An actor makes no further step: nothing of it need be remembered.
  func end(actor: UInt32)
}

extension TapeWriter: StepSink {}
