import Observer
import Peer
import SDP
import Synchronization
import Tape
import Wire

/// Passes the decrypted packets of a relay's calls to an observer, which records both ends.
///
/// The ends get artificial addresses, because the legs' rows already have the real ones. The
/// observer runs in a task of its own behind a bounded queue, so that it never delays packets.
final class RelayObserver: Sendable {
  private enum Event: Sendable {
    case packet(Int, RelayedPacket, RelaySide, Instant)
    case description(Int, SDPDocument, String, RelaySide)
  }

  private let events: AsyncStream<Event>.Continuation
  private let dropped = Mutex<UInt64>(0)
  private let work: Task<Void, Never>

  /// The maximum number of queued events.
  private static let waitingMaximum = 16_384

  /// - Parameter now: returns the current instant on the take's clock.
  init(
    _ tape: TapeWriter, startUnixNanoseconds: Int64, now: @escaping @Sendable () -> Instant
  ) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self, bufferingPolicy: .bufferingOldest(RelayObserver.waitingMaximum))
    events = continuation
    var genesis = ObserverGenesis.ofToday
    // The peer numbers up to there belong to legs, two for each call.
    genesis.firstPeer = 2 * UInt32(RelayedCalls.countMaximum) + 1
    genesis.awaitsKeys = false
    genesis.startUnixNanoseconds = startUnixNanoseconds
    genesis.names = RelayAddresses.names
    let actor = tape.addActor(.observer, label: "relay")
    work = Task { [genesis] in
      var follower = RelayFollower(tape, actor: actor, genesis, now: now)
      for await event in stream {
        switch event {
        case .packet(let call, let packet, let side, let at):
          follower.follow(packet, of: call, from: side, at: at)
        case .description(let call, let document, let text, let side):
          follower.follow(document, text, of: call, from: side)
        }
      }
      follower.finish()
    }
  }

  /// Queues a packet; if the queue is full, the packet is only counted.
  func show(_ packet: RelayedPacket, of call: Int, from side: RelaySide, at now: Instant) {
    count(events.yield(.packet(call, packet, side, now)))
  }

  func show(_ document: SDPDocument, _ text: String, of call: Int, from side: RelaySide) {
    count(events.yield(.description(call, document, text, side)))
  }

  private func count(_ result: AsyncStream<Event>.Continuation.YieldResult) {
    if case .dropped = result { dropped.withLock { $0 += 1 } }
  }

  /// The number of events that found the queue full.
  var droppedCount: UInt64 { dropped.withLock { $0 } }

  /// Processes all queued events and ends the observer.
  func finish() async {
    events.finish()
    await work.value
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
  private struct Known {
    /// The ICE username fragments of each side, by section.
    var fragments: [[String?]] = [[], []]
    /// The fragments with which each transport was announced.
    var announced: [Int: [String]] = [:]
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
    calls[call, default: Known()].fragments[side.rawValue] = document.sections.map {
      $0.iceUsernameFragment ?? document.iceUsernameFragment
    }
    pass(to: max(now, clock()))
    step(.call(.signaling(text)))
  }

  mutating func follow(
    _ packet: RelayedPacket, of call: Int, from side: RelaySide, at arrival: Instant
  ) {
    let addresses = [side, side.other].map { side in
      RelayAddresses.address(of: side, call: call, transport: packet.transport)
    }
    guard let source = SocketAddress(addresses[0]), let destination = SocketAddress(addresses[1])
    else { return }
    pass(to: max(now, clock()))
    announce(call, packet.transport)
    let datagram = Datagram(local: source, remote: destination, bytes: packet.bytes)
    switch packet.kind {
    case .rtp, .rtcp:
      step(.datagram(datagram, isTruncated: false, arrival: min(arrival, now)))
    case .sctp: step(.data(datagram, arrival: min(arrival, now)))
    }
  }

  /// Announces a transport's path to the observer, and again after an ICE restart; the near end
  /// comes first, whichever sends first.
  private mutating func announce(_ call: Int, _ transport: Int) {
    let known = calls[call] ?? Known()
    let sides: [RelaySide] = [.near, .far]
    let fragments = sides.map { side in
      let all = known.fragments[side.rawValue]
      return (all.indices.contains(transport) ? all[transport] : all.first ?? nil) ?? "-"
    }
    guard known.announced[transport] != fragments else { return }
    calls[call, default: Known()].announced[transport] = fragments
    let addresses = sides.map { RelayAddresses.address(of: $0, call: call, transport: transport) }
    step(
      .call(
        .clearPath(source: addresses[0], destination: addresses[1], fragments: fragments)))
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
    // The rest of a long step follows in deadline steps.
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
