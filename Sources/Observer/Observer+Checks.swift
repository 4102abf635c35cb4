import ICE
import Wire

// What STUN tells: checks, mapped addresses, relays.
extension Observer {
  mutating func receiveSTUN(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool, _ isRelayed: Bool
  ) {
    guard !isTruncated, let message = try? STUNMessage(bytes) else {
      if isTruncated { tell(.truncated) } else { ignore() }
      return
    }
    guard message.method == .binding else {
      _ = receive(relays.take(message, tuple), of: bytes, in: tuple, false)
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
      // An indication keeps mappings alive (RFC 8445 section 11).
      if let (path, from) = table.find(tuple) {
        _ = count(bytes, on: path, from: from, isRelayed: isRelayed)
      }
    }
  }

  /// A check of an end (RFC 8445 section 7.2.2).
  private mutating func receiveCheck(
    _ message: STUNMessage, _ names: CheckNames, _ tuple: FiveTuple, _ bytes: [UInt8],
    _ isRelayed: Bool
  ) {
    guard let (path, from) = place(names, tuple, isRelayed) else { return ignore() }
    guard count(bytes, on: path, from: from, isRelayed: isRelayed) else { return }
    let index = table.paths[path].transportIndex
    transports[index].noteBeginning()
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
    // Also where the check itself was not seen: one direction may be all there is.
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

  /// Records a check that succeeded.
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

  /// Tells of an address of an end when it is new.
  ///
  /// - Parameter isSeenByOther: whether it is the one under which the other end sees this one, and
  ///   not the one that the wire shows.
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

  /// Tells what checks changed.
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

/// The user name of a check: whom it goes to, and whom it comes from (RFC 8445 section 7.2.2).
struct CheckNames: Hashable {
  var receiver: String
  var sender: String

  /// Nil where there is no colon: the name is one for a server.
  init?(_ username: String?) {
    guard let username, let colon = username.firstIndex(of: ":") else { return nil }
    receiver = String(username[..<colon])
    sender = String(username[username.index(after: colon)...])
    guard !receiver.isEmpty, !sender.isEmpty else { return nil }
  }

  /// The same for both directions.
  var key: String { receiver < sender ? "\(receiver) \(sender)" : "\(sender) \(receiver)" }
}
