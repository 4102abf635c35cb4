import Secure
import Testing
import Wire

struct DTLSDataTests {
  private func connected(_ link: @escaping DTLSPair.Link = DTLSPair.losing(0)) throws -> DTLSPair {
    let pair = try DTLSPair(link: link)
    pair.start()
    pair.run(for: .seconds(29))
    try #require(pair.agrees)
    return pair
  }

  @Test func messagesKeepTheirBoundaries() throws {
    let pair = try connected()
    let messages: [[UInt8]] = [[1], Array(repeating: 7, count: 1100), [2, 3]]
    for message in messages { pair.step(pair.client, .send(message)) }
    pair.step(pair.server, .send([9]))
    pair.run()
    #expect(pair.server.data == messages)
    #expect(pair.client.data == [[9]])
  }

  @Test func unfitMessagesAreCounted() throws {
    let pair = try connected()
    pair.step(pair.client, .send([]))
    pair.step(pair.client, .send(Array(repeating: 0, count: 20_000)))
    pair.run()
    #expect(pair.client.transport.dropped == 2)
    #expect(pair.server.data.isEmpty)
    #expect(pair.isConnected)
  }

  @Test func repeatedRecordIsDeliveredOnce() throws {
    let pair = try connected({ index, bytes in
      [(DTLSPair.delay, bytes), (DTLSPair.delay * 2, bytes)]
    })
    pair.step(pair.client, .send([5]))
    pair.run()
    #expect(pair.server.data == [[5]])
  }

  @Test func dataBeforeTheConnectionIsCounted() throws {
    let pair = try DTLSPair()
    pair.step(pair.client, .send([1]))
    pair.start()
    pair.step(pair.client, .send([1]))
    pair.run()
    #expect(pair.client.transport.dropped == 2)
    #expect(pair.agrees && pair.server.data.isEmpty)
  }

  @Test func dataThatOvertakesTheLastFlightIsKept() throws {
    // The fourth datagram is the server's last flight, and is delayed until after the next
    // datagram.
    let pair = try DTLSPair(link: { index, bytes in
      [(index == 3 ? .milliseconds(60) : DTLSPair.delay, bytes)]
    })
    pair.start()
    pair.run(for: .milliseconds(65))
    try #require(pair.server.transport.state == .connected)
    pair.step(pair.server, .send([6]))
    pair.run()
    #expect(pair.agrees)
    #expect(pair.client.data == [[6]])
  }

  @Test func closingInformsThePeer() throws {
    let pair = try connected()
    pair.step(pair.server, .close)
    #expect(pair.server.transport.state == .closed)
    pair.run()
    #expect(pair.client.states == [.connecting, .connected, .closed])
    #expect(pair.client.failures.isEmpty)
  }

  @Test func closingDuringTheHandshakeIsFinal() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run(for: .milliseconds(25))
    pair.step(pair.client, .close)
    #expect(pair.client.states == [.connecting, .closed])
    #expect(pair.client.transport.deadline == nil)
    let sent = pair.client.sent.count
    pair.step(pair.client, .start(.client, remoteFingerprints: []))
    pair.step(pair.client, .datagram(pair.server.sent.first ?? []))
    #expect(pair.client.sent.count == sent)
    #expect(pair.client.transport.state == .closed)
  }

  @Test func closingBeforeTheStartIsFinal() throws {
    let pair = try DTLSPair()
    pair.step(pair.client, .close)
    pair.step(pair.client, .start(.client, remoteFingerprints: []))
    #expect(pair.client.states == [.closed])
    #expect(pair.client.sent.isEmpty)
  }

  @Test func earlyDeadlineDoesNothing() throws {
    let pair = try DTLSPair(link: { _, _ in [] })
    pair.start()
    for _ in 0..<50 { pair.step(pair.client, .deadline) }
    #expect(pair.client.sent.count == 1)
  }
}
