import HeapModule
import Wire

/// A peer on a loop, with what the loop keeps for it.
final class Resident {
  let key: MediaLoop.PeerKey
  let driver: PeerDriver
  let port: SocketSet
  let bind: BindPolicy
  private let clock: TakeClock
  /// Where the peer was told that it may gather.
  var interfaces: [IPAddress]
  /// When the table looks at the peer next, on the monotonic clock; nil when it does not.
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

  /// When the peer wants a turn, on the monotonic clock; nil when only an input can move it.
  fileprivate var wantsNanoseconds: Int64? {
    driver.nextTurn.map { clock.monotonicNanoseconds(at: $0) }
  }
}

/// Which peers of a loop want a turn, and when: what a turn costs does not grow with the number of
/// peers that are still.
struct TurnTable {
  private struct Look: Comparable {
    var nanoseconds: Int64
    var key: MediaLoop.PeerKey

    static func < (left: Look, right: Look) -> Bool {
      (left.nanoseconds, left.key) < (right.nanoseconds, right.key)
    }
  }

  /// Has one look of each peer that is waited for, and some that an earlier one has replaced.
  private var looks = Heap<Look>()
  private var touched: [MediaLoop.PeerKey] = []

  /// When somebody has to be looked at; nil when nobody waits.
  var earliestNanoseconds: Int64? { touched.isEmpty ? looks.min?.nanoseconds : 0 }

  /// Records that a peer was given an input: it has a turn soon.
  mutating func touch(_ resident: Resident) {
    guard !resident.isTouched else { return }
    resident.isTouched = true
    touched.append(resident.key)
  }

  /// Gives a turn to every peer that was touched or whose time has come, in that order.
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

  /// Deadlines move away with nearly every packet; looking once too early is cheaper than a new
  /// place in the heap for each of them.
  private mutating func schedule(_ resident: Resident) {
    guard let wanted = resident.wantsNanoseconds, wanted < resident.lookNanoseconds ?? .max else {
      return
    }
    resident.lookNanoseconds = wanted
    looks.insert(Look(nanoseconds: wanted, key: resident.key))
  }
}
