package import Wire

/// The arithmetic of candidate and pair priorities (RFC 8445 sections 5.1.2 and 6.1.2.3).
package enum ICEPriority {
  /// The priority of a candidate of component 1 (RFC 8445 section 5.1.2.1).
  package static func candidate(_ kind: ICECandidate.Kind, localPreference: UInt16) -> UInt32 {
    kind.typePreference << 24 | UInt32(localPreference) << 8 | 255
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
