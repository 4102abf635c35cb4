import Wire

// What candidates show of own addresses (draft-ietf-mmusic-mdns-ice-candidates section 3.1.1).
extension ICEAgent {
  /// What a candidate shows of an own address: the address, or a name that only hosts of the same
  /// link can resolve.
  mutating func shown(_ ip: IPAddress) -> ICECandidate.Host {
    guard settings.hidesAddresses else { return .address(ip) }
    for entry in gathering.names where entry.ip == ip { return .name(entry.name) }
    let name = "\(entropy.uuid()).local"
    gathering.names.append((ip, name))
    emit(.publishName(name, ip))
    return .name(name)
  }
}

extension SocketAddress {
  /// What stands for an address that is not told (RFC 8839 section 5.1).
  static func hidden(isIPv4: Bool) -> SocketAddress {
    SocketAddress(isIPv4 ? IPAddress(ipv4: 0) : IPAddress(ipv6High: 0, low: 0), port: 0)
  }
}
