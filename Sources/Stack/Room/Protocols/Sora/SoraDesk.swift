import SDP
import Wire

/// Shared state of the Sora machine: the transports, the participants, and outputs.
struct SoraDesk: Sendable {
  var link: ServerLink
  var roster = Roster()
  /// The local connection's identifier on the server.
  private(set) var participant: String?
  var channels = SoraChannels()
  private(set) var connection: ConnectionID?
  private(set) var now = Instant.zero
  private(set) var outputs: [SignalingOutput] = []
  private var connectionCount: UInt32 = 0

  init(_ configuration: SignalingConfiguration) { link = ServerLink(urls: configuration.urls) }

  mutating func begin(at now: Instant) { self.now = now }

  mutating func end(into outbox: inout Outbox<SignalingOutput>) {
    for output in outputs { outbox.append(output) }
    outputs = []
  }

  mutating func emit(_ event: SignalingEvent) { outputs.append(.event(event)) }
  mutating func emit(_ events: [SignalingEvent]) { for event in events { emit(event) } }
  mutating func emit(_ action: ActionID, _ failure: SignalingFailure? = nil) {
    emit(.result(action, failure))
  }

  mutating func open() { link.open(at: now, into: &outputs) }
  mutating func drop() { link.drop(into: &outputs) }
  mutating func close() -> Bool { link.close(at: now, into: &outputs) }
  mutating func pass() -> ServerLink.News? { link.pass(at: now, into: &outputs) }

  /// Records that the server accepted this client.
  mutating func begin(_ offer: SoraOffer) {
    participant = offer.connection
    channels.begin(offer.channels)
  }

  /// Resets everything of a session.
  mutating func reset() {
    emit(roster.retain([]))
    channels.end()
    connection = nil
  }

  /// Sends a signaling message over the current transport.
  mutating func send(_ value: JSONValue) {
    if channels.hasSwitched, channels[SoraChannel.signaling] != nil {
      send(value, on: SoraChannel.signaling)
    } else {
      link.send(value.json, into: &outputs)
    }
  }

  /// Sends a message over the WebSocket.
  mutating func sendOnSocket(_ value: JSONValue) { link.send(value.json, into: &outputs) }

  /// Sends a message on a data channel, if it is open.
  mutating func send(_ value: JSONValue, on label: String) {
    guard let connection, let channel = channels[label] else { return }
    request(connection, .sendOnChannel(label: label, channel.frame(value.json)))
  }

  mutating func connect(_ role: ConnectionRole, _ servers: ICEServers) -> ConnectionID {
    connectionCount += 1
    let id = ConnectionID(connectionCount)
    connection = id
    request(id, .open(role, servers))
    return id
  }

  mutating func request(_ connection: ConnectionID, _ request: ConnectionRequest) {
    outputs.append(.connection(connection, request))
  }
}
