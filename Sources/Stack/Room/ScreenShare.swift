import Wire

/// How far a helper process that shares a screen is.
public enum ExtensionStatus: Int, Hashable, Sendable, Codable {
  /// There is none.
  case notAvailable = 0
  /// It runs and waits for the room.
  case broadcastReady = 1
  /// Its frames are sent.
  case broadcastStarted = 2
  /// It has ended.
  case broadcastClosed = 3
}

/// What happens to the process that shares a screen.
package enum ShareReport: Hashable, Sendable, Codable {
  /// It has connected to the socket of the room.
  case connected
  /// It sends frames of this size.
  case started(width: Int, height: Int)
  case paused
  case resumed
  /// It has ended, as it said it would.
  case finished
  /// It is gone without a word; the number with which the process ended, where that is known.
  case crashed(code: Int32?)
  /// It could not be started; why, in words.
  case failed(String)
}

/// What is asked of whoever drives the helper.
package enum ShareOrder: Hashable, Sendable, Codable {
  /// Listens for the helper, and starts it.
  case launch
  /// Tells the helper that the room wants its frames.
  case accept
  /// Ends it at once; whether because the room is left.
  case end(isLeaving: Bool)
}

/// Sharing of a screen by a process of its own: its states, and the pause between two.
struct ScreenShare {
  /// A helper needs this long to clean up before the next one may begin.
  static let pause = Interval.seconds(5)
  /// How long it may take to connect.
  private static let launchLimit = Interval.seconds(30)

  private(set) var status = ExtensionStatus.notAvailable
  private(set) var isRequested = false
  private(set) var isPaused = false
  /// Before this instant no other one may begin.
  private(set) var restsUntil: Instant?
  /// When a helper that was asked for has not come.
  private(set) var deadline: Instant?

  /// Asks for a helper.
  ///
  /// - Throws: it is too early, or there is one.
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

  /// Ends at once; nothing is told of it.
  mutating func stop(isLeaving: Bool, at now: Instant) -> ShareOrder? {
    guard isRequested else { return nil }
    rest(from: now)
    status = .notAvailable
    return .end(isLeaving: isLeaving)
  }

  /// Handles what happened to the helper: the status that is told, and what is asked of it.
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

  /// A helper that was asked for has not come.
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
