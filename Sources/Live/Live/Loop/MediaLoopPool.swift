import Synchronization
public import Tape

/// A fixed number of loops that sessions share, so that as many calls as there are need no thread
/// each.
public final class MediaLoopPool: Sendable {
  private let loops: [MediaLoop]
  private let turn = Atomic<Int>(0)

  /// Starts the threads.
  ///
  /// - Parameter count: how many, at least one; as many as there are processors is right for media.
  public init(count: Int) throws(SystemError) {
    var loops: [MediaLoop] = []
    for _ in 0..<max(1, count) { loops.append(try MediaLoop()) }
    self.loops = loops
  }

  /// The loop for one more session: each in turn.
  public func next() -> MediaLoop {
    let turn = turn.add(1, ordering: .relaxed).oldValue
    return loops[Int(UInt(bitPattern: turn) % UInt(loops.count))]
  }

  /// Ends all threads and the peers on them, and returns when that has happened.
  public func stop() async { for loop in loops { await loop.stop() } }
}
