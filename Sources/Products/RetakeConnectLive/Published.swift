import Synchronization

/// An observable property, in place of Combine's wrapper.
///
/// It may be set and read on any thread.
@propertyWrapper public final class Published<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var readers: [Int: AsyncStream<Value>.Continuation] = [:]
    var last = 0
  }

  private let state: Mutex<State>

  /// Creates the property with an initial value.
  public init(wrappedValue: Value) { state = Mutex(State(value: wrappedValue)) }

  deinit { for reader in state.withLock({ $0.readers.values.map(\.self) }) { reader.finish() } }

  /// The value.
  public var wrappedValue: Value {
    get { state.withLock { $0.value } }
    set {
      let readers = state.withLock { state in
        state.value = newValue
        return Array(state.readers.values)
      }
      for reader in readers { reader.yield(newValue) }
    }
  }

  /// The current value and every later one; each access returns a stream of its own.
  public var projectedValue: AsyncStream<Value> {
    AsyncStream { continuation in
      state.withLock { state in
        state.last += 1
        let id = state.last
        state.readers[id] = continuation
        continuation.onTermination = { [weak self] _ in
          // Not within this call, which holds the lock.
          Task { self?.state.withLock { $0.readers[id] = nil } }
        }
        continuation.yield(state.value)
      }
    }
  }
}
