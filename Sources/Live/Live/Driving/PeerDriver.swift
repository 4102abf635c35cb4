import JSEP
package import Peer
import Tape
package import Wire

/// Turns events into steps of one peer: applies inputs, carries out outputs and records the steps.
///
/// Some outputs cause another input (a bound socket, a refused datagram). Such inputs wait in order
/// until the step that caused them is complete. The driver lives on its loop's thread.
package final class PeerDriver {
  /// Receives a peer's events, on the loop's thread.
  package typealias Observer = @Sendable (PeerEvent, Instant) -> Void
  /// Receives a relay leg's decrypted packets, on the loop's thread.
  package typealias Forward = @Sendable (RelayedPacket, Instant) -> Void

  /// How many consecutive inputs one turn handles before the loop serves other peers.
  package static let turnMaximum = 256
  /// The longest time that a datagram waits for more datagrams on the same path.
  package static let burstMaximum = DatagramBurst.most

  private let engine: any PeerEngine
  private let clock: TakeClock
  private let recorder: (any StepSink)?
  private let actor: UInt32
  private let port: any DatagramPort
  private let observer: Observer
  /// Receives decrypted packets if the peer is a relay's leg; nil for other peers.
  private let forward: Forward?

  private var outbox = Outbox<PeerOutput>()
  private var waiting = InputQueue()
  private var calls = PendingCalls()
  private var deadline: Instant?
  private var stats: StatsSchedule
  private var isClosed = false
  private var burst = DatagramBurst()
  private var strays = StrayFilter()
  private var configuration = PeerConfiguration()

  /// The last step's instant; instants never decrease.
  package private(set) var now = Instant.zero

  package init(
    engine: any PeerEngine, clock: TakeClock, recorder: (any StepSink)?, actor: UInt32,
    statsInterval: Interval?, port: any DatagramPort, observer: @escaping Observer,
    forward: Forward? = nil
  ) {
    self.engine = engine
    self.clock = clock
    self.recorder = recorder
    self.actor = actor
    self.port = port
    self.observer = observer
    self.forward = forward
    stats = StatsSchedule(interval: statsInterval)
  }

  /// When the driver needs a turn even without an input; an instant in the past means now, nil
  /// means never.
  package var nextTurn: Instant? {
    if !waiting.isEmpty { return .zero }
    return earliest(deadline, isClosed ? nil : stats.due)
  }

  /// The number of dropped stray datagrams.
  package var strayCount: UInt64 { strays.dropped }

  // MARK: Turns

  /// Passes the genesis to the peer, and the addresses it may gather on with their network types.
  package func begin(_ genesis: Genesis, interfaces: [IPAddress], types: [NetworkType] = []) {
    configuration = genesis.configuration
    receive(.genesis(genesis))
    receive(.interfaces(interfaces, types: types))
    stats.begin(at: now)
  }

  /// Applies an input and the inputs that it causes.
  package func receive(_ input: PeerInput) {
    step(input)
    drain()
  }

  /// Applies a datagram that arrived at this time on the monotonic clock.
  package func receive(_ datagram: Datagram, arrivalMonotonicNanoseconds: Int64) {
    guard strays.admits(datagram, isRecognized: { engine.recognizes(datagram) }) else {
      if strays.dropped == 1 {
        LoopNotices.post(
          "peer \(actor): further datagrams to \(datagram.local) that belong to no call are "
            + "counted and not recorded")
      }
      return
    }
    let arrival = clock.instant(monotonicNanoseconds: arrivalMonotonicNanoseconds)
    step(.datagram(datagram, arrival: min(arrival, advance())))
    drain()
  }

  /// Starts a burst of inputs whose datagrams may be sent together.
  package func beginBurst() { burst.begin(at: advance()) }

  /// Ends the burst and sends what is queued.
  package func endBurst() {
    burst.end()
    flush()
    drain()
  }

  /// Applies an API call and passes its reply to `complete`.
  package func receive(_ call: PeerCall, complete: @escaping @Sendable (PeerReply) -> Void) {
    // Sample once more before closing, because reports use the last sample.
    if call == .close, !isClosed, stats.isOn { sampleStats() }
    var call = call
    if case .getStats(let selector, nil) = call {
      let times = engine.codecTimes
      call = .getStats(of: selector, codecTimes: times.isEmpty ? nil : times)
    }
    step(.call(id: calls.begin(complete), call))
    if call == .close { isClosed = true }
    if case .setRemoteDescription(let description) = call, LoopNotices.areRead {
      let sentences = OfferRemarks.sentences(
        about: description, codecs: configuration.codecs, policy: configuration.bundlePolicy)
      for sentence in sentences { LoopNotices.post("peer \(actor): \(sentence)") }
    }
    drain()
  }

  /// Applies a message for a data channel; the reply is delayed while much is buffered.
  package func receive(_ message: DataMessage, complete: @escaping @Sendable (PeerReply) -> Void) {
    step(.send(id: calls.begin(complete), message))
    drain()
  }

  /// Handles whatever is due: queued inputs, the engine's deadline, a stats sample.
  package func runTurn() {
    drain()
    var steps = 0
    while let due = deadline, due <= advance(), steps < PeerDriver.turnMaximum {
      step(.deadline)
      drain()
      steps += 1
    }
    if !isClosed, stats.isDue(at: advance()) { sampleStats() }
  }

  /// Fails unanswered calls when the peer is removed; no step follows.
  package func abandon() {
    recorder?.end(actor: actor)
    if strays.dropped > 0 {
      LoopNotices.post(
        "peer \(actor): \(counted(strays.dropped, "datagram")) arrived that "
          + "\(strays.dropped == 1 ? "belongs" : "belong") to no call")
    }
    for complete in calls.abandon() { complete(.failure(.ended)) }
  }

  private func sampleStats() {
    stats.sampled(at: advance())
    receive(.getStats()) { _ in }
  }

  // MARK: Steps

  private func advance() -> Instant {
    now = max(now, clock.now)
    return now
  }

  private func step(_ input: PeerInput) {
    let now = advance()
    if burst.consumeDue(at: now) { flush() }
    engine.step(input, at: now, into: &outbox)
    deadline = engine.deadline
    if let recorder {
      let outputs = outbox.drain()
      recorder.record(
        StepRecord(
          peer: actor, at: now, input: input, outputs: outputs, deadline: deadline,
          entropyDrawn: engine.entropyDrawn))
      for output in outputs { perform(output) }
    } else {
      while let output = outbox.next() { perform(output) }
    }
    if !burst.isOpen { flush() }
    for entry in calls.completed { entry.complete(entry.reply) }
    calls.forgetGiven()
  }

  private func drain() {
    var steps = 0
    while steps < PeerDriver.turnMaximum, let input = waiting.popFirst() {
      steps += 1
      step(input)
    }
  }

  private func perform(_ output: PeerOutput) {
    switch output {
    case .datagram(let datagram):
      strays.sent(datagram)
      port.send(datagram)
    case .request(.bindSocket(let id, let ip)):
      open(id) { () throws(SystemError) in try port.bind(ip) }
    case .request(.listen(let id, let ip)):
      open(id) { () throws(SystemError) in try port.listen(ip) }
    case .request(.openStream(let id, let target)):
      do throws(SystemError) {
        try port.openStream(target, id: id)
      } catch {
        waiting.append(.answer(.socketFailed(id: id, code: error.code)))
      }
    case .request(.closeSocket(let local)): port.close(local)
    case .request(.closeStream(let local, let remote)): port.closeStream(local, remote)
    case .request(.publishName(let name, let ip)): port.publish(name, ip)
    case .request(.resolveName(let id, let name)): port.resolve(name, id: id)
    case .reply(let id, let reply): calls.complete(reply, to: id)
    case .event(let event): observer(event, now)
    case .relayed(let packet): forward?(packet, now)
    }
  }

  /// Opens a socket at the peer's request, and queues the result as an input.
  private func open(_ id: UInt32, _ opening: () throws(SystemError) -> SocketAddress) {
    do throws(SystemError) {
      waiting.append(.answer(.socketBound(id: id, try opening())))
    } catch {
      waiting.append(.answer(.socketFailed(id: id, code: error.code)))
    }
  }

  /// Sends queued datagrams, and informs the peer of paths that refuse packets.
  private func flush() {
    for failure in port.flush() { waiting.append(failure) }
  }
}

/// Schedules a peer's stats samples on a grid, so that all peers are sampled at the same times.
package struct StatsSchedule {
  private let interval: Interval?
  package private(set) var due: Instant?

  /// Whether sampling is enabled.
  package var isOn: Bool { interval != nil }

  package init(interval: Interval?) {
    self.interval = interval.flatMap { $0 > .zero ? $0 : nil }
  }

  package mutating func begin(at now: Instant) { sampled(at: now) }

  /// Whether a sample is due at `now`; false if sampling is disabled or has not begun.
  package func isDue(at now: Instant) -> Bool { due.map { $0 <= now } ?? false }

  /// Records that a sample was made, and schedules the next; missed samples are skipped.
  package mutating func sampled(at now: Instant) {
    guard let interval else { return }
    let passed = now.nanoseconds / interval.nanoseconds
    due = Instant.zero + interval * (passed + 1)
  }
}

extension PeerError {
  /// The reply to a call after its peer is gone.
  static let ended = PeerError(name: "InvalidStateError", message: "the session has ended")
}

/// A peer's unanswered API calls, and replies not yet delivered to their callers.
struct PendingCalls {
  typealias Completion = @Sendable (PeerReply) -> Void

  private var waiting: [(id: UInt32, complete: Completion)] = []
  /// The current step's replies, which are delivered after its other outputs.
  private(set) var completed: [(complete: Completion, reply: PeerReply)] = []
  private var lastID: UInt32 = 0

  /// Records a call with the closure for its reply; returns the call's number.
  mutating func begin(_ complete: @escaping Completion) -> UInt32 {
    lastID &+= 1
    waiting.append((lastID, complete))
    return lastID
  }

  /// Records the reply to a call; drops it if the caller no longer waits.
  mutating func complete(_ reply: PeerReply, to id: UInt32) {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    completed.append((waiting.remove(at: index).complete, reply))
  }

  /// Clears delivered replies.
  mutating func forgetGiven() { completed.removeAll(keepingCapacity: true) }

  /// Removes all unanswered calls and returns their closures, oldest first.
  mutating func abandon() -> [Completion] {
    defer { waiting = [] }
    return waiting.map(\.complete)
  }
}

/// Holds the inputs that a peer's outputs cause, in order, until the step that caused them is
/// complete.
struct InputQueue {
  private var inputs: [PeerInput] = []
  private var head = 0

  var isEmpty: Bool { head == inputs.count }

  mutating func append(_ input: PeerInput) { inputs.append(input) }

  /// Removes and returns the oldest input.
  mutating func popFirst() -> PeerInput? {
    guard head < inputs.count else { return nil }
    let input = inputs[head]
    head += 1
    if head == inputs.count {
      inputs.removeAll(keepingCapacity: true)
      head = 0
    }
    return input
  }

  /// Queues a failure to send, or merges it into a waiting failure of the same path.
  mutating func append(_ failure: SendFailure) {
    for index in inputs.indices[head...] {
      guard case .sendFailed(var told) = inputs[index], told.local == failure.local,
        told.remote == failure.remote
      else { continue }
      told.packets += failure.packets
      told.bytes += failure.bytes
      inputs[index] = .sendFailed(told)
      return
    }
    inputs.append(.sendFailed(failure))
  }
}

// MARK: - StrayFilter

/// Filters stray datagrams: datagrams without the peer's credentials, from addresses to which
/// nothing was sent.
///
/// A peer receives a few of them, because they help explain a failing call. The rest are counted
/// and dropped before they become inputs. So an attacker who knows a port cannot inflate a take,
/// and a replay does not need the dropped datagrams.
struct StrayFilter {
  /// The maximum number of stray datagrams and bytes that a peer receives.
  static let most = 500
  static let mostBytes = 256 << 10
  /// The maximum number of remembered addresses, which is larger than the number of ICE's pairs.
  private static let endsMaximum = 4_096

  private var known: Set<SocketAddress> = []
  private var lastKnown: SocketAddress?
  private var admitted = 0
  private var admittedBytes = 0
  private(set) var dropped: UInt64 = 0

  /// Records the address that a datagram is sent to, unless the datagram refuses a Binding request.
  mutating func sent(_ datagram: Datagram) {
    guard lastKnown != datagram.remote, !StrayFilter.isRefusal(datagram.bytes) else { return }
    lastKnown = datagram.remote
    if known.count < StrayFilter.endsMaximum { known.insert(datagram.remote) }
  }

  /// Returns whether to pass a datagram on.
  /// - Parameter isRecognized: whether the datagram carries the peer's credentials.
  mutating func admits(_ datagram: Datagram, isRecognized: () -> Bool) -> Bool {
    if lastKnown == datagram.remote { return true }
    if known.contains(datagram.remote) {
      lastKnown = datagram.remote
      return true
    }
    if isRecognized() { return true }
    guard admitted < StrayFilter.most, admittedBytes + datagram.bytes.count <= StrayFilter.mostBytes
    else {
      dropped += 1
      return false
    }
    admitted += 1
    admittedBytes += datagram.bytes.count
    return true
  }

  /// Returns whether a datagram is an error response to a Binding request (RFC 8489 section 5);
  /// such responses are also sent to unknown peers.
  private static func isRefusal(_ bytes: [UInt8]) -> Bool {
    bytes.count >= 2 && bytes[0] == 0x01 && bytes[1] == 0x11
  }
}
