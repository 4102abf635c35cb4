import FoundationEssentials
import Synchronization
import Tape

/// Reads a take ahead of its replay on a thread of its own: reading and hashing take about as long
/// as stepping the stack.
final class StepFeed: Sendable {
  /// Held by the thread that reads, from its beginning to its end.
  private let reader: Mutex<TapeReader>
  private let queue = BoundedQueue<Result<TapeChunk, TapeFault>>(depth: StepFeed.depth)
  /// Chunks that nobody needs any more, to be read into again.
  private let spare = Mutex<[TapeChunk]>([])

  /// How many steps are handed over at once, and how many of these chunks may be read ahead: few
  /// enough to stay in the cache.
  private static let chunkSteps = 128
  private static let depth = 8

  init(_ reader: sending TapeReader) {
    self.reader = Mutex(reader)
    startWorker(named: "take reader") { [self] in self.reader.withLock { read($0) } }
  }

  private func read(_ reader: TapeReader) {
    while queue.waitForRoom() {
      do throws(TapeFault) {
        let warm = spare.withLock { $0.popLast() } ?? TapeChunk()
        guard let chunk = try reader.next(steps: StepFeed.chunkSteps, reusing: warm) else {
          return queue.finish()
        }
        queue.add(.success(chunk))
      } catch {
        return queue.add(.failure(error))
      }
    }
  }

  /// The next steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? { try queue.dequeue()?.get() }

  /// Takes a chunk back that nobody needs any more: its memory is warm, and new memory is not.
  func recycle(_ chunk: consuming TapeChunk) {
    let chunk = chunk
    spare.withLock { if $0.count < StepFeed.depth { $0.append(chunk) } }
  }

  /// Ends the reading; nothing more must be asked for.
  func cancel() { queue.cancel() }
}
