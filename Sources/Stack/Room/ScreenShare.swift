import Wire

/// The state of the process that shares a screen.
public enum ExtensionStatus: Int, Hashable, Sendable, Codable {
  /// There is none.
  case notAvailable = 0
  /// It is running and waits for the room.
  case broadcastReady = 1
  /// Its frames are sent.
  case broadcastStarted = 2
  /// It has ended.
  case broadcastClosed = 3
}

/// An event of the process that shares a screen.
package enum ShareReport: Hashable, Sendable, Codable {
  /// It connected to the room's socket.
  case connected
  /// It sends frames of this size.
  case started(width: Int, height: Int)
  case paused
  case resumed
  /// It ended as announced.
  case finished
  /// It ended unexpectedly, with its exit code if known.
  case crashed(code: Int32?)
  /// It could not be started, for the reason given.
  case failed(String)
}

/// An order to the driver of the process.
package enum ShareOrder: Hashable, Sendable, Codable {
  /// Listens for the process, and starts it.
  case launch
  /// Informs the process that the room wants its frames.
  case accept
  /// Ends it immediately; `isLeaving` says whether the room is being left.
  case end(isLeaving: Bool)
}

/// Screen sharing by a separate process: its states, and the pause between two.
struct ScreenShare {
  /// The process needs this long to clean up before the next one may start.
  static let pause = Interval.seconds(5)
  /// The time limit for connecting.
  private static let launchLimit = Interval.seconds(30)

  private(set) var status = ExtensionStatus.notAvailable
  private(set) var isRequested = false
  private(set) var isPaused = false
  /// No other process may start before this instant.
  private(set) var restsUntil: Instant?
  /// When a process that did not connect counts as failed.
  private(set) var deadline: Instant?

  /// Starts a process.
  /// - Throws: if it is too early, or there is one.
  mutating func request(at now: Instant) throws(SignalingFailure) -> ShareOrder {
    if isRequested {
      throw SignalingFailure(.invalidState, "the screen is shared already")
    }
    if let restsUntil, now < restsUntil {
      let wait = (restsUntil - now).milliseconds
      throw SignalingFailure(
        .invalidState, "the helper that shared before needs \(wait) ms more to clean up")
    }
    isRequested = true
    deadline = now + ScreenShare.launchLimit
    return .launch
  }

  /// Ends immediately, without an event.
  mutating func stop(isLeaving: Bool, at now: Instant) -> ShareOrder? {
    guard isRequested else { return nil }
    rest(from: now)
    status = .notAvailable
    return .end(isLeaving: isLeaving)
  }

  /// Handles a report of the process; returns the status to report, and an order.
  mutating func handle(_ report: ShareReport, at now: Instant) -> (
    status: ExtensionStatus?, order: ShareOrder?, failure: SignalingFailure?
  ) {
    guard isRequested else { return (nil, nil, nil) }
    switch report {
    case .connected:
      guard status == .notAvailable || status == .broadcastClosed else { return (nil, nil, nil) }
      deadline = nil
      status = .broadcastReady
      return (status, .accept, nil)
    case .started:
      guard status == .broadcastReady else { return (nil, nil, nil) }
      status = .broadcastStarted
      return (status, nil, nil)
    case .paused: isPaused = true
    case .resumed: isPaused = false
    case .finished:
      rest(from: now)
      status = .broadcastClosed
      return (status, nil, nil)
    case .crashed(let code):
      rest(from: now)
      status = .broadcastClosed
      let end = code.map { " with status \($0)" } ?? ""
      return (
        status, nil, SignalingFailure(.shareUnreachable, "the helper ended by itself\(end)")
      )
    case .failed(let reason):
      rest(from: now)
      status = .notAvailable
      return (status, nil, SignalingFailure(.shareUnreachable, reason))
    }
    return (nil, nil, nil)
  }

  /// Returns the failure of a process that did not connect in time.
  mutating func expire(at now: Instant) -> SignalingFailure? {
    guard let deadline, deadline <= now else { return nil }
    rest(from: now)
    status = .notAvailable
    return SignalingFailure(.shareRoomMissing, "the helper did not come in time")
  }

  private mutating func rest(from now: Instant) {
    (isRequested, isPaused, deadline) = (false, false, nil)
    restsUntil = now + ScreenShare.pause
  }
}
