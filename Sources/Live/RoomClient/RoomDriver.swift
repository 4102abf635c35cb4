import Live
import Peer
import Room
import Signaling
import Synchronization
import Tape
import Wire

/// Runs a room live: steps its machine, records the steps, and carries out the outputs over
/// WebSockets, HTTP and a session's connections.
///
/// Events are delivered in order, no matter on which thread a step was made.
final class RoomDriver: Sendable {
  private struct State {
    let machine = RecordedRoom(.all)
    var outbox = Outbox<RoomOutput>()
    var last = Instant.zero
    var lastCall: UInt32 = 0
    var waiting: [UInt32: @Sendable (RoomReply) -> Void] = [:]
    var links: [ConnectionID: RoomLink] = [:]
    /// The first 1,000 connections created, in order.
    var made: [PeerConnection] = []
    var isOver = false
  }

  let session: Session
  let label: String
  private let actor: UInt32
  private let state = Mutex(State())
  private let transports = RoomTransports()
  private let alarm: RoomAlarm
  /// Supplies the tracks of local media to connections, by number.
  let sources: LocalSources
  /// The connections' base configuration.
  private let base: PeerConfiguration
  /// Receives what the driver reports, on any thread; must not block.
  private let listener: @Sendable (RoomNews) -> Void
  /// The audio session whose loudspeaker plays received audio; nil if there is none.
  private let audio: AudioSession?
  private let reportsStreams: Bool

  init(
    _ configuration: RoomConfiguration, connections base: PeerConfiguration, session: Session,
    label: String, sources: LocalSources, audio: AudioSession? = nil, reportsStreams: Bool = false,
    listener: @escaping @Sendable (RoomNews) -> Void
  ) {
    self.audio = audio
    self.reportsStreams = reportsStreams
    self.session = session
    self.label = label
    self.sources = sources
    self.base = base
    self.listener = listener
    actor = session.tape?.addActor(.room, label: label) ?? 0
    alarm = RoomAlarm(session.clock)
    step(.genesis(configuration, seed: drawSeed()))
  }

  deinit {
    alarm.end()
    transports.endAll()
    for link in state.withLock({ $0.links.values.map(\.self) }) { link.post(.request(.close)) }
  }

  /// Passes a call to the room's machine and waits for the reply.
  func call(_ call: RoomCall) async -> RoomReply {
    await withCheckedContinuation { continuation in
      self.call(call) { continuation.resume(returning: $0) }
    }
  }

  /// Calls the room and passes its reply to a closure, which must neither block nor call the room.
  private func call(_ call: RoomCall, _ answered: @escaping @Sendable (RoomReply) -> Void) {
    state.withLock { state in
      state.lastCall &+= 1
      state.waiting[state.lastCall] = answered
      step(.call(id: state.lastCall, call), &state)
    }
  }

  /// Calls the room without waiting, for methods that must not block.
  /// - Parameter answered: receives the error, nil on success; must neither block nor call the
  ///   room.
  /// - Throws: `RoomError` for an immediate refusal, in which case `answered` is not called.
  func begin(
    _ call: RoomCall, answered: @escaping @Sendable (RoomError?) -> Void
  ) throws(RoomError) {
    let begun = BegunCall(answered)
    self.call(call) { begun.receive($0) }
    if let refusal = begun.finish() { throw refusal }
  }

  /// Calls the room and ignores its reply.
  func post(_ call: RoomCall) {
    state.withLock { state in
      state.lastCall &+= 1
      step(.call(id: state.lastCall, call), &state)
    }
  }

  /// Reports an error that no pending call is waiting for.
  func report(_ error: RoomError) { listener(.failed(error)) }

  func step(_ input: RoomInput) { state.withLock { step(input, &$0) } }

  var snapshot: RoomSnapshot { state.withLock { $0.machine.snapshot } }

  func link(_ id: ConnectionID) -> RoomLink? { state.withLock { $0.links[id] } }

  /// The connections created, in order: at most the first 1,000.
  var connections: [PeerConnection] { state.withLock { $0.made } }
  private static let madeMaximum = 1_000

  var links: [RoomLink] {
    state.withLock { state in
      state.links.sorted { $0.key.number < $1.key.number }.map(\.value)
    }
  }

  private func reachDeadline() {
    state.withLock { state in
      guard let due = state.machine.deadline, due <= session.clock.now else { return }
      step(.deadline, &state)
    }
  }

  // MARK: Steps

  private func step(_ input: RoomInput, _ state: inout State) {
    state.last = max(state.last, session.clock.now)
    state.machine.step(input, at: state.last, into: &state.outbox)
    let outputs = state.outbox.drain()
    session.tape?.record(
      StepRecord(
        actor: actor, at: state.last, input: input, outputs: OutputList(outputs),
        deadline: state.machine.deadline, entropyDrawn: state.machine.entropyDrawn))
    for output in outputs { carryOut(output, &state) }
    alarm.set(state.machine.deadline) { [weak self] in self?.reachDeadline() }
  }

  /// Carries out an output; must neither block nor step the room again before the step is over.
  private func carryOut(_ output: RoomOutput, _ state: inout State) {
    switch output {
    case .transport(let id, let request):
      transports.carryOut(request, id) { [weak self] in self?.step(.transport(id, $0)) }
    case .request(let id, let request):
      transports.send(request) { [weak self] in self?.step(.response(id, $0)) }
    case .connection(let id, let order): pass(order, to: id, &state)
    case .reply(let call, let reply):
      state.waiting.removeValue(forKey: call)?(reply)
    case .event(let event):
      listener(.event(event))
      if case .disconnected = event { end(&state) }
    case .share(let order): listener(.share(order))
    case .tokenWanted: listener(.tokenWanted)
    case .state(let machine, _, let to):
      if machine == "room", let now = RoomState(rawValue: to) { listener(.state(now)) }
    case .person(.entered(_, let id, let name, _)): listener(.named(id: id, name))
    case .person: break
    }
  }

  private func pass(_ order: RoomConnectionOrder, to id: ConnectionID, _ state: inout State) {
    if case .request(.open(let role, let servers)) = order {
      let link = RoomLink(
        session: session, label: "\(label) \(role.rawValue) \(id.number)", role: role,
        servers: servers, base: base, sources: sources, audio: audio, reportsStreams: reportsStreams
      ) { [weak self] in
        self?.step(.connection(id, $0))
      } tell: { [listener] in
        listener($0)
      }
      state.links[id] = link
      if state.made.count < RoomDriver.madeMaximum { state.made.append(link.connection) }
    } else {
      state.links[id]?.post(order)
      if case .request(.close) = order { state.links[id] = nil }
    }
  }

  private func end(_ state: inout State) {
    guard !state.isOver else { return }
    state.isOver = true
    for answered in state.waiting.values {
      answered(.failed(SignalingFailure(.invalidState, "the room is over")))
    }
    state.waiting = [:]
    transports.endAll()
  }
}

/// A call that does not wait for its reply, which may arrive before the call returns or later.
private final class BegunCall: Sendable {
  private enum State {
    case open
    case answered(RoomError?)
    case returned
  }

  private let state = Mutex(State.open)
  private let answered: @Sendable (RoomError?) -> Void

  init(_ answered: @escaping @Sendable (RoomError?) -> Void) { self.answered = answered }

  func receive(_ reply: RoomReply) {
    var error: RoomError?
    if case .failed(let failure) = reply { error = RoomError(failure) }
    let isLate = state.withLock { state in
      if case .returned = state { return true }
      state = .answered(error)
      return false
    }
    if isLate { answered(error) }
  }

  /// Marks the call as returned; returns the error if it was already refused, and reports success
  /// if it already succeeded.
  func finish() -> RoomError? {
    let former = state.withLock { state in
      defer { state = .returned }
      return state
    }
    guard case .answered(let error) = former else { return nil }
    if error == nil { answered(nil) }
    return error
  }
}

/// What a driver reports about its room: events, and requests to the application.
enum RoomNews: Sendable {
  case event(RoomEvent)
  /// A participant's name, before the participant is reported present.
  case named(id: String, String)
  case state(RoomState)
  case share(ShareOrder)
  case tokenWanted
  /// A request was refused, and no call is waiting for it.
  case failed(RoomError)
  /// A stream was added or removed; sent only if the driver reports streams.
  case stream(MediaStream, isAdded: Bool)
}

/// Wakes a room at its deadline.
final class RoomAlarm: Sendable {
  private struct State {
    var due: Instant?
    var task: Task<Void, Never>?
  }

  private let state = Mutex(State())
  private let clock: TakeClock

  init(_ clock: TakeClock) { self.clock = clock }

  /// Sets when to call the closure, replacing an earlier time.
  func set(_ due: Instant?, _ ring: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard due != state.due else { return }
      state.due = due
      state.task?.cancel()
      state.task = nil
      guard let due else { return }
      let wait = max(0, (due - clock.now).nanoseconds)
      state.task = Task { [weak self] in
        try? await Task.sleep(for: .nanoseconds(wait))
        guard !Task.isCancelled else { return }
        self?.state.withLock { $0.due = nil }
        ring()
      }
    }
  }

  func end() { state.withLock { $0.task?.cancel() } }
}

// MARK: - RoomTransports

/// The WebSockets and HTTP requests of a room's signaling.
final class RoomTransports: Sendable {
  private struct Entry {
    var socket: WebSocket?
    var task: Task<Void, Never>?
  }

  private let entries = Mutex<[TransportID: Entry]>([:])

  /// Opens, uses or closes a WebSocket, and reports its events in order.
  func carryOut(
    _ request: TransportRequest, _ id: TransportID,
    tell: @escaping @Sendable (TransportEvent) -> Void
  ) {
    switch request {
    case .open(let url, let subprotocols, let headers):
      // The task removes its entry when it ends, so hold the lock until the entry exists.
      entries.withLock { entries in
        entries[id] = Entry(
          task: Task { [weak self] in
            await self?.run(url, subprotocols, headers, id, tell)
            self?.entries.withLock { $0[id] = nil }
          })
      }
    case .send(let frame): socket(id)?.post(frame)
    case .close(let code, let reason):
      guard let socket = socket(id) else {
        // Cancel a connection attempt in progress.
        entries.withLock { $0[id]?.task?.cancel() }
        return
      }
      socket.post(close: WebSocketCloseCode(rawValue: code), reason: reason)
    }
  }

  private func socket(_ id: TransportID) -> WebSocket? { entries.withLock { $0[id]?.socket } }

  private func run(
    _ url: String, _ subprotocols: [String], _ headers: [HTTPField], _ id: TransportID,
    _ tell: @Sendable (TransportEvent) -> Void
  ) async {
    let socket: WebSocket
    do throws(WebSocketError) {
      socket = try await WebSocket.connect(
        to: url, subprotocols: subprotocols, headers: headers.map { ($0.name, $0.value) })
    } catch {
      tell(.failed(error.reason))
      return
    }
    // The attempt may have been cancelled just when it succeeded.
    let isWanted = entries.withLock { entries in
      guard !Task.isCancelled, entries[id] != nil else { return false }
      entries[id]?.socket = socket
      return true
    }
    guard isWanted else {
      socket.post(close: .normal)
      tell(.failed("the connection was cancelled"))
      return
    }
    tell(.opened(subprotocol: socket.subprotocol))
    while let frame = await socket.receive() { tell(.frame(frame)) }
    let closure = await socket.closed()
    if closure.isClean {
      tell(.closed(code: closure.code.rawValue, reason: closure.reason))
    } else {
      tell(.failed(closure.reason.isEmpty ? "the connection was lost" : closure.reason))
    }
  }

  /// Sends an HTTP request and reports its result.
  func send(
    _ request: ServiceRequest, tell: @escaping @Sendable (HTTPResult) -> Void
  ) {
    Task {
      do throws(HTTPError) {
        let response = try await HTTPClient().send(
          request.method, request.url, headers: request.fields.map { ($0.name, $0.value) },
          body: request.body.isEmpty ? nil : request.body)
        tell(
          .answered(
            status: response.status,
            fields: response.headers.map { HTTPField($0.name, $0.value) }, body: response.body))
      } catch {
        tell(.failed(error.reason))
      }
    }
  }

  /// Closes all WebSockets after sending queued messages, and cancels connection attempts.
  func endAll() {
    let open = entries.withLock { entries in
      defer { entries = [:] }
      return Array(entries.values)
    }
    for entry in open {
      if let socket = entry.socket {
        socket.post(close: .normal)
      } else {
        entry.task?.cancel()
      }
    }
  }
}
