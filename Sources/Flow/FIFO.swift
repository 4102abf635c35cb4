/// A queue on an array: elements leave in the order in which they came.
struct FIFO<Element> {
  private var elements: [Element?] = []
  private var head = 0

  /// How many elements wait.
  var count: Int { elements.count - head }

  /// Whether nothing waits.
  var isEmpty: Bool { count == 0 }

  /// The element that leaves next.
  var first: Element? { head < elements.count ? elements[head] : nil }

  /// Adds an element at the end.
  mutating func append(_ element: Element) { elements.append(element) }

  /// Takes the oldest element out.
  mutating func removeFirst() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    // The space in front is given back when it is the larger part, so that the cost stays constant.
    if head == elements.count {
      elements.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 64, head > elements.count / 2 {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Takes everything out.
  mutating func removeAll() {
    elements.removeAll()
    head = 0
  }
}

extension FIFO: Sendable where Element: Sendable {}
