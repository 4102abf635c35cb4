import Foundation
import Synchronization

/// A line on standard error that follows long work; silent when nobody watches.
final class Progress: Sendable {
  private let what: String
  private let seconds: Double?
  private let isVisible = isatty(STDERR_FILENO) != 0
  private let begin = ContinuousClock.now

  /// Creates the line of some work, which may be known to take so many seconds.
  init(_ what: String, seconds: Double? = nil) {
    self.what = what
    self.seconds = seconds
  }

  /// Shows the line four times a second until the task is cancelled.
  func run(_ detail: @Sendable () -> String) async {
    while !Task.isCancelled {
      let passed = begin.duration(to: .now)
      let time = Double(passed.components.seconds) + Double(passed.components.attoseconds) / 1e18
      let limit = seconds.map { String(format: " of %.0f", $0) } ?? ""
      show("\(what): \(String(format: "%.1f", time))\(limit) s, \(detail())")
      guard (try? await Task.sleep(for: .milliseconds(250))) != nil else { return }
    }
  }

  /// Shows a line in place of the last one.
  func show(_ text: String) {
    guard isVisible else { return }
    Output.note("\r\u{1b}[K\(text)")
  }

  /// Takes the line away.
  func clear() {
    guard isVisible else { return }
    Output.note("\r\u{1b}[K")
  }
}
