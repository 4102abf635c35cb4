/// A deterministic state machine: the shape of the client stack and of each of its layers.
///
/// A machine has no clock, sockets, threads or randomness of its own. All that could differ
/// between two runs comes in as an input with its instant, and one call drains that input
/// completely into outputs. Feeding the same inputs again gives the same outputs and deadlines:
/// this is what makes a take replayable.
public protocol Machine: ~Copyable {
  /// What can happen to the machine.
  associatedtype Input
  /// What the machine wants done or tells.
  associatedtype Output

  /// Applies one input at an instant and appends everything that follows from it to the outbox.
  ///
  /// Instants never go back; the driver sees to it.
  mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>)

  /// When the machine wants its deadline input next, or nil when it waits for something else.
  var deadline: Instant? { get }
}

/// The outputs of one step in the order in which they were made.
///
/// A driver either takes them all, or takes one at a time with `next`, which moves the output out
/// so that its bytes can be changed in place.
@frozen
public struct Outbox<Output> {
  /// The outputs that wait stand from `head` to `tail`; the other places are empty and kept,
  /// because each step needs them again.
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

  /// What waits in the outbox, first made first.
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

  /// Moves the first waiting output out; outputs that are added meanwhile come after the others.
  @inlinable
  public mutating func next() -> Output? {
    guard head < tail else {
      removeAll()
      return nil
    }
    defer { head += 1 }
    return places[head].take()
  }

  /// Empties the outbox and keeps its storage for the next step.
  @inlinable
  public mutating func removeAll() {
    while head < tail {
      places[head] = nil
      head += 1
    }
    head = 0
    tail = 0
  }

  /// Gives the outputs away and leaves the outbox empty.
  @inlinable
  public mutating func take() -> [Output] {
    guard head < tail else {
      removeAll()
      return []
    }
    return [Output](capacity: tail - head) { taken in
      // Moved, because a copy of an output counts every part of it.
      while let output = next() { taken.append(output) }
    }
  }
}

/// The earlier of two deadlines, where nil means that none is wanted.
@inlinable
package func earliest(_ left: Instant?, _ right: Instant?) -> Instant? {
  guard let left else { return right }
  guard let right else { return left }
  return min(left, right)
}
