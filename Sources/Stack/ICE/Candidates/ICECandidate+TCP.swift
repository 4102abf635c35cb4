/// How a TCP candidate takes part in making a connection (RFC 6544 section 4.5).
public enum ICETCPType: String, Hashable, Sendable {
  /// It opens connections to passive candidates; its port says nothing.
  case active
  /// It waits for connections of active candidates.
  case passive
  /// Both sides open the same connection at the same time.
  case simultaneousOpen = "so"
}

extension ICECandidate {
  /// The port that active candidates show, because they have none (RFC 6544 section 4.5).
  package static let activePort: UInt16 = 9

  /// Whether a connection carries its traffic.
  package var isTCP: Bool { transport == "tcp" }

  /// Its part in making a connection; nil for UDP, and where the attribute says nothing that is
  /// known.
  public var tcpType: ICETCPType? {
    isTCP ? value(ofExtension: "tcptype").flatMap { ICETCPType(rawValue: $0) } : nil
  }

  /// The type preference (RFC 8445 section 5.1.2.2); connections come after all direct paths over
  /// UDP, because they stall on loss, and before relays.
  package var typePreference: UInt32 { ICEPriority.typePreference(kind, isTCP: isTCP) }

  /// Whether checks may begin from this local candidate to that one of the peer (RFC 6544 section
  /// 6.2): over TCP it is always the active side that begins.
  func pairs(with remote: ICECandidate) -> Bool {
    guard transport == remote.transport else { return false }
    switch (tcpType, remote.tcpType) {
    case (nil, nil): return !isTCP
    case (.active, .passive): return true
    // Whoever connected here is known by where it came from.
    case (.passive, .active): return remote.kind == .peerReflexive
    default: return false
    }
  }

  static func tcpType(_ type: ICETCPType) -> Extension {
    Extension(name: "tcptype", value: type.rawValue)
  }
}
