import Dispatch
import Synchronization
import Tape

/// Parallel work on many takes, with results in the order of the takes.
package enum ParallelTakes {
  /// The maximum number of results per thread that wait for the result of an earlier take; it
  /// bounds memory while one take is slow.
  private static let ahead = 4

  /// Runs `work` for each index below `count`, and delivers its values on the caller's thread.
  ///
  /// - Parameters:
  ///   - jobs: the maximum number of threads.
  ///   - discard: receives values that will not be delivered, so that producers waiting for a
  ///     reader can stop.
  ///   - work: posts one value, when it is done or earlier.
  ///   - deliver: receives the values in index order; an error ends all work.
  package static func run<Value: Sendable, Failure: Error>(
    _ count: Int, jobs: Int, discard: @escaping @Sendable (Value) -> Void = { _ in },
    work: @escaping @Sendable (_ index: Int, _ post: (Value) -> Void) -> Void,
    deliver: (_ index: Int, Value) throws(Failure) -> Void
  ) throws(Failure) {
    try run(
      count, jobs: jobs, discard: discard, tool: {}, work: { _, index, post in work(index, post) },
      deliver: deliver)
  }

  /// Runs `work` for each index below `count`, passing it a tool that belongs to its thread.
  ///
  /// - Parameter tool: makes the tool, once on each thread.
  static func run<Tool, Value: Sendable, Failure: Error>(
    _ count: Int, jobs: Int, discard: @escaping @Sendable (Value) -> Void = { _ in },
    tool: @escaping @Sendable () -> Tool,
    work: @escaping @Sendable (_ tool: Tool, _ index: Int, _ post: (Value) -> Void) -> Void,
    deliver: (_ index: Int, Value) throws(Failure) -> Void
  ) throws(Failure) {
    let threads = max(1, min(jobs, count))
    let board = Board<Value>(count: count, room: threads * ahead, discard: discard)
    let done = DispatchSemaphore(value: 0)
    for _ in 0..<threads {
      startWorker(named: "takes") {
        let own = tool()
        while let index = board.next() { work(own, index) { board.post($0, at: index) } }
        done.signal()
      }
    }
    // All threads end before this function returns.
    defer {
      board.end(threads: threads)
      for _ in 0..<threads { done.wait() }
    }
    for index in 0..<count { try deliver(index, board.value(at: index)) }
  }

  /// Holds the next index, and values that were posted but not delivered.
  private final class Board<Value: Sendable>: Sendable {
    private struct State {
      var next = 0
      var values: [Int: Value] = [:]
      var isOver = false
    }

    private let count: Int
    private let state = Mutex(State())
    private let room = DispatchSemaphore(value: 0)
    private let posted = DispatchSemaphore(value: 0)
    private let discard: @Sendable (Value) -> Void

    init(count: Int, room free: Int, discard: @escaping @Sendable (Value) -> Void) {
      self.count = count
      self.discard = discard
      for _ in 0..<free { room.signal() }
    }

    /// Returns the next index as soon as there is room for its value; nil at the end.
    func next() -> Int? {
      room.wait()
      return state.withLock { state in
        guard state.next < count, !state.isOver else {
          // Wakes the next waiting thread, which ends as well.
          room.signal()
          return nil
        }
        defer { state.next += 1 }
        return state.next
      }
    }

    func post(_ value: Value, at index: Int) {
      let isWanted = state.withLock { state in
        if !state.isOver { state.values[index] = value }
        return !state.isOver
      }
      if isWanted { posted.signal() } else { discard(value) }
    }

    /// Waits for the value of an index and returns it, which makes room for another value.
    func value(at index: Int) -> Value {
      while true {
        if let value = state.withLock({ $0.values.removeValue(forKey: index) }) {
          room.signal()
          return value
        }
        posted.wait()
      }
    }

    func end(threads: Int) {
      let left = state.withLock { state in
        state.isOver = true
        defer { state.values = [:] }
        return state.values
      }
      for (_, value) in left { discard(value) }
      for _ in 0..<threads { room.signal() }
    }
  }
}

/// Passes one take's rows to the printing thread, through a bounded queue.
final class RowChannel: Sendable {
  /// A chunk of a query's result.
  enum Piece: Sendable {
    case columns([String])
    case rows([[Value]])
    /// The end of the result, with an error if it is incomplete.
    case end(TapeError?)
  }

  private struct State {
    var pieces: [Piece] = []
    var isCancelled = false
  }

  private static let depth = 4
  private let state = Mutex(State())
  private let room = DispatchSemaphore(value: 0)
  private let filled = DispatchSemaphore(value: 0)

  init() {
    for _ in 0..<RowChannel.depth { room.signal() }
  }

  /// Enqueues a piece once there is room; returns false after `cancel`.
  func put(_ piece: Piece) -> Bool {
    room.wait()
    let isWanted = state.withLock { state in
      guard !state.isCancelled else { return false }
      state.pieces.append(piece)
      return true
    }
    if isWanted { filled.signal() } else { room.signal() }
    return isWanted
  }

  /// Waits for the next piece.
  func next() -> Piece {
    filled.wait()
    defer { room.signal() }
    return state.withLock { $0.pieces.removeFirst() }
  }

  /// Stops the producer, even while it waits for room.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    room.signal()
  }
}
