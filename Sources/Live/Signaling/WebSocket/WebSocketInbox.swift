import NIOCore
import Room
import Synchronization

/// The unread messages of a WebSocket.
///
/// Bounded by the handler, which stops reading from the socket while the inbox is full.
final class WebSocketInbox: Sendable {
  private struct Waiter {
    let number: Int
    let continuation: CheckedContinuation<SignalingFrame?, Never>
  }

  private struct State {
    var messages = CircularBuffer<SignalingFrame>()
    var byteCount = 0
    var waiters: [Waiter] = []
    var waiterCount = 0
    var cancelled: Set<Int> = []
    var closure: WebSocketClosure?
    var endings: [CheckedContinuation<WebSocketClosure, Never>] = []
    /// Whether the handler has stopped reading.
    var isHeld = false
  }

  private let state = Mutex(State())
  private let byteMaximum: Int
  private let messageMaximum: Int

  init(_ limits: WebSocketLimits) {
    byteMaximum = limits.unreadBytes
    messageMaximum = limits.unreadMessages
  }

  /// How the connection ended; nil while it is open.
  var closure: WebSocketClosure? { state.withLock { $0.closure } }

  /// Adds a message, or passes it to a waiting reader.
  func put(_ message: SignalingFrame) {
    let waiter = state.withLock { state -> Waiter? in
      guard state.closure == nil else { return nil }
      if !state.waiters.isEmpty { return state.waiters.removeFirst() }
      state.messages.append(message)
      state.byteCount += message.byteCount
      return nil
    }
    waiter?.continuation.resume(returning: message)
  }

  /// Whether reading has to stop; a reader will resume it.
  func holdIfFull() -> Bool {
    state.withLock { state in
      state.isHeld = state.byteCount >= byteMaximum || state.messages.count >= messageMaximum
      return state.isHeld
    }
  }

  /// Ends the messages; unread ones can still be received.
  func end(_ closure: WebSocketClosure) {
    let (waiters, endings) = state.withLock { state in
      guard state.closure == nil else {
        return ([Waiter](), [CheckedContinuation<WebSocketClosure, Never>]())
      }
      state.closure = closure
      defer { (state.waiters, state.endings) = ([], []) }
      return (state.waiters, state.endings)
    }
    for waiter in waiters { waiter.continuation.resume(returning: nil) }
    for ending in endings { ending.resume(returning: closure) }
  }

  /// The next message; nil after the last one, or if the task is cancelled.
  /// - Parameter resume: is called when a full inbox has room again.
  func next(resume: () -> Void) async -> SignalingFrame? {
    let number = state.withLock { state in
      state.waiterCount += 1
      return state.waiterCount
    }
    let message = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isSettled, message, isRoomy) = receive(number, continuation)
        if isRoomy { resume() }
        if isSettled { continuation.resume(returning: message) }
      }
    } onCancel: {
      cancel(number)
    }
    // A wait that was cancelled after it got its message left its number here.
    state.withLock { _ = $0.cancelled.remove(number) }
    return message
  }

  private func receive(_ number: Int, _ continuation: CheckedContinuation<SignalingFrame?, Never>)
    -> (isSettled: Bool, message: SignalingFrame?, isRoomy: Bool)
  {
    state.withLock { state in
      if state.cancelled.remove(number) != nil { return (true, nil, false) }
      guard let message = state.messages.popFirst() else {
        if state.closure != nil { return (true, nil, false) }
        state.waiters.append(Waiter(number: number, continuation: continuation))
        return (false, nil, false)
      }
      state.byteCount -= message.byteCount
      let isRoomy =
        state.isHeld && state.byteCount <= byteMaximum / 2
        && state.messages.count <= messageMaximum / 2
      if isRoomy { state.isHeld = false }
      return (true, message, isRoomy)
    }
  }

  private func cancel(_ number: Int) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.waiters.firstIndex(where: { $0.number == number }) else {
        // It was cancelled before it started waiting, or already has its message.
        state.cancelled.insert(number)
        return nil
      }
      return state.waiters.remove(at: index)
    }
    waiter?.continuation.resume(returning: nil)
  }

  /// Waits for the end of the connection.
  func ending() async -> WebSocketClosure {
    await withCheckedContinuation { continuation in
      let closure = state.withLock { state -> WebSocketClosure? in
        if state.closure == nil { state.endings.append(continuation) }
        return state.closure
      }
      if let closure { continuation.resume(returning: closure) }
    }
  }
}
