import Testing
import Wire

@testable import ICE

/// Hosts that share a link.
private final class Link {
  var hosts: [MulticastNames] = []
  var now = Instant.zero
  var resolved: [(host: Int, id: UInt64, addresses: [IPAddress])] = []
  var unicasts = 0
  var multicasts = 0
  /// How many of the next messages are lost.
  var losses = 0

  init(_ count: Int) { hosts = Array(repeating: MulticastNames(), count: count) }

  func address(_ host: Int) -> SocketAddress {
    SocketAddress(IPAddress(ipv4: 0xc0a8_0001 + UInt32(host)), port: 5353)
  }

  func step(_ host: Int, _ input: MulticastNames.Input) {
    var outbox = Outbox<MulticastNames.Output>()
    hosts[host].step(input, at: now, into: &outbox)
    for output in outbox.drain() {
      switch output {
      case .multicast(let bytes):
        multicasts += 1
        if losses > 0 {
          losses -= 1
          continue
        }
        // The sender receives its own multicast too.
        for other in hosts.indices { step(other, .received(bytes, from: address(host))) }
      case .unicast(let bytes, let asker):
        unicasts += 1
        for other in hosts.indices where address(other) == asker {
          step(other, .received(bytes, from: address(host)))
        }
      case .resolved(let id, let addresses): resolved.append((host, id, addresses))
      }
    }
  }

  func run(for interval: Interval) {
    let end = now + interval
    while let next = hosts.compactMap(\.deadline).min(), next <= end {
      now = next
      for host in hosts.indices where hosts[host].deadline.map({ $0 <= now }) == true {
        step(host, .deadline)
      }
    }
    now = end
  }
}

struct MulticastNamesTests {
  private let name = "1f4712db-ea17-4bcf-a596-105139dfd8bf.local"
  private let ip = IPAddress(ipv4: 0xc0a8_0002)

  @Test func anotherHostAnswersForItsName() throws {
    let link = Link(3)
    link.step(1, .publish(name, ip, owner: 1))
    link.step(0, .resolve(id: 5, name.uppercased()))
    #expect(link.resolved.map(\.addresses) == [[ip]])
    #expect(link.resolved.first?.id == 5)
    #expect(link.hosts.allSatisfy { $0.deadline == nil })
  }

  @Test func aLostQueryIsRepeated() {
    let link = Link(2)
    link.step(1, .publish(name, ip, owner: 1))
    link.losses = 2
    link.step(0, .resolve(id: 1, name))
    #expect(link.resolved.isEmpty)
    link.run(for: .seconds(1))
    #expect(link.resolved.isEmpty)
    link.run(for: .seconds(2))
    #expect(link.resolved.map(\.addresses) == [[ip]])
  }

  @Test func anUnknownNameIsAbandoned() {
    let link = Link(2)
    link.step(0, .resolve(id: 1, name))
    link.step(0, .resolve(id: 2, name))
    link.run(for: .seconds(6))
    #expect(link.resolved.map(\.id) == [1, 2])
    #expect(link.resolved.allSatisfy { $0.addresses.isEmpty })
    #expect(link.multicasts == 3)
  }

  @Test func localNamesNeedNoQuery() {
    let link = Link(1)
    link.step(0, .publish(name, ip, owner: 1))
    link.step(0, .resolve(id: 1, name))
    #expect(link.resolved.map(\.addresses) == [[ip]])
    #expect(link.multicasts == 0)
  }

  @Test func namesAreWithdrawnWithTheirOwner() {
    let link = Link(2)
    link.step(1, .publish(name, ip, owner: 1))
    link.step(1, .withdraw(owner: 1))
    link.step(0, .resolve(id: 1, name))
    link.run(for: .seconds(6))
    #expect(link.resolved.map(\.addresses) == [[]])
  }

  @Test func multicastAnswersAreSentAtMostOnceASecond() {
    let link = Link(2)
    link.step(1, .publish(name, ip, owner: 1))
    for _ in 0..<5 { link.step(0, .resolve(id: 1, name)) }
    #expect(link.resolved.count == 5)
    #expect(link.unicasts == 4)
    #expect(link.multicasts == 6)
  }

  @Test func missingRecordsAreReported() throws {
    var host = MulticastNames()
    var outbox = Outbox<MulticastNames.Output>()
    host.step(.publish(name, ip, owner: 1), at: .zero, into: &outbox)
    let query = DNSMessage(questions: [.init(name: name, type: .aaaa)])
    let asker = SocketAddress(IPAddress(ipv4: 0xc0a8_0009), port: 5353)
    host.step(.received(query.bytes, from: asker), at: .zero, into: &outbox)
    guard case .multicast(let bytes)? = outbox.next() else {
      Issue.record("no answer")
      return
    }
    let answer = try #require(DNSMessage(bytes))
    #expect(answer.answers.map(\.value) == [.types([.a])])
  }

  @Test func legacyResolversGetAUnicastAnswer() throws {
    var host = MulticastNames()
    var outbox = Outbox<MulticastNames.Output>()
    host.step(.publish(name, ip, owner: 1), at: .zero, into: &outbox)
    let query = DNSMessage(id: 99, questions: [.init(name: name, type: .a)])
    let asker = SocketAddress(IPAddress(ipv4: 0xc0a8_0009), port: 40_000)
    host.step(.received(query.bytes, from: asker), at: .zero, into: &outbox)
    guard case .unicast(let bytes, asker)? = outbox.next() else {
      Issue.record("no answer to the asker")
      return
    }
    let answer = try #require(DNSMessage(bytes))
    #expect(answer.id == 99 && answer.questions == query.questions)
    #expect(answer.answers.map(\.isUnique) == [false])
    #expect(answer.answers.allSatisfy { $0.lifetime <= 10 })
  }

  @Test func knownAnswersAreSuppressed() {
    var host = MulticastNames()
    var outbox = Outbox<MulticastNames.Output>()
    host.step(.publish(name, ip, owner: 1), at: .zero, into: &outbox)
    let query = DNSMessage(
      questions: [.init(name: name, type: .a)],
      answers: [.init(name: name, value: .address(ip), lifetime: 100, isUnique: false)])
    let asker = SocketAddress(IPAddress(ipv4: 0xc0a8_0009), port: 5353)
    host.step(.received(query.bytes, from: asker), at: .zero, into: &outbox)
    #expect(outbox.isEmpty)
  }

  @Test func answersFromAnotherPortAreIgnored() {
    let link = Link(1)
    link.step(0, .resolve(id: 1, name))
    let answer = DNSMessage(
      isResponse: true, answers: [.init(name: name, value: .address(ip), lifetime: 120)])
    let forger = SocketAddress(IPAddress(ipv4: 0xc0a8_0009), port: 5354)
    link.step(0, .received(answer.bytes, from: forger))
    #expect(link.resolved.isEmpty)
  }

  /// Only hosts on the link may answer for its names (RFC 6762 section 11).
  @Test(arguments: [
    ("192.0.2.200", true), ("192.0.3.1", false), ("127.0.0.1", true), ("169.254.8.8", true),
    ("8.8.8.8", false), ("2001:db8:1::99", true), ("2001:db8:2::99", false), ("fe80::1", true),
    ("::1", true), ("2001:4860::8", false),
  ])
  func onlyLinkLocalSourcesAreAccepted(_ source: String, _ isHeard: Bool) throws {
    func ip(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }
    let networks = [
      LinkNetwork(try ip("192.0.2.7"), mask: try ip("255.255.255.0")),
      LinkNetwork(try ip("2001:db8:1::1"), mask: try ip("ffff:ffff:ffff:ffff::")),
    ]
    #expect(MulticastNames.isOnLink(try ip(source), of: networks) == isHeard)
  }

  @Test func pendingQueriesForOneNameAreLimited() {
    let link = Link(2)
    for id in 0..<1000 as Range<UInt64> { link.step(0, .resolve(id: id, name)) }
    #expect(link.resolved.count == 1000 - 64)
    #expect(link.resolved.allSatisfy { $0.addresses.isEmpty })
    link.run(for: .seconds(10))
    #expect(link.resolved.count == 1000)
  }
}
