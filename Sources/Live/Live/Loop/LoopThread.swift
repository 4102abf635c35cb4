import CSockets
import Glibc
import ICE
import Peer
import Synchronization
import Tape
import Wire

/// A media loop's body; everything here runs on the loop's thread.
final class LoopThread {
  private static let mailboxTag: Poller.Tag = 0
  private static let timerTag: Poller.Tag = 1
  private static let linksTag: Poller.Tag = 2

  private let mailbox: Mailbox<MediaLoop.Message>
  let poller: Poller
  private let timer: WakeTimer
  private let batch = ReceiveBatch()
  /// Datagrams from the peer that currently has its turn.
  let outgoing = SendBatch()
  private let resolver = NameResolver()
  let multicast = MulticastPort()
  private let links: LinkWatch?
  private var peers: [MediaLoop.PeerKey: Resident] = [:]
  private var turns = TurnTable()
  var descriptors: OpenSockets
  private var completions: [@Sendable () -> Void] = []
  private var isStopping = false
  /// Paused listeners, in the order in which they resume.
  var resting: [(tag: Poller.Tag, untilNanoseconds: Int64)] = []
  var hasToldOfRest = false

  init(mailbox: Mailbox<MediaLoop.Message>) throws(SystemError) {
    self.mailbox = mailbox
    poller = try Poller()
    descriptors = OpenSockets(poller, after: LoopThread.linksTag)
    timer = try WakeTimer()
    try poller.add(mailbox.descriptor, tag: LoopThread.mailboxTag)
    try poller.add(timer.descriptor, tag: LoopThread.timerTag)
    // Without a link watch, addresses are never updated.
    links = try? LinkWatch()
    if let links { try poller.add(links.descriptor, tag: LoopThread.linksTag) }
  }

  /// Handles events until the loop is stopped.
  func run() {
    while !isStopping {
      let isIdle = arm()
      guard let count = try? poller.wait(waits: isIdle) else { break }
      for index in 0..<count { handle(poller.tag(at: index)) }
      multicast.runTurn()
      wakeListeners()
      turns.runTurns(of: peers, until: csockets_monotonic_ns())
    }
    finish()
  }

  /// Sets the timer to the earliest turn; returns false if a turn is already due.
  private func arm() -> Bool {
    let earliest = min(
      multicast.wakeNanoseconds ?? .max, turns.earliestNanoseconds ?? .max,
      resting.first?.untilNanoseconds ?? .max)
    guard earliest < .max else { return true }
    if earliest <= csockets_monotonic_ns() { return false }
    timer.arm(monotonicNanoseconds: earliest)
    return true
  }

  private func handle(_ tag: Poller.Tag) {
    switch tag {
    case LoopThread.mailboxTag: handle(mailbox.removeAll())
    case LoopThread.timerTag: timer.clear()
    case LoopThread.linksTag: linksChanged()
    case _ where descriptors.stream(tag) != nil: advanceStream(tag)
    case _ where descriptors.listener(tag) != nil: accept(tag)
    default: if !multicast.receive(tag, into: batch) { receive(tag) }
    }
  }

  private func receive(_ tag: Poller.Tag) {
    guard let entry = descriptors.socket(tag) else { return }
    let socket = entry.socket
    let driver = touched(entry.resident)
    let count = batch.receive(from: socket.descriptor)
    driver.beginBurst()
    defer { driver.endBurst() }
    for index in 0..<count {
      // A step may have closed the socket; ignore the datagrams already read from it.
      guard descriptors.socket(tag) != nil else { return }
      guard let entry = batch.entry(at: index) else { continue }
      driver.receive(
        Datagram(
          local: socket.local, remote: entry.source, bytes: entry.bytes, ecn: entry.ecn),
        arrivalMonotonicNanoseconds: entry.arrivalMonotonicNanoseconds)
    }
  }

  // MARK: Messages

  /// Handles messages in order, and sends the output of consecutive packets for one leg of a relay
  /// together.
  private func handle(_ messages: [MediaLoop.Message]) {
    var burst: (key: MediaLoop.PeerKey, driver: PeerDriver)?
    for message in messages {
      guard case .input(let key, .relayed(let packet)) = message else {
        burst?.driver.endBurst()
        burst = nil
        handle(message)
        continue
      }
      if burst?.key != key {
        burst?.driver.endBurst()
        burst = driver(of: key).map { (key, $0) }
        burst?.driver.beginBurst()
      }
      burst?.driver.receive(.relayed(packet))
    }
    burst?.driver.endBurst()
  }

  private func handle(_ message: MediaLoop.Message) {
    switch message {
    case .add(let setup): add(setup)
    case .input(let key, let input): driver(of: key)?.receive(input)
    case .call(let key, let call, let complete):
      guard let driver = driver(of: key) else {
        complete(.failure(.ended))
        return
      }
      driver.receive(call, complete: complete)
    case .send(let key, let message, let complete):
      guard let driver = driver(of: key) else {
        complete(.failure(.ended))
        return
      }
      driver.receive(message, complete: complete)
    case .captured(let key, let transceiver, let media, let budget):
      budget.release()
      driver(of: key)?.receive(.captured(transceiver: transceiver, media))
    case .resolved(let key, let id, let addresses, let fromSystem):
      if fromSystem { resolver.finished() }
      driver(of: key)?.receive(.answer(.nameResolved(id: id, addresses)))
    case .remove(let key, let complete):
      remove(key)
      complete()
    case .stop(let complete):
      isStopping = true
      completions.append(complete)
    case .followRecording(let complete): complete()
    case .finishRecording(let complete): complete(nil)
    }
  }

  /// Returns the driver of a peer that is about to receive an input; nil if the peer was removed.
  private func driver(of key: MediaLoop.PeerKey) -> PeerDriver? {
    guard let resident = peers[key] else { return nil }
    turns.touch(resident)
    return resident.driver
  }

  func resident(_ key: MediaLoop.PeerKey) -> Resident? { peers[key] }

  /// Returns the driver of a socket's peer, which is about to receive an input.
  func touched(_ resident: Resident) -> PeerDriver {
    turns.touch(resident)
    return resident.driver
  }

  private func add(_ setup: PeerSetup) {
    let port = SocketSet(key: setup.key, thread: self)
    let driver = PeerDriver(
      engine: setup.makeEngine(), clock: setup.clock, recorder: setup.recorder,
      actor: setup.actor, statsInterval: setup.statsInterval, port: port,
      observer: setup.observer, forward: setup.forward)
    let present = LocalInterface.all()
    let interfaces = setup.bind.addresses(among: present)
    let resident = Resident(
      key: setup.key, driver: driver, port: port, bind: setup.bind, clock: setup.clock,
      interfaces: interfaces)
    peers[setup.key] = resident
    turns.touch(resident)
    driver.begin(
      setup.genesis, interfaces: interfaces,
      types: LocalInterface.networkTypes(of: interfaces, among: present))
  }

  private func remove(_ key: MediaLoop.PeerKey) {
    guard let peer = peers.removeValue(forKey: key) else { return }
    peer.port.closeAll()
    multicast.withdraw(owner: key)
    peer.driver.abandon()
  }

  private func finish() {
    let unread = mailbox.close()
    for key in peers.keys.sorted() { remove(key) }
    for message in unread {
      switch message {
      case .call(_, _, let complete), .send(_, _, let complete): complete(.failure(.ended))
      case .captured(_, _, _, let budget): budget.release()
      case .remove(_, let complete), .stop(let complete): completions.append(complete)
      case .followRecording(let complete): completions.append(complete)
      case .finishRecording(let complete): completions.append { complete(nil) }
      case .add, .input, .resolved: break
      }
    }
    for complete in completions { complete() }
  }

  // MARK: Interfaces

  /// Informs the peers whose addresses changed.
  private func linksChanged() {
    links?.clear()
    multicast.joinLinks()
    let present = LocalInterface.all()
    for (_, resident) in peers.sorted(by: { $0.key < $1.key }) {
      let addresses = resident.bind.present(among: present, after: resident.interfaces)
      // A new IPv6 address can be bound only after a while, so report addresses again after a
      // refusal.
      guard addresses != resident.interfaces || resident.port.wasRefused else { continue }
      resident.interfaces = addresses
      resident.port.wasRefused = false
      let types = LocalInterface.networkTypes(of: addresses, among: present)
      touched(resident).receive(.interfaces(addresses, types: types))
    }
  }

  // MARK: Sockets and names

  /// Opens a UDP socket for a peer; fails with EBADF if the loop no longer has the peer.
  func open(on ip: IPAddress, for key: MediaLoop.PeerKey) throws(SystemError)
    -> (tag: Poller.Tag, socket: UDPSocket)
  {
    guard let resident = resident(key) else {
      throw SystemError(operation: "open a UDP socket on \(ip)", code: EBADF)
    }
    let socket = try UDPSocket(on: ip)
    return (try descriptors.add(OpenSocket(socket: socket, resident: resident)), socket)
  }

  /// Removes and closes a socket.
  func close(_ tag: Poller.Tag) { descriptors.closeSocket(tag) }

  /// Resolves a name: `.local` names by mDNS, others on another thread; the result arrives through
  /// the mailbox.
  func resolve(_ name: String, id: UInt32, for key: MediaLoop.PeerKey) {
    let mailbox = mailbox
    if MulticastNames.isLocal(name) {
      openMulticast()
      // If multicast is not permitted, the system may still resolve the name.
      if multicast.isOpen {
        return multicast.resolve(name) { addresses in
          _ = mailbox.post(.resolved(key, id: id, addresses, fromSystem: false))
        }
      }
    }
    resolver.resolve(name) { addresses in
      _ = mailbox.post(.resolved(key, id: id, addresses, fromSystem: true))
    }
  }

  /// Answers mDNS queries for a peer's name.
  func publish(_ name: String, _ ip: IPAddress, for key: MediaLoop.PeerKey) {
    openMulticast()
    multicast.publish(name, ip, owner: key)
  }

  private func openMulticast() { multicast.open(poller) { descriptors.nextTag() } }
}

// MARK: - Streams

extension LoopThread {
  // MARK: Connections

  /// Opens a TCP connection for a peer without waiting until it is established.
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

  /// Advances a connection and passes its messages to its peer.
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

  /// Watches a connection for the events it is waiting for.
  func watch(_ tag: Poller.Tag) {
    guard let stream = descriptors.stream(tag)?.stream else { return }
    poller.watch(stream.descriptor, writing: stream.wantsToWrite, tag: tag)
  }

  /// Removes and closes a connection.
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

  /// The maximum number of connections accepted in one turn.
  private static let acceptsPerTurn = 16

  /// Accepts a listener's waiting connections.
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

  /// How long a listener pauses after failing to accept a connection.
  private static let restNanoseconds: Int64 = 1_000_000_000

  /// Pauses a listener that failed to accept, because the poller would report it continuously.
  private func rest(_ tag: Poller.Tag, _ socket: ListenSocket, _ code: Int32) {
    if !hasToldOfRest {
      hasToldOfRest = true
      LoopNotices.post(
        "connections to \(socket.local) have to wait: \(String(cString: strerror(code))); raise "
          + "`ulimit -n`, or run fewer calls at once")
    }
    poller.ignore(socket.descriptor, tag: tag)
    resting.append((tag, csockets_monotonic_ns() + LoopThread.restNanoseconds))
  }

  /// Resumes the listener that has paused longest, if its pause is over.
  func wakeListeners() {
    guard let first = resting.first, first.untilNanoseconds <= csockets_monotonic_ns() else {
      return
    }
    resting.removeFirst()
    guard let listener = descriptors.listener(first.tag) else { return }
    poller.watch(listener.socket.descriptor, writing: false, tag: first.tag)
  }

  /// Removes and closes a listener; accepted connections stay.
  func closeListener(_ tag: Poller.Tag) { descriptors.closeListener(tag) }
}

/// Notices for users about problems that a take does not show, such as running out of file
/// descriptors.
package enum LoopNotices {
  private static let listener = Mutex<(@Sendable (String) -> Void)?>(nil)

  /// Sets the listener for notices, one sentence each; without a listener, notices are dropped.
  package static func onNotice(_ listener: @escaping @Sendable (String) -> Void) {
    self.listener.withLock { $0 = listener }
  }

  /// Whether there is a listener; without one, notices do not have to be composed.
  static var areRead: Bool { listener.withLock { $0 != nil } }

  static func post(_ sentence: String) { listener.withLock { $0 }?(sentence) }
}
