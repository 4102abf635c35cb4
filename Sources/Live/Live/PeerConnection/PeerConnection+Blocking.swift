import Dispatch
import ICE
import JSEP
package import Peer
import Secure
import Synchronization
import Wire

/// Something reported to a listener, in order.
package enum PeerConnectionNews: Sendable {
  /// An event, as in the event streams.
  case event(PeerConnectionEvent)
  /// A message of a data channel; while there is a listener, none waits in `DataChannel.messages`.
  case message(DataChannel, DataChannelMessage)
}

// The connection for an interface whose methods do not await: calls that block, replies and news
// through closures. All closures run on the loop's thread and must return at once.
extension PeerConnection {
  /// Makes a call and blocks the calling thread until the reply.
  ///
  /// The loop's thread never waits for the caller, so the wait ends. Closures that run on the
  /// loop's thread must not call this: the loop would wait for itself.
  /// - Parameter replied: runs on the loop's thread before anything that follows from later steps.
  @discardableResult
  package func performAndWait(
    _ call: PeerCall, replied: @escaping @Sendable (PeerReply) -> Void = { _ in }
  ) throws(PeerError) -> PeerReply {
    let answer = BlockingReply()
    perform(call) { reply in
      replied(reply)
      answer.complete(reply)
    }
    let reply = answer.wait()
    if case .failure(let error) = reply { throw error }
    return reply
  }

  /// Makes a call; its reply goes to the closure, after all other outputs of the call's step.
  package func perform(_ call: PeerCall, complete: @escaping @Sendable (PeerReply) -> Void) {
    if !loop.mailbox.post(.call(key, call, complete)) { complete(.failure(.ended)) }
  }

  /// Sends a message; the reply is delayed while much is buffered.
  package func send(_ message: DataMessage, complete: @escaping @Sendable (PeerReply) -> Void) {
    if !loop.mailbox.post(.send(key, message, complete)) { complete(.failure(.ended)) }
  }

  /// A closed connection without a loop: all its calls fail.
  package static var ended: PeerConnection {
    let observers = PeerObservers()
    for (machine, state) in [
      ("signaling", SignalingState.closed.rawValue),
      ("ice-connection", ICEConnectionState.closed.rawValue),
      ("connection", ConnectionState.closed.rawValue),
    ] {
      observers.observe(
        .state(StateTransition(machine: machine, from: "new", to: state)), at: .zero)
    }
    observers.finish()
    return PeerConnection(
      label: "", number: 0, loop: MediaLoop(mailbox: .closed), key: 0, observers: observers)
  }

  /// Closes the connection like `close`, and blocks until that is done.
  package func closeAndWait() {
    _ = try? performAndWait(.close)
    observers.finish()
  }

  /// Calls a closure with all news until the connection is closed, after existing listeners.
  package func listen(_ listener: @escaping @Sendable (PeerConnectionNews) -> Void) {
    observers.listen(listener)
  }
}

/// A reply that one thread sets and another waits for.
private final class BlockingReply: Sendable {
  private let reply = Mutex<PeerReply?>(nil)
  private let isGiven = DispatchSemaphore(value: 0)

  func complete(_ reply: PeerReply) {
    self.reply.withLock { $0 = reply }
    isGiven.signal()
  }

  func wait() -> PeerReply {
    isGiven.wait()
    return reply.withLock { $0 } ?? .failure(.ended)
  }
}
