import Dispatch
import Synchronization
import Tape

/// Work on a take that another thread does at the same time.
final class Aside<Value: Sendable>: Sendable {
  private let work: @Sendable () throws(TapeError) -> Value
  private let group = DispatchGroup()
  private let result = Mutex<Result<Value, TapeError>?>(nil)

  /// Begins the work.
  init(_ work: @escaping @Sendable () throws(TapeError) -> Value) {
    self.work = work
    // A queue of its own has a thread of its own, also while all others of the pool wait.
    DispatchQueue(label: "aside").async(group: group) { [self] in
      let result = Result { () throws(TapeError) in try work() }
      self.result.withLock { $0 = result }
    }
  }

  /// Waits for what comes of it.
  func value() throws(TapeError) -> Value {
    group.wait()
    guard let result = result.withLock({ $0 }) else { return try work() }
    return try result.get()
  }
}
