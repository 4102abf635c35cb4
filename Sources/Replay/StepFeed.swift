import Dispatch
import Foundation
import Synchronization
import Tape

/// Reads a take ahead of its replay on a thread of its own: reading and hashing take about as long
/// as stepping the stack.
final class StepFeed: Sendable {
  private struct State {
    var chunks: [TapeChunk] = []
    var fault: TapeFault?
    var isAtEnd = false
    var isCancelled = false
  }

  /// The reader is made by one thread and used by the other one from then on.
  private struct Handover: @unchecked Sendable {
    let reader: TapeReader
  }

  private let state = Mutex(State())
  private let filled = DispatchSemaphore(value: 0)
  private let free = DispatchSemaphore(value: 0)

  /// How many chunks may wait for the replay.
  private static let waitingMaximum = 8

  init(_ reader: TapeReader) {
    // Dispatch traps when a semaphore goes away below the value that it was made with, as it would
    // when a replay ends before its take; so the places are given out one by one.
    for _ in 0..<StepFeed.waitingMaximum { free.signal() }
    let handover = Handover(reader: reader)
    let thread = Thread { [self] in read(handover.reader) }
    thread.name = "take reader"
    thread.start()
  }

  private func read(_ reader: TapeReader) {
    var goesOn = true
    while goesOn {
      free.wait()
      if state.withLock({ $0.isCancelled }) { return }
      do throws(TapeFault) {
        let chunk = try reader.next()
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
    let (chunk, fault) = state.withLock { state in
      (state.chunks.isEmpty ? nil : state.chunks.removeFirst(), state.fault)
    }
    if let chunk {
      free.signal()
      return chunk
    }
    if let fault { throw fault }
    return nil
  }

  /// Ends the reading; nothing more must be asked for.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    free.signal()
  }
}
