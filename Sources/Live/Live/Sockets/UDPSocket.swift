import CSockets
import Glibc
import Tape
import Wire

/// A bound non-blocking UDP socket; closed when it is released.
final class UDPSocket {
  let descriptor: Int32
  /// The address it is bound to.
  let local: SocketAddress
  /// The last destination in the system's form: most packets go to the same one.
  private var lastRemote: SocketAddress?
  private var lastDestination = csockets_address()
  /// Whether the kernel supports splitting bytes into datagrams.
  private var sendsSegments = true

  /// The kernel's buffer sizes: a whole receive window of data (`SCTPParameters`) in packets of the
  /// usual size, each of which counts twice in the kernel, must fit while the thread is busy with a
  /// video frame.
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
    // Do not try again with kernels and network cards that cannot do it.
    if code == EINVAL || code == EIO { sendsSegments = false }
    return code
  }

  /// Sends one datagram after the other: one failure need not apply to all.
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
  /// The system's form of a local end point, with the interface of a link-local address.
  ///
  /// A socket bound on an interface stays there, so nothing else needs to name it.
  init(own address: SocketAddress) {
    self.init(address)
    guard !address.ip.isIPv4, address.ip.isLinkLocal else { return }
    scope = LocalInterface.all().first { $0.address == address.ip }?.index ?? 0
  }

  /// The C shims' form of an end point.
  init(_ address: SocketAddress) {
    self.init()
    let bytes = address.ip.bytes
    withUnsafeMutableBytes(of: &ip) { $0.copyBytes(from: bytes) }
    family = address.ip.isIPv4 ? 4 : 6
    port = address.port
  }
}

extension SocketAddress {
  /// Converts an end point from the C shims; nil for families other than IP.
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
