import ICE
import Wire

// Which pairs are in use, and what their candidates are.
extension Observer {
  // MARK: Choice

  /// A nominating check on a path was answered; whether it is in use by that.
  mutating func nominate(_ path: Int) -> Bool {
    let (index, now) = (table.paths[path].transportIndex, now)
    let component = table.paths[path].component
    let isControlling = transports[index].checks.isControlling
    let new = pairPriority(path, isControlling: isControlling)
    let old =
      transports[index].selectedPath(component)
      .map { pairPriority($0, isControlling: isControlling) } ?? 0
    let (isChanged, before) = transports[index].choose(component) {
      $0.nominate(path, at: now, priority: { $0 == path ? new : old })
    }
    if isChanged { move(from: before, to: path) }
    return isChanged
  }

  /// An end sent media, or a packet of DTLS, over a path.
  @inline(__always)
  mutating func recordMedia(on path: Int, from end: Int, isMedia: Bool) {
    let index = table.paths[path].transportIndex
    let component = table.paths[path].component
    // A handshake begins before ICE has chosen.
    if !isMedia, transports[index].selectedPath(component) == nil,
      transports[index].facts.usernameFragments[0] != nil
    {
      return
    }
    let now = now
    let (isChanged, before) = transports[index].choose(component) {
      $0.send(over: path, from: end, at: now)
    }
    if isChanged {
      move(from: before, to: path)
      nameCall(after: path)
      emitPair(path)
    }
  }

  private mutating func move(from before: Int?, to path: Int) {
    if let before {
      table.update(before) { $0.pair.isSelected = false }
      emitPair(before)
    }
    table.update(path) { $0.pair.isSelected = true }
  }

  /// RFC 8445 section 6.1.2.3; 0 as long as the priority of a candidate is unknown.
  private func pairPriority(_ path: Int, isControlling: [Bool?]) -> UInt64 {
    let pair = table.paths[path].pair
    let transport = transports[pair.transport - 1]
    let priorities = (0..<2).map { UInt64(transport.priority(of: pair.addresses[$0], $0)) }
    guard let (low, high) = priorities.min().flatMap({ low in priorities.max().map { (low, $0) } }),
      low > 0
    else { return 0 }
    let controlling = isControlling[1] == true ? 1 : 0
    let isFirst = priorities[controlling] > priorities[1 - controlling]
    return low << 32 + 2 * high + (isFirst ? 1 : 0)
  }

  // MARK: Telling

  /// Tells of a pair as it is known now.
  mutating func emitPair(_ path: Int) {
    let index = table.paths[path].transportIndex
    let priority = pairPriority(path, isControlling: transports[index].checks.isControlling)
    let addresses = table.paths[path].pair.addresses
    let relayedEnd = table.paths[path].relayedEnd
    let types = (0..<2).map { end in
      end == relayedEnd ? .relayed : kind(of: addresses[end], end, index)
    }
    table.update(path) { path in
      path.pair.priority = priority
      path.pair.types = types
    }
    emit(.pair(table.paths[path].pair))
  }

  /// Names the ends of a call after the addresses of a path, unless they have names.
  mutating func nameCall(after path: Int) {
    let place = table.paths[path]
    let call = transports[place.transportIndex].facts.call
    guard !callTable.isNamed(call), !place.isUnknown.contains(true) else { return }
    emit(.call(callTable.name(call: call, after: place.pair.addresses)))
  }

  // MARK: Candidates

  /// The candidate with an address in an end's description.
  func statedCandidate(_ address: SocketAddress, of end: Int, _ index: Int) -> ICECandidate? {
    guard let number = transports[index].descriptions[end] else { return nil }
    return descriptionTable.entries[number].candidates.first { $0.address == address }
  }

  /// What type of candidate an address of an end is; without a word about it, what an address on
  /// the wire is most likely.
  func kind(of address: SocketAddress, _ end: Int, _ index: Int) -> ICECandidate.Kind {
    if relays.isRelayed(address) { return .relayed }
    if let stated = statedCandidate(address, of: end, index) { return stated.kind }
    if mappings.isMapped(address) || address.ip.isOfPrivateNetwork { return .host }
    if mappings.isReflexive(address) { return .serverReflexive }
    // By definition: it was learnt from checks alone (RFC 8445 section 7.3.1.3).
    if let number = transports[index].descriptions[end],
      !descriptionTable.entries[number].candidates.isEmpty
    {
      return .peerReflexive
    }
    return relays.isServer(address.ip) ? .relayed : .host
  }

  /// Which end of a path is behind a relay, and which addresses were not seen.
  mutating func setRelay(of path: Int, _ isRelayed: Bool) {
    let addresses = table.paths[path].pair.addresses
    for end in 0..<2 {
      if let client = relays.client(behind: addresses[end]), isRelayed || client != addresses[end] {
        table.update(path) { path in
          path.pair.bases[end] = client
          path.relayedEnd = end
          path.isUnknown[end] = client == addresses[end]
        }
      }
      if RelayTable.isPlaceholder(addresses[end]) {
        table.update(path) { $0.isUnknown[end] = true }
      }
    }
  }

  /// An answer tells under which address its sender sees the other end: the one that was not seen
  /// where the check came out of a relay (RFC 8445 section 7.3.1.2).
  mutating func learnAddress(_ mapped: SocketAddress, of end: Int, on path: Int) {
    if table.paths[path].isUnknown[end] { rename(path, end, to: mapped) }
  }

  /// Gives an end of a path the address that shows to be its candidate's.
  mutating func rename(_ path: Int, _ end: Int, to address: SocketAddress) {
    let pair = table.paths[path].pair
    // The rows of what came until now have the former addresses.
    emitPair(path)
    guard table.rename(path, end, to: address) else { return }
    if table.paths[path].relayedEnd == end {
      relays.record(relayed: address, of: table.paths[path].pair.bases[end])
    } else {
      table.update(path) { $0.pair.bases[end] = address }
    }
    addCandidate(pair.transport - 1, end, address, pair.transportProtocol, priority: nil)
    emitPair(path)
    if pair.isSelected || pair.hasSucceeded != [false, false] { nameCall(after: path) }
  }

  /// The priority that a check announces: that of a peer-reflexive candidate, whose type preference
  /// is not that of the candidate itself (RFC 8445 section 7.1.1).
  mutating func learnPriority(
    _ announced: UInt32?, of address: SocketAddress, _ end: Int, _ path: Int
  ) {
    guard let announced else { return }
    // The last byte is 256 less the component.
    if announced & 0xff == 0xfe { table.update(path) { $0.component = 2 } }
    let index = table.paths[path].transportIndex
    guard statedCandidate(address, of: end, index) == nil else { return }
    let isRelayed = table.paths[path].relayedEnd == end || relays.isRelayed(address)
    let priority = isRelayed ? announced & 0xffffff : announced
    guard transports[index].priority(of: address, end) != priority else { return }
    transports[index].setPriority(priority, of: address, end)
  }
}

extension IPAddress {
  /// An address that no host of the internet has: RFC 1918, RFC 6598, RFC 4193, or one of the own
  /// link or host.
  var isOfPrivateNetwork: Bool {
    if isLoopback || isLinkLocal { return true }
    let (high, low) = words
    guard isIPv4 else { return high >> 57 == 0x7e }
    let address = UInt32(truncatingIfNeeded: low)
    return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8
      || address >> 22 == 0x191
  }
}
