import ICE
import Wire

/// What STUN servers told ends of their addresses, as the wire shows it.
struct MappedAddresses {
  private static let requestsMaximum = 256
  private static let mappingsMaximum = 4096

  /// The mapped address, by the own one.
  private var mappings: [SocketAddress: SocketAddress] = [:]
  private var mapped: Set<SocketAddress> = []
  /// Binding requests that are no checks.
  private var requests: [(transaction: STUNTransactionID, source: SocketAddress)] = []

  /// Whether a server told this end of another address of it.
  func isMapped(_ address: SocketAddress) -> Bool { mappings[address] != nil }

  /// Whether a server told an end that it has this address.
  func isReflexive(_ address: SocketAddress) -> Bool { mapped.contains(address) }

  /// A request to a server.
  mutating func ask(_ message: STUNMessage, from source: SocketAddress) {
    if requests.count >= MappedAddresses.requestsMaximum { requests.removeFirst() }
    requests.append((message.transactionID, source))
  }

  /// Takes an answer; false for one that is not a server's.
  mutating func answer(_ message: STUNMessage) -> Bool {
    guard let index = requests.firstIndex(where: { $0.transaction == message.transactionID })
    else { return false }
    let request = requests.remove(at: index)
    if let mapped = message.mappedAddress, mapped != request.source,
      mappings.count < MappedAddresses.mappingsMaximum
    {
      mappings[request.source] = mapped
      if self.mapped.count < MappedAddresses.mappingsMaximum { self.mapped.insert(mapped) }
    }
    return true
  }
}
