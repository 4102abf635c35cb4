/// Which way media flows in a section, seen from the side that wrote it (RFC 8866 section 6.7).
package enum MediaDirection: String, Hashable, Sendable, CaseIterable {
  case sendrecv
  case sendonly
  case recvonly
  case inactive

  /// The direction that sends and receives as told.
  package init(sends: Bool, receives: Bool) {
    self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
  }

  /// Whether media is sent.
  package var sends: Bool { self == .sendrecv || self == .sendonly }

  /// Whether media is received.
  package var receives: Bool { self == .sendrecv || self == .recvonly }

  /// The same flow seen from the other side.
  package var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

  /// What both directions allow.
  package func intersected(with other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
  }

  /// The attribute that says so.
  package var attributeName: AttributeName { AttributeName(rawValue: rawValue) }
}
