import Wire

/// Datagrams that belong to nobody: from ends that were never sent anything, without the
/// credentials of the peer that they come to.
///
/// A peer is given some of them, because they tell something about a call that goes wrong; those
/// beyond that are counted and dropped before they become inputs, so that nobody who knows a port
/// makes a take grow, and a replay needs to know nothing of them.
struct StrayFilter {
  /// How many of them a peer is given, and with how many bytes.
  static let most = 500
  static let mostBytes = 256 << 10
  /// How many ends are remembered; ICE has fewer pairs.
  private static let endsMaximum = 4_096

  private var known: Set<SocketAddress> = []
  private var lastKnown: SocketAddress?
  private var admitted = 0
  private var admittedBytes = 0
  /// How many were dropped.
  private(set) var dropped: UInt64 = 0

  /// Records that something was sent to an end.
  mutating func sent(_ datagram: Datagram) {
    guard lastKnown != datagram.remote, !StrayFilter.isRefusal(datagram.bytes) else { return }
    lastKnown = datagram.remote
    if known.count < StrayFilter.endsMaximum { known.insert(datagram.remote) }
  }

  /// Decides on a datagram that came.
  ///
  /// - Parameter isRecognized: whether it carries the credentials of the peer.
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

  /// Whether it is an error response to a Binding request (RFC 8489 section 5), which strangers
  /// get.
  private static func isRefusal(_ bytes: [UInt8]) -> Bool {
    bytes.count >= 2 && bytes[0] == 0x01 && bytes[1] == 0x11
  }
}
