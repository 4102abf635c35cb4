import RTP
import Secure
import Wire

// Assigns paths to transports, and transports to calls.
extension Observer {
  /// Returns the path of a check and the end that sent it, creating the path if necessary.
  ///
  /// - Returns: nil if there are too many paths.
  mutating func place(_ names: CheckNames, _ tuple: FiveTuple, _ isRelayed: Bool)
    -> (path: Int, from: Int)?
  {
    let known = table.find(tuple)
    if let index = callTable[names] {
      let from = end(of: names.sender, in: index) ?? known?.from ?? 0
      if let known, table.paths[known.path].transportIndex == index {
        return (known.path, known.from)
      }
      if known == nil {
        return addPath(tuple, index, from: from, isRelayed).map { ($0, from) }
      }
    }
    if let known {
      // Different fragments on a known path mean an ICE restart (RFC 8445 section 9).
      let index = table.paths[known.path].transportIndex
      begin(names, index, from: known.from)
      return known
    }
    let call = describedCall(of: names)
    guard let index = addTransport(call: call, tuple, how: .wire, names) else { return nil }
    let from = end(of: names.sender, in: index) ?? 0
    return addPath(tuple, index, from: from, isRelayed).map { ($0, from) }
  }

  /// Finds the path of media or DTLS without earlier checks, or creates it along with a call.
  ///
  /// - Returns: nil if there are too many paths.
  mutating func placeUnannounced(_ tuple: FiveTuple, _ isRelayed: Bool) -> (path: Int, from: Int)? {
    // RTCP without multiplexing uses the next higher port at both ends (RFC 3550 section 11).
    if tuple.source.port % 2 == 1, tuple.destination.port % 2 == 1 {
      var main = tuple
      main.source.port -= 1
      main.destination.port -= 1
      if let (path, from) = table.find(main) {
        let index = table.paths[path].transportIndex
        return addPath(tuple, index, from: from, isRelayed).map { path in
          table.update(path) { $0.component = 2 }
          return (path, from)
        }
      }
    }
    guard let index = addTransport(call: nil, tuple, how: .deduced, nil) else { return nil }
    return addPath(tuple, index, from: 0, isRelayed).map { ($0, 0) }
  }

  private func end(of fragment: String, in index: Int) -> Int? {
    transports[index].facts.usernameFragments.firstIndex(of: fragment)
  }

  private mutating func addPath(
    _ tuple: FiveTuple, _ index: Int, from: Int, _ isRelayed: Bool
  ) -> Int? {
    guard table.paths.count < settings.pathsMaximum else { return nil }
    let goesThroughRelay =
      isRelayed || relays.isRelayed(tuple.source) || relays.isRelayed(tuple.destination)
    let path = table.add(tuple, transport: index + 1, from: from, isRelayed: goesThroughRelay)
    setRelay(of: path, isRelayed)
    transports[index].recordPath(path)
    for (end, address) in [(from, tuple.source), (1 - from, tuple.destination)]
    where !table.paths[path].isUnknown[end] {
      addCandidate(index, end, address, tuple.transport, priority: nil)
    }
    receiveWaiting(tuple, isRelayed)
    return path
  }

  /// Processes the packets that waited on a path before it became part of a call.
  private mutating func receiveWaiting(_ tuple: FiveTuple, _ isRelayed: Bool) {
    let waiting = probation.release(tuple)
    guard !waiting.isEmpty else { return }
    countUnseen(
      .lateStart, transport: table.find(tuple).map { table.paths[$0.path].pair.transport })
    receive(waiting, isRelayed)
  }

  /// Adds a transport to a known call, or to a new one if `call` is nil; returns its index, or nil
  /// if there are too many paths.
  private mutating func addTransport(
    call: Int?, _ tuple: FiveTuple, how: Knowledge, _ names: CheckNames?
  ) -> Int? {
    // A transport without a path would be useless.
    guard table.paths.count < settings.pathsMaximum else { return nil }
    let number: Int
    if let call {
      number = call
    } else {
      number = callTable.add(how, tuple, at: now)
      schedule(callTable.namingDeadline)
    }
    let index = transports.count
    transports.append(
      TransportFollower(
        ObservedTransport(number: index + 1, call: number, usernameFragments: [nil, nil])))
    callTable.add(transport: index, to: number)
    if let names {
      begin(names, index, from: describedEnd(of: names.sender, call: number) ?? 0)
    } else {
      emit(.transport(transports[index].facts))
    }
    attachDescriptions(index, tuple)
    return index
  }

  /// Sets the username fragments of both ends, at the beginning or after an ICE restart.
  private mutating func begin(_ names: CheckNames, _ index: Int, from: Int) {
    let fragments = from == 0 ? [names.sender, names.receiver] : [names.receiver, names.sender]
    guard transports[index].checks.begin(fragments) else { return }
    callTable.name(index, names)
    transports[index].name(fragments)
    emit(.transport(transports[index].facts))
    attachDescriptions(index, nil)
  }

  // MARK: Moving transports

  /// Returns an older transport's stream that a packet continues after the ends changed their
  /// addresses: it has the packet's SSRC, and its sequence numbers end shortly before the packet's;
  /// nil if there is none.
  mutating func joinedStream(_ index: Int, from: Int, ssrc: UInt32, sequence: UInt16)
    -> Int?
  {
    guard transports[index].streams.isEmpty, transports[index].dtls.facts == nil else { return nil }
    for place in streamTable.latest(of: ssrc) {
      let entry = streamTable.entries[place]
      guard entry.stream.transport != index + 1 else { continue }
      let step = Int(Int16(bitPattern: sequence &- entry.highest))
      let silence = now - (entry.statistics.last ?? .zero)
      guard (1..<3000).contains(step), silence < .seconds(60) else { continue }
      // Without DTLS, nothing else proves that the stream is the same, so the hosts must match.
      let source = entry.stream.transport - 1
      if transports[source].dtls.facts != nil || hosts(of: source) == hosts(of: index) {
        return place
      }
    }
    return nil
  }

  private func hosts(of index: Int) -> Set<IPAddress> {
    transports[index].hosts
  }

  /// Copies an older transport's keys and association, and moves its streams, to the transport that
  /// continues it.
  mutating func join(_ index: Int, with stream: Int, from: Int) {
    let old = streamTable.entries[stream].stream
    let source = old.transport - 1
    let isFlipped = old.from != from
    let call = transports[index].facts.call
    transports[index].join(transports[source], isFlipped: isFlipped)
    callTable.move(transport: index, from: call, to: transports[index].facts.call)
    for path in transports[source].clearSelection() {
      table.update(path) { $0.pair.isSelected = false }
      emitPair(path)
    }
    for number in transports[index].descriptions { number.map { callTable.describe(index, $0) } }
    for moved in transports[source].streams {
      let sender = streamTable.entries[moved].stream.from
      streamTable.move(moved, to: index + 1, from: isFlipped ? 1 - sender : sender)
      emit(.stream(streamTable.entries[moved].stream))
    }
    transports[index].setStreams(transports[source].removeStreams())
    emit(.transport(transports[index].facts))
  }
}

// MARK: - Descriptions

// Applies descriptions to transports and streams.
extension Observer {
  /// Handles a description, which may arrive before or after its call.
  mutating func receive(description text: String, _ how: Knowledge) {
    guard let number = descriptionTable.add(text, how) else {
      return countUnseen(.description, detail: "a description that cannot be read")
    }
    let fragments = descriptionTable.entries[number].fragments
    let named = Set(fragments.flatMap { callTable.transports(named: $0) })
    for index in named.sorted() {
      for end in 0..<2 {
        guard let fragment = transports[index].facts.usernameFragments[end],
          descriptionTable.entries[number].fragments.contains(fragment)
        else { continue }
        attach(number, index, end)
      }
    }
    if fragments.isEmpty { attachByAddress(number) }
  }

  /// The maximum number of transports searched for a later description's address.
  private static let addressedMaximum = 1024

  /// Attaches a description without ICE to the transports with its address.
  private mutating func attachByAddress(_ number: Int) {
    for index in transports.indices.suffix(Observer.addressedMaximum) {
      guard let path = transports[index].firstPath else { continue }
      for end in 0..<2 where transports[index].facts.usernameFragments[end] == nil {
        let address = table.paths[path].pair.addresses[end]
        if descriptionTable.hasAddress(address, number) { attach(number, index, end) }
      }
    }
    guard descriptionTable.floating.contains(number) else { return }
    for index in transports.indices.suffix(Observer.addressedMaximum)
    where transports[index].descriptions.allSatisfy({ $0 == nil }) {
      for place in transports[index].streams { relearn(place, index) }
    }
  }

  /// Attaches known descriptions to a transport that is new or has new fragments: by its fragments,
  /// or else by its addresses.
  mutating func attachDescriptions(_ index: Int, _ tuple: FiveTuple?) {
    for end in 0..<2 {
      if let fragment = transports[index].facts.usernameFragments[end] {
        if let number = descriptionTable.numbers(stating: fragment).first {
          attach(number, index, end)
        }
      } else if let tuple {
        let address = end == 0 ? tuple.source : tuple.destination
        if let number = descriptionTable.numbers(at: address).first { attach(number, index, end) }
      }
    }
  }

  private mutating func attach(_ number: Int, _ index: Int, _ end: Int) {
    guard transports[index].descriptions[end] != number else { return }
    transports[index].describe(end, number)
    callTable.describe(index, number)
    let entry = descriptionTable.entries[number]
    if budget.allows(descriptionBytes: entry.text.utf8.count) {
      emit(
        .description(
          ObservedDescription(transport: index + 1, end: end, text: entry.text, how: entry.how)))
    } else {
      countUnseen(.description, detail: "descriptions that name ever more transports")
    }
    if !entry.extensions.isEmpty, !transports[index].extensions.isOver {
      transports[index].extensions.stop()
      emit(.extensions(transport: index + 1, entry.extensions, .description))
    }
    if settings.followsKeys, !entry.srtpKeys.isEmpty { transports[index].media.renewAttempts() }
    if let isProtected = entry.protectsMedia {
      if isProtected { transports[index].hasProtectedDescription = true }
      settle(index, isProtected ? .protected : .clear)
    }
    for place in transports[index].streams { relearn(place, index) }
  }

  /// Updates the facts about a stream whose packets arrived before the description.
  private mutating func relearn(_ place: Int, _ index: Int) {
    let before = streamTable.entries[place].stream
    var stream = before
    if let type = streamTable.entries[place].lastPayloadType,
      let meaning = meaning(of: type, index, from: stream.from),
      meaning.how != .deduced
    {
      stream.payloads.removeAll { $0.payloadType == type }
      stream.payloads.append(meaning)
    }
    if let number = transports[index].descriptions[stream.from],
      let source = descriptionTable.entries[number].source(stream.ssrc)
    {
      stream.mid = source.mid
      if let repairs = source.repairs {
        (stream.repairs, stream.repairsHow) = (repairs, .description)
      }
      learnProtection(source, index, of: &stream)
    }
    guard stream != before else { return }
    streamTable.update(place) { entry in
      entry.stream = stream
      entry.clockRate = stream.clockRate
      if stream.payloads != before.payloads { entry.deduction.stop() }
    }
    emit(.stream(stream))
  }

  /// Returns the encoding of an end's payload type; nil if it is unknown.
  ///
  /// The settings take precedence. Next are the remote end's description, which states what that
  /// end can receive (RFC 3264 section 5.1), the sender's own description, the static assignments
  /// and, for lack of anything else, descriptions that match no transport.
  func meaning(of type: UInt8, _ index: Int, from: Int) -> PayloadMeaning? {
    if let given = settings.payloadTypes.first(where: { $0.payloadType == type }) {
      return PayloadMeaning(
        payloadType: type, codec: given.codec, clockRate: given.clockRate,
        kind: StaticPayloadTypes.kind(of: given.codec), how: .given)
    }
    for end in [1 - from, from] {
      guard let number = transports[index].descriptions[end] else { continue }
      let payloads = descriptionTable.entries[number].payloads
      if let meaning = payloads.first(where: { $0.payloadType == type }) { return meaning }
    }
    if let fixed = StaticPayloadTypes.meaning(of: type) { return fixed }
    guard transports[index].descriptions.allSatisfy({ $0 == nil }),
      transports[index].dtls.facts == nil
    else { return nil }
    return descriptionTable.commonMeaning(of: type, in: floatingDescriptions)
  }

  /// The descriptions that match no transport by name or address, and may belong to any.
  var floatingDescriptions: [Int] {
    descriptionTable.floating.filter { callTable.transports(described: $0).isEmpty }
  }

  /// Returns the call that already has a description with the sender's fragment, assigned to
  /// another transport; nil if there is none.
  func describedCall(of names: CheckNames) -> Int? {
    for number in descriptionTable.numbers(stating: names.sender) {
      let index = callTable.transports(described: number).first {
        transports[$0].descriptions.contains(number)
      }
      if let index { return transports[index].facts.call }
    }
    return nil
  }

  /// Returns which end's description in a call contains a fragment; nil if none does.
  func describedEnd(of fragment: String, call: Int) -> Int? {
    let numbers = Set(descriptionTable.numbers(stating: fragment))
    guard !numbers.isEmpty else { return nil }
    for index in callTable.transports(of: call) {
      for end in 0..<2 {
        if let number = transports[index].descriptions[end], numbers.contains(number) {
          return end
        }
      }
    }
    return nil
  }
}
