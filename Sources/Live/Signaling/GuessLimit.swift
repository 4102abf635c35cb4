import NIOCore
import Synchronization

/// Limits how fast each client can guess a token: ten times a second, after twenty guesses at once.
///
/// Further guesses are delayed, and beyond a limit they are refused unchecked.
final class GuessLimit: Sendable {
  private static let interval = Duration.milliseconds(100)
  private static let burst = interval * 20
  /// The longest delay of a response.
  static let longestDelay = Duration.seconds(1)
  /// For how many clients guesses are counted separately.
  private static let clientsMaximum = 1_000

  /// When each client's delayed guesses are worked off.
  private let turns = Mutex<[String: ContinuousClock.Instant]>([:])

  /// Whether a client has too many delayed guesses; false for nil.
  func isExhausted(by client: NIOCore.SocketAddress?) -> Bool {
    guard let client else { return false }
    return turns.withLock { turns in
      guard let turn = turns[GuessLimit.name(of: client)] else { return false }
      return GuessLimit.delay(until: turn, from: .now) > GuessLimit.longestDelay
    }
  }

  /// Counts a wrong guess; returns the delay of its response, or nil if too many are delayed.
  func delay(ofWrongGuessBy client: NIOCore.SocketAddress) -> Duration? {
    let now = ContinuousClock.now
    return turns.withLock { turns in
      var name = GuessLimit.name(of: client)
      if turns[name] == nil, turns.count >= GuessLimit.clientsMaximum {
        turns = turns.filter { $0.value > now }
        if turns.count >= GuessLimit.clientsMaximum { name = "" }
      }
      let turn = max(turns[name] ?? now, now) + GuessLimit.interval
      let delay = GuessLimit.delay(until: turn, from: now)
      // It stays one step beyond the limit until time passes.
      if delay > GuessLimit.longestDelay + GuessLimit.interval { return nil }
      turns[name] = turn
      return delay > GuessLimit.longestDelay ? nil : max(.zero, delay)
    }
  }

  private static func delay(
    until turn: ContinuousClock.Instant, from now: ContinuousClock.Instant
  ) -> Duration {
    now.duration(to: turn) - burst
  }

  /// All loopback addresses are one client.
  private static func name(of client: NIOCore.SocketAddress) -> String {
    client.isLoopback ? "loopback" : client.ipAddress ?? ""
  }
}

extension HTTPResponse {
  /// The response to too many guesses.
  static var tooManyGuesses: HTTPResponse {
    var response = HTTPResponse.problem(
      429, "too many wrong tokens came from this address; try again in a few seconds")
    response.headers.append(("Retry-After", "5"))
    return response
  }
}
