import FoundationEssentials
import Glibc
import Synchronization

/// Ctrl-C for work that can be left in the middle: it is noticed, and the process continues.
enum Interruption {
  private static let wasAsked = Atomic(false)
  private static let noticed = Atomic(false)

  /// Whether Ctrl-C came since it was last forgotten.
  static var isAsked: Bool { wasAsked.load(ordering: .relaxed) }

  /// Whether Ctrl-C is noticed at all.
  static var isNoticed: Bool { noticed.load(ordering: .relaxed) }

  /// Notices Ctrl-C from now on.
  static func notice() {
    // What the handler needs is made before it is in place.
    noticed.store(true, ordering: .relaxed)
    forget()
    signal(SIGINT) { _ in Interruption.wasAsked.store(true, ordering: .relaxed) }
  }

  /// Lets signals reach the thread of the caller: a process inherits those that were blocked in the
  /// thread that started it, and Ctrl-C would wait for ever.
  static func unblock(_ numbers: [Int32]) {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in numbers { sigaddset(&signals, number) }
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// Forgets that Ctrl-C came.
  static func forget() { wasAsked.store(false, ordering: .relaxed) }
}
