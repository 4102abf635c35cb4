import SDP
import Wire

/// The peer's side of each transport in its descriptions, in the order of the sections.
struct RemoteTransports {
  typealias Change = Negotiation.Change

  private(set) var all: [RemoteTransport] = []

  subscript(number: Int) -> RemoteTransport? { all.first { $0.number == number } }

  /// Applies the peer's side of a transport from a description; returns what changed.
  mutating func adopt(_ transport: RemoteTransport) -> [Change] {
    if let place = all.firstIndex(where: { $0.number == transport.number }) {
      guard transport != all[place] else { return [] }
      all[place] = transport
    } else {
      all.append(transport)
    }
    return [.remoteTransport(transport.number)]
  }

  /// Sets the DTLS roles according to a local answer.
  mutating func settleRoles(bySetupOf answer: SDPDocument, _ slots: [SectionSlot]) -> [Change] {
    var changes: [Change] = []
    for var transport in all {
      let place = slots.indices.first {
        slots[$0].uses(transport.number) && !answer.sections[$0].isRejected
      }
      guard let place, let setup = answer.sections[place].setup else { continue }
      transport.localIsDTLSClient = setup == .active
      changes += adopt(transport)
    }
    return changes
  }

  /// Removes transports that no section uses.
  mutating func removeAll(besides numbers: [Int]) {
    all.removeAll { !numbers.contains($0.number) }
  }

  /// Restores those of a stable state.
  mutating func roll(backTo stable: RemoteTransports) -> [Change] {
    let before = self
    self = stable
    let numbers = before.all.map(\.number).distinct(after: [])
    return all.map(\.number).distinct(after: numbers).filter { before[$0] != self[$0] }
      .map { .remoteTransport($0) }
  }
}

extension [Int] {
  /// The numbers without duplicates, after others.
  func distinct(after others: [Int]) -> [Int] {
    reduce(into: others) { known, number in
      if !known.contains(number) { known.append(number) }
    }
  }
}
