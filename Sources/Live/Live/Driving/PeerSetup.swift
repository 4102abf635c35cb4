import Peer
import Synchronization
import Wire

/// What a loop needs to make a peer.
struct PeerSetup: Sendable {
  var key: MediaLoop.PeerKey
  /// Creates the engine on the loop's thread, where it stays.
  var makeEngine: @Sendable () -> any PeerEngine
  var genesis: Genesis
  var bind: BindPolicy
  var clock: TakeClock
  var recorder: (any StepSink)?
  /// The number of the peer among the actors of the take.
  var actor: UInt32
  var statsInterval: Interval?
  var observer: PeerDriver.Observer
}

/// How much application media may wait for a loop that is busy encoding.
///
/// What exceeds it is refused at once: media that comes late is worth less than media that is not
/// sent, and memory stays bounded.
final class CaptureBudget: Sendable {
  private let waiting = Atomic<Int>(0)
  private let maximum: Int

  init(maximum: Int) { self.maximum = maximum }

  /// Takes a place; returns false when all are taken.
  func acquire() -> Bool {
    if waiting.add(1, ordering: .relaxed).newValue <= maximum { return true }
    release()
    return false
  }

  /// Gives a place back.
  func release() { waiting.subtract(1, ordering: .relaxed) }
}
