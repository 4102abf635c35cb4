import CSockets
import Wire

/// A socket that accepts connections of the other side of a call; closed when nobody holds it any
/// longer.
final class ListenSocket {
  let descriptor: Int32
  /// Where connections come to.
  let local: SocketAddress

  /// Listens on an address and a free port.
  init(on ip: IPAddress) throws(SystemError) {
    var wanted = csockets_address(own: SocketAddress(ip, port: 0))
    var bound = csockets_address()
    descriptor = try checked(
      "listen for connections on \(ip)", csockets_tcp_listen(&wanted, &bound))
    local = SocketAddress(bound) ?? SocketAddress(ip, port: 0)
  }

  deinit { _ = csockets_close(descriptor) }

  /// The next connection that waits; nil when there is none.
  func accept() -> StreamSocket? {
    var end = csockets_address()
    let accepted = csockets_tcp_accept(descriptor, &end)
    guard accepted >= 0 else { return nil }
    guard let remote = SocketAddress(end) else {
      _ = csockets_close(accepted)
      return nil
    }
    return StreamSocket(accepted: accepted, local: local, remote: remote)
  }
}
