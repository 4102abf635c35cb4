import CSockets
import Glibc
import Peer
import Tape
import Wire

extension LoopThread {
  // MARK: Connections

  /// Starts connecting for a peer.
  func connect(_ target: StreamTarget, id: UInt32, for key: MediaLoop.PeerKey, port: SocketSet)
    throws(SystemError) -> (tag: Poller.Tag, stream: StreamSocket)
  {
    guard let resident = resident(key) else {
      throw SystemError(operation: "connect to \(target.remote)", code: EBADF)
    }
    let stream = try StreamSocket(to: target)
    let tag = try descriptors.add(
      OpenStream(stream: stream, resident: resident, port: port, id: id))
    poller.watch(stream.descriptor, writing: true, tag: tag)
    return (tag, stream)
  }

  /// Continues a connection and passes its messages to its peer.
  func advanceStream(_ tag: Poller.Tag) {
    guard let entry = descriptors.stream(tag) else { return }
    let driver = touched(entry.resident)
    let wasOpen = entry.stream.isOpen
    var messages: [[UInt8]] = []
    let progress = entry.stream.advance(into: &messages)
    let now = csockets_monotonic_ns()
    if entry.stream.isOpen, !wasOpen, let id = entry.id {
      guard entry.port.isFree(entry.stream.local) else {
        entry.port.forget(tag)
        closeStream(tag)
        return driver.receive(.answer(.socketFailed(id: id, code: EADDRINUSE)))
      }
      driver.receive(.answer(.socketBound(id: id, entry.stream.local)))
    }
    for message in messages {
      guard descriptors.stream(tag) != nil else { return }
      driver.receive(
        Datagram(local: entry.stream.local, remote: entry.stream.remote, bytes: message),
        arrivalMonotonicNanoseconds: now)
    }
    guard case .failed(let code) = progress else { return watch(tag) }
    guard descriptors.stream(tag) != nil else { return }
    entry.port.forget(tag)
    closeStream(tag)
    if !entry.stream.isOpen, let id = entry.id {
      driver.receive(.answer(.socketFailed(id: id, code: code)))
    } else {
      driver.receive(
        .sendFailed(
          SendFailure(local: entry.stream.local, remote: entry.stream.remote, code: code)))
    }
  }

  /// Watches a connection for what it waits for.
  func watch(_ tag: Poller.Tag) {
    guard let stream = descriptors.stream(tag)?.stream else { return }
    poller.watch(stream.descriptor, writing: stream.wantsToWrite, tag: tag)
  }

  /// Forgets a connection, which closes it.
  func closeStream(_ tag: Poller.Tag) { descriptors.closeStream(tag) }

  // MARK: Listeners

  /// Listens for connections to a peer.
  func listen(on ip: IPAddress, for key: MediaLoop.PeerKey, port: SocketSet) throws(SystemError)
    -> (tag: Poller.Tag, socket: ListenSocket)
  {
    guard let resident = resident(key) else {
      throw SystemError(operation: "listen for connections on \(ip)", code: EBADF)
    }
    let socket = try ListenSocket(on: ip)
    let tag = try descriptors.add(OpenListener(socket: socket, resident: resident, port: port))
    return (tag, socket)
  }

  /// The most connections accepted per turn.
  private static let acceptsPerTurn = 16

  /// Accepts waiting connections of a listener.
  func accept(_ tag: Poller.Tag) {
    for _ in 0..<LoopThread.acceptsPerTurn {
      guard let listener = descriptors.listener(tag) else { return }
      switch listener.socket.accept() {
      case .none: return
      case .useless: continue
      case .refused(let code): return rest(tag, listener.socket, code)
      case .connection(let stream):
        let entry = OpenStream(
          stream: stream, resident: listener.resident, port: listener.port, id: nil)
        guard let streamTag = try? descriptors.add(entry) else { continue }
        listener.port.adopt(streamTag, stream)
        touched(listener.resident).receive(
          .answer(.streamAccepted(local: stream.local, remote: stream.remote)))
      }
    }
  }

  /// How long a listener is ignored after accepting failed.
  private static let restNanoseconds: Int64 = 1_000_000_000

  /// Ignores a listener for a while: the poller would report it continuously.
  private func rest(_ tag: Poller.Tag, _ socket: ListenSocket, _ code: Int32) {
    if !hasToldOfRest {
      hasToldOfRest = true
      LoopNotices.post(
        "connections to \(socket.local) have to wait: \(String(cString: strerror(code))); raise "
          + "`ulimit -n`, or let fewer calls run")
    }
    poller.ignore(socket.descriptor, tag: tag)
    resting.append((tag, csockets_monotonic_ns() + LoopThread.restNanoseconds))
  }

  /// Watches ignored listeners again.
  func wakeListeners() {
    guard let first = resting.first, first.untilNanoseconds <= csockets_monotonic_ns() else {
      return
    }
    resting.removeFirst()
    guard let listener = descriptors.listener(first.tag) else { return }
    poller.watch(listener.socket.descriptor, writing: false, tag: first.tag)
  }

  /// Forgets a listener, which closes it; accepted connections stay.
  func closeListener(_ tag: Poller.Tag) { descriptors.closeListener(tag) }
}
