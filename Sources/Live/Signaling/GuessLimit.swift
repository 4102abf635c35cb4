import NIOCore
import Synchronization

/// How fast each client may guess at a token: ten times a second, after twenty guesses at once.
///
/// Further ones wait for their turn, and whoever has more of them waiting is not heard at all.
final class GuessLimit: Sendable {
  private static let interval = Duration.milliseconds(100)
  private static let burst = interval * 20
  /// How long an answer is held back at most.
  static let longestDelay = Duration.seconds(1)
  /// Of how many clients guesses are counted one by one.
  private static let clientsMaximum = 1_000

  /// When a client that guesses at the allowed pace would have got so far.
  private let turns = Mutex<[String: ContinuousClock.Instant]>([:])

  /// Whether a client has more wrong guesses waiting than are answered; false for nil.
  func isExhausted(by client: NIOCore.SocketAddress?) -> Bool {
    guard let client else { return false }
    return turns.withLock { turns in
      guard let turn = turns[GuessLimit.name(of: client)] else { return false }
      return GuessLimit.delay(until: turn, from: .now) > GuessLimit.longestDelay
    }
  }

  /// Counts a wrong guess; for how long its answer is held back, or nil when too many wait already.
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
      // It is one step beyond then, and stays there: time alone helps.
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

  /// All addresses of loopback are one client.
  private static func name(of client: NIOCore.SocketAddress) -> String {
    client.isLoopback ? "loopback" : client.ipAddress ?? ""
  }
}

extension HTTPResponse {
  /// The answer to who guesses too fast.
  static var tooManyGuesses: HTTPResponse {
    var response = HTTPResponse.problem(
      429, "too many wrong tokens came from this address; try again in a few seconds")
    response.headers.append(("Retry-After", "5"))
    return response
  }
}
