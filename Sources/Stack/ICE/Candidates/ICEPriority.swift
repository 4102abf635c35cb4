package import Wire

/// The arithmetic of candidate and pair priorities (RFC 8445 sections 5.1.2 and 6.1.2.3).
package enum ICEPriority {
  /// The priority of a candidate of component 1 (RFC 8445 section 5.1.2.1).
  package static func candidate(
    _ kind: ICECandidate.Kind, isTCP: Bool = false, localPreference: UInt16
  ) -> UInt32 {
    typePreference(kind, isTCP: isTCP) << 24 | UInt32(localPreference) << 8 | 255
  }

  /// How much a kind of candidate is preferred.
  package static func typePreference(_ kind: ICECandidate.Kind, isTCP: Bool) -> UInt32 {
    switch kind {
    case .host: isTCP ? 90 : 126
    case .peerReflexive: isTCP ? 80 : 110
    case .serverReflexive: 100
    case .relayed: 0
    }
  }

  /// The local preference of a TCP candidate on an address: who can begin comes before who waits
  /// (RFC 6544 section 4.2, for candidates on local addresses).
  static func localPreference(_ type: ICETCPType, of address: UInt16) -> UInt16 {
    let direction: UInt16 =
      switch type {
      case .active: 6
      case .passive: 4
      case .simultaneousOpen: 2
      }
    // Addresses are numbered down from the greatest value; 13 bits of that remain.
    return direction << 13 | address & 0x1fff
  }

  /// The priority of a pair: the lower of both sides first, so that they agree on the order.
  package static func pair(controlling: UInt32, controlled: UInt32) -> UInt64 {
    // The range ends at 2^31 - 1 (RFC 8839 section 5.1); clamping keeps the sum inside 64 bits.
    let greater = UInt64(min(max(controlling, controlled), 0x7fff_ffff))
    let lesser = UInt64(min(controlling, controlled, 0x7fff_ffff))
    return lesser << 32 + greater << 1 + (controlling > controlled ? 1 : 0)
  }

  /// Orders the addresses of a host, best first: IPv6 and IPv4 take turns (RFC 8421 section 4),
  /// link-local ones come later, loopback ones last.
  package static func ordered(_ addresses: [IPAddress]) -> [IPAddress] {
    var result: [IPAddress] = []
    for scope in 0..<3 {
      let group = addresses.filter { ($0.isLoopback ? 2 : $0.isLinkLocal ? 1 : 0) == scope }
      let six = group.filter { !$0.isIPv4 }
      let four = group.filter(\.isIPv4)
      for index in 0..<max(six.count, four.count) {
        if index < six.count { result.append(six[index]) }
        if index < four.count { result.append(four[index]) }
      }
    }
    return result
  }
}
