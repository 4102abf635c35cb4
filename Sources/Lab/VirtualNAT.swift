package import Wire

/// A network address translator in virtual time (RFC 4787).
package struct VirtualNAT {
  /// The kinds of old, which are still how people speak of them (RFC 3489 section 5).
  package enum Kind: String, CaseIterable, Sendable {
    /// One mapping per inner endpoint; anybody may answer.
    case fullCone
    /// One mapping per inner endpoint; addresses that were sent to may answer.
    case addressRestricted
    /// One mapping per inner endpoint; endpoints that were sent to may answer.
    case portRestricted
    /// One mapping per pair of endpoints, of which the outer one may answer.
    case symmetric
  }

  private struct Mapping {
    let inner: SocketAddress
    let outer: SocketAddress
    /// Only for symmetric ones: whom it is for.
    let remote: SocketAddress?
    var sentTo: [SocketAddress] = []
    var usedAt: Instant
  }

  package let kind: Kind
  /// The address on the outside.
  package let address: IPAddress
  /// After how long without outbound traffic a mapping is gone (RFC 4787 REQ-5: 2 minutes or more).
  package var lifetime = Interval.seconds(120)
  private var mappings: [Mapping] = []
  private var nextPort: UInt16 = 61_000

  package init(_ kind: Kind, address: IPAddress) {
    self.kind = kind
    self.address = address
  }

  /// The outer endpoint of what goes out; makes the mapping, and lets the answer in.
  package mutating func outbound(
    _ inner: SocketAddress, to remote: SocketAddress, at now: Instant
  ) -> SocketAddress {
    mappings.removeAll { $0.usedAt + lifetime < now }
    let index =
      mappings.firstIndex {
        $0.inner == inner && (kind != .symmetric || $0.remote == remote)
      } ?? add(inner, remote, now)
    mappings[index].usedAt = now
    if !mappings[index].sentTo.contains(remote) { mappings[index].sentTo.append(remote) }
    return mappings[index].outer
  }

  /// The inner endpoint that a datagram from outside is for; nil when it is kept out.
  package func inbound(_ outer: SocketAddress, from remote: SocketAddress, at now: Instant)
    -> SocketAddress?
  {
    guard let mapping = mappings.first(where: { $0.outer == outer }),
      mapping.usedAt + lifetime >= now
    else { return nil }
    switch kind {
    case .fullCone: return mapping.inner
    case .addressRestricted:
      return mapping.sentTo.contains { $0.ip == remote.ip } ? mapping.inner : nil
    case .portRestricted, .symmetric: return mapping.sentTo.contains(remote) ? mapping.inner : nil
    }
  }

  private mutating func add(_ inner: SocketAddress, _ remote: SocketAddress, _ now: Instant) -> Int
  {
    let outer = SocketAddress(address, port: nextPort)
    nextPort &+= 1
    mappings.append(
      Mapping(
        inner: inner, outer: outer, remote: kind == .symmetric ? remote : nil, usedAt: now))
    return mappings.count - 1
  }
}
