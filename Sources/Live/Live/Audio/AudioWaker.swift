import AudioSession
import Dispatch
import Synchronization
import Wire

/// Wakes an audio session when something is due or was reported.
final class AudioWaker: Sendable {
  private struct State {
    var due: Instant?
    /// Until when the thread sleeps; nil for no limit.
    var sleepsUntil: Instant?
    var events: [AudioDeviceEvent] = []
    var isEnded = false
  }

  private let state = Mutex(State())
  private let signal = DispatchSemaphore(value: 0)
  private let clock: TakeClock

  private static let eventsMaximum = 1_024

  init(_ clock: TakeClock) { self.clock = clock }

  /// Sets when the session is next woken.
  func set(_ due: Instant?) {
    let isEarlier = state.withLock { state in
      state.due = due
      guard let due else { return false }
      return state.sleepsUntil.map { due < $0 } ?? true
    }
    if isEarlier { signal.signal() }
  }

  /// Queues an event for the thread.
  func report(_ event: AudioDeviceEvent) {
    state.withLock { if $0.events.count < AudioWaker.eventsMaximum { $0.events.append(event) } }
    signal.signal()
  }

  func end() {
    state.withLock { $0.isEnded = true }
    signal.signal()
  }

  /// Waits and returns events in order and whether a deadline was reached; nil at the end.
  func next() -> (events: [AudioDeviceEvent], isDue: Bool)? {
    while true {
      let now = clock.now
      let (events, due, isEnded) = state.withLock { state in
        defer { state.events = [] }
        state.sleepsUntil = state.due
        return (state.events, state.due, state.isEnded)
      }
      if isEnded { return nil }
      let isDue = due.map { $0 <= now } ?? false
      if isDue { state.withLock { $0.due = nil } }
      if isDue || !events.isEmpty { return (events, isDue) }
      if let due {
        _ = signal.wait(timeout: .now() + .nanoseconds(Int((due - now).nanoseconds)))
      } else {
        signal.wait()
      }
    }
  }
}
