import Peer
import Synchronization
import Wire

/// What a loop needs to create a peer.
struct PeerSetup: Sendable {
  var key: MediaLoop.PeerKey
  /// Creates the engine on the loop's thread, where it stays.
  var makeEngine: @Sendable () -> any PeerEngine
  var genesis: Genesis
  var bind: BindPolicy
  var clock: TakeClock
  var recorder: (any StepSink)?
  /// The peer's actor number in the take.
  var actor: UInt32
  var statsInterval: Interval?
  var observer: PeerDriver.Observer
}

/// Limits the application media that waits for a loop busy encoding.
///
/// Excess is refused immediately: late media is worth less than none, and memory stays bounded.
final class CaptureBudget: Sendable {
  private let waiting = Atomic<Int>(0)
  private let maximum: Int

  init(maximum: Int) { self.maximum = maximum }

  /// Acquires a place; false if there is none.
  func acquire() -> Bool {
    if waiting.add(1, ordering: .relaxed).newValue <= maximum { return true }
    release()
    return false
  }

  /// Releases a place.
  func release() { waiting.subtract(1, ordering: .relaxed) }
}
