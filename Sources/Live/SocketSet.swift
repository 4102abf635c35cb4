import Glibc
import Peer
import Wire

/// The sockets of one peer; there are few, so that they are searched in order.
final class SocketSet: DatagramPort {
  private let key: MediaLoop.PeerKey
  /// The thread outlives its peers.
  private unowned let thread: LoopThread
  private var sockets: [(tag: Poller.Tag, socket: UDPSocket)] = []
  private var streams: [(tag: Poller.Tag, stream: StreamSocket)] = []

  init(key: MediaLoop.PeerKey, thread: LoopThread) {
    self.key = key
    self.thread = thread
  }

  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    var opened = try thread.open(on: ip, for: key)
    // An end point names one socket; the kernel counts UDP and TCP ports apart.
    while streams.contains(where: { $0.stream.local == opened.socket.local }) {
      let taken = opened.tag
      opened = try thread.open(on: ip, for: key)
      thread.close(taken)
    }
    sockets.append(opened)
    return opened.socket.local
  }

  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError) {
    streams.append(try thread.connect(target, id: id, for: key, port: self))
  }

  /// Whether the own end of a connection is that of no socket: it names the connection.
  func isFree(_ local: SocketAddress) -> Bool {
    !sockets.contains { $0.socket.local == local }
  }

  func close(_ local: SocketAddress) {
    if let index = streams.firstIndex(where: { $0.stream.isOpen && $0.stream.local == local }) {
      return thread.closeStream(streams.remove(at: index).tag)
    }
    guard let index = sockets.firstIndex(where: { $0.socket.local == local }) else { return }
    thread.close(sockets.remove(at: index).tag)
  }

  func closeAll() {
    for entry in sockets { thread.close(entry.tag) }
    sockets = []
    for entry in streams { thread.closeStream(entry.tag) }
    streams = []
  }

  func send(_ datagram: Datagram) -> Int32 {
    for entry in sockets where entry.socket.local == datagram.local {
      return entry.socket.send(datagram.bytes, to: datagram.remote)
    }
    for entry in streams where entry.stream.isOpen && entry.stream.local == datagram.local {
      let code = entry.stream.send(datagram.bytes)
      thread.watch(entry.tag)
      return code
    }
    return EBADF
  }

  func resolve(_ name: String, id: UInt32) { thread.resolve(name, id: id, for: key) }
}
