import Wire

/// The path in use, whether it is that of an earlier ICE generation, and the handshake messages
/// that wait for a first one.
struct TransportPath {
  /// How many datagrams of DTLS wait at most.
  private static let waitingMaximum = 16

  private(set) var inUse: (local: SocketAddress, remote: SocketAddress)?
  /// Whether the path in use begins at a TURN server.
  private(set) var isRelayed = false
  /// Whether ICE was restarted and has not selected a path since.
  private(set) var isOld = false
  private var waiting: [[UInt8]] = []

  /// Puts a path into use.
  mutating func select(_ local: SocketAddress, _ remote: SocketAddress, isRelayed: Bool) {
    inUse = (local, remote)
    isOld = false
    self.isRelayed = isRelayed
  }

  /// Records that ICE looks for another path; the one in use continues until then.
  mutating func restart() { isOld = true }

  /// Keeps a handshake message for the path to come, unless there are too many.
  mutating func hold(_ bytes: [UInt8]) {
    if waiting.count < Self.waitingMaximum { waiting.append(bytes) }
  }

  /// Returns what waited, which is forgotten.
  mutating func takeHeld() -> [[UInt8]] {
    defer { waiting = [] }
    return waiting
  }
}
