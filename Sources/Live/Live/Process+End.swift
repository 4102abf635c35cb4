package import Foundation

extension Process {
  /// Ends a child process at once, whatever it does with signals.
  ///
  /// A child begins with the signals blocked that its parent's thread had blocked, as threads of a
  /// pool have; SIGTERM may never reach it.
  package func end() {
    if isRunning { kill(processIdentifier, SIGKILL) }
  }
}
