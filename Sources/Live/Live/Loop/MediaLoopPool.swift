import Synchronization
public import Tape

/// A fixed number of loops shared by sessions, so that not every call needs a thread.
public final class MediaLoopPool: Sendable {
  private let loops: [MediaLoop]
  private let turn = Atomic<Int>(0)

  /// Starts the threads.
  /// - Parameter count: at least one; the number of processors is right for media.
  public init(count: Int) throws(SystemError) {
    var loops: [MediaLoop] = []
    for _ in 0..<max(1, count) { loops.append(try MediaLoop()) }
    self.loops = loops
  }

  /// The loop for another session, in rotation.
  public func next() -> MediaLoop {
    let turn = turn.add(1, ordering: .relaxed).oldValue
    return loops[Int(UInt(bitPattern: turn) % UInt(loops.count))]
  }

  /// Stops all threads with their peers, and returns once that is done.
  public func stop() async { for loop in loops { await loop.stop() } }
}
