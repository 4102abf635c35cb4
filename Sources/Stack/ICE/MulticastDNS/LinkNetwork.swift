package import Wire

/// A network that an interface of this host is on: an address and the bits of it that all hosts of
/// the link share.
package struct LinkNetwork: Hashable, Sendable {
  private let address: IPAddress
  private let mask: IPAddress

  package init(_ address: IPAddress, mask: IPAddress) {
    self.address = address
    self.mask = mask
  }

  /// Whether an address is one of the network.
  package func contains(_ other: IPAddress) -> Bool {
    guard address.isIPv4 == other.isIPv4, mask.isIPv4 == other.isIPv4 else { return false }
    let (own, theirs, bits) = (address.words, other.words, mask.words)
    return (own.high ^ theirs.high) & bits.high == 0 && (own.low ^ theirs.low) & bits.low == 0
  }
}

extension MulticastNames {
  /// Whether a message may have come from a host of one of the links.
  ///
  /// A datagram to the multicast group cannot come from elsewhere, but one to this host's local
  /// address can, from anybody with its port (RFC 6762 section 11): so the source has to be an
  /// address of a network that an interface is on, or one that no router forwards.
  package static func isOnLink(_ source: IPAddress, of networks: [LinkNetwork]) -> Bool {
    source.isLoopback || source.isLinkLocal || networks.contains { $0.contains(source) }
  }
}
