/// A UDP datagram on a path, or a message on a connection.
package struct Datagram: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]
  /// The DSCP value (RFC 2474), 0 to 63; 0 for best effort.
  ///
  /// Not stored in takes: it follows from the configuration and the calls.
  package var codePoint: UInt8
  /// What its IP header said of congestion when it came; nil for what is sent, and where nobody
  /// read that header.
  package var ecn: ECNMark?

  package init(
    local: SocketAddress, remote: SocketAddress, bytes: [UInt8], codePoint: UInt8 = 0,
    ecn: ECNMark? = nil
  ) {
    self.local = local
    self.remote = remote
    self.bytes = bytes
    self.codePoint = codePoint
    self.ecn = ecn
  }
}

/// The ECN field of an IP header (RFC 3168 section 5).
///
/// Any number may stand in a file, so that a replay writes the same number again.
package struct ECNMark: RawRepresentable, Hashable, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Not ECN-capable.
  package static let notCapable = ECNMark(rawValue: 0)
  /// ECT(1), which senders of L4S use (RFC 9331 section 4).
  package static let ect1 = ECNMark(rawValue: 1)
  package static let ect0 = ECNMark(rawValue: 2)
  /// A router on the way was congested.
  package static let congestionExperienced = ECNMark(rawValue: 3)
}

/// How many packets of a stream came with which ECN marks (W3C packetsReceivedWithEct1 and
/// packetsReceivedWithCe).
package struct ECNCounts: Hashable, Sendable {
  package private(set) var ect1: UInt64 = 0
  package private(set) var congestionExperienced: UInt64 = 0

  package init() {}

  package mutating func count(_ mark: ECNMark) {
    switch mark {
    case .ect1: ect1 += 1
    case .congestionExperienced: congestionExperienced += 1
    default: break
    }
  }
}

extension ECNCounts? {
  /// Counts a packet; the first one whose mark is known begins the counters.
  package mutating func count(_ mark: ECNMark?) {
    guard let mark else { return }
    var counts = self ?? ECNCounts()
    counts.count(mark)
    self = counts
  }
}
