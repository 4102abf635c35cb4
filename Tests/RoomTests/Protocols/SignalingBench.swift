import Peer
import SDP
import Testing
import Wire

@testable import Room

/// A signaling machine under test: its outputs, and a clock that the test moves.
struct SignalingBench<Protocol: SignalingMachine> {
  private(set) var machine: Protocol
  private(set) var now = Instant.zero
  /// The outputs not yet examined.
  private(set) var outputs: [SignalingOutput] = []
  /// The transport requested last.
  private(set) var transport = TransportID(0)
  private(set) var lastSent: JSONValue?
  /// The HTTP requests made so far, in order.
  private(set) var requestsSent: [(id: RequestID, request: ServiceRequest)] = []

  init(_ configuration: SignalingConfiguration) {
    machine = Protocol(configuration, entropy: Entropy(seed: [1]))
  }

  init(_ machine: Protocol) { self.machine = machine }

  mutating func move(to instant: Instant) { now = max(now, instant) }

  mutating func step(_ input: SignalingInput) {
    var outbox = Outbox<SignalingOutput>()
    machine.step(input, at: now, into: &outbox)
    for output in outbox.drain() {
      outputs.append(output)
      switch output {
      case .transport(let id, .open): transport = id
      case .transport(_, .send(.text(let text))): lastSent = try? JSONValue(parsing: text)
      case .request(let id, let request): requestsSent.append((id, request))
      default: break
      }
    }
  }

  mutating func want(_ intent: RoomIntent) { step(.intent(intent)) }

  /// Advances the time, meeting each deadline on the way.
  mutating func wait(_ seconds: Int64) {
    let end = now + .seconds(seconds)
    while let due = machine.deadline, due <= end {
      now = max(now, due)
      step(.deadline)
    }
    now = end
  }

  mutating func drain() -> [SignalingOutput] {
    defer { outputs = [] }
    return outputs
  }

  /// Removes and returns the events; other outputs are kept.
  mutating func events() -> [SignalingEvent] {
    let events = outputs.compactMap { if case .event(let event) = $0 { event } else { nil } }
    outputs.removeAll { if case .event = $0 { true } else { false } }
    return events
  }

  /// Removes the outputs up to the next message to the server, and returns the message.
  mutating func sent(_ place: SourceLocation = #_sourceLocation) throws -> JSONValue {
    while !outputs.isEmpty {
      if case .transport(_, .send(.text(let text))) = outputs.removeFirst() {
        return try JSONValue(parsing: text)
      }
    }
    Issue.record("nothing was sent", sourceLocation: place)
    throw JSONError(reason: "nothing was sent")
  }

  /// Removes and returns the requests to connections; other outputs are kept.
  mutating func requests() -> [ConnectionRequest] {
    let requests = outputs.compactMap { output -> ConnectionRequest? in
      if case .connection(_, let request) = output { request } else { nil }
    }
    outputs.removeAll { if case .connection = $0 { true } else { false } }
    return requests
  }
}

// MARK: Simulated server

extension SignalingBench {
  /// The addresses requested, in order.
  var opened: [String] {
    outputs.compactMap { output in
      if case .transport(_, .open(let url, _, _)) = output { url } else { nil }
    }
  }

  /// Reports an event of the transport requested last.
  mutating func transport(_ event: TransportEvent) { step(.transport(transport, event)) }

  /// Reports that the transport is open, without a subprotocol.
  mutating func open() { transport(.opened(subprotocol: nil)) }

  mutating func receive(_ text: String) { transport(.frame(.text(text))) }

  mutating func report(_ connection: UInt32, _ report: ConnectionReport) {
    step(.connection(ConnectionID(connection), report))
  }

  /// Receives an answer to a request, with the request's transaction added to it.
  mutating func reply(_ text: String, _ request: JSONValue) {
    guard case .object(var members)? = try? JSONValue(parsing: text) else { return }
    if let transaction = request["transaction"] {
      members.append(JSONValue.Member("transaction", transaction))
    }
    receive(JSONValue.object(members).json)
  }

  /// Answers the next sent message, which must be a request of the given kind.
  mutating func answer(
    _ text: String, to word: String, _ place: SourceLocation = #_sourceLocation
  ) throws {
    let request = try sent(place)
    let words = [request["janus"], request["body"]?["request"], request["type"]]
    #expect(words.contains(.text(word)), "\(request.json)", sourceLocation: place)
    reply(text, request)
  }

  /// Receives an answer to the last message sent to the server.
  mutating func replyToLast(_ text: String) {
    if let lastSent { reply(text, lastSent) }
  }
}
