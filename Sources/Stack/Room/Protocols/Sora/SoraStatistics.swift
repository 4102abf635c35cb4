import Wire

/// Statistics that the server asks for, on the WebSocket or on the channel of that name, until the
/// connection has given them.
struct SoraStatistics: Sendable {
  private var count: UInt32 = 0
  /// Who has asked.
  private var asked: [(action: ActionID, isOnChannel: Bool)] = []

  mutating func ask(_ connection: ConnectionID, isOnChannel: Bool, _ desk: inout SoraDesk) {
    // Whoever asks again and again gets one answer at a time.
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

  /// The session is over.
  mutating func forget() { asked = [] }
}
