import DequeModule
import Dispatch
import Foundation
import Synchronization
import Tape

/// Reads a take ahead of its replay on a thread of its own: reading and hashing take about as long
/// as stepping the stack.
final class StepFeed: Sendable {
  private struct State {
    var chunks = Deque<TapeChunk>()
    /// Chunks that nobody needs any more, to be read into again.
    var spare: [TapeChunk] = []
    var fault: TapeFault?
    var isAtEnd = false
    var isCancelled = false
  }

  /// Held by the thread that reads, from its beginning to its end.
  private let reader: Mutex<TapeReader>
  private let state = Mutex(State())
  private let filled = DispatchSemaphore(value: 0)
  // It begins with 0 and is raised, because one that ends below its beginning is a fatal error.
  private let free = DispatchSemaphore(value: 0)

  /// How many steps are handed over at once, and how many of these chunks may be read ahead: few
  /// enough to stay in the cache.
  private static let chunkSteps = 128
  private static let depth = 8

  init(_ reader: sending TapeReader) {
    self.reader = Mutex(reader)
    for _ in 0..<StepFeed.depth { free.signal() }
    let thread = Thread { [self] in self.reader.withLock { read($0) } }
    thread.name = "take reader"
    thread.start()
  }

  private func read(_ reader: TapeReader) {
    var goesOn = true
    while goesOn {
      free.wait()
      if state.withLock({ $0.isCancelled }) { return }
      do throws(TapeFault) {
        let spare = state.withLock { $0.spare.popLast() } ?? TapeChunk()
        let chunk = try reader.next(steps: StepFeed.chunkSteps, reusing: spare)
        goesOn = state.withLock { state in
          if let chunk { state.chunks.append(chunk) } else { state.isAtEnd = true }
          return chunk != nil
        }
      } catch {
        state.withLock { $0.fault = error }
        goesOn = false
      }
      filled.signal()
    }
  }

  /// The next steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? {
    filled.wait()
    let (chunk, fault) = state.withLock { ($0.chunks.popFirst(), $0.fault) }
    if let chunk {
      free.signal()
      return chunk
    }
    if let fault { throw fault }
    return nil
  }

  /// Takes a chunk back that nobody needs any more: its memory is warm, and new memory is not.
  func takeBack(_ chunk: consuming TapeChunk) {
    let chunk = chunk
    state.withLock { if $0.spare.count < StepFeed.depth { $0.spare.append(chunk) } }
  }

  /// Ends the reading; nothing more must be asked for.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    free.signal()
  }
}
