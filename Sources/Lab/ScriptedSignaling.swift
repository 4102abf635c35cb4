package import Room
import Tape
package import Wire

/// A signaling protocol for tests: the server's messages are the outputs themselves, and the room's
/// intents and connection reports are sent to the server as they are.
///
/// Both are JSON over one transport, so that a room under test communicates only with the test.
package struct ScriptedSignaling: SignalingMachine {
  package static let name = "scripted"

  package let abilities: SignalingAbilities
  private let random: EntropyStream
  private var isOpen = false
  private var waiting: [SignalingFrame] = []
  package private(set) var deadline: Instant?

  /// How often an open machine reports itself, as a service's keepalive would.
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
        .event(.failed(SignalingFailure(.unreadableMessage, "a message that is no text"))))
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

  /// A message to the server.
  package struct Sent: Codable, Sendable {
    package var transaction: UInt32
    package var intent: RoomIntent?
    package var connection: UInt32?
    package var report: ConnectionReport?
  }
}
