import ICE
import Wire

// Handles STUN: checks, mapped addresses, relays.
extension Observer {
  mutating func receiveSTUN(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    guard !isTruncated, let message = try? STUNMessage(bytes) else {
      if isTruncated { countUnseen(.truncated) } else { ignore() }
      return
    }
    guard message.method == .binding else {
      let content = relays.receive(message, tuple)
      turnRelays()
      _ = receive(content, of: bytes, in: tuple, false)
      return
    }
    switch message.messageClass {
    case .request:
      if let names = CheckNames(message.username) {
        receiveCheck(message, names, tuple, bytes, isRelayed)
      } else {
        mappings.ask(message, from: tuple.source)
      }
    case .success, .error:
      if !mappings.answer(message) { receiveAnswer(message, tuple, bytes, isRelayed) }
    default:
      // A Binding indication is a keep-alive (RFC 8445 section 11).
      if let (path, from) = table.find(tuple) {
        _ = count(bytes, on: path, from: from, isRelayed: isRelayed)
      }
    }
  }

  /// Handles a connectivity check (RFC 8445 section 7.2.2).
  private mutating func receiveCheck(
    _ message: STUNMessage, _ names: CheckNames, _ tuple: FiveTuple, _ bytes: [UInt8],
    _ isRelayed: Bool
  ) {
    guard let (path, from) = place(names, tuple, isRelayed) else { return ignore() }
    guard count(bytes, on: path, from: from, isRelayed: isRelayed) else { return }
    let index = table.paths[path].transportIndex
    transports[index].recordBeginning()
    let isFirst = table.update(path) { path in
      path.pair.requests[from] += 1
      return path.pair.requests[from] == 1
    }
    let address = table.paths[path].pair.addresses[from]
    if !table.paths[path].isUnknown[from] {
      addCandidate(index, from, address, tuple.transport, priority: message.priority)
    }
    learnPriority(message.priority, of: address, from, path)
    let outcome = transports[index].checks.request(message, on: path, from: from, at: now)
    emit(outcome, index)
    if isFirst { emitPair(path) }
  }

  private mutating func receiveAnswer(
    _ message: STUNMessage, _ tuple: FiveTuple, _ bytes: [UInt8], _ isRelayed: Bool
  ) {
    guard let (path, from) = table.find(tuple) else { return ignore() }
    guard count(bytes, on: path, from: from, isRelayed: isRelayed) else { return }
    let index = table.paths[path].transportIndex
    // The response proves the address even if the check was not seen, as in captures of one
    // direction.
    if message.messageClass == .success, let mapped = message.mappedAddress {
      learnAddress(mapped, of: 1 - from, on: path)
    }
    guard let outcome = transports[index].checks.answer(message, to: 1 - from, at: now) else {
      return
    }
    if let answer = outcome.answer {
      if let mapped = message.mappedAddress {
        addCandidate(
          index, answer.end, mapped, tuple.transport, priority: nil, isSeenByOther: true)
      }
      learn(answer, index)
    }
    emit(outcome, index)
  }

  /// Records a successful check in the transport and its pair.
  private mutating func learn(
    _ answer: (path: Int, end: Int, roundTrip: Interval, nominates: Bool), _ index: Int
  ) {
    let before = table.paths[answer.path].pair
    table.update(answer.path) { path in
      path.pair.responses[answer.end] += 1
      path.pair.roundTrips[answer.end] = answer.roundTrip
      path.pair.totalRoundTrips[answer.end] =
        path.pair.totalRoundTrips[answer.end] + answer.roundTrip
      path.pair.hasSucceeded[answer.end] = true
      if answer.nominates { path.pair.isNominated = true }
    }
    nameCall(after: answer.path)
    let isSelected = answer.nominates && nominate(answer.path)
    let after = table.paths[answer.path].pair
    if isSelected || before.hasSucceeded != after.hasSucceeded
      || before.isNominated != after.isNominated
    {
      emitPair(answer.path)
    } else {
      emit(.checked(after))
    }
  }

  /// Reports a new address of one end.
  ///
  /// - Parameter isSeenByOther: whether this is the address at which the other end sees this end,
  ///   instead of the address on the wire.
  mutating func addCandidate(
    _ index: Int, _ end: Int, _ address: SocketAddress, _ transport: TransportProtocol,
    priority: UInt32?, isSeenByOther: Bool = false
  ) {
    guard transports[index].isNews(address, of: end) else { return }
    var candidate = ObservedCandidate(
      transport: index + 1, end: end, address: address, transportProtocol: transport,
      kind: nil, priority: priority, how: .wire)
    let stated = statedCandidate(address, of: end, index)
    candidate.kind = kind(of: address, end, index)
    if isSeenByOther, stated == nil, candidate.kind == .host { candidate.kind = .peerReflexive }
    if let stated {
      candidate.how = .description
      candidate.priority = stated.priority
      candidate.foundation = stated.foundation
    }
    if let priority = candidate.priority {
      transports[index].setPriority(priority, of: address, end)
    }
    emit(.candidate(candidate))
  }

  /// Reports the state changes that checks caused.
  mutating func emit(_ outcome: CheckFollower.Outcome, _ index: Int) {
    for role in outcome.roles {
      emit(
        .state(
          ObservedState(
            transport: index + 1, end: role.end, machine: "ice-role",
            from: "", to: role.isControlling ? "controlling" : "controlled")))
    }
    for change in outcome.states {
      emit(
        .state(
          ObservedState(
            transport: index + 1, end: change.end, machine: "ice-connection",
            from: change.from.rawValue, to: change.to.rawValue)))
    }
    guard !outcome.states.isEmpty else { return }
    let due = transports[index].checks.deadline
    schedule(due)
    silences.schedule(index, at: due)
  }
}

/// A check's username: the fragments of the receiver and the sender (RFC 8445 section 7.2.2).
struct CheckNames: Hashable {
  var receiver: String
  var sender: String

  /// Parses a username; fails unless it has two parts separated by a colon, unlike usernames in
  /// requests to servers.
  init?(_ username: String?) {
    guard let username, let colon = username.firstIndex(of: ":") else { return nil }
    receiver = String(username[..<colon])
    sender = String(username[username.index(after: colon)...])
    guard !receiver.isEmpty, !sender.isEmpty else { return nil }
  }

  /// A key that is the same for checks in both directions.
  var key: String { receiver < sender ? "\(receiver) \(sender)" : "\(sender) \(receiver)" }
}

// MARK: - Pairs

// Selected pairs, and the types of their candidates.
extension Observer {
  // MARK: Selection

  /// Handles a path's successful nomination; returns whether the path is now selected.
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

  /// Records an end's media or DTLS packet on a path.
  @inline(__always)
  mutating func recordMedia(on path: Int, from end: Int, isMedia: Bool) {
    let index = table.paths[path].transportIndex
    let component = table.paths[path].component
    // A handshake may begin before ICE has selected a pair.
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

  /// Returns the pair priority (RFC 8445 section 6.1.2.3); 0 while a candidate's priority is
  /// unknown.
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

  // MARK: Reporting

  /// Updates a pair's priority and candidate types, and reports the pair.
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

  /// Names a call's ends by a path's addresses, unless they have names.
  mutating func nameCall(after path: Int) {
    let place = table.paths[path]
    let call = transports[place.transportIndex].facts.call
    guard !callTable.isNamed(call), !place.isUnknown.contains(true) else { return }
    emit(.call(callTable.name(call: call, after: place.pair.addresses)))
  }

  // MARK: Candidates

  /// Returns the candidate with this address in an end's description; nil if there is none.
  func statedCandidate(_ address: SocketAddress, of end: Int, _ index: Int) -> ICECandidate? {
    guard let number = transports[index].descriptions[end] else { return nil }
    return descriptionTable.entries[number].candidates.first { $0.address == address }
  }

  /// Returns an end's candidate type; without a description, the most likely type for an address on
  /// the wire.
  func kind(of address: SocketAddress, _ end: Int, _ index: Int) -> ICECandidate.Kind {
    if relays.isRelayed(address) { return .relayed }
    if let stated = statedCandidate(address, of: end, index) { return stated.kind }
    if mappings.isMapped(address) || address.ip.isOfPrivateNetwork { return .host }
    if mappings.isReflexive(address) { return .serverReflexive }
    // An address that was learned from checks alone is peer-reflexive (RFC 8445 section 7.3.1.3).
    if let number = transports[index].descriptions[end],
      !descriptionTable.entries[number].candidates.isEmpty
    {
      return .peerReflexive
    }
    return relays.isServer(address.ip) ? .relayed : .host
  }

  /// Determines which end of a path is behind a relay, and which addresses were not seen.
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

  /// Learns an end's address as the other end sees it, from a response.
  ///
  /// If the check came from a relay, this is the relayed address that was not seen (RFC 8445
  /// section 7.3.1.2).
  mutating func learnAddress(_ mapped: SocketAddress, of end: Int, on path: Int) {
    if let relayed = table.paths[path].relayedEnd {
      let client = table.paths[path].pair.bases[relayed]
      relays.see(mapped, client: client, isOfClient: end == relayed)
      turnRelays()
    }
    if table.paths[path].isUnknown[end] { rename(path, end, to: mapped) }
  }

  /// Corrects the paths whose relay turned out to be at the other end.
  mutating func turnRelays() {
    for turned in relays.removeCorrections() {
      for path in table.paths.indices {
        let known = table.paths[path]
        guard let end = known.relayedEnd, known.pair.bases[end] == turned.server else { continue }
        relays.forget(relayed: known.pair.addresses[end], of: turned.server)
        turn(path, end, client: turned.client)
      }
    }
  }

  /// Corrects a path whose relay is at end `1 - end` instead of `end`, with `client` as its client;
  /// addresses that were unknown stay unknown.
  private mutating func turn(_ path: Int, _ end: Int, client: SocketAddress) {
    let known = table.paths[path]
    let channel = known.pair.addresses[1 - end]
    let areUnknown = known.isUnknown[1 - end] && known.isUnknown[end]
    table.update(path) { $0.relayedEnd = nil }
    if areUnknown {
      rename(path, 1 - end, to: client)
      rename(path, end, to: channel)
    }
    table.update(path) { path in
      path.relayedEnd = 1 - end
      path.pair.bases[1 - end] = client
      path.pair.bases[end] = path.pair.addresses[end]
      path.isUnknown = known.isUnknown
    }
    emitPair(path)
  }

  /// Replaces the address of one end of a path when its candidate's address becomes known.
  mutating func rename(_ path: Int, _ end: Int, to address: SocketAddress) {
    let pair = table.paths[path].pair
    // Earlier rows keep the former addresses.
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

  /// Learns a candidate's priority from the PRIORITY attribute of a check.
  ///
  /// The attribute has the type preference of a peer-reflexive candidate (RFC 8445 section 7.1.1).
  mutating func learnPriority(
    _ announced: UInt32?, of address: SocketAddress, _ end: Int, _ path: Int
  ) {
    guard let announced else { return }
    // The last byte is 256 minus the component.
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
  /// Whether the address is not public (RFC 1918, RFC 6598, RFC 4193, link-local or loopback).
  var isOfPrivateNetwork: Bool {
    if isLoopback || isLinkLocal { return true }
    let (high, low) = words
    guard isIPv4 else { return high >> 57 == 0x7e }
    let address = UInt32(truncatingIfNeeded: low)
    return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8
      || address >> 22 == 0x191
  }
}
