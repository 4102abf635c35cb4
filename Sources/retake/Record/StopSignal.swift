import Dispatch
import Foundation

/// Waits for Ctrl-C or a polite kill; a second one ends the process at once.
final class StopSignal: Sendable {
  /// Yields once when the user or the system asks to stop.
  let requests: AsyncStream<Void>

  init() {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    requests = stream
    for number in [SIGINT, SIGTERM] {
      // Dispatch puts a handler of its own in place, a moment later on a thread of its own. What
      // comes before that ends the process as it always would; ignoring it would lose it.
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      // The handler keeps the source alive for as long as the process lives.
      source.setEventHandler {
        _ = source
        signal(number, SIG_DFL)
        continuation.yield()
      }
      source.resume()
    }
  }

  /// Returns when a stop is asked for, a time has passed, or something else ended.
  ///
  /// - Parameters:
  ///   - seconds: the time limit; nil for none.
  ///   - ended: returns when there is nothing left to wait for.
  func wait(seconds: Double?, orUntil ended: @escaping @Sendable () async -> Void) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for await _ in self.requests { return }
      }
      if let seconds {
        group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
      }
      group.addTask { await ended() }
      _ = await group.next()
      group.cancelAll()
    }
  }
}
