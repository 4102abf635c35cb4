import Foundation
import Synchronization

/// Ctrl-C for work that can be left in the middle: it is noticed, and the process goes on.
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

  /// Forgets that Ctrl-C came.
  static func forget() { wasAsked.store(false, ordering: .relaxed) }
}
