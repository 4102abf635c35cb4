import Wire

extension StreamTarget {
  /// A connection to a server, or to the peer when there is none.
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
