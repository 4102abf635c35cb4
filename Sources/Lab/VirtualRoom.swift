import Peer
package import Room
import SDP
package import Tape
package import Wire

/// A room in virtual time: the test acts as the service, and connections answer by themselves.
package final class VirtualRoom {
  private let room = RecordedRoom(ScriptedSignaling.protocols)
  private let writer: TapeWriter?
  private let actor: UInt32
  private var lastCall: UInt32 = 0
  private var replies: [UInt32: RoomReply] = [:]
  private var connections: [UInt32: VirtualConnection] = [:]
  package private(set) var now = Instant.zero

  /// Whether connections create and apply descriptions as soon as the room requests it.
  package var connectionsAnswer = true
  package private(set) var events: [RoomEvent] = []
  /// The transitions of the room's state machines, as `machine: from -> to`.
  package private(set) var states: [String] = []
  /// Changes to participants and their media.
  package private(set) var people: [PersonChange] = []
  /// The intents sent to the service.
  package private(set) var intents: [RoomIntent] = []
  /// The connections' reports to the service.
  package private(set) var reports: [ConnectionReport] = []
  /// The requests to connections, each with its connection's number.
  package private(set) var orders: [(connection: UInt32, order: RoomConnectionOrder)] = []
  package private(set) var transports: [TransportRequest] = []
  package private(set) var shares: [ShareOrder] = []
  package private(set) var tokensWanted = 0

  /// Creates a room with scripted signaling.
  ///
  /// - Parameter writer: records the room; nil records nothing.
  package init(
    abilities: SignalingAbilities? = nil, writer: TapeWriter? = nil, label: String = "room",
    _ change: (inout RoomConfiguration) -> Void = { _ in }
  ) {
    self.writer = writer
    actor = writer?.addActor(.room, label: label) ?? 1
    var options: [String: String] = [:]
    if let abilities { options["abilities"] = "\(abilities.rawValue)" }
    var configuration = RoomConfiguration(
      signaling: SignalingConfiguration(
        protocolName: ScriptedSignaling.name, urls: ["wss://scripted.invalid/"], options: options))
    change(&configuration)
    step(.genesis(configuration, seed: Array(1...32)))
  }

  package var snapshot: RoomSnapshot { room.snapshot }
  package var deadline: Instant? { room.deadline }
  package var names: [String] { events.map(\.name) }

  // MARK: Application

  /// Calls the room and returns its reply; nil while there is none.
  @discardableResult
  package func call(_ call: RoomCall) -> RoomReply? {
    lastCall += 1
    let id = lastCall
    step(.call(id: id, call))
    return replies[id]
  }

  package var lastNumber: UInt32 { lastCall }
  package func reply(to call: UInt32) -> RoomReply? { replies[call] }

  /// Joins a room with these participants already present.
  package func enter(_ participants: [ParticipantInfo] = [], as own: String = "me") {
    call(.connect(RoomJoin(room: "room-1")))
    open()
    serve(.joined(JoinedRoom(participant: own, session: "s1", participants: participants)))
  }

  // MARK: Service

  package func open() { step(.transport(TransportID(1), .opened(subprotocol: nil))) }

  /// Delivers events from the service.
  package func serve(_ events: SignalingEvent...) { serve(outputs: events.map { .event($0) }) }

  package func serve(_ requests: ConnectionRequest..., of connection: UInt32) {
    serve(outputs: requests.map { .connection(ConnectionID(connection), $0) })
  }

  package func serve(outputs: [SignalingOutput]) {
    step(.transport(TransportID(1), .frame(.text(CanonicalJSON.text(outputs)))))
  }

  package func transport(_ event: TransportEvent) { step(.transport(TransportID(1), event)) }

  /// Confirms all pending actions as the service; with `failure`, rejects them.
  package func confirm(_ failure: SignalingFailure? = nil) {
    for action in pending { serve(.result(action, failure)) }
  }

  /// The actions requested of the service since the last `clear`.
  private var pending: [ActionID] {
    intents.compactMap { intent in
      switch intent {
      case .publish(let request): request.action
      case .unpublish(let action, _), .subscribe(let action, _), .unsubscribe(let action, _),
        .setProfile(let action, _, _), .setPaused(let action, _, _), .sendMessage(let action, _):
        action
      default: nil
      }
    }
  }

  // MARK: Connections and sharing

  package func report(_ report: RoomConnectionReport, of connection: UInt32 = 1) {
    step(.connection(ConnectionID(connection), report))
  }

  package func report(_ report: ShareReport) { step(.share(report)) }

  /// Advances time, handling everything that falls due at its due time.
  package func wait(_ interval: Interval) {
    let end = now + interval
    while let due = room.deadline, due <= end {
      now = max(now, due)
      step(.deadline)
    }
    now = end
  }

  package func clear() {
    (events, states, people, intents, reports) = ([], [], [], [], [])
    (orders, transports, shares) = ([], [], [])
  }

  /// Passes an input, even an invalid one, to the room.
  package func step(_ input: RoomInput) {
    var outbox = Outbox<RoomOutput>()
    room.step(input, at: now, into: &outbox)
    let outputs = outbox.drain()
    writer?.record(
      StepRecord(
        actor: actor, at: now, input: input, outputs: OutputList(outputs),
        deadline: room.deadline, entropyDrawn: room.entropyDrawn))
    for output in outputs { record(output) }
    for output in outputs { answer(output) }
  }

  private func record(_ output: RoomOutput) {
    switch output {
    case .transport(_, .send(.text(let text))):
      if let sent = CanonicalJSON.value(ScriptedSignaling.Sent.self, from: text) {
        if let intent = sent.intent { intents.append(intent) }
        if let report = sent.report { reports.append(report) }
      }
    case .transport(_, let request): transports.append(request)
    case .request: break
    case .connection(let id, let order): orders.append((id.number, order))
    case .reply(let call, let reply): replies[call] = reply
    case .state(let machine, let from, let to): states.append("\(machine): \(from) -> \(to)")
    case .event(let event): events.append(event)
    case .person(let change): people.append(change)
    case .share(let order): shares.append(order)
    case .tokenWanted: tokensWanted += 1
    }
  }

  private func answer(_ output: RoomOutput) {
    guard connectionsAnswer, case .connection(let id, let order) = output else { return }
    var connection = connections[id.number] ?? VirtualConnection(number: id.number)
    let answers = connection.answers(to: order)
    connections[id.number] = connection
    for answer in answers { report(answer, of: id.number) }
  }
}

/// A connection that does what the room requests, without a network.
private struct VirtualConnection {
  let number: UInt32
  private var sent: [LocalMediaID] = []

  init(number: UInt32) { self.number = number }

  mutating func answers(to order: RoomConnectionOrder) -> [RoomConnectionReport] {
    switch order {
    case .request(.open):
      return [.opened(peer: number), .report(.state(.new))]
    case .attach(let info):
      guard !sent.contains(info.id) else { return [] }
      sent.append(info.id)
      return [.sending(info.id, transceiver: UInt32(sent.count))]
    case .detach(let id):
      sent.removeAll { $0 == id }
      return []
    case .request(.makeOffer):
      return [description(.offer)]
    case .request(.setRemote(let remote)):
      guard remote.type == .offer else { return [.report(.state(.connecting))] }
      return [description(.answer), .report(.state(.connecting))]
    default: return []
    }
  }

  private func description(_ type: SDPType) -> RoomConnectionReport {
    let places = sent.enumerated().map {
      LocalMediaPlace(media: $0.element, mid: "\($0.offset)")
    }
    return .report(
      .description(
        SessionDescription(type: type, sdp: "v=0\r\ns=\(number)\r\n"), media: places))
  }
}

// MARK: - ScriptedSignaling

/// A signaling protocol for tests: the server sends the machine's outputs verbatim, and receives
/// the room's intents and connection reports verbatim.
///
/// Both are JSON over one transport, so that a room under test communicates only with the test.
package struct ScriptedSignaling: SignalingMachine {
  package static let name = "scripted"

  package let abilities: SignalingAbilities
  private let random: EntropyStream
  private var isOpen = false
  private var waiting: [SignalingFrame] = []
  package private(set) var deadline: Instant?

  /// The interval between an open machine's keepalives.
  private static let keepalive = Interval.seconds(25)
  private static let transport = TransportID(1)

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    abilities = SignalingAbilities(
      rawValue: configuration.options["abilities"].flatMap { UInt32($0) } ?? 127)
    random = entropy.stream("signaling")
  }

  package var status: [(name: String, value: String)] {
    [("open", "\(isOpen)"), ("waiting", "\(waiting.count)")]
  }

  package static var protocols: SignalingProtocols {
    var protocols = SignalingProtocols()
    protocols.add(ScriptedSignaling.self)
    return protocols
  }

  package mutating func step(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    switch input {
    case .deadline:
      deadline = now + ScriptedSignaling.keepalive
      outbox.append(.transport(ScriptedSignaling.transport, .send(.text("\"keepalive\""))))
    case .transport(_, .opened):
      isOpen = true
      deadline = now + ScriptedSignaling.keepalive
      outbox.append(.event(.progress(.opened)))
      for frame in waiting {
        outbox.append(.transport(ScriptedSignaling.transport, .send(frame)))
      }
      waiting = []
    case .transport(_, .frame(.text(let text))):
      for output in CanonicalJSON.value([SignalingOutput].self, from: text) ?? [] {
        outbox.append(output)
      }
    case .transport(_, .frame(.binary)):
      outbox.append(
        .event(.failed(SignalingFailure(.unreadableMessage, "a message that is not text"))))
    case .transport(_, .closed(let code, let reason)):
      outbox.append(.event(.ended(RoomEnding(.disconnected, code: Int(code), message: reason))))
    case .transport(_, .failed(let reason)):
      outbox.append(
        .event(.failed(SignalingFailure(.unreachable, reason, isCritical: true))))
      outbox.append(.event(.ended(RoomEnding(.disconnected, message: reason))))
    case .intent(let intent):
      if case .join = intent {
        outbox.append(
          .transport(
            ScriptedSignaling.transport,
            .open(url: "wss://scripted.invalid/", subprotocols: [], headers: [])))
      }
      send(
        CanonicalJSON.text(Sent(transaction: random.integer(UInt32.self), intent: intent)),
        into: &outbox)
    case .connection(let id, let report):
      send(
        CanonicalJSON.text(
          Sent(transaction: random.integer(UInt32.self), connection: id.number, report: report)),
        into: &outbox)
    case .response: break
    }
  }

  private mutating func send(_ text: String, into outbox: inout Outbox<SignalingOutput>) {
    if isOpen {
      outbox.append(.transport(ScriptedSignaling.transport, .send(.text(text))))
    } else {
      waiting.append(.text(text))
    }
  }

  /// A message from the room: an intent or a connection's report, with a random transaction number.
  package struct Sent: Codable, Sendable {
    package var transaction: UInt32
    package var intent: RoomIntent?
    package var connection: UInt32?
    package var report: ConnectionReport?
  }
}
