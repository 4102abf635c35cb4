/// A deterministic state machine: the shape of the client stack and of each of its layers.
///
/// A machine has no clock, sockets, threads or randomness of its own. Everything that could differ
/// between two runs arrives as an input with its instant, and one call turns that input completely
/// into outputs. Feeding the same inputs again gives the same outputs and deadlines: this is what
/// makes a take replayable.
public protocol Machine: ~Copyable {
  associatedtype Input
  /// What the machine requests or reports.
  associatedtype Output

  /// Applies one input at an instant and appends all resulting outputs.
  ///
  /// Instants never decrease; the driver ensures that.
  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>)

  /// When the machine needs its deadline input, if at all.
  var deadline: Instant? { get }
}

/// The outputs of one step, in order.
///
/// A driver either removes all of them, or one at a time with `next`, which moves the output so
/// that its bytes can be changed in place.
@frozen
public struct Outbox<Output> {
  /// Waiting outputs are at `head..<tail`; the other slots are empty and kept for the next steps.
  @usableFromInline
  var places: [Output?] = []
  @usableFromInline
  var head = 0
  @usableFromInline
  var tail = 0

  /// Creates an empty outbox.
  @inlinable
  public init() {}

  /// Whether nothing waits in the outbox.
  @inlinable
  public var isEmpty: Bool { head == tail }

  /// The waiting outputs, oldest first.
  @inlinable
  public var outputs: [Output] { places[head..<tail].compactMap { $0 } }

  /// Adds an output.
  @inlinable
  public mutating func append(_ output: consuming Output) {
    if tail < places.count {
      places[tail] = output
    } else {
      places.append(output)
    }
    tail += 1
  }

  /// Removes the oldest output; outputs appended meanwhile come after the others.
  @inlinable
  public mutating func next() -> Output? {
    guard head < tail else {
      removeAll()
      return nil
    }
    defer { head += 1 }
    return places[head].take()
  }

  /// Empties the outbox and keeps its storage.
  @inlinable
  public mutating func removeAll() {
    while head < tail {
      places[head] = nil
      head += 1
    }
    head = 0
    tail = 0
  }

  /// Returns the outputs and leaves the outbox empty.
  @inlinable
  public mutating func drain() -> [Output] {
    guard head < tail else {
      removeAll()
      return []
    }
    return [Output](capacity: tail - head) { taken in
      // Moved, because copying an output retains every part of it.
      while let output = next() { taken.append(output) }
    }
  }
}

/// Returns the earlier of two deadlines; nil means none.
@inlinable
package func earliest(_ left: Instant?, _ right: Instant?) -> Instant? {
  guard let left else { return right }
  guard let right else { return left }
  return min(left, right)
}
