package import Wire

/// The part of multicast DNS that WebRTC needs (RFC 6762): answers queries for this host's names
/// and resolves the names of other hosts.
///
/// Names are random and thus unique, so they are neither probed nor announced
/// (draft-ietf-mmusic-mdns-ice-candidates section 3.1.1).
package struct MulticastNames: Machine {
  package enum Input {
    /// Find a name's addresses; answered by `resolved` with the same id.
    case resolve(id: UInt64, String)
    /// Answer questions for a name with an address, on behalf of an owner.
    case publish(String, IPAddress, owner: UInt64)
    case withdraw(owner: UInt64)
    /// A datagram received at the multicast port.
    case received([UInt8], from: SocketAddress)
    case deadline
  }

  package enum Output: Hashable {
    /// Send to the multicast group on every link.
    case multicast([UInt8])
    /// Send to one querier.
    case unicast([UInt8], to: SocketAddress)
    /// A name's addresses; empty if no host answered or too many requests are waiting.
    case resolved(id: UInt64, [IPAddress])
  }

  package static let port: UInt16 = 5353
  /// The IPv4 multicast group that queries and responses are sent to (RFC 6762 section 3).
  package static let group = IPAddress(ipv4: 0xe000_00fb)
  package static let groupIPv6 = IPAddress(ipv6High: 0xff02_0000_0000_0000, low: 0xfb)

  private struct Question {
    let name: String
    var ids: [UInt64]
    var attempts = 0
    var dueAt: Instant
  }

  private struct Published {
    let name: String
    let ip: IPAddress
    let owner: UInt64
    /// When the name was last multicast.
    var announcedAt: Instant?
  }

  /// The time that each query waits for a response (RFC 6762 section 5.2: one second between the
  /// first two).
  private static let waits = [1, 2, 2].map { Interval.seconds($0) }
  private static let questionsMaximum = 64
  /// The maximum number of requests that wait for one answer.
  private static let askersMaximum = 64
  private static let publishedMaximum = 256
  /// The number of seconds that other hosts may cache an address (RFC 6762 section 10).
  private static let lifetime: UInt32 = 120
  /// The maximum lifetime in answers to resolvers that do not support multicast DNS (section 6.7).
  private static let legacyLifetime: UInt32 = 10

  private var questions: [Question] = []
  private var published: [Published] = []

  package init() {}

  package var deadline: Instant? {
    var next: Instant?
    for question in questions { next = earliest(next, question.dueAt) }
    return next
  }

  /// Returns whether a name ends in `.local`, in which case multicast DNS must resolve it.
  package static func isLocal(_ name: String) -> Bool { name.lowercased().hasSuffix(".local") }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    switch input {
    case .resolve(let id, let name): resolve(name.lowercased(), id, at: now, &outbox)
    case .publish(let name, let ip, let owner):
      guard published.count < MulticastNames.publishedMaximum else { return }
      published.append(Published(name: name.lowercased(), ip: ip, owner: owner))
    case .withdraw(let owner): published.removeAll { $0.owner == owner }
    case .received(let bytes, let source):
      guard let message = DNSMessage(bytes) else { return }
      if message.isResponse {
        // Answers sent from another port must be ignored (RFC 6762 section 6).
        if source.port == MulticastNames.port { learn(message, &outbox) }
      } else {
        answer(message, to: source, at: now, &outbox)
      }
    case .deadline: ask(at: now, &outbox)
    }
  }

  // MARK: Querying

  private mutating func resolve(
    _ name: String, _ id: UInt64, at now: Instant, _ outbox: inout Outbox<Output>
  ) {
    let own = published.filter { $0.name == name }.map(\.ip)
    if !own.isEmpty { return outbox.append(.resolved(id: id, own)) }
    if let index = questions.firstIndex(where: { $0.name == name }) {
      guard questions[index].ids.count < MulticastNames.askersMaximum else {
        return outbox.append(.resolved(id: id, []))
      }
      return questions[index].ids.append(id)
    }
    guard questions.count < MulticastNames.questionsMaximum else {
      return outbox.append(.resolved(id: id, []))
    }
    questions.append(Question(name: name, ids: [id], dueAt: now))
    ask(at: now, &outbox)
  }

  /// Sends the queries that are due, and gives up names whose last query went unanswered.
  private mutating func ask(at now: Instant, _ outbox: inout Outbox<Output>) {
    for index in questions.indices where questions[index].dueAt <= now {
      let attempts = questions[index].attempts
      guard attempts < MulticastNames.waits.count else { continue }
      questions[index].attempts += 1
      questions[index].dueAt = now + MulticastNames.waits[attempts]
      let name = questions[index].name
      let message = DNSMessage(questions: [
        DNSMessage.Question(name: name, type: .a), DNSMessage.Question(name: name, type: .aaaa),
      ])
      outbox.append(.multicast(message.bytes))
    }
    finish({ $0.dueAt <= now }, [], &outbox)
  }

  /// Uses the addresses in a response, whichever host asked for it.
  private mutating func learn(_ message: DNSMessage, _ outbox: inout Outbox<Output>) {
    var names: [String] = []
    for record in message.answers where !names.contains(record.name) { names.append(record.name) }
    for name in names {
      let addresses = message.answers.compactMap { record -> IPAddress? in
        guard record.name == name, record.lifetime > 0, case .address(let ip) = record.value else {
          return nil
        }
        return ip
      }
      if !addresses.isEmpty { finish({ $0.name == name }, addresses, &outbox) }
    }
  }

  private mutating func finish(
    _ isOver: (Question) -> Bool, _ addresses: [IPAddress], _ outbox: inout Outbox<Output>
  ) {
    for question in questions where isOver(question) {
      for id in question.ids { outbox.append(.resolved(id: id, addresses)) }
    }
    questions.removeAll(where: isOver)
  }

  // MARK: Answering

  private mutating func answer(
    _ message: DNSMessage, to asker: SocketAddress, at now: Instant,
    _ outbox: inout Outbox<Output>
  ) {
    // A querier on another port does not support multicast DNS and gets a unicast answer (section
    // 6.7).
    let isLegacy = asker.port != MulticastNames.port
    var answers: [DNSMessage.Record] = []
    var names: [String] = []
    for question in message.questions where !names.contains(question.name) {
      let own = published.filter { $0.name == question.name }
      guard !own.isEmpty else { continue }
      let types = message.questions.filter { $0.name == question.name }.map(\.type)
      names.append(question.name)
      answers += records(own, types, message.answers, isLegacy: isLegacy)
    }
    guard !answers.isEmpty else { return }
    var response = DNSMessage(isResponse: true, answers: answers)
    if isLegacy {
      response.id = message.id
      response.questions = message.questions
      return outbox.append(.unicast(response.bytes, to: asker))
    }
    // A record is multicast at most once a second (section 6).
    let isRecent = published.contains { entry in
      names.contains(entry.name) && entry.announcedAt.map { now - $0 < .seconds(1) } == true
    }
    let wantsUnicast = message.questions.contains { names.contains($0.name) && $0.wantsUnicast }
    // A unicast datagram to this host's port would reach only one of the sockets that share it.
    let isHere = asker.ip.isLoopback || published.contains { $0.ip == asker.ip }
    if !isHere, isRecent || wantsUnicast {
      return outbox.append(.unicast(response.bytes, to: asker))
    }
    for index in published.indices where names.contains(published[index].name) {
      published[index].announcedAt = now
    }
    outbox.append(.multicast(response.bytes))
  }

  /// Returns the address records of the requested types, leaving out records that the querier
  /// already knows (section 7.1).
  ///
  /// If a requested type is missing, an NSEC record lists the existing types (section 6.1).
  private func records(
    _ own: [Published], _ types: [DNSType], _ known: [DNSMessage.Record], isLegacy: Bool
  ) -> [DNSMessage.Record] {
    let lifetime = isLegacy ? MulticastNames.legacyLifetime : MulticastNames.lifetime
    let present: [DNSType] = own.map { $0.ip.isIPv4 ? .a : .aaaa }
    var answers: [DNSMessage.Record] = []
    for (entry, type) in zip(own, present) where types.contains(type) || types.contains(.any) {
      let record = DNSMessage.Record(
        name: entry.name, value: .address(entry.ip), lifetime: lifetime, isUnique: !isLegacy)
      let isKnown = known.contains {
        $0.name == record.name && $0.value == record.value && $0.lifetime >= lifetime / 2
      }
      if !isKnown { answers.append(record) }
    }
    let isMissing = types.contains { ($0 == .a || $0 == .aaaa) && !present.contains($0) }
    if isMissing, let name = own.first?.name {
      answers.append(
        DNSMessage.Record(
          name: name, value: .types(present.sorted { $0.rawValue < $1.rawValue }),
          lifetime: lifetime, isUnique: !isLegacy))
    }
    return answers
  }
}

/// A network on one of this host's interfaces: an address and the prefix that all hosts on the link
/// share.
package struct LinkNetwork: Hashable, Sendable {
  private let address: IPAddress
  private let mask: IPAddress

  package init(_ address: IPAddress, mask: IPAddress) {
    self.address = address
    self.mask = mask
  }

  package func contains(_ other: IPAddress) -> Bool {
    guard address.isIPv4 == other.isIPv4, mask.isIPv4 == other.isIPv4 else { return false }
    let (own, theirs, bits) = (address.words, other.words, mask.words)
    return (own.high ^ theirs.high) & bits.high == 0 && (own.low ^ theirs.low) & bits.low == 0
  }
}

extension MulticastNames {
  /// Returns whether a message may have been sent by a host on one of the links.
  ///
  /// Only hosts on a link can send to its multicast group, but anyone who knows the port can send
  /// to this host's own address (RFC 6762 section 11). So the source must be in an interface's
  /// network, or be an address that no router forwards.
  package static func isOnLink(_ source: IPAddress, of networks: [LinkNetwork]) -> Bool {
    source.isLoopback || source.isLinkLocal || networks.contains { $0.contains(source) }
  }
}
