import RTP
import Wire

// What descriptions tell of transports and streams.
extension Observer {
  /// Takes a description; it may come before its call, or after.
  mutating func take(description text: String, _ how: Knowledge) {
    guard let number = descriptionTable.add(text, how) else {
      return tell(.description, detail: "a description that cannot be read")
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

  /// How many transports are looked at for the address of a description that comes after them.
  private static let addressedMaximum = 1024

  /// Attaches a description without ICE to the transports that have its address.
  private mutating func attachByAddress(_ number: Int) {
    for index in transports.indices.suffix(Observer.addressedMaximum) {
      guard let path = transports[index].firstPath else { continue }
      for end in 0..<2 where transports[index].facts.usernameFragments[end] == nil {
        let address = table.paths[path].pair.addresses[end]
        if descriptionTable.gives(address, number) { attach(number, index, end) }
      }
    }
    guard descriptionTable.floating.contains(number) else { return }
    for index in transports.indices.suffix(Observer.addressedMaximum)
    where transports[index].descriptions.allSatisfy({ $0 == nil }) {
      for place in transports[index].streams { relearn(place, index) }
    }
  }

  /// Finds the descriptions of a transport that begins.
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
    if budget.tells(descriptionBytes: entry.text.utf8.count) {
      emit(
        .description(
          ObservedDescription(transport: index + 1, end: end, text: entry.text, how: entry.how)))
    } else {
      tell(.description, detail: "descriptions that name ever more transports")
    }
    if !entry.extensions.isEmpty, !transports[index].extensions.isOver {
      transports[index].extensions.stop()
      emit(.extensions(transport: index + 1, entry.extensions, .description))
    }
    if let isProtected = entry.protectsMedia {
      if isProtected { transports[index].hasProtectedDescription = true }
      settle(index, isProtected ? .protected : .clear)
    }
    for place in transports[index].streams { relearn(place, index) }
  }

  /// Looks again at what a stream carries, when descriptions come after it.
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

  /// What a payload type stands for that an end sends: as the other end's description has it, which
  /// says what that one can receive (RFC 3264 section 5.1), or else its own.
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

  /// The descriptions that no transport has by its names or addresses, and any may have.
  var floatingDescriptions: [Int] {
    descriptionTable.floating.filter { callTable.transports(described: $0).isEmpty }
  }

  /// The call of which descriptions state both names: it has several transports.
  func describedCall(of names: CheckNames) -> Int? {
    for number in descriptionTable.numbers(stating: names.sender) {
      let index = callTable.transports(described: number).first {
        transports[$0].descriptions.contains(number)
      }
      if let index { return transports[index].facts.call }
    }
    return nil
  }

  /// Which end of a call has a description that states a name.
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
