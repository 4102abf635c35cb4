public import Tape

/// Reads elements of a take one after the other; memory does not grow with their number.
///
///     let steps = try take.steps()
///     while let step = try steps.next() { print(step.summary) }
public final class TakeReader<Element> {
  private let read: () throws(TakeError) -> Element?

  init(_ read: @escaping () throws(TakeError) -> Element?) { self.read = read }

  /// The next element; nil after the last one.
  ///
  /// - Throws: `TakeError` when the file cannot be read, or holds something else than is expected.
  public func next() throws(TakeError) -> Element? { try read() }

  /// All elements that are left.
  public func all() throws(TakeError) -> [Element] {
    var elements: [Element] = []
    while let element = try read() { elements.append(element) }
    return elements
  }
}
