import CSupport
import Glibc
import Peer
import Wire

/// A connection of a peer, and the number under which it was asked for.
struct OpenStream {
  let stream: StreamSocket
  let driver: PeerDriver
  let port: SocketSet
  let id: UInt32
}

extension LoopThread {
  /// Begins a connection whose messages go to a peer.
  func connect(_ target: StreamTarget, id: UInt32, for key: MediaLoop.PeerKey, port: SocketSet)
    throws(SystemError) -> (tag: Poller.Tag, stream: StreamSocket)
  {
    guard let driver = driver(of: key) else {
      throw SystemError(operation: "connect to \(target.remote)", code: EBADF)
    }
    let stream = try StreamSocket(to: target)
    let tag = nextTag()
    try poller.add(stream.descriptor, tag: tag)
    poller.watch(stream.descriptor, writing: true, tag: tag)
    streams[tag] = OpenStream(stream: stream, driver: driver, port: port, id: id)
    return (tag, stream)
  }

  /// Goes on with a connection and hands its messages to its peer.
  func advanceStream(_ tag: Poller.Tag) {
    guard let entry = streams[tag] else { return }
    let wasOpen = entry.stream.isOpen
    var messages: [[UInt8]] = []
    let progress = entry.stream.advance(into: &messages)
    let now = csupport_monotonic_ns()
    if entry.stream.isOpen, !wasOpen {
      guard entry.port.isFree(entry.stream.local) else {
        closeStream(tag)
        return entry.driver.take(.socketFailed(id: entry.id, code: EADDRINUSE))
      }
      entry.driver.take(.socketBound(id: entry.id, entry.stream.local))
    }
    for message in messages {
      guard streams[tag] != nil else { return }
      entry.driver.take(
        Datagram(local: entry.stream.local, remote: entry.stream.remote, bytes: message),
        arrivalMonotonicNanoseconds: now)
    }
    guard case .failed(let code) = progress else { return watch(tag) }
    guard streams[tag] != nil else { return }
    closeStream(tag)
    if entry.stream.isOpen {
      entry.driver.take(
        .sendFailed(
          SendFailure(local: entry.stream.local, remote: entry.stream.remote, code: code)))
    } else {
      entry.driver.take(.socketFailed(id: entry.id, code: code))
    }
  }

  /// Watches a connection for what it waits for.
  func watch(_ tag: Poller.Tag) {
    guard let stream = streams[tag]?.stream else { return }
    poller.watch(stream.descriptor, writing: stream.wantsToWrite, tag: tag)
  }

  /// Forgets a connection, which closes it.
  func closeStream(_ tag: Poller.Tag) {
    guard let entry = streams.removeValue(forKey: tag) else { return }
    poller.remove(entry.stream.descriptor)
  }
}
