/// The direction of media in a section, seen from the side that wrote it (RFC 8866 section 6.7).
package enum MediaDirection: String, Hashable, Sendable, CaseIterable {
  case sendrecv
  case sendonly
  case recvonly
  case inactive

  package init(sends: Bool, receives: Bool) {
    self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
  }

  package var sends: Bool { self == .sendrecv || self == .sendonly }

  package var receives: Bool { self == .sendrecv || self == .recvonly }

  /// The same flow seen from the peer.
  package var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }

  /// What both directions allow.
  package func intersected(with other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
  }

  /// The attribute for this direction.
  package var attributeName: AttributeName { AttributeName(rawValue: rawValue) }
}
