public import Tape

/// Reads elements of a take one after the other, in constant memory.
///
///     let steps = try take.steps()
///     while let step = try steps.next() { print(step.summary) }
public final class TakeReader<Element> {
  private let read: () throws(TakeError) -> Element?

  init(_ read: @escaping () throws(TakeError) -> Element?) { self.read = read }

  /// The next element; nil after the last one.
  /// - Throws: `TakeError` when the file cannot be read, or contains something unexpected.
  public func next() throws(TakeError) -> Element? { try read() }

  /// All remaining elements.
  public func all() throws(TakeError) -> [Element] {
    var elements: [Element] = []
    while let element = try read() { elements.append(element) }
    return elements
  }
}
