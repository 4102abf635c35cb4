import CSockets
import Glibc
import Testing

struct NetTests {
  /// A socket on the loopback interface that closes itself.
  final class Socket {
    let descriptor: Int32
    var address = csockets_address()

    init(family: UInt8 = 4) throws {
      var wanted = csockets_address()
      wanted.family = family
      if family == 4 {
        wanted.ip.0 = 127
        wanted.ip.3 = 1
      } else {
        wanted.ip.15 = 1
      }
      descriptor = csockets_udp_open(&wanted, 1 << 20, &address)
      try #require(descriptor >= 0)
    }

    deinit { _ = csockets_close(descriptor) }

    func send(_ bytes: [UInt8], to other: Socket) -> Int32 {
      csockets_udp_send(descriptor, &other.address, 0, bytes, bytes.count)
    }

    /// Receives up to `count` waiting datagrams in one system call.
    func receive(upTo count: Int, capacity: Int = 1500) -> [(csockets_datagram, [UInt8])] {
      let storage = UnsafeMutablePointer<UInt8>.allocate(capacity: count * capacity)
      defer { storage.deallocate() }
      var batch = (0..<count).map { index in
        var datagram = csockets_datagram()
        datagram.bytes = storage + index * capacity
        datagram.capacity = capacity
        return datagram
      }
      let received = csockets_udp_receive(descriptor, &batch, Int32(count))
      return batch.prefix(Int(max(0, received))).map { datagram in
        (
          datagram,
          Array(UnsafeBufferPointer(start: datagram.bytes, count: min(datagram.length, capacity)))
        )
      }
    }
  }

  @Test func batchKeepsDatagramsSourceAndOrder() throws {
    let one = try Socket()
    let two = try Socket()
    let sent: [[UInt8]] = [[1], [2, 2], [], Array(repeating: 3, count: 1200)]
    for bytes in sent { #expect(one.send(bytes, to: two) == 0) }
    let received = two.receive(upTo: 64)
    #expect(received.map(\.1) == sent)
    for (datagram, _) in received {
      #expect(datagram.source.port == one.address.port && datagram.source.family == 4)
      #expect(datagram.source.ip.0 == 127 && datagram.source.ip.3 == 1)
      #expect(datagram.is_truncated == 0 && datagram.ecn == 0)
    }
    #expect(two.receive(upTo: 64).isEmpty)
  }

  @Test func kernelReportsArrivalTimes() throws {
    let one = try Socket()
    let two = try Socket()
    let before = csockets_monotonic_ns()
    #expect(one.send([1], to: two) == 0)
    let (datagram, _) = try #require(two.receive(upTo: 1).first)
    let after = csockets_monotonic_ns()
    #expect(datagram.realtime_ns > 1_600_000_000_000_000_000)
    // The two clocks are read one after the other, so they may differ slightly.
    #expect(datagram.monotonic_ns > before - 1_000_000 && datagram.monotonic_ns <= after)
  }

  /// Covers both address families, with a single datagram and with a buffer that the kernel splits
  /// into datagrams.
  @Test(arguments: [4 as UInt8, 6], [0 as UInt16, 3])
  func codePointsAreSetPerDatagram(family: UInt8, segment: UInt16) throws {
    let one = try Socket(family: family)
    let two = try Socket(family: family)
    for mark: UInt8 in [0, 46, 34, 0, 8] {
      let bytes: [UInt8] = [1, 2, 3, 4, 5, 6]
      let code =
        segment == 0
        ? csockets_udp_send(one.descriptor, &two.address, mark, bytes, bytes.count)
        : csockets_udp_send_segments(
          one.descriptor, &two.address, mark, bytes, bytes.count, segment)
      #expect(code == 0)
      let received = two.receive(upTo: 4)
      #expect(received.count == (segment == 0 ? 1 : 2))
      #expect(received.allSatisfy { $0.0.code_point == mark && $0.0.ecn == 0 })
    }
  }

  @Test func congestionMarksAreRead() throws {
    let one = try Socket()
    let two = try Socket()
    for mark in Int32(0)..<4 {
      var tos = mark
      #expect(
        setsockopt(
          one.descriptor, Int32(IPPROTO_IP), IP_TOS, &tos, socklen_t(MemoryLayout<Int32>.size)) == 0
      )
      #expect(one.send([9], to: two) == 0)
      #expect(two.receive(upTo: 1).first?.0.ecn == UInt8(mark))
    }
  }

  @Test func truncatedDatagramsAreMarked() throws {
    let one = try Socket()
    let two = try Socket()
    #expect(one.send([1, 2, 3, 4], to: two) == 0)
    let (datagram, bytes) = try #require(two.receive(upTo: 1, capacity: 2).first)
    #expect(datagram.is_truncated == 1)
    #expect(bytes == [1, 2])
  }

  @Test func failuresAreNegativeErrorNumbers() throws {
    let socket = try Socket()
    var occupied = socket.address
    var bound = csockets_address()
    #expect(csockets_udp_open(&occupied, 1 << 20, &bound) == -EADDRINUSE)
    #expect(socket.send(Array(repeating: 0, count: 70_000), to: socket) == -EMSGSIZE)
    #expect(csockets_close(-1) == -EBADF)
  }

  @Test func pollingDistinguishesSocketsTimersAndWakeUps() throws {
    let socket = try Socket()
    let poll = csockets_poll_create()
    let timer = csockets_timer_create()
    let wake = csockets_wake_create()
    defer { for descriptor in [poll, timer, wake] { _ = csockets_close(descriptor) } }
    let readable = UInt32(CSOCKETS_READABLE)
    for (descriptor, tag) in [(socket.descriptor, 1), (timer, 2), (wake, 3)] as [(Int32, UInt64)] {
      #expect(csockets_poll_add(poll, descriptor, readable, tag) == 0)
    }
    func ready(_ timeout: Int32) -> [UInt64] {
      var events = [csockets_event](repeating: csockets_event(), count: 8)
      let count = csockets_poll_wait(poll, &events, 8, timeout)
      return events.prefix(Int(max(0, count))).map(\.tag).sorted()
    }
    #expect(ready(0) == [])
    #expect(csockets_wake_signal(wake) == 0)
    #expect(ready(1000) == [3])
    #expect(csockets_wake_clear(wake) == 0 && csockets_wake_clear(wake) == 0)
    // A time in the past, including zero, fires immediately.
    #expect(csockets_timer_set(timer, 0) == 0)
    #expect(ready(1000) == [2])
    #expect(csockets_timer_clear(timer) == 0)
    #expect(ready(0) == [])
    #expect(csockets_timer_set(timer, csockets_monotonic_ns() + 2_000_000) == 0)
    #expect(ready(1000) == [2])
    #expect(csockets_timer_set(timer, -1) == 0)
    #expect(ready(0) == [])
    #expect(socket.send([1], to: socket) == 0)
    #expect(ready(1000) == [1])
    #expect(csockets_poll_modify(poll, socket.descriptor, UInt32(CSOCKETS_WRITABLE), 7) == 0)
    #expect(ready(1000) == [7])
    #expect(csockets_poll_remove(poll, socket.descriptor) == 0)
    #expect(ready(0) == [])
  }
}
