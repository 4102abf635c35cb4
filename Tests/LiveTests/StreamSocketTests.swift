import Glibc
import ICE
import Tape
import Testing
import Wire

@testable import Live

/// Tests connections over the system's own TCP.
@Suite(.timeLimit(.minutes(10))) struct StreamSocketTests {
  private static let loopback = IPAddress(ipv4: 0x7f00_0001)

  /// A poller that watches connections for reading and writing.
  private struct Waiter {
    let poller: Poller

    init(_ streams: [StreamSocket]) throws {
      poller = try Poller()
      for (index, stream) in streams.enumerated() {
        try poller.add(stream.descriptor, tag: Poller.Tag(index))
        poller.watch(stream.descriptor, writing: true, tag: Poller.Tag(index))
      }
    }
  }

  /// Returns both ends of an established connection, and the listener that accepted it.
  private func connected(to kind: StreamTarget.Kind = .peer) throws -> (
    StreamSocket, StreamSocket, ListenSocket
  ) {
    let listener = try ListenSocket(on: Self.loopback)
    let client = try StreamSocket(
      to: StreamTarget(local: Self.loopback, remote: listener.local, kind: kind, name: ""))
    let waiter = try Waiter([client])
    var messages: [[UInt8]] = []
    while !client.isOpen {
      _ = try waiter.poller.wait(waits: true)
      if case .failed(let code) = client.advance(into: &messages) {
        throw SystemError(operation: "connect", code: code)
      }
    }
    let server = try #require(Self.accepted(by: listener))
    return (client, server, listener)
  }

  private static func accepted(by listener: ListenSocket) -> StreamSocket? {
    guard case .connection(let stream) = listener.accept() else { return nil }
    return stream
  }

  @Test func oneTurnReadsSoMuchAndLeavesTheRestToTheSystem() throws {
    let (client, server, _) = try connected()
    for _ in 0..<100 { client.send([UInt8](repeating: 7, count: 2_000)) }
    let waiter = try Waiter([server])
    _ = try waiter.poller.wait(waits: true)
    var messages: [[UInt8]] = []
    _ = server.advance(into: &messages)
    #expect((1...34).contains(messages.count))
    #expect(try read(100 - messages.count, from: server, while: client).count > 0)
  }

  /// Reads `count` messages, letting the other end write meanwhile.
  private func read(_ count: Int, from reader: StreamSocket, while writer: StreamSocket) throws
    -> [[UInt8]]
  {
    let waiter = try Waiter([reader, writer])
    var messages: [[UInt8]] = []
    var none: [[UInt8]] = []
    while messages.count < count {
      _ = try waiter.poller.wait(waits: true)
      _ = writer.advance(into: &none)
      if case .failed(let code) = reader.advance(into: &messages) {
        throw SystemError(operation: "read", code: code)
      }
    }
    return messages
  }

  @Test func messagesArriveWholeInBothDirections() throws {
    let (client, server, listener) = try connected()
    #expect(server.remote == client.local && server.local == listener.local)
    let messages: [[UInt8]] = (1...200).map { [UInt8](repeating: UInt8($0), count: $0 * 7) }
    for message in messages { client.send(message) }
    #expect(try read(messages.count, from: server, while: client) == messages)
    server.send([9, 9])
    #expect(try read(1, from: client, while: server) == [[9, 9]])
  }

  @Test func aClosedPortRefuses() throws {
    // The listener is closed at once, so nothing listens on its port.
    let port = try ListenSocket(on: Self.loopback).local
    let target = StreamTarget(local: Self.loopback, remote: port, kind: .peer, name: "")
    // The kernel refuses at once or with the first event.
    guard let client = try? StreamSocket(to: target) else { return }
    let waiter = try Waiter([client])
    _ = try waiter.poller.wait(waits: true)
    var messages: [[UInt8]] = []
    guard case .failed(let code) = client.advance(into: &messages) else {
      Issue.record("connected to nobody")
      return
    }
    #expect(code == ECONNREFUSED)
  }

  /// Returns a client whose server sent `words`, did not read `unread`, and closed the connection.
  private func forsaken(after words: [UInt8], unread: [UInt8]) throws -> StreamSocket {
    let (client, server, _) = try connected()
    if !unread.isEmpty { client.send(unread) }
    server.send(words)
    return client
  }

  /// Returns the messages until the connection ends, and its error code.
  private func end(of client: StreamSocket) throws -> (messages: [[UInt8]], code: Int32) {
    let waiter = try Waiter([client])
    var messages: [[UInt8]] = []
    while true {
      _ = try waiter.poller.wait(waits: true)
      if case .failed(let code) = client.advance(into: &messages) { return (messages, code) }
    }
  }

  @Test func anEndThatClosesIsNoticed() throws {
    let (messages, code) = try end(of: forsaken(after: [1, 2, 3], unread: []))
    #expect(messages == [[1, 2, 3]] && code == ECONNRESET)
  }

  @Test func theLastMessagesOfAResetConnectionAreReceived() throws {
    // If an end closes with unread data, the system resets the connection.
    let client = try forsaken(after: [4, 5, 6], unread: [1, 2, 3])
    for _ in 0..<3 { client.send([7]) }
    #expect(try end(of: client).messages == [[4, 5, 6]])
  }

  @Test func unreadDataIsBounded() throws {
    let (client, server, _) = try connected()
    let message = [UInt8](repeating: 1, count: 60_000)
    // This is far more than the system's buffers hold; the rest is dropped, not kept.
    for _ in 0..<400 { client.send(message) }
    #expect(client.wantsToWrite)
    let messages = try read(4, from: server, while: client)
    #expect(messages.allSatisfy { $0 == message })
  }

  @Test func bytesThatAreNoMessageEndAConnectionToAServer() throws {
    let (client, server, _) = try connected(to: .server)
    // The server frames the bytes for a peer, as 0, 3, 1, 2, 3; read as STUN, their length is 258,
    // which is not a multiple of 4.
    server.send([1, 2, 3])
    #expect(try end(of: client).code == EPROTO)
  }
}
