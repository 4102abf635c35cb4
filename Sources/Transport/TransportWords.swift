import ICE
import Secure
import Wire

extension SRTPContext.Refusal {
  /// The refusal in words.
  var reason: String {
    switch self {
    case .authentication: "authentication failed"
    case .replayed: "replayed packet"
    case .malformed(let status): "malformed packet (status \(status))"
    }
  }
}

extension StreamTarget {
  /// A connection that ICE wants: to a server, or to the peer when there is none.
  init(from local: IPAddress, to remote: SocketAddress, server: ICEServer?) {
    let kind: Kind =
      switch server?.transport {
      case nil: .peer
      case .tls: .secureServer
      case .tcp, .udp: .server
      }
    self.init(
      local: local, remote: remote, kind: kind, name: server?.host.description ?? "")
  }
}
