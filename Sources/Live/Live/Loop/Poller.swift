import CSockets
import Tape

/// Waits for sockets, one timer and one wake-up (epoll).
final class Poller {
  /// Identifies a descriptor; never reused, so stale events find nothing.
  typealias Tag = UInt64

  /// The most events of one wait.
  static let eventsMaximum = 64

  private let descriptor: Int32
  private var events = [csockets_event](repeating: csockets_event(), count: eventsMaximum)

  init() throws(SystemError) {
    descriptor = try checked("create an epoll set", csockets_poll_create())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Starts watching a descriptor for reading.
  func add(_ watched: Int32, tag: Tag) throws(SystemError) {
    try checked(
      "watch a descriptor",
      csockets_poll_add(descriptor, watched, UInt32(CSOCKETS_READABLE), tag))
  }

  /// Watches a descriptor for reading, and for writing if wanted.
  func watch(_ watched: Int32, writing: Bool, tag: Tag) {
    let interest = UInt32(CSOCKETS_READABLE) | (writing ? UInt32(CSOCKETS_WRITABLE) : 0)
    _ = csockets_poll_modify(descriptor, watched, interest, tag)
  }

  /// Watches a descriptor only for errors, until it is watched again.
  func ignore(_ watched: Int32, tag: Tag) {
    _ = csockets_poll_modify(descriptor, watched, 0, tag)
  }

  /// Stops watching a descriptor.
  func remove(_ watched: Int32) { _ = csockets_poll_remove(descriptor, watched) }

  /// Waits for events, or polls without `waits`, and returns their number.
  func wait(waits: Bool) throws(SystemError) -> Int {
    Int(
      try checked(
        "wait for events",
        csockets_poll_wait(descriptor, &events, Int32(events.count), waits ? -1 : 0)))
  }

  /// The tag of an event of the last wait.
  func tag(at index: Int) -> Tag { events[index].tag }
}

/// A timer on CLOCK_MONOTONIC that wakes the loop (timerfd, nanoseconds).
final class WakeTimer {
  let descriptor: Int32
  private var armedNanoseconds: Int64?

  init() throws(SystemError) {
    descriptor = try checked("create a timer", csockets_timer_create())
  }

  deinit { _ = csockets_close(descriptor) }

  /// Lets the timer fire at an absolute time, possibly in the past, or earlier.
  ///
  /// Deadlines move with nearly every packet; firing too early once is cheaper than a system call
  /// for each.
  func arm(monotonicNanoseconds: Int64?) {
    guard let monotonicNanoseconds, monotonicNanoseconds < armedNanoseconds ?? .max else { return }
    armedNanoseconds = monotonicNanoseconds
    _ = csockets_timer_set(descriptor, monotonicNanoseconds)
  }

  /// Records that the timer has fired.
  func clear() {
    armedNanoseconds = nil
    _ = csockets_timer_clear(descriptor)
  }
}
