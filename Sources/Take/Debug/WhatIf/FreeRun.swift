package import Media
package import Peer
import Replay
package import Tape
package import Wire

/// Runs the stack on a take's inputs and reports the outcomes, without comparing outputs with the
/// recording.
///
/// Inputs arrive in an open loop: at their recorded times, whatever the stack does. Only deadlines
/// depend on the stack. Without changes, the result is the recorded session.
package final class FreeRun {
  /// The ways in which a run deviates from the recorded session.
  package struct Changes: Sendable {
    package var edits: [PacketEdit] = []
    /// Modifies the configuration of each changed peer before it starts.
    package var configure: @Sendable (inout PeerConfiguration) -> Void = { _ in }
    /// The peer whose configuration and datagrams are changed; nil for all.
    package var peer: UInt32?
    /// The seed for edits with a probability; the same seed leads to the same run.
    package var seed: UInt64 = 1
    /// Packets lost in the recording that arrive in this run, in time order.
    package var delivered: [LostPacket] = []
    /// Whether the receiving sides of observed calls run too.
    ///
    /// A jitter buffer's minimum delay is the only change that applies to them.
    package var watchesCalls = false

    package init() {}

    package init(delivering packets: [LostPacket]) { delivered = packets }
  }

  /// A packet that was lost in the recording, and that arrives in this run.
  package struct LostPacket: Sendable {
    /// The receiving peer's number.
    package var peer: UInt32
    package var at: Instant
    package var datagram: Datagram

    package init(peer: UInt32, at: Instant, datagram: Datagram) {
      self.peer = peer
      self.at = at
      self.datagram = datagram
    }
  }

  /// A datagram that arrives later than recorded, a second time, or although it was lost.
  private struct Held {
    var at: Instant
    var order: Int
    var peer: UInt32
    var datagram: Datagram
  }

  private struct Driven {
    /// The actor's number in the take.
    var number: UInt32
    var peer: UInt32
    var machine: PeerMachine
    var outcome: PeerOutcome
    /// The time of the last input; it never decreases.
    var at: Instant
    /// The take's clock minus the machine's; added to a machine's time, it yields the take's time.
    var clock: Interval
    /// The minimum delay of the machine's jitter buffers.
    var buffer: Interval
    var recordedDeadline: Instant?
    /// Whether the peer has already run past the end of its recording, to show frames still in
    /// flight.
    var isDrained = false

    /// The peer's deadline on the take's clock; nil if it has none.
    var deadline: Instant? { machine.deadline.map { $0 + clock } }
  }

  private let reader: TapeReader
  private let changes: Changes
  private let codecs: () -> any CodecFactory
  private var editor: PacketEditor
  private var memory = RowMemory()
  private var peers: [Driven] = []
  private var watched: [WatchedCalls] = []
  /// The names of actors that are omitted because they are not endpoints.
  package private(set) var others: [String] = []
  private var held: [Held] = []
  private var order = 0
  private var outbox = Outbox<PeerOutput>()

  /// How late a live recorder may react to a deadline.
  ///
  /// A deadline that the recording lacks is added only after this time.
  private static let patience = Interval.milliseconds(5)
  /// A process that reacts to a deadline later than this was not running in the meantime.
  private static let stall = Interval.milliseconds(50)
  /// How long a peer runs after its recorded end, beyond its jitter buffers' delay, to show the
  /// frames that it has already received.
  static let drain = Interval.milliseconds(1500)
  /// The maximum number of wake-ups at one instant.
  static let wakesMaximum = 10_000

  package init(path: String, changes: Changes, codecs: @escaping () -> any CodecFactory)
    throws(TapeError)
  {
    reader = try TapeReader(path: path)
    self.changes = changes
    self.codecs = codecs
    editor = PacketEditor(changes.edits, seed: changes.seed)
    for packet in changes.delivered {
      held.append(
        Held(at: packet.at, order: order, peer: packet.peer, datagram: packet.datagram))
      order += 1
    }
  }

  /// Returns the time of the take's last step, for progress; nil if the take is empty.
  package func lastTime() throws(TapeError) -> Instant? { try reader.lastTime() }

  /// The number of datagrams that each edit changed.
  package var changed: [Int] { editor.changed }

  /// Runs to the end of the take; returns each peer's outcome.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> [PeerOutcome] {
    var end = Instant.zero
    while let chunk = try reader.chunk(steps: 64) {
      for step in chunk.steps {
        memory.learn(chunk.rows, step.rows)
        passTime(until: awake(before: step.head.at), patience: FreeRun.patience)
        feed(step, chunk.rows)
        end = step.head.at
        if let index = peers.firstIndex(where: { $0.number == step.head.actor }) {
          peers[index].recordedDeadline = step.head.deadline
          peers[index].outcome.countUnsent(step, chunk.rows)
        }
      }
      progress(end)
    }
    passTime(until: end, patience: .zero)
    for index in peers.indices {
      peers[index].outcome.sample(peers[index].machine.stats(of: nil))
      drain(index)
    }
    let outcomes = peers.map { peer in
      var outcome = peer.outcome
      outcome.finish(at: end, stats: peer.machine.stats(of: nil))
      return outcome
    }
    return outcomes + watched.indices.flatMap { finish($0, at: end) }
  }

  private func finish(_ index: Int, at end: Instant) -> [PeerOutcome] {
    let outcomes = watched[index].finish(at: end)
    if outcomes.isEmpty { others.append(watched[index].name) }
    return outcomes
  }

  // MARK: Time

  /// Returns the time up to which the recorded process was running before the next step: a stopped
  /// process shows nothing, however long its buffers are.
  private func awake(before next: Instant) -> Instant {
    let due = peers.compactMap { $0.clock == .zero ? $0.recordedDeadline : nil }.min()
    guard let due, due + FreeRun.stall < next else { return next }
    return due
  }

  /// Runs a peer until it has shown the frames that arrived before its end, so that the same frames
  /// count for any buffer size.
  ///
  /// Other outputs after the end are ignored, because the recording does not cover that time.
  private func drain(_ index: Int) {
    guard !peers[index].isDrained else { return }
    peers[index].isDrained = true
    let end = peers[index].at + peers[index].buffer + FreeRun.drain
    for _ in 0..<FreeRun.wakesMaximum {
      guard let due = peers[index].deadline, due <= end else { return }
      let now = max(due, peers[index].at)
      peers[index].at = now
      peers[index].machine.step(.deadline, at: now - peers[index].clock, into: &outbox)
      while let output = outbox.next() { peers[index].outcome.countLate(output, at: now) }
    }
  }

  /// Processes what is due before an instant: held datagrams, and deadlines that were not recorded.
  private func passTime(until instant: Instant, patience: Interval) {
    for index in watched.indices { watched[index].passTime(until: instant, patience: patience) }
    for _ in 0..<FreeRun.wakesMaximum {
      let wake = peers.indices.compactMap { index in
        peers[index].deadline.map { (at: $0, index: index) }
      }.min { ($0.at, $0.index) < ($1.at, $1.index) }
      let arrival = held.first?.at
      if let arrival, arrival <= instant, arrival <= wake?.at ?? instant {
        let datagram = held.removeFirst()
        let actor = peers.first { $0.peer == datagram.peer }?.number ?? datagram.peer
        step(actor, .datagram(datagram.datagram, arrival: datagram.at), at: datagram.at)
      } else if let wake, wake.at + patience < instant {
        step(peers[wake.index].number, .deadline, at: wake.at)
      } else {
        return
      }
    }
  }

  private func feed(_ step: TapeChunk.Step, _ rows: RowList) {
    let (peer, at) = (step.head.actor, step.head.at)
    // Edits apply to endpoints only; of the other machines, only observers can run.
    guard let input = step.input as? PeerInput else {
      if changes.watchesCalls, let input = step.input as? ObserverInput {
        return watch(input, step)
      }
      if step.head.kind == .genesis { others.append(step.actorName) }
      return
    }
    switch input {
    case .deadline:
      // The stack's deadline may differ from the recorded one.
      guard let due = driven(peer)?.deadline, due <= at else { return }
      self.step(peer, .deadline, at: at)
    case .genesis(var genesis):
      let words = ActorWords(step, rows)
      let number = words.peer ?? peer
      peers.append(
        Driven(
          number: peer, peer: number, machine: PeerMachine(codecs: codecs()),
          outcome: PeerOutcome(peer: number, label: words.label), at: at, clock: words.clock,
          buffer: .zero))
      if isChanged(peer) { changes.configure(&genesis.configuration) }
      peers[peers.count - 1].buffer = .milliseconds(
        Int64(genesis.configuration.jitterBufferMinimum ?? 0))
      self.step(peer, .genesis(genesis), at: at)
    case .datagram(let datagram, let arrival) where isChanged(peer):
      edit(step, rows, datagram, arrival)
    case .call(_, .close):
      if let index = peers.firstIndex(where: { $0.number == peer }) {
        peers[index].outcome.sample(peers[index].machine.stats(of: nil))
        drain(index)
      }
      fallthrough
    default: self.step(peer, input, at: at)
    }
  }

  /// Passes a recorded input to an observer's `WatchedCalls`, which its genesis creates.
  private func watch(_ input: ObserverInput, _ step: TapeChunk.Step) {
    if case .genesis = input {
      var configuration = PeerConfiguration()
      changes.configure(&configuration)
      watched.append(
        WatchedCalls(
          number: step.head.actor, name: step.actorName, codecs: codecs,
          buffer: .milliseconds(Int64(configuration.jitterBufferMinimum ?? 0)),
          peer: changes.peer))
    }
    guard let index = watched.firstIndex(where: { $0.number == step.head.actor }) else { return }
    watched[index].step(input, at: step.head.at)
  }

  private func isChanged(_ actor: UInt32) -> Bool {
    changes.peer == nil || changes.peer == driven(actor)?.peer
  }

  private func driven(_ peer: UInt32) -> Driven? { peers.first { $0.number == peer } }

  private func edit(
    _ step: TapeChunk.Step, _ rows: RowList, _ datagram: Datagram, _ arrival: Instant
  ) {
    let (peer, at) = (step.head.actor, step.head.at)
    let number = driven(peer)?.peer ?? peer
    var datagram = datagram
    var delay: Interval?
    for action in editor.actions(step, rows, memory) {
      switch action {
      case .drop: return
      case .delay(let length): delay = (delay ?? .zero) + length
      case .duplicate: hold(number, datagram, at: at + (delay ?? .zero))
      case .corrupt:
        if let last = datagram.bytes.indices.last { datagram.bytes[last] ^= 0xff }
      }
    }
    if let delay {
      hold(number, datagram, at: arrival + delay)
    } else {
      self.step(peer, .datagram(datagram, arrival: arrival), at: at)
    }
  }

  private func hold(_ peer: UInt32, _ datagram: Datagram, at instant: Instant) {
    let index = held.lastIndex { $0.at <= instant }.map { $0 + 1 } ?? 0
    held.insert(Held(at: instant, order: order, peer: peer, datagram: datagram), at: index)
    order += 1
  }

  private func step(_ peer: UInt32, _ input: PeerInput, at instant: Instant) {
    guard let index = peers.firstIndex(where: { $0.number == peer }) else { return }
    let now = max(instant, peers[index].at)
    peers[index].at = now
    let clock = peers[index].clock
    var input = input
    if case .datagram(let datagram, let arrival) = input {
      peers[index].outcome.receive(datagram.bytes)
      input = .datagram(datagram, arrival: arrival - clock)
    }
    peers[index].machine.step(input, at: now - clock, into: &outbox)
    // Once a peer has been drained, its outputs count as emitted at the time of its input.
    let told = peers[index].isDrained ? instant : now
    while let output = outbox.next() { peers[index].outcome.record(output, at: told) }
  }
}

// MARK: - WatchedCalls

/// Runs the receiving sides of an observer's calls again: their jitter buffers and decoders.
///
/// Media is decoded even if the recording did not decode it, so that outcomes can be compared.
struct WatchedCalls {
  /// The observer's number and name in the take.
  let number: UInt32
  let name: String
  private let machine: ObserverMachine
  private let buffer: Interval
  private var outcomes: [PeerOutcome] = []
  private var outbox = Outbox<ObserverOutput>()
  /// The time of the last input; it never decreases.
  private var at = Instant.zero
  private var isEnded = false

  /// - Parameters:
  ///   - buffer: the minimum delay of the changed jitter buffers.
  ///   - peer: the peer whose jitter buffers change; nil for all.
  init(
    number: UInt32, name: String, codecs: @escaping () -> any CodecFactory, buffer: Interval,
    peer: UInt32?
  ) {
    (self.number, self.name, self.buffer) = (number, name, buffer)
    machine = ObserverMachine(
      codecs: { _ in codecs() },
      minimumDelay: { peer == nil || peer == $0 ? buffer : .zero })
  }

  /// Handles a recorded input; a deadline is skipped if the stack has none that is due.
  mutating func step(_ input: ObserverInput, at instant: Instant) {
    var input = input
    switch input {
    case .genesis(var genesis):
      genesis.decodeAll()
      input = .genesis(genesis)
    case .deadline:
      // The stack's deadline may differ from the recorded one.
      guard let due = machine.deadline, due <= instant else { return }
    case .call(.end):
      drive(input, at: instant)
      return end(at: instant)
    default: break
    }
    drive(input, at: instant)
  }

  /// Runs deadlines that are absent from the recording and more than `patience` overdue at
  /// `instant`.
  mutating func passTime(until instant: Instant, patience: Interval) {
    for _ in 0..<FreeRun.wakesMaximum {
      guard !isEnded, let due = machine.deadline, due + patience < instant else { return }
      drive(.deadline, at: due)
    }
  }

  /// Ends the run, and returns the outcome of each call's two peers.
  mutating func finish(at instant: Instant) -> [PeerOutcome] {
    end(at: instant)
    let reports = machine.stats(at: at)
    for index in outcomes.indices {
      let peer = outcomes[index].peer
      guard let stats = reports.first(where: { $0.peer == peer })?.report else { continue }
      outcomes[index].finish(at: instant, stats: stats)
    }
    return outcomes
  }

  /// Stores the final statistics, then plays out the frames that have already arrived, so that the
  /// same frames count for any buffer size.
  private mutating func end(at instant: Instant) {
    guard !isEnded else { return }
    isEnded = true
    for report in machine.stats(at: max(at, instant)) {
      if let index = index(of: report.peer) { outcomes[index].sample(report.report) }
    }
    let last = instant + buffer + FreeRun.drain
    for _ in 0..<FreeRun.wakesMaximum {
      guard let due = machine.deadline, due <= last else { return }
      at = max(at, due)
      machine.step(.deadline, at: at, into: &outbox)
      while let output = outbox.next() {
        guard case .followed(.event(let event), let shown) = output.content,
          let index = output.peers?.first.flatMap(index)
        else { continue }
        outcomes[index].countLate(.event(event), at: shown)
      }
    }
  }

  private mutating func drive(_ input: ObserverInput, at instant: Instant) {
    at = max(at, instant)
    machine.step(input, at: at, into: &outbox)
    while let output = outbox.next() {
      if let peers = output.peers {
        for (peer, label) in zip(peers, output.labels) where index(of: peer) == nil {
          outcomes.append(PeerOutcome(peer: peer, label: label, isObserved: true))
        }
      }
      guard case .followed(.event(let event), let shown) = output.content,
        let index = output.peers?.first.flatMap(index)
      else { continue }
      outcomes[index].record(.event(event), at: shown)
    }
  }

  private func index(of peer: UInt32) -> Int? { outcomes.firstIndex { $0.peer == peer } }
}
