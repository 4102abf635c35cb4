import Glibc
import Peer
import Wire

/// The sockets of one peer; there are few, so that they are searched in order.
final class SocketSet: DatagramPort {
  private let key: MediaLoop.PeerKey
  /// The thread outlives its peers.
  private unowned let thread: LoopThread
  private var sockets: [(tag: Poller.Tag, socket: UDPSocket)] = []

  init(key: MediaLoop.PeerKey, thread: LoopThread) {
    self.key = key
    self.thread = thread
  }

  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress {
    let opened = try thread.open(on: ip, for: key)
    sockets.append(opened)
    return opened.socket.local
  }

  func close(_ local: SocketAddress) {
    guard let index = sockets.firstIndex(where: { $0.socket.local == local }) else { return }
    thread.close(sockets.remove(at: index).tag)
  }

  func closeAll() {
    for entry in sockets { thread.close(entry.tag) }
    sockets = []
  }

  func send(_ datagram: Datagram) -> Int32 {
    for entry in sockets where entry.socket.local == datagram.local {
      return entry.socket.send(datagram.bytes, to: datagram.remote)
    }
    return EBADF
  }

  func resolve(_ name: String, id: UInt32) { thread.resolve(name, id: id, for: key) }
}
