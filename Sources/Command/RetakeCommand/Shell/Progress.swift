import Dispatch
import FoundationEssentials
import Glibc
import Replay
import Synchronization

/// A line on standard error that follows work once it has taken a second; silent when nobody
/// watches.
final class Progress: Sendable {
  private struct State {
    var shownAt: ContinuousClock.Instant?
    var hasLine = false
    var isOver = false
  }

  private let what: String
  private let seconds: Double?
  private let delay: Duration
  private let isVisible = isatty(STDERR_FILENO) != 0
  private let begin = ContinuousClock.now
  private let state = Mutex(State())

  /// Work that is over by then needs no line.
  private static let usualDelay = Duration.seconds(1)
  /// The eye follows no faster.
  private static let interval = Duration.milliseconds(100)

  /// Creates the line of some work, which may be known to take so many seconds.
  init(_ what: String, seconds: Double? = nil, after delay: Duration = Progress.usualDelay) {
    self.what = what
    self.seconds = seconds
    self.delay = delay
  }

  /// Shows the line four times a second until the task is cancelled.
  func run(_ detail: @Sendable () -> String) async {
    while !Task.isCancelled {
      show("\(time), \(detail())")
      guard (try? await Task.sleep(for: .milliseconds(250))) != nil else { return }
    }
  }

  /// `recording: 1.2 of 10 s`.
  private var time: String {
    let limit = seconds.map { " of \(decimal($0, 0))" } ?? ""
    return "\(what): \(decimal(begin.duration(to: .now).seconds, 1))\(limit) s"
  }

  /// Shows a line in place of the last one.
  func show(_ text: @autoclosure () -> String) {
    guard isVisible else { return }
    let now = ContinuousClock.now
    guard now - begin >= delay else { return }
    state.withLock { state in
      guard !state.isOver, state.shownAt.map({ now - $0 >= Progress.interval }) ?? true else {
        return
      }
      state.shownAt = now
      state.hasLine = true
      Output.replaceLine(with: text())
    }
  }

  /// Takes the line away.
  func clear() {
    above {}
  }

  /// Takes the line away for good.
  func end() {
    clear()
    state.withLock { $0.isOver = true }
  }

  /// Does something for which the line has to be away, such as printing another.
  func above(_ body: () -> Void) {
    state.withLock { state in
      if state.hasLine { Progress.clearLine() }
      state.hasLine = false
      body()
    }
  }

  /// Takes away whatever line stands on the terminal.
  static func clearLine() {
    if isatty(STDERR_FILENO) != 0 { Output.replaceLine(with: "") }
  }

  // MARK: Work that tells nothing

  /// Does some work, and shows how long it has taken and more.
  func follow<Value>(
    telling detail: @escaping @Sendable () -> String = { "" }, _ work: () throws -> Value
  ) rethrows -> Value {
    guard isVisible else { return try work() }
    let timer = DispatchSource.makeTimerSource()
    timer.setEventHandler { [self] in
      let more = detail()
      show(time + (more.isEmpty ? "" : ", \(more)"))
    }
    timer.schedule(deadline: .now() + 1, repeating: .milliseconds(250))
    timer.activate()
    defer {
      timer.cancel()
      clear()
      state.withLock { $0.isOver = true }
    }
    return try work()
  }
}

extension Duration {
  /// The duration in seconds.
  package var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
