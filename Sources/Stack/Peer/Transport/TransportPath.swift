import Wire

/// The selected path, whether it belongs to an earlier ICE generation, and the handshake messages
/// waiting for a first one.
struct TransportPath {
  /// The most DTLS datagrams that wait.
  private static let waitingMaximum = 16

  private(set) var inUse: (local: SocketAddress, remote: SocketAddress)?
  /// Whether the path starts at a TURN server.
  private(set) var isRelayed = false
  /// Whether ICE was restarted and has not selected a path since.
  private(set) var isOld = false
  private var waiting: [[UInt8]] = []

  mutating func select(_ local: SocketAddress, _ remote: SocketAddress, isRelayed: Bool) {
    inUse = (local, remote)
    isOld = false
    self.isRelayed = isRelayed
  }

  /// Records that ICE looks for another path; the current one stays in use until then.
  mutating func restart() { isOld = true }

  /// Stores a handshake message for the path to come, up to a limit.
  mutating func hold(_ bytes: [UInt8]) {
    if waiting.count < Self.waitingMaximum { waiting.append(bytes) }
  }

  /// Returns and removes the waiting messages.
  mutating func removeHeld() -> [[UInt8]] {
    defer { waiting = [] }
    return waiting
  }
}
