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
@frozen
public struct Outbox<Output> {
  /// The outputs, first made first.
  public private(set) var outputs: [Output] = []

  /// Creates an empty outbox.
  @inlinable
  public init() {}

  /// Whether the step gave no output so far.
  @inlinable
  public var isEmpty: Bool { outputs.isEmpty }

  /// Adds an output.
  @inlinable
  public mutating func append(_ output: Output) { _append(output) }

  @usableFromInline
  mutating func _append(_ output: Output) { outputs.append(output) }

  /// Empties the outbox and keeps its storage for the next step.
  public mutating func removeAll() { outputs.removeAll(keepingCapacity: true) }

  /// Gives the outputs away and leaves the outbox empty.
  public mutating func take() -> [Output] {
    var taken: [Output] = []
    swap(&taken, &outputs)
    return taken
  }
}

/// The earlier of two deadlines, where nil means that none is wanted.
@inlinable
public func earliest(_ left: Instant?, _ right: Instant?) -> Instant? {
  guard let left else { return right }
  guard let right else { return left }
  return min(left, right)
}
