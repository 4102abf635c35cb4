import CSockets
import HeapModule
import Tape
import Wire

/// Waits for events on a loop's descriptors (epoll).
final class Poller {
  /// Identifies a descriptor; tags are never reused, so stale events are ignored.
  typealias Tag = UInt64

  /// The maximum number of events that one wait returns.
  static let eventsMaximum = 64

  private let descriptor: Int32
  private var events = [csockets_event](repeating: csockets_event(), count: eventsMaximum)

  init() throws(SystemError) {
    descriptor = try checked("create an epoll set", csockets_poll_create())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Starts watching a descriptor for reading.
  func add(_ watched: Int32, tag: Tag) throws(SystemError) {
    try checked(
      "watch a descriptor",
      csockets_poll_add(descriptor, watched, UInt32(CSOCKETS_READABLE), tag))
  }

  /// Watches a descriptor for reading, and for writing if requested.
  func watch(_ watched: Int32, writing: Bool, tag: Tag) {
    let interest = UInt32(CSOCKETS_READABLE) | (writing ? UInt32(CSOCKETS_WRITABLE) : 0)
    _ = csockets_poll_modify(descriptor, watched, interest, tag)
  }

  /// Watches a descriptor only for errors until `watch` is called again.
  func ignore(_ watched: Int32, tag: Tag) {
    _ = csockets_poll_modify(descriptor, watched, 0, tag)
  }

  /// Stops watching a descriptor.
  func remove(_ watched: Int32) { _ = csockets_poll_remove(descriptor, watched) }

  /// Waits for events, or only polls if `waits` is false, and returns their number.
  func wait(waits: Bool) throws(SystemError) -> Int {
    Int(
      try checked(
        "wait for events",
        csockets_poll_wait(descriptor, &events, Int32(events.count), waits ? -1 : 0)))
  }

  /// Returns the tag of an event from the last wait.
  func tag(at index: Int) -> Tag { events[index].tag }
}

/// A timer on CLOCK_MONOTONIC that wakes the loop (timerfd, nanoseconds).
final class WakeTimer {
  let descriptor: Int32
  private var armedNanoseconds: Int64?

  init() throws(SystemError) {
    descriptor = try checked("create a timer", csockets_timer_create())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Sets the timer to an absolute time, possibly in the past, unless it is already set to an
  /// earlier time; nil has no effect.
  ///
  /// Deadlines move with nearly every packet; firing too early once is cheaper than a system call
  /// for each packet.
  func arm(monotonicNanoseconds: Int64?) {
    guard let monotonicNanoseconds, monotonicNanoseconds < armedNanoseconds ?? .max else { return }
    armedNanoseconds = monotonicNanoseconds
    _ = csockets_timer_set(descriptor, monotonicNanoseconds)
  }

  /// Records that the timer has fired.
  func clear() {
    armedNanoseconds = nil
    _ = csockets_timer_clear(descriptor)
  }
}

// MARK: - OpenSockets

/// A peer's UDP socket.
struct OpenSocket {
  let socket: UDPSocket
  let resident: Resident
}

/// A peer's stream connection.
struct OpenStream {
  let stream: StreamSocket
  let resident: Resident
  let port: SocketSet
  /// The number of the request that opened the connection; nil for an accepted one.
  let id: UInt32?
}

/// A socket that listens for connections to a peer.
struct OpenListener {
  let socket: ListenSocket
  let resident: Resident
  let port: SocketSet
}

/// A loop's open sockets, by their poller tags.
struct OpenSockets {
  private let poller: Poller
  private var sockets: [Poller.Tag: OpenSocket] = [:]
  private var streams: [Poller.Tag: OpenStream] = [:]
  private var listeners: [Poller.Tag: OpenListener] = [:]
  private var lastTag: Poller.Tag

  /// - Parameter tag: the last tag in use elsewhere.
  init(_ poller: Poller, after tag: Poller.Tag) {
    self.poller = poller
    lastTag = tag
  }

  func socket(_ tag: Poller.Tag) -> OpenSocket? { sockets[tag] }
  func stream(_ tag: Poller.Tag) -> OpenStream? { streams[tag] }
  func listener(_ tag: Poller.Tag) -> OpenListener? { listeners[tag] }

  mutating func nextTag() -> Poller.Tag {
    lastTag += 1
    return lastTag
  }

  // MARK: Opening

  /// Adds and watches a peer's socket.
  mutating func add(_ entry: OpenSocket) throws(SystemError) -> Poller.Tag {
    let tag = try watch(entry.socket.descriptor)
    sockets[tag] = entry
    return tag
  }

  /// Adds and watches a peer's connection.
  mutating func add(_ entry: OpenStream) throws(SystemError) -> Poller.Tag {
    let tag = try watch(entry.stream.descriptor)
    streams[tag] = entry
    return tag
  }

  /// Adds and watches a peer's listening socket.
  mutating func add(_ entry: OpenListener) throws(SystemError) -> Poller.Tag {
    let tag = try watch(entry.socket.descriptor)
    listeners[tag] = entry
    return tag
  }

  private mutating func watch(_ descriptor: Int32) throws(SystemError) -> Poller.Tag {
    let tag = nextTag()
    try poller.add(descriptor, tag: tag)
    return tag
  }

  // MARK: Closing

  /// Removes and closes a socket; has no effect if it is already closed.
  mutating func closeSocket(_ tag: Poller.Tag) {
    guard let entry = sockets.removeValue(forKey: tag) else { return }
    poller.remove(entry.socket.descriptor)
  }

  /// Removes and closes a connection.
  mutating func closeStream(_ tag: Poller.Tag) {
    guard let entry = streams.removeValue(forKey: tag) else { return }
    poller.remove(entry.stream.descriptor)
  }

  /// Removes and closes a listener; accepted connections stay.
  mutating func closeListener(_ tag: Poller.Tag) {
    guard let entry = listeners.removeValue(forKey: tag) else { return }
    poller.remove(entry.socket.descriptor)
  }
}

// MARK: - TurnTable

/// A peer on a loop, with the loop's data for it.
final class Resident {
  let key: MediaLoop.PeerKey
  let driver: PeerDriver
  let port: SocketSet
  let bind: BindPolicy
  private let clock: TakeClock
  /// The interface addresses last reported to the peer.
  var interfaces: [IPAddress]
  /// When the table next checks the peer, on the monotonic clock; nil means never.
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

  /// When the peer needs its next step, on the monotonic clock; nil if nothing is due.
  fileprivate var wantsNanoseconds: Int64? {
    driver.nextTurn.map { clock.monotonicNanoseconds(at: $0) }
  }
}

/// Tracks which of a loop's peers need a turn, and when; idle peers cost nothing per turn.
struct TurnTable {
  private struct Look: Comparable {
    var nanoseconds: Int64
    var key: MediaLoop.PeerKey

    static func < (left: Look, right: Look) -> Bool {
      (left.nanoseconds, left.key) < (right.nanoseconds, right.key)
    }
  }

  /// One entry for each waiting peer, plus outdated entries of peers that are now checked sooner.
  private var looks = Heap<Look>()
  private var touched: [MediaLoop.PeerKey] = []

  /// When the next peer has to be checked; nil if none is waiting.
  var earliestNanoseconds: Int64? { touched.isEmpty ? looks.min?.nanoseconds : 0 }

  /// Records that a peer received an input and needs a turn.
  mutating func touch(_ resident: Resident) {
    guard !resident.isTouched else { return }
    resident.isTouched = true
    touched.append(resident.key)
  }

  /// Runs a turn of every touched peer, then of every peer that is due.
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

  /// Sets when a peer is checked next, unless it is checked earlier anyway.
  ///
  /// Deadlines move with nearly every packet; checking too early once is cheaper than a new heap
  /// entry for each packet.
  private mutating func schedule(_ resident: Resident) {
    guard let wanted = resident.wantsNanoseconds, wanted < resident.lookNanoseconds ?? .max else {
      return
    }
    resident.lookNanoseconds = wanted
    looks.insert(Look(nanoseconds: wanted, key: resident.key))
  }
}
