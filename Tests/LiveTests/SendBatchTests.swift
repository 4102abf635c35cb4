import Foundation
import Glibc
import Peer
import SCTP
import Testing
import Wire

@testable import Live

@Suite(.timeLimit(.minutes(10))) struct SendBatchTests {
  private static let loopback = IPAddress(ipv4: 0x7f00_0001)

  /// Waits for `count` datagrams on a socket, and returns their bytes in order of arrival.
  private func receive(_ count: Int, from socket: UDPSocket) throws -> [[UInt8]] {
    let poller = try Poller()
    try poller.add(socket.descriptor, tag: 1)
    let batch = ReceiveBatch()
    var datagrams: [[UInt8]] = []
    while datagrams.count < count {
      _ = try poller.wait(waits: true)
      for index in 0..<batch.receive(from: socket.descriptor) {
        if let entry = batch.entry(at: index) { datagrams.append(entry.bytes) }
      }
    }
    return datagrams
  }

  @Test func datagramsStayApartAndInOrderWhateverTheirLengths() throws {
    let sender = try UDPSocket(on: SendBatchTests.loopback)
    let receiver = try UDPSocket(on: SendBatchTests.loopback)
    let batch = SendBatch()
    // First datagrams of equal length, then shorter ones, an empty one and a longer one. The rest
    // is more datagrams, and more bytes, than one system call accepts.
    var lengths = [1200, 1200, 1200, 700, 700, 1200, 0, 5]
    lengths += [Int](repeating: 20, count: 150) + [Int](repeating: 8000, count: 10)
    let sent = lengths.enumerated().map { number, length in
      [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
    }
    for datagram in sent { batch.add(datagram, to: receiver.local, over: sender) }
    #expect(batch.flush() == [])
    #expect(try receive(sent.count, from: receiver) == sent)
  }

  /// Each datagram has its own code point in the IP header, even when several wait together.
  @Test func eachDatagramCarriesItsOwnCodePoint() throws {
    let sender = try UDPSocket(on: SendBatchTests.loopback)
    let receiver = try UDPSocket(on: SendBatchTests.loopback)
    let batch = SendBatch()
    let marks: [UInt8] = [46, 46, 0, 34, 34, 34, 8]
    for mark in marks {
      batch.add([mark, 1, 2], to: receiver.local, over: sender, codePoint: mark)
    }
    #expect(batch.flush() == [])
    let poller = try Poller()
    try poller.add(receiver.descriptor, tag: 1)
    let reading = ReceiveBatch()
    var read: [UInt8] = []
    while read.count < marks.count {
      _ = try poller.wait(waits: true)
      for index in 0..<reading.receive(from: receiver.descriptor) {
        guard let entry = reading.entry(at: index) else { continue }
        #expect(entry.bytes.first == entry.codePoint)
        read.append(entry.codePoint)
      }
    }
    #expect(read == marks)
  }

  /// In networks, routers set ECN marks (RFC 3168); here the sender sets them in the IP header.
  @Test(arguments: [false, true]) func eachDatagramHasItsMark(isIPv6: Bool) throws {
    let address =
      isIPv6 ? IPAddress(ipv6High: 0, low: 1) : SendBatchTests.loopback
    // Without IPv6 on this machine, there is nothing to test.
    guard let receiver = try? UDPSocket(on: address), let sender = try? UDPSocket(on: address)
    else { return #expect(isIPv6) }
    let batch = SendBatch()
    let marks: [ECNMark] = [.congestionExperienced, .notCapable, .ect1, .ect0]
    for mark in marks {
      var traffic = Int32(mark.rawValue)
      let (level, option) = isIPv6 ? (IPPROTO_IPV6, IPV6_TCLASS) : (IPPROTO_IP, IP_TOS)
      try #require(
        setsockopt(
          sender.descriptor, Int32(level), option, &traffic, socklen_t(MemoryLayout<Int32>.size))
          == 0)
      batch.add([mark.rawValue], to: receiver.local, over: sender)
      #expect(batch.flush() == [])
    }
    let poller = try Poller()
    try poller.add(receiver.descriptor, tag: 1)
    let reading = ReceiveBatch()
    var read: [ECNMark] = []
    while read.count < marks.count {
      _ = try poller.wait(waits: true)
      for index in 0..<reading.receive(from: receiver.descriptor) {
        guard let entry = reading.entry(at: index) else { continue }
        #expect(entry.bytes == [entry.ecn.rawValue])
        read.append(entry.ecn)
      }
    }
    #expect(read == marks)
  }

  @Test func eachPathGetsItsOwnDatagrams() throws {
    let sender = try UDPSocket(on: SendBatchTests.loopback)
    let receivers = try (0..<2).map { _ in try UDPSocket(on: SendBatchTests.loopback) }
    let batch = SendBatch()
    for number in 0..<10 {
      batch.add([UInt8(number)], to: receivers[number / 3 % 2].local, over: sender)
    }
    #expect(batch.flush() == [])
    #expect(try receive(6, from: receivers[0]) == [0, 1, 2, 6, 7, 8].map { [$0] })
    #expect(try receive(4, from: receivers[1]) == [3, 4, 5, 9].map { [$0] })
  }

  @Test func aRefusalNamesItsPath() throws {
    let sender = try UDPSocket(on: SendBatchTests.loopback)
    let receiver = try UDPSocket(on: SendBatchTests.loopback)
    let batch = SendBatch()
    // An IPv4 socket cannot reach an IPv6 address.
    let foreign = SocketAddress(IPAddress(ipv6High: 0, low: 1), port: 9)
    for byte in 0..<3 { batch.add([UInt8(byte)], to: foreign, over: sender) }
    batch.add([9], to: receiver.local, over: sender)
    let refusals = batch.flush()
    #expect(refusals.map(\.remote) == [foreign] && refusals.map(\.local) == [sender.local])
    #expect(refusals.allSatisfy { $0.code > 0 })
    #expect(try receive(1, from: receiver) == [[9]])
    #expect(batch.flush() == [])
  }

  /// Whether the system grants a socket the requested buffer size.
  private static let maySeize: Bool = {
    let limit = try? String(contentsOfFile: "/proc/sys/net/core/rmem_max", encoding: .utf8)
    let bytes = limit.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) } ?? 0
    return geteuid() == 0 || bytes >= 4 << 20
  }()

  @Test(.enabled(if: maySeize, "the limit of receive buffers is low: net.core.rmem_max"))
  func aWholeReceiveWindowWaitsInTheSocketOfABusyThread() throws {
    let sender = try UDPSocket(on: SendBatchTests.loopback)
    let receiver = try UDPSocket(on: SendBatchTests.loopback)
    let size = 1200
    let window = SCTPParameters(isClient: true).receiveWindow
    let count = window / size + 1
    for _ in 0..<count {
      #expect(
        sender.send([UInt8](repeating: 1, count: size), inDatagramsOf: size, to: receiver.local)
          == 0)
    }
    var received = 0
    let batch = ReceiveBatch()
    while case let arrived = batch.receive(from: receiver.descriptor), arrived > 0 {
      received += arrived
    }
    #expect(received == count)
  }
}
