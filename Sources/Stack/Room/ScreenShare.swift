import Wire

/// The state of the process that shares a screen.
public enum ExtensionStatus: Int, Hashable, Sendable, Codable {
  /// There is no such process.
  case notAvailable = 0
  /// The process is running and waits for the room.
  case broadcastReady = 1
  /// The process's frames are sent.
  case broadcastStarted = 2
  /// The process has ended.
  case broadcastClosed = 3
}

/// An event from the process that shares a screen.
package enum ShareReport: Hashable, Sendable, Codable {
  /// The process connected to the room's socket.
  case connected
  /// The process sends frames of this size.
  case started(width: Int, height: Int)
  case paused
  case resumed
  /// The process ended normally and announced its end.
  case finished
  /// The process ended unexpectedly, with its exit code if known.
  case crashed(code: Int32?)
  /// The process could not be started, for this reason.
  case failed(String)
}

/// An order to the process's driver.
package enum ShareOrder: Hashable, Sendable, Codable {
  /// Listens for the process and starts it.
  case launch
  /// Informs the process that the room accepts its frames.
  case accept
  /// Ends the process immediately; `isLeaving` is true if the room is being left.
  case end(isLeaving: Bool)
}

/// Screen sharing by a separate process: its states, and the pause before the next process.
struct ScreenShare {
  /// The time that a process needs to clean up before the next one may start.
  static let pause = Interval.seconds(5)
  /// The time limit for the process to connect.
  private static let launchLimit = Interval.seconds(30)

  private(set) var status = ExtensionStatus.notAvailable
  private(set) var isRequested = false
  private(set) var isPaused = false
  /// The instant before which no other process may start.
  private(set) var restsUntil: Instant?
  /// The instant at which a process that has not connected counts as failed; nil if no process is
  /// expected.
  private(set) var deadline: Instant?

  /// Requests the start of a process that shares the screen.
  /// - Throws: `SignalingFailure` if a process is running, or if the last one needs more time to
  ///   clean up.
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

  /// Ends the process immediately, without an event; returns nil if no process was requested.
  mutating func stop(isLeaving: Bool, at now: Instant) -> ShareOrder? {
    guard isRequested else { return nil }
    rest(from: now)
    status = .notAvailable
    return .end(isLeaving: isLeaving)
  }

  /// Handles a report from the process; returns the status to report, the order to send and the
  /// failure, if any.
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

  /// Returns the failure of a process that did not connect in time; nil if there is none.
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
