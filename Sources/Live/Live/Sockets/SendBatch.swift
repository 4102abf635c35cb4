import Peer
import Wire

/// Datagrams of one path that go to the kernel in one call, since most of the cost is the call.
///
/// The kernel splits the bytes into datagrams of one length; only the last may be shorter.
final class SendBatch {
  /// The most that one call accepts (`UDP_MAX_SEGMENTS`, and the length of an IP packet).
  private static let datagramsMaximum = 64
  private static let bytesMaximum = 65_000

  private var socket: UDPSocket?
  private var remote = SocketAddress(IPAddress(ipv4: 0), port: 0)
  private var bytes: [UInt8] = []
  /// The DSCP of all of them (RFC 2474).
  private var codePoint: UInt8 = 0
  /// The length of all datagrams but the last.
  private var segment = 0
  private var count = 0
  private var refusals: [SendFailure] = []

  /// Adds a datagram; sends the others first if they do not fit together.
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
    // If the last datagram was shorter, the total shows it.
    self.socket === socket && self.remote == remote && length <= segment && length > 0
      && bytes.count == count * segment && count < SendBatch.datagramsMaximum
      && bytes.count + length <= SendBatch.bytesMaximum
  }

  /// Sends what is queued, and returns the failures since the last time.
  func flush() -> [SendFailure] {
    send()
    guard !refusals.isEmpty else { return [] }
    defer { refusals = [] }
    return refusals
  }

  /// Sends what is queued; failures are returned by the next `flush`.
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
