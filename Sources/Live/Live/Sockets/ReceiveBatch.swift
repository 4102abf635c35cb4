import CSockets
import Wire

/// Buffers for the datagrams of one receive call, allocated once per loop.
final class ReceiveBatch {
  /// A received datagram.
  struct Entry {
    var source: SocketAddress
    var bytes: [UInt8]
    /// The kernel's receive time on CLOCK_MONOTONIC.
    var arrivalMonotonicNanoseconds: Int64
    /// Its DSCP (RFC 2474).
    var codePoint: UInt8
    /// Its ECN mark (RFC 3168 section 5).
    var ecn: ECNMark
  }

  /// The most datagrams read from a socket per wake-up.
  static let datagramsMaximum = 32
  /// Longer datagrams are truncated by the kernel and dropped here: no WebRTC packet is as long.
  static let bytesMaximum = 9216

  private let storage: UnsafeMutablePointer<UInt8>
  private let datagrams: UnsafeMutablePointer<csockets_datagram>
  /// The number of datagrams dropped because they were too long.
  private(set) var oversized: UInt64 = 0

  init() {
    let count = ReceiveBatch.datagramsMaximum
    storage = .allocate(capacity: count * ReceiveBatch.bytesMaximum)
    datagrams = .allocate(capacity: count)
    for index in 0..<count {
      var datagram = csockets_datagram()
      datagram.bytes = storage + index * ReceiveBatch.bytesMaximum
      datagram.capacity = ReceiveBatch.bytesMaximum
      (datagrams + index).initialize(to: datagram)
    }
  }

  deinit {
    storage.deallocate()
    datagrams.deallocate()
  }

  /// Reads what waits in a socket; returns the number of datagrams, 0 also after an error.
  ///
  /// An error of a UDP socket concerns something sent earlier; reading it clears it.
  func receive(from descriptor: Int32) -> Int {
    let count = csockets_udp_receive(
      descriptor, datagrams, Int32(ReceiveBatch.datagramsMaximum))
    return Int(max(0, count))
  }

  /// Copies a datagram of the last receive call; nil if it was too long.
  func entry(at index: Int) -> Entry? {
    precondition((0..<ReceiveBatch.datagramsMaximum).contains(index))
    let datagram = datagrams[index]
    guard datagram.is_truncated == 0, let source = SocketAddress(datagram.source) else {
      oversized += 1
      return nil
    }
    let bytes = UnsafeBufferPointer(start: datagram.bytes, count: datagram.length)
    return Entry(
      source: source, bytes: Array(bytes), arrivalMonotonicNanoseconds: datagram.monotonic_ns,
      codePoint: datagram.code_point, ecn: ECNMark(rawValue: datagram.ecn))
  }
}
