import CSockets
import Glibc
import Tape
import Wire

/// A socket that accepts connections of the peer; closed when it is released.
final class ListenSocket {
  let descriptor: Int32
  /// The address that it listens on.
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

  /// The result of accepting.
  enum Accepted {
    case connection(StreamSocket)
    /// A connection that failed before it was accepted, or has no usable address.
    case useless
    /// None is waiting.
    case none
    /// Waiting connections cannot be accepted now: the system has no descriptor or memory left.
    case refused(Int32)
  }

  /// Accepts the next waiting connection.
  func accept() -> Accepted {
    var end = csockets_address()
    let accepted = csockets_tcp_accept(descriptor, &end)
    guard accepted >= 0 else {
      switch -accepted {
      case EAGAIN: return .none
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .refused(-accepted)
      // Errors of the connection itself, according to accept(2).
      case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, ENETUNREACH, EHOSTUNREACH:
        return .useless
      default: return .refused(-accepted)
      }
    }
    guard let remote = SocketAddress(end) else {
      _ = csockets_close(accepted)
      return .useless
    }
    return .connection(StreamSocket(accepted: accepted, local: local, remote: remote))
  }
}
