import SDP
import Wire

// The transports under the m-sections.
extension Negotiation {
  /// The transports that the session needs as it stands.
  package var transportNumbers: [Int] {
    let pending = (slots + (stableState?.slots ?? [])).filter { !$0.isDead }
    return pending.map(\.transportNumber).distinct(after: [bundling.shared])
  }

  /// The transports that the next offer needs.
  package var offeredTransportNumbers: [Int] {
    plannedSlots().slots.filter { !$0.isDead }.map(\.transportNumber).distinct(after: [])
  }

  /// The peer's side of a transport.
  package func remoteTransport(_ number: Int) -> RemoteTransport? {
    remoteTransports.first { $0.number == number }
  }

  /// The transport whose candidates an m-section signals; nil for sections that are off, and for
  /// those that go along with another one.
  package func transportNumber(ofMID mid: String) -> Int? {
    guard let index = slots.firstIndex(where: { $0.mid == mid && !$0.isDead }) else { return nil }
    let number = slots[index].transportNumber
    return mLineIndex(ofTransport: number) == index ? number : nil
  }

  /// The index of the m-section that signals a transport: the first that uses it and is not off.
  package func mLineIndex(ofTransport number: Int) -> Int? {
    let agreed = slots.firstIndex { slot in
      slot.uses(number) && (slot.mid == data?.mid || sections.contains { $0.mid == slot.mid })
    }
    if let agreed { return agreed }
    guard
      let document = documents.pendingLocal ?? documents.currentLocal ?? documents.pendingRemote
        ?? documents.currentRemote
    else { return nil }
    return slots.indices.first { index in
      slots[index].uses(number) && document.sections.indices.contains(index)
        && !document.sections[index].isRejected
    }
  }

  /// The mid of the section at an index.
  package func mid(atMLine index: Int) -> String? {
    slots.indices.contains(index) ? slots[index].mid : nil
  }

  /// The mid of that section.
  package func mid(ofTransport number: Int) -> String? {
    mLineIndex(ofTransport: number).map { slots[$0].mid }
  }

  /// Takes over what a description says of the peer's side of a transport.
  mutating func adopt(_ reading: TransportReading, _ number: Int, role: Bool?) -> [Change] {
    adopt(RemoteTransport(reading, number: number, localIsDTLSClient: role))
  }

  mutating func adopt(_ transport: RemoteTransport) -> [Change] {
    let place = remoteTransports.firstIndex { $0.number == transport.number }
    if let place {
      guard transport != remoteTransports[place] else { return [] }
      remoteTransports[place] = transport
    } else {
      remoteTransports.append(transport)
    }
    return [.remoteTransport(transport.number)]
  }

  /// Makes the DTLS roles known that an own answer states.
  mutating func settleRoles(bySetupOf answer: SDPDocument) -> [Change] {
    var changes: [Change] = []
    for var transport in remoteTransports {
      let place = slots.indices.first {
        slots[$0].uses(transport.number) && !answer.sections[$0].isRejected
      }
      guard let place, let setup = answer.sections[place].setup else { continue }
      transport.localIsDTLSClient = setup == .active
      changes += adopt(transport)
    }
    return changes
  }

  /// Returns to what a stable state had of the peer's transports.
  mutating func returnTransports(to stable: StableState) -> [Change] {
    let before = remoteTransports
    remoteTransports = stable.remoteTransports
    let numbers = before.map(\.number).distinct(after: [])
    return remoteTransports.map(\.number).distinct(after: numbers).filter { number in
      before.first { $0.number == number } != remoteTransport(number)
    }.map { .remoteTransport($0) }
  }
}

extension [Int] {
  /// The numbers, each once, after others.
  func distinct(after others: [Int]) -> [Int] {
    reduce(into: others) { known, number in
      if !known.contains(number) { known.append(number) }
    }
  }
}
