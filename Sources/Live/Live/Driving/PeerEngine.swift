package import Peer
package import Tape
package import Wire

/// What a driver drives: the client stack of one peer, or a substitute in tests.
package protocol PeerEngine: AnyObject {
  /// Applies one input and appends everything that follows.
  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>)
  /// When the engine needs its deadline input.
  var deadline: Instant? { get }
  /// The number of random bytes drawn so far.
  var entropyDrawn: UInt64 { get }
  /// The codecs' processing times so far, if measured.
  var codecTimes: [CodecTime] { get }
  /// Whether a datagram from an unknown end belongs to the peer.
  ///
  /// Called before it becomes an input, so it must not change anything.
  func recognizes(_ datagram: Datagram) -> Bool
}

extension PeerEngine {
  /// Not measured.
  package var codecTimes: [CodecTime] { [] }
}

extension PeerMachine: PeerEngine {}

/// Records the steps of a take.
package protocol StepSink: Sendable {
  /// Queues a step; must not wait for a disk.
  func record(_ step: StepRecord)
  /// Records that an actor makes no further step, so its state can be released.
  func end(actor: UInt32)
}

extension TapeWriter: StepSink {}
