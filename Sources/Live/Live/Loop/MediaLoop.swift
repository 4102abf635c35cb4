import CSockets
import Peer
import Synchronization
public import Tape
import Wire

/// A thread that drives any number of peers: sockets, deadlines and a mailbox in one epoll set.
///
/// Machines are not shared between threads: they are created, stepped and destroyed here. All input
/// from other threads arrives through the mailbox.
public final class MediaLoop: Sendable {
  /// Identifies a peer in its loop.
  typealias PeerKey = UInt64

  /// A message from another thread.
  enum Message: Sendable {
    case add(PeerSetup)
    case input(PeerKey, PeerInput)
    case call(PeerKey, PeerCall, @Sendable (PeerReply) -> Void)
    case send(PeerKey, DataMessage, @Sendable (PeerReply) -> Void)
    case captured(PeerKey, transceiver: UInt32, CapturedMedia, CaptureBudget)
    /// A name's addresses, from the system or mDNS.
    case resolved(PeerKey, id: UInt32, [IPAddress], fromSystem: Bool)
    case remove(PeerKey, @Sendable () -> Void)
    case stop(@Sendable () -> Void)
    /// Only for a recorded peer: call back once the application has made all recorded calls.
    case followRecording(@Sendable () -> Void)
    /// Only for a recorded peer: run the rest of its take without further calls.
    case finishRecording(@Sendable (RecordedPeer.Report?) -> Void)
  }

  let mailbox: Mailbox<Message>
  private let lastKey = Mutex<PeerKey>(0)

  /// Starts the thread.
  public init() throws(SystemError) {
    mailbox = try Mailbox()
    let thread = try LoopThread(mailbox: mailbox)
    try startThread(named: "retake-media") { thread.run() }
  }

  /// Creates a loop without a thread of its own, for a recorded peer or a closed connection.
  init(mailbox: Mailbox<Message>) { self.mailbox = mailbox }

  deinit { _ = mailbox.post(.stop {}) }

  /// Stops the thread and all its peers, and returns once that is done.
  public func stop() async {
    await withCheckedContinuation { continuation in
      if !mailbox.post(.stop { continuation.resume() }) { continuation.resume() }
    }
  }

  /// Returns a key not yet used in this loop.
  func nextKey() -> PeerKey {
    lastKey.withLock { key in
      key += 1
      return key
    }
  }
}

/// A fixed number of loops shared by sessions, so that a call does not need its own thread.
public final class MediaLoopPool: Sendable {
  private let loops: [MediaLoop]
  private let turn = Atomic<Int>(0)

  /// Starts the threads.
  /// - Parameter count: at least one; for media, use the number of processors.
  public init(count: Int) throws(SystemError) {
    var loops: [MediaLoop] = []
    for _ in 0..<max(1, count) { loops.append(try MediaLoop()) }
    self.loops = loops
  }

  /// Returns the loop for the next session, in rotation.
  public func next() -> MediaLoop {
    let turn = turn.add(1, ordering: .relaxed).oldValue
    return loops[Int(UInt(bitPattern: turn) % UInt(loops.count))]
  }

  /// Stops all threads and their peers, and returns once that is done.
  public func stop() async { for loop in loops { await loop.stop() } }
}

// MARK: - Mailbox

/// Passes messages from any thread to the loop's thread, in order (a locked queue and an eventfd).
package final class Mailbox<Message: Sendable>: Sendable {
  private struct State {
    var messages: [Message] = []
    var isClosed = false
  }

  private let state = Mutex(State())
  /// Readable while messages wait.
  package let descriptor: Int32

  package init() throws(SystemError) {
    descriptor = try checked("create a wake-up", csockets_wake_create())
  }

  private init(closed descriptor: Int32) {
    self.descriptor = descriptor
    state.withLock { $0.isClosed = true }
  }

  /// Returns a mailbox that refuses all messages.
  package static var closed: Mailbox { Mailbox(closed: -1) }

  deinit { if descriptor >= 0 { _ = csockets_close(descriptor) } }

  /// Adds a message; returns false if the mailbox is closed.
  package func post(_ message: Message) -> Bool {
    let (isTaken, wakes) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      state.messages.append(message)
      return (true, state.messages.count == 1)
    }
    // Only the first message has to wake the reader, which then removes all waiting messages.
    if wakes { _ = csockets_wake_signal(descriptor) }
    return isTaken
  }

  /// Removes and returns all messages.
  package func removeAll() -> [Message] {
    _ = csockets_wake_clear(descriptor)
    return state.withLock { state in
      var taken: [Message] = []
      swap(&taken, &state.messages)
      return taken
    }
  }

  /// Refuses further messages and returns the waiting ones.
  package func close() -> [Message] {
    state.withLock { state in
      state.isClosed = true
      var taken: [Message] = []
      swap(&taken, &state.messages)
      return taken
    }
  }
}
