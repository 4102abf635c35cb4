import Observer
import Peer
import SDP
import Synchronization
import Tape
import Wire

/// Shows the packets in the clear of a relay's calls to an observer, which records both ends.
///
/// The packets get artificial addresses, one for each end of each call: what the legs' own rows say
/// of addresses is not said again. The observer works on its own task, behind a queue with a limit,
/// so that it never holds packets up.
final class RelayObserver: Sendable {
  private enum Event: Sendable {
    case packet(Int, RelayedPacket, RelaySide, Instant)
    case description(Int, SDPDocument, String, RelaySide)
  }

  private let events: AsyncStream<Event>.Continuation
  private let dropped = Mutex<UInt64>(0)
  private let work: Task<Void, Never>

  /// The most events that wait.
  private static let waitingMaximum = 16_384

  /// - Parameter now: the present instant of the take.
  init(
    _ tape: TapeWriter, startUnixNanoseconds: Int64, now: @escaping @Sendable () -> Instant
  ) {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self, bufferingPolicy: .bufferingOldest(RelayObserver.waitingMaximum))
    events = continuation
    var genesis = ObserverGenesis.ofToday
    // Peers up to there are legs, two of each call.
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

  /// Shows a packet; one that finds the queue full is counted.
  func show(_ packet: RelayedPacket, of call: Int, from side: RelaySide, at now: Instant) {
    count(events.yield(.packet(call, packet, side, now)))
  }

  func show(_ document: SDPDocument, _ text: String, of call: Int, from side: RelaySide) {
    count(events.yield(.description(call, document, text, side)))
  }

  private func count(_ result: AsyncStream<Event>.Continuation.YieldResult) {
    if case .dropped = result { dropped.withLock { $0 += 1 } }
  }

  /// How many events found the queue full.
  var droppedCount: UInt64 { dropped.withLock { $0 } }

  /// Ends the observer once everything was shown.
  func finish() async {
    events.finish()
    await work.value
  }
}

/// The artificial addresses of ends, from a documentation range (RFC 5737).
private enum RelayAddresses {
  private static let hosts = ["192.0.2.1", "192.0.2.2"]
  private static let first = 10_000
  /// The calls that have addresses of their own; later ones share them.
  private static let callsMaximum = 3000
  private static let transportsMaximum = 16
  private static let namedMaximum = 100

  static func address(of side: RelaySide, call: Int, transport: Int) -> String {
    let port = first + transportsMaximum * (call % callsMaximum) + min(max(transport, 0), 15)
    return "\(hosts[side.rawValue]):\(port)"
  }

  /// The names of the ends of the first calls.
  static var names: [ObserverGenesis.EndName] {
    (1...namedMaximum).flatMap { call in
      [(RelaySide.near, "near end"), (.far, "far end")].map { side, name in
        ObserverGenesis.EndName(
          address: address(of: side, call: call, transport: 0), name: "\(name) \(call)")
      }
    }
  }
}

/// The observer of a relay with what it needs to know of each call.
private struct RelayFollower {
  /// What is known of a call.
  private struct Known {
    /// The ICE username fragments of each side by section.
    var fragments: [[String?]] = [[], []]
    /// The transports that were announced, with their fragments.
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

  /// Announces the path of a transport, and again after an ICE restart of an end; the near end
  /// comes first, whoever sends first.
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

  /// Advances to an instant over the deadlines before it.
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
