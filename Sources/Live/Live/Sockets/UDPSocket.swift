import CSockets
import Glibc
import Peer
import Tape
import Wire

/// A bound non-blocking UDP socket; closed when it is released.
final class UDPSocket {
  let descriptor: Int32
  /// The address that the socket is bound to.
  let local: SocketAddress
  /// The last destination in the system's form, kept because most packets go to the same
  /// destination.
  private var lastRemote: SocketAddress?
  private var lastDestination = csockets_address()
  /// Whether the kernel can split bytes into datagrams.
  private var sendsSegments = true

  /// The kernel's buffer sizes.
  ///
  /// While the thread is busy with a video frame, a buffer must hold a complete SCTP receive window
  /// (`SCTPParameters`) in packets of the usual size. The kernel counts each packet twice.
  private static let bufferBytes: Int32 = 4 << 20

  /// Opens a socket on an address and a free port.
  init(on ip: IPAddress) throws(SystemError) {
    var wanted = csockets_address(own: SocketAddress(ip, port: 0))
    var bound = csockets_address()
    descriptor = try checked(
      "open a UDP socket on \(ip)", csockets_udp_open(&wanted, UDPSocket.bufferBytes, &bound))
    local = SocketAddress(bound) ?? SocketAddress(ip, port: 0)
  }

  deinit { _ = csockets_close(descriptor) }

  /// Sends datagrams of one length, the last one possibly shorter, with a DSCP (RFC 2474), without
  /// blocking.
  /// - Returns: 0, or the positive errno of the first failure.
  func send(
    _ bytes: [UInt8], inDatagramsOf segment: Int, to remote: SocketAddress, codePoint: UInt8 = 0
  ) -> Int32 {
    if lastRemote != remote {
      lastDestination = csockets_address(remote)
      lastRemote = remote
    }
    return bytes.withUnsafeBufferPointer { bytes in
      guard bytes.count > segment else {
        return -csockets_udp_send(
          descriptor, &lastDestination, codePoint, bytes.baseAddress, bytes.count)
      }
      let code = sendTogether(bytes, segment, codePoint)
      return code == 0 ? 0 : sendEach(bytes, segment, codePoint)
    }
  }

  private func sendTogether(
    _ bytes: UnsafeBufferPointer<UInt8>, _ segment: Int, _ codePoint: UInt8
  ) -> Int32 {
    guard sendsSegments, let segment = UInt16(exactly: segment) else { return EINVAL }
    let code = -csockets_udp_send_segments(
      descriptor, &lastDestination, codePoint, bytes.baseAddress, bytes.count, segment)
    // Send datagrams one by one from now on if the kernel or the network card cannot split the
    // bytes.
    if code == EINVAL || code == EIO { sendsSegments = false }
    return code
  }

  /// Sends datagrams one by one, because a failure may affect only some of them.
  private func sendEach(
    _ bytes: UnsafeBufferPointer<UInt8>, _ segment: Int, _ codePoint: UInt8
  ) -> Int32 {
    var refusal: Int32 = 0
    for start in stride(from: 0, to: bytes.count, by: segment) {
      let datagram = bytes[start..<min(start + segment, bytes.count)]
      let code = -csockets_udp_send(
        descriptor, &lastDestination, codePoint,
        UnsafeBufferPointer(rebasing: datagram).baseAddress, datagram.count)
      if refusal == 0 { refusal = code }
    }
    return refusal
  }
}

extension csockets_address {
  /// Converts a local endpoint, with the interface of a link-local address.
  ///
  /// A socket bound to an interface keeps using it, so no other address has to name the interface.
  init(own address: SocketAddress) {
    self.init(address)
    guard !address.ip.isIPv4, address.ip.isLinkLocal else { return }
    scope = LocalInterface.all().first { $0.address == address.ip }?.index ?? 0
  }

  /// Converts an endpoint to the C shims' form.
  init(_ address: SocketAddress) {
    self.init()
    let bytes = address.ip.bytes
    withUnsafeMutableBytes(of: &ip) { $0.copyBytes(from: bytes) }
    family = address.ip.isIPv4 ? 4 : 6
    port = address.port
  }
}

extension SocketAddress {
  /// Converts an endpoint from the C shims; nil for families other than IP.
  init?(_ address: csockets_address) {
    let (high, low) = withUnsafeBytes(of: address.ip) {
      (
        UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    switch address.family {
    case 4: self.init(IPAddress(ipv4: UInt32(truncatingIfNeeded: high >> 32)), port: address.port)
    case 6: self.init(IPAddress(ipv6High: high, low: low), port: address.port)
    default: return nil
    }
  }
}

// MARK: - ReceiveBatch

/// Buffers for the datagrams of one receive call, allocated once per loop.
final class ReceiveBatch {
  /// A received datagram.
  struct Entry {
    var source: SocketAddress
    var bytes: [UInt8]
    /// The kernel's receive time on CLOCK_MONOTONIC.
    var arrivalMonotonicNanoseconds: Int64
    /// The datagram's DSCP (RFC 2474).
    var codePoint: UInt8
    /// The datagram's ECN mark (RFC 3168 section 5).
    var ecn: ECNMark
  }

  /// The maximum number of datagrams read from a socket at one wake-up.
  static let datagramsMaximum = 32
  /// Longer datagrams are truncated by the kernel and dropped here: no WebRTC packet is that long.
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

  /// Reads a socket's waiting datagrams and returns their number, 0 also after an error.
  ///
  /// An error on a UDP socket concerns something sent earlier; reading the error clears it.
  func receive(from descriptor: Int32) -> Int {
    let count = csockets_udp_receive(
      descriptor, datagrams, Int32(ReceiveBatch.datagramsMaximum))
    return Int(max(0, count))
  }

  /// Copies a datagram from the last receive call; nil if it was too long.
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

// MARK: - SendBatch

/// Collects datagrams on one path and passes them to the kernel in one call, because the call
/// causes most of the cost.
///
/// The kernel splits the bytes into datagrams of one length; only the last may be shorter.
final class SendBatch {
  /// The maximum number of datagrams (`UDP_MAX_SEGMENTS`) and of bytes (an IP packet's length) that
  /// one call accepts.
  private static let datagramsMaximum = 64
  private static let bytesMaximum = 65_000

  private var socket: UDPSocket?
  private var remote = SocketAddress(IPAddress(ipv4: 0), port: 0)
  private var bytes: [UInt8] = []
  /// The DSCP of all queued datagrams (RFC 2474).
  private var codePoint: UInt8 = 0
  /// The length of all datagrams but the last.
  private var segment = 0
  private var count = 0
  private var refusals: [SendFailure] = []

  /// Adds a datagram; first sends the queued datagrams if it does not fit with them.
  func add(
    _ datagram: [UInt8], to remote: SocketAddress, over socket: UDPSocket, codePoint: UInt8 = 0
  ) {
    if !accepts(datagram.count, to: remote, over: socket) || codePoint != self.codePoint {
      send()
      self.socket = socket
      self.remote = remote
      self.codePoint = codePoint
      segment = datagram.count
    }
    bytes.append(contentsOf: datagram)
    count += 1
  }

  private func accepts(_ length: Int, to remote: SocketAddress, over socket: UDPSocket) -> Bool {
    // After a shorter datagram the total is not a multiple of the segment, so nothing may follow.
    self.socket === socket && self.remote == remote && length <= segment && length > 0
      && bytes.count == count * segment && count < SendBatch.datagramsMaximum
      && bytes.count + length <= SendBatch.bytesMaximum
  }

  /// Sends queued datagrams, and returns the failures since the previous call.
  func flush() -> [SendFailure] {
    send()
    guard !refusals.isEmpty else { return [] }
    defer { refusals = [] }
    return refusals
  }

  /// Sends queued datagrams; the next `flush` returns failures.
  func send() {
    guard let socket, count > 0 else { return }
    let code = socket.send(bytes, inDatagramsOf: segment, to: remote, codePoint: codePoint)
    if code != 0 {
      refusals.append(
        SendFailure(
          local: socket.local, remote: remote, code: code, packets: count, bytes: bytes.count))
    }
    self.socket = nil
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }
}
