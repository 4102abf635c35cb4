package import Wire

/// A network address translator in virtual time (RFC 4787).
package struct VirtualNAT {
  /// The classic kinds, by which NATs are still named (RFC 3489 section 5).
  package enum Kind: String, CaseIterable, Sendable {
    /// One mapping per inner endpoint; any endpoint may answer.
    case fullCone
    /// One mapping per inner endpoint; addresses that it sent to may answer.
    case addressRestricted
    /// One mapping per inner endpoint; endpoints that it sent to may answer.
    case portRestricted
    /// One mapping per pair of endpoints; only the remote one may answer.
    case symmetric
  }

  private struct Mapping {
    let inner: SocketAddress
    let outer: SocketAddress
    /// The remote endpoint, for symmetric NATs only.
    let remote: SocketAddress?
    var sentTo: [SocketAddress] = []
    var usedAt: Instant
  }

  package let kind: Kind
  package let address: IPAddress
  /// How long a mapping lives without outbound traffic (RFC 4787 REQ-5: 2 minutes or more).
  package var lifetime = Interval.seconds(120)
  private var mappings: [Mapping] = []
  private var nextPort: UInt16 = 61_000

  package init(_ kind: Kind, address: IPAddress) {
    self.kind = kind
    self.address = address
  }

  /// Returns the outer endpoint of an outbound datagram; creates the mapping and permits the
  /// answer.
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

  /// Returns the inner endpoint for an inbound datagram; nil if it is filtered.
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
