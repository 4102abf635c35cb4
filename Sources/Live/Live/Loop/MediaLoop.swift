import Peer
import Synchronization
public import Tape
import Wire

/// A thread that drives any number of peers: sockets, deadlines and a mailbox in one epoll set.
///
/// Machines are not shared between threads: they are created, stepped and destroyed here.
/// Everything from outside arrives through the mailbox.
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
    /// The addresses of a name, from the system or mDNS.
    case resolved(PeerKey, id: UInt32, [IPAddress], fromSystem: Bool)
    case remove(PeerKey, @Sendable () -> Void)
    case stop(@Sendable () -> Void)
    /// For a recorded peer only: call when the application has made all recorded calls.
    case followRecording(@Sendable () -> Void)
    /// For a recorded peer only: run the rest of its take without further calls.
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

  /// Creates a loop whose messages are handled by another kind of thread.
  init(mailbox: Mailbox<Message>) { self.mailbox = mailbox }

  deinit { _ = mailbox.post(.stop {}) }

  /// Stops the thread with all its peers, and returns once that is done.
  public func stop() async {
    await withCheckedContinuation { continuation in
      if !mailbox.post(.stop { continuation.resume() }) { continuation.resume() }
    }
  }

  /// A key that was not used in this loop.
  func nextKey() -> PeerKey {
    lastKey.withLock { key in
      key += 1
      return key
    }
  }
}
