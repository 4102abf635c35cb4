import CProcess
import FoundationEssentials
import Synchronization
import Tape

/// Tells what asks for them of signals, on a thread of its own.
///
/// Handlers are in place when this returns. A source of Dispatch has its own a moment later, and
/// takes signals only while its threads do.
enum SignalWatch {
  private struct State {
    var watched: Set<Int32> = []
    var reactions: [(numbers: [Int32], react: @Sendable (Int32) -> Void)] = []
  }

  private static let state = Mutex(State())

  /// Has something done at each signal among these numbers, besides what was asked for before.
  static func on(_ numbers: [Int32], do react: @escaping @Sendable (Int32) -> Void) {
    let isFirst = state.withLock { state in
      let isFirst = state.reactions.isEmpty
      state.reactions.append((numbers, react))
      for number in numbers where state.watched.insert(number).inserted {
        cprocess_signal_watch(number)
      }
      return isFirst
    }
    if isFirst { startWorker(named: "signals") { follow() } }
  }

  private static func follow() {
    while true {
      let number = cprocess_signal_next()
      guard number > 0 else { return }
      let reactions = state.withLock { $0.reactions }
      for reaction in reactions where reaction.numbers.contains(number) { reaction.react(number) }
    }
  }
}
