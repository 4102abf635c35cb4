import SDP
import Wire

/// A session's data channels, and whether signaling has moved to them.
struct SoraChannels: Sendable {
  /// The time from the first message on the data channel until the client closes the WebSocket, if
  /// the server permits that.
  private static let switchSeconds: Int64 = 10

  private var channels: [SoraChannel] = []
  /// Whether signaling now uses data channels.
  private(set) var hasSwitched = false
  /// Whether the session continues if the WebSocket closes; the client closes the WebSocket at
  /// `deadline`.
  private var ignoresSocket = false
  private(set) var deadline: Instant?

  subscript(label: String) -> SoraChannel? { channels.first { $0.label == label } }

  /// Whether the session continues without its WebSocket.
  var outlivesSocket: Bool { hasSwitched && ignoresSocket }

  mutating func begin(_ channels: [SoraChannel]) { self.channels = channels }

  mutating func switchOver(ignoresSocket: Bool) {
    hasSwitched = true
    self.ignoresSocket = ignoresSocket
  }

  mutating func recordSignaling(at now: Instant) {
    guard ignoresSocket, deadline == nil else { return }
    deadline = now + .seconds(SoraChannels.switchSeconds)
  }

  /// Returns whether the WebSocket must be closed now.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let deadline, deadline <= now else { return false }
    self.deadline = nil
    return true
  }

  mutating func end() { self = SoraChannels() }

  /// Returns the request that sends an application's message; nil if there is no channel for it, or
  /// before signaling has moved to data channels.
  ///
  /// A type that starts with `#` is the label of the channel; other messages use the application's
  /// first channel.
  func outgoing(_ message: UserMessage) -> ConnectionRequest? {
    let wanted = message.type.hasPrefix("#") ? message.type : nil
    guard hasSwitched,
      let channel = channels.first(where: { $0.isOwn && (wanted ?? $0.label) == $0.label })
    else { return nil }
    let bytes = Array(message.text.utf8)
    return .sendOnChannel(
      label: channel.label, .binary(channel.isCompressed ? Zlib.compressed(bytes) : bytes))
  }
}

extension SoraChannel {
  /// Converts a received message; returns nil if it is not text.
  func message(_ bytes: [UInt8]) -> UserMessage? {
    var (sender, body) = ("", bytes[...])
    if carriesSender, bytes.count >= SoraChannel.senderLength {
      sender = String(decoding: bytes.prefix(SoraChannel.senderLength), as: UTF8.self)
      body = bytes.dropFirst(SoraChannel.senderLength)
    }
    return String(validating: body, as: UTF8.self).map {
      UserMessage(sender: sender, type: label, text: $0)
    }
  }
}

// MARK: - SoraDesk

/// The Sora machine's shared state: transport, participants and outputs.
struct SoraDesk: SignalingDesk {
  var link: ServerLink
  var roster = Roster()
  /// The local connection's identifier on the server.
  private(set) var participant: String?
  var channels = SoraChannels()
  private(set) var connection: ConnectionID?
  var step = SignalingStep()

  init(_ configuration: SignalingConfiguration) { link = ServerLink(urls: configuration.urls) }

  mutating func open() { link.open(at: now, into: &step.outputs) }
  mutating func drop() { link.drop(into: &step.outputs) }
  mutating func close() -> Bool { link.close(at: now, into: &step.outputs) }
  mutating func pass() -> ServerLink.News? { link.pass(at: now, into: &step.outputs) }

  /// Records that the server accepted the client.
  mutating func begin(_ offer: SoraOffer) {
    participant = offer.connection
    channels.begin(offer.channels)
  }

  mutating func reset() {
    emit(roster.retain([]))
    channels.end()
    connection = nil
  }

  /// Sends a signaling message on the data channel or, before the switch, on the WebSocket.
  mutating func send(_ value: JSONValue) {
    if channels.hasSwitched, channels[SoraChannel.signaling] != nil {
      send(value, on: SoraChannel.signaling)
    } else {
      link.send(value.json, into: &step.outputs)
    }
  }

  /// Sends a message on the WebSocket, even after signaling has moved to data channels.
  mutating func sendOnSocket(_ value: JSONValue) { link.send(value.json, into: &step.outputs) }

  /// Sends a message on a data channel, if it is open.
  mutating func send(_ value: JSONValue, on label: String) {
    guard let connection, let channel = channels[label] else { return }
    request(connection, .sendOnChannel(label: label, channel.frame(value.json)))
  }

  mutating func connect(_ role: ConnectionRole, _ servers: ICEServers) -> ConnectionID {
    let id = openConnection(role, servers)
    connection = id
    return id
  }
}

/// The server's unanswered requests for statistics, from the WebSocket or a data channel.
struct SoraStatistics: Sendable {
  private var count: UInt32 = 0
  private var asked: [(action: ActionID, isOnChannel: Bool)] = []

  mutating func ask(_ connection: ConnectionID, isOnChannel: Bool, _ desk: inout SoraDesk) {
    // A server that asks repeatedly gets one reply at a time.
    guard !asked.contains(where: { $0.isOnChannel == isOnChannel }) else { return }
    count &+= 1
    asked.append((ActionID(count), isOnChannel))
    desk.request(connection, .getStats(ActionID(count)))
  }

  mutating func answer(_ action: ActionID, _ text: String, _ desk: inout SoraDesk) {
    guard let index = asked.firstIndex(where: { $0.action == action }) else { return }
    let isOnChannel = asked.remove(at: index).isOnChannel
    let stats = JSONValue(text: text) ?? .list([])
    if isOnChannel {
      desk.send(.members(("type", "stats"), ("reports", stats)), on: SoraChannel.stats)
    } else {
      desk.sendOnSocket(.members(("type", "pong"), ("stats", stats)))
    }
  }

  /// Drops the requests when the session ends.
  mutating func forget() { asked = [] }
}
