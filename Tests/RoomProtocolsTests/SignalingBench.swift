import Peer
import RoomSignaling
import SDP
import Testing
import Wire

@testable import RoomProtocols

/// A signaling machine on a bench: its outputs as they come, and a clock that tests move.
struct SignalingBench<Protocol: SignalingMachine> {
  private(set) var machine: Protocol
  private(set) var now = Instant.zero
  /// What came out and was not looked at.
  private(set) var outputs: [SignalingOutput] = []

  init(_ configuration: SignalingConfiguration) {
    machine = Protocol(configuration, entropy: Entropy(seed: [1]))
  }

  mutating func step(_ input: SignalingInput) {
    var outbox = Outbox<SignalingOutput>()
    machine.step(input, at: now, into: &outbox)
    outputs += outbox.take()
  }

  mutating func want(_ intent: RoomIntent) { step(.intent(intent)) }

  /// Lets time pass, with a deadline for each that is reached.
  mutating func wait(_ seconds: Int64) {
    let end = now + .seconds(seconds)
    while let due = machine.deadline, due <= end {
      now = max(now, due)
      step(.deadline)
    }
    now = end
  }

  mutating func take() -> [SignalingOutput] {
    defer { outputs = [] }
    return outputs
  }

  /// The events that came out; whatever else did is kept.
  mutating func events() -> [SignalingEvent] {
    let events = outputs.compactMap { if case .event(let event) = $0 { event } else { nil } }
    outputs.removeAll { if case .event = $0 { true } else { false } }
    return events
  }

  /// The next message that went to the server.
  mutating func sent(_ place: SourceLocation = #_sourceLocation) throws -> JSONValue {
    while !outputs.isEmpty {
      if case .transport(_, .send(.text(let text))) = outputs.removeFirst() {
        return try JSONValue(parsing: text)
      }
    }
    Issue.record("nothing was sent", sourceLocation: place)
    throw JSONError(reason: "nothing was sent")
  }

  /// The requests to connections that came out; whatever else did is kept.
  mutating func requests() -> [ConnectionRequest] {
    let requests = outputs.compactMap { output -> ConnectionRequest? in
      if case .connection(_, let request) = output { request } else { nil }
    }
    outputs.removeAll { if case .connection = $0 { true } else { false } }
    return requests
  }

  var lastTransport: TransportID? {
    outputs.compactMap { output -> TransportID? in
      if case .transport(let id, .open) = output { id } else { nil }
    }.last
  }
}
