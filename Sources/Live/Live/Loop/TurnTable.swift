import HeapModule
import Wire

/// A peer on a loop, with the loop's data for it.
final class Resident {
  let key: MediaLoop.PeerKey
  let driver: PeerDriver
  let port: SocketSet
  let bind: BindPolicy
  private let clock: TakeClock
  /// The interface addresses last reported to the peer.
  var interfaces: [IPAddress]
  /// When the table next checks the peer, on the monotonic clock; nil for never.
  fileprivate var lookNanoseconds: Int64?
  fileprivate var isTouched = false

  init(
    key: MediaLoop.PeerKey, driver: PeerDriver, port: SocketSet, bind: BindPolicy,
    clock: TakeClock, interfaces: [IPAddress]
  ) {
    self.key = key
    self.driver = driver
    self.port = port
    self.bind = bind
    self.clock = clock
    self.interfaces = interfaces
  }

  /// When the peer needs a turn, on the monotonic clock; nil without an input.
  fileprivate var wantsNanoseconds: Int64? {
    driver.nextTurn.map { clock.monotonicNanoseconds(at: $0) }
  }
}

/// Which peers of a loop need a turn, and when; the cost does not grow with the number of idle
/// peers.
struct TurnTable {
  private struct Look: Comparable {
    var nanoseconds: Int64
    var key: MediaLoop.PeerKey

    static func < (left: Look, right: Look) -> Bool {
      (left.nanoseconds, left.key) < (right.nanoseconds, right.key)
    }
  }

  /// One entry per waiting peer, and some that were superseded by an earlier one.
  private var looks = Heap<Look>()
  private var touched: [MediaLoop.PeerKey] = []

  /// When the next peer has to be checked; nil if none waits.
  var earliestNanoseconds: Int64? { touched.isEmpty ? looks.min?.nanoseconds : 0 }

  /// Records that a peer got an input and needs a turn.
  mutating func touch(_ resident: Resident) {
    guard !resident.isTouched else { return }
    resident.isTouched = true
    touched.append(resident.key)
  }

  /// Runs a turn of every peer that was touched or is due, in that order.
  mutating func runTurns(of peers: [MediaLoop.PeerKey: Resident], until nowNanoseconds: Int64) {
    var turns: [Resident] = []
    for key in touched {
      guard let resident = peers[key] else { continue }
      resident.isTouched = false
      turns.append(resident)
    }
    touched.removeAll(keepingCapacity: true)
    while let look = looks.min, look.nanoseconds <= nowNanoseconds {
      looks.removeMin()
      guard let resident = peers[look.key], resident.lookNanoseconds == look.nanoseconds else {
        continue
      }
      resident.lookNanoseconds = nil
      turns.append(resident)
    }
    for resident in turns {
      resident.driver.runTurn()
      schedule(resident)
    }
  }

  /// Deadlines move with nearly every packet; checking too early once is cheaper than a new heap
  /// entry for each.
  private mutating func schedule(_ resident: Resident) {
    guard let wanted = resident.wantsNanoseconds, wanted < resident.lookNanoseconds ?? .max else {
      return
    }
    resident.lookNanoseconds = wanted
    looks.insert(Look(nanoseconds: wanted, key: resident.key))
  }
}
