import Peer
import Synchronization
import Testing
import Wire

@testable import Live

/// Tests peers on a loop that is not running, with scripted engines and a manual clock.
struct TurnTableTests {
  private let order = Collector<Int>()
  private let fixtures: [DriverFixture]
  private let peers: [MediaLoop.PeerKey: Resident]
  private var table = TurnTable()

  /// Each peer's deadlines in milliseconds.
  private static let deadlines = [[30, 60], [10, 35], [20, 40]]
  /// The time at which the fixtures' clocks start.
  private static let zero: Int64 = 5_000

  init() throws {
    let order = order
    let thread = try LoopThread(mailbox: Mailbox())
    fixtures = Self.deadlines.enumerated().map { index, times in
      var due = times.map { Instant(nanoseconds: Int64($0) * 1_000_000) }
      return DriverFixture { engine, input, now, _ in
        if case .deadline = input {
          order.append(index)
          due.removeFirst()
        }
        engine.deadline = due.first
      }
    }
    var peers: [MediaLoop.PeerKey: Resident] = [:]
    for (index, fixture) in fixtures.enumerated() {
      let key = MediaLoop.PeerKey(index)
      peers[key] = Resident(
        key: key, driver: fixture.driver, port: SocketSet(key: key, thread: thread),
        bind: .automatic, clock: fixture.clock.takeClock, interfaces: [])
    }
    self.peers = peers
    for key in peers.keys.sorted() {
      fixtures[Int(key)].driver.begin(DriverFixture.genesis, interfaces: [])
      if let resident = peers[key] { table.touch(resident) }
    }
    table.runTurns(of: peers, until: Self.zero)
  }

  private mutating func advance(to milliseconds: Int64) {
    let now = Self.zero + milliseconds * 1_000_000
    for fixture in fixtures { fixture.clock.nanoseconds.withLock { $0 = now } }
    table.runTurns(of: peers, until: now)
  }

  @Test mutating func deadlinesOfManyPeersFireInOrderAndNeverEarly() {
    #expect(table.earliestNanoseconds == Self.zero + 10_000_000)
    var fired: [Int64: [Int]] = [:]
    for milliseconds in Int64(1)...61 {
      let before = order.all.count
      advance(to: milliseconds)
      if order.all.count > before { fired[milliseconds] = Array(order.all[before...]) }
    }
    #expect(fired == [10: [1], 20: [2], 30: [0], 35: [1], 40: [2], 60: [0]])
    #expect(table.earliestNanoseconds == nil)
  }

  /// A delayed loop runs the peer with the earliest deadline first, and lets each peer catch up.
  @Test mutating func theEarliestDeadlineRunsFirstWhenManyAreLate() {
    advance(to: 36)
    #expect(order.all == [1, 1, 2, 0])
    advance(to: 100)
    #expect(order.all == [1, 1, 2, 0, 2, 0])
  }

  @Test mutating func aTouchedPeerRunsImmediately() throws {
    table.touch(try #require(peers[0]))
    #expect(table.earliestNanoseconds == 0)
    advance(to: 5)
    #expect(order.all.isEmpty, "its deadline is not due")
    #expect(table.earliestNanoseconds == Self.zero + 10_000_000)
  }
}
