import Dispatch
import Glibc
import Observer
import Peer
import SDP
import Synchronization
import Tape
import Wire

/// Passes the decrypted packets of a relay's calls to an observer, which records both ends.
///
/// The ends get artificial addresses, because the legs' rows already have the real ones. The
/// observer runs on a separate thread behind a bounded queue, so that it never delays packets: the
/// thread checks the queue every few milliseconds, because waking it for each packet would cost
/// time.
final class RelayObserver: Sendable {
  private enum Event: Sendable {
    case packet(Int, RelayedPacket, RelaySide, Instant)
    case description(Int, SDPDocument, String, RelaySide)
  }

  private struct Queue {
    var events: [Event] = []
    var dropped: UInt64 = 0
    /// Whether the thread is waiting for the semaphore, in which case the next event has to wake
    /// it.
    var isIdle = false
    var isFinishing = false
    var isOver = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let queue = Mutex(Queue())
  private let wake = DispatchSemaphore(value: 0)

  /// The maximum number of queued events.
  private static let waitingMaximum = 32_768
  /// The interval at which the thread checks the queue, and the number of checks without an event
  /// after which it waits to be woken.
  private static let interval = DispatchTimeInterval.milliseconds(5)
  private static let vainMaximum = 200
  /// The thread's niceness, higher than that of the thread that forwards packets.
  private static let niceness: Int32 = 5

  /// - Parameter now: returns the current instant on the take's clock.
  init(
    _ tape: TapeWriter, startUnixNanoseconds: Int64, now: @escaping @Sendable () -> Instant
  ) {
    var genesis = ObserverGenesis.ofToday
    // Lower peer numbers are for the legs, two for each call.
    genesis.firstPeer = 2 * UInt32(RelayedCalls.countMaximum) + 1
    genesis.awaitsKeys = false
    genesis.startUnixNanoseconds = startUnixNanoseconds
    genesis.names = RelayAddresses.names
    let actor = tape.addActor(.observer, label: "relay")
    startWorker(named: "relay ends") { [self, genesis] in
      // On Linux, this changes the calling thread only.
      _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, RelayObserver.niceness)
      var follower = RelayFollower(tape, actor: actor, genesis, now: now)
      run(&follower)
    }
  }

  private func run(_ follower: inout RelayFollower) {
    var events: [Event] = []
    var vain = 0
    while true {
      let isLast = queue.withLock { queue in
        swap(&queue.events, &events)
        return queue.isFinishing
      }
      for event in events {
        switch event {
        case .packet(let call, let packet, let side, let at):
          follower.follow(packet, of: call, from: side, at: at)
        case .description(let call, let document, let text, let side):
          follower.follow(document, text, of: call, from: side)
        }
      }
      if isLast { break }
      vain = events.isEmpty ? vain + 1 : 0
      events.removeAll(keepingCapacity: true)
      guard vain > RelayObserver.vainMaximum else {
        _ = wake.wait(timeout: .now() + RelayObserver.interval)
        continue
      }
      let isIdle = queue.withLock { queue in
        queue.isIdle = queue.events.isEmpty && !queue.isFinishing
        return queue.isIdle
      }
      if isIdle { wake.wait() }
      vain = 0
    }
    follower.finish()
    let waiting = queue.withLock { queue in
      queue.isOver = true
      defer { queue.waiting = [] }
      return queue.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Queues a packet; if the queue is full, the packet is only counted.
  func show(_ packet: RelayedPacket, of call: Int, from side: RelaySide, at now: Instant) {
    append(.packet(call, packet, side, now))
  }

  func show(_ document: SDPDocument, _ text: String, of call: Int, from side: RelaySide) {
    append(.description(call, document, text, side))
  }

  private func append(_ event: Event) {
    let wakes = queue.withLock { queue in
      guard !queue.isFinishing else { return false }
      guard queue.events.count < RelayObserver.waitingMaximum else {
        queue.dropped += 1
        return false
      }
      queue.events.append(event)
      defer { queue.isIdle = false }
      return queue.isIdle
    }
    if wakes { wake.signal() }
  }

  /// The number of events that were dropped because the queue was full.
  var droppedCount: UInt64 { queue.withLock { $0.dropped } }

  /// Processes all queued events and ends the observer.
  func finish() async {
    await withCheckedContinuation { continuation in
      let isOver = queue.withLock { queue in
        queue.isFinishing = true
        if !queue.isOver { queue.waiting.append(continuation) }
        return queue.isOver
      }
      if isOver { continuation.resume() } else { wake.signal() }
    }
  }
}

/// Artificial addresses for the ends of calls, from a documentation range (RFC 5737).
private enum RelayAddresses {
  private static let hosts = ["192.0.2.1", "192.0.2.2"]
  private static let first = 10_000
  /// The number of calls with distinct addresses; later calls reuse them.
  private static let callsMaximum = 3000
  private static let transportsMaximum = 16
  private static let namedMaximum = 100

  static func address(of side: RelaySide, call: Int, transport: Int) -> String {
    let port = first + transportsMaximum * (call % callsMaximum) + min(max(transport, 0), 15)
    return "\(hosts[side.rawValue]):\(port)"
  }

  /// Labels for the ends of the first calls.
  static var names: [ObserverGenesis.EndName] {
    (1...namedMaximum).flatMap { call in
      [(RelaySide.near, "near end"), (.far, "far end")].map { side, name in
        ObserverGenesis.EndName(
          address: address(of: side, call: call, transport: 0), name: "\(name) \(call)")
      }
    }
  }
}

/// A relay's observer, and the facts that it needs about each call.
private struct RelayFollower {
  private final class Known {
    /// The ICE username fragments of each side, by section.
    var fragments: [[String?]] = [[], []]
    /// The fragments with which each transport was announced.
    var announced: [Int: [String]] = [:]
    /// The addresses of both ends by transport; cleared by each new description.
    var ends: [Int: [SocketAddress]] = [:]
  }

  private let tape: TapeWriter
  private let actor: UInt32
  private let clock: @Sendable () -> Instant
  private let machine = ObserverMachine()
  private var outbox = Outbox<ObserverOutput>()
  private var now = Instant.zero
  private var calls: [Int: Known] = [:]

  init(
    _ tape: TapeWriter, actor: UInt32, _ genesis: ObserverGenesis,
    now: @escaping @Sendable () -> Instant
  ) {
    self.tape = tape
    self.actor = actor
    clock = now
    step(.genesis(genesis))
    step(.call(.noMoreKeys))
  }

  mutating func follow(_ document: SDPDocument, _ text: String, of call: Int, from side: RelaySide)
  {
    let known = known(call)
    known.fragments[side.rawValue] = document.sections.map {
      $0.iceUsernameFragment ?? document.iceUsernameFragment
    }
    known.ends = [:]
    pass(to: max(now, clock()))
    step(.call(.signaling(text)))
  }

  mutating func follow(
    _ packet: RelayedPacket, of call: Int, from side: RelaySide, at arrival: Instant
  ) {
    pass(to: max(now, clock()))
    guard let ends = ends(of: call, packet.transport) else { return }
    let (source, destination) = (ends[side.rawValue], ends[side.other.rawValue])
    let datagram = Datagram(local: source, remote: destination, bytes: packet.bytes)
    switch packet.kind {
    case .rtp, .rtcp:
      step(.datagram(datagram, isTruncated: false, arrival: min(arrival, now)))
    case .sctp: step(.data(datagram, arrival: min(arrival, now)))
    }
  }

  private mutating func known(_ call: Int) -> Known {
    if let known = calls[call] { return known }
    let known = Known()
    calls[call] = known
    return known
  }

  /// Returns the addresses of both ends, the near one first.
  ///
  /// A path that is new, or on which an end has restarted ICE, is announced to the observer first.
  private mutating func ends(of call: Int, _ transport: Int) -> [SocketAddress]? {
    let known = known(call)
    if let ends = known.ends[transport] { return ends }
    let sides: [RelaySide] = [.near, .far]
    let fragments = sides.map { side in
      let all = known.fragments[side.rawValue]
      return (all.indices.contains(transport) ? all[transport] : all.first ?? nil) ?? "-"
    }
    let addresses = sides.map { RelayAddresses.address(of: $0, call: call, transport: transport) }
    if known.announced[transport] != fragments {
      known.announced[transport] = fragments
      step(
        .call(
          .clearPath(source: addresses[0], destination: addresses[1], fragments: fragments)))
    }
    let ends = addresses.compactMap { SocketAddress($0) }
    guard ends.count == sides.count else { return nil }
    known.ends[transport] = ends
    return ends
  }

  mutating func finish() {
    pass(to: max(now, clock()))
    step(.call(.end))
    tape.end(actor: actor)
  }

  /// Advances to an instant, handling the deadlines before it.
  private mutating func pass(to instant: Instant) {
    while let due = machine.deadline, due < instant {
      now = max(now, due)
      step(.deadline)
    }
    now = max(now, instant)
  }

  private mutating func step(_ input: ObserverInput) {
    record(input)
    // The machine does only part of a long input's work in one step; deadline steps do the rest.
    while machine.isBehind { record(.deadline) }
  }

  private mutating func record(_ input: ObserverInput) {
    machine.step(input, at: now, into: &outbox)
    var outputs: [ObserverOutput] = []
    while let output = outbox.next() { if output.hasRows { outputs.append(output) } }
    tape.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outputs),
        deadline: machine.deadline, entropyDrawn: machine.entropyDrawn))
  }
}
