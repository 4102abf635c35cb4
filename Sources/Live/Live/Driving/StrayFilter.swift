import Wire

/// Filters stray datagrams: from ends that were never sent anything, and without the peer's
/// credentials.
///
/// A peer gets a few of them, because they help explain a failing call. The rest is counted and
/// dropped before it becomes an input. So nobody who knows a port can inflate a take, and a replay
/// needs no record of them.
struct StrayFilter {
  /// How many stray datagrams a peer gets, and how many bytes.
  static let most = 500
  static let mostBytes = 256 << 10
  /// The most ends remembered; ICE has fewer pairs.
  private static let endsMaximum = 4_096

  private var known: Set<SocketAddress> = []
  private var lastKnown: SocketAddress?
  private var admitted = 0
  private var admittedBytes = 0
  /// The number of dropped datagrams.
  private(set) var dropped: UInt64 = 0

  /// Records that something was sent to an end.
  mutating func sent(_ datagram: Datagram) {
    guard lastKnown != datagram.remote, !StrayFilter.isRefusal(datagram.bytes) else { return }
    lastKnown = datagram.remote
    if known.count < StrayFilter.endsMaximum { known.insert(datagram.remote) }
  }

  /// Decides about a datagram.
  /// - Parameter isRecognized: whether it carries the peer's credentials.
  mutating func admits(_ datagram: Datagram, isRecognized: () -> Bool) -> Bool {
    if lastKnown == datagram.remote { return true }
    if known.contains(datagram.remote) {
      lastKnown = datagram.remote
      return true
    }
    if isRecognized() { return true }
    guard admitted < StrayFilter.most, admittedBytes + datagram.bytes.count <= StrayFilter.mostBytes
    else {
      dropped += 1
      return false
    }
    admitted += 1
    admittedBytes += datagram.bytes.count
    return true
  }

  /// Whether it is an error response to a Binding request (RFC 8489 section 5), sent to unknown
  /// peers.
  private static func isRefusal(_ bytes: [UInt8]) -> Bool {
    bytes.count >= 2 && bytes[0] == 0x01 && bytes[1] == 0x11
  }
}
