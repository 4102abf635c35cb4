import Wire

/// Statistics that the server requested, on the WebSocket or a channel, until the connection
/// returns them.
struct SoraStatistics: Sendable {
  private var count: UInt32 = 0
  /// The pending requests.
  private var asked: [(action: ActionID, isOnChannel: Bool)] = []

  mutating func ask(_ connection: ConnectionID, isOnChannel: Bool, _ desk: inout SoraDesk) {
    // A server that asks repeatedly gets one answer at a time.
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

  /// Resets the requests at the end of the session.
  mutating func forget() { asked = [] }
}
