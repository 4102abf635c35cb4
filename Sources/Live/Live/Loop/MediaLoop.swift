import Peer
import Synchronization
public import Tape
import Wire

/// A thread that drives any number of peers: sockets, deadlines and a mailbox in one epoll set.
///
/// Machines are not shared between threads: they are made, stepped and destroyed here. Everything
/// from outside comes through the mailbox.
public final class MediaLoop: Sendable {
  /// Names a peer in its loop.
  typealias PeerKey = UInt64

  /// What other threads ask of the loop.
  enum Message: Sendable {
    case add(PeerSetup)
    case input(PeerKey, PeerInput)
    case call(PeerKey, PeerCall, @Sendable (PeerReply) -> Void)
    case send(PeerKey, DataMessage, @Sendable (PeerReply) -> Void)
    case captured(PeerKey, transceiver: UInt32, CapturedMedia, CaptureBudget)
    /// The addresses of a name, from the system or from the link.
    case resolved(PeerKey, id: UInt32, [IPAddress], fromSystem: Bool)
    case remove(PeerKey, @Sendable () -> Void)
    case stop(@Sendable () -> Void)
    /// Only for a recorded peer: tells when the application has called all that was recorded.
    case followRecording(@Sendable () -> Void)
    /// Only for a recorded peer: the rest of its take happens without further calls.
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

  /// Creates a loop whose messages a thread of another kind handles.
  init(mailbox: Mailbox<Message>) { self.mailbox = mailbox }

  deinit { _ = mailbox.post(.stop {}) }

  /// Ends the thread and all peers on it, and returns when that has happened.
  public func stop() async {
    await withCheckedContinuation { continuation in
      if !mailbox.post(.stop { continuation.resume() }) { continuation.resume() }
    }
  }

  /// A name for a peer that this loop has not used yet.
  func nextKey() -> PeerKey {
    lastKey.withLock { key in
      key += 1
      return key
    }
  }
}
