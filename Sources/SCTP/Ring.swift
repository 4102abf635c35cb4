/// A queue on an array with random access: elements leave at the front in constant time.
struct Ring<Element> {
  private var elements: [Element] = []
  private var head = 0

  /// How many elements wait.
  @inline(__always) var count: Int { elements.count - head }

  /// Whether nothing waits.
  @inline(__always) var isEmpty: Bool { elements.count == head }

  /// The element that leaves next.
  @inline(__always) var first: Element? { isEmpty ? nil : elements[head] }

  /// The element at a place counted from the front.
  @inline(__always) subscript(index: Int) -> Element {
    get { elements[head + index] }
    _modify { yield &elements[head + index] }
  }

  /// Adds an element at the end.
  mutating func append(_ element: Element) { elements.append(element) }

  /// Adds an element before the one at a place.
  mutating func insert(_ element: Element, at index: Int) {
    elements.insert(element, at: head + index)
  }

  /// Takes so many elements away from the front, at most all.
  mutating func removeFirst(_ number: Int = 1) {
    head += min(max(0, number), count)
    // The space in front is given back when it is the larger part, so that the cost stays constant.
    if head == elements.count {
      // A queue that was long for a moment does not keep its space for ever.
      elements.removeAll(keepingCapacity: elements.capacity <= 1024)
      head = 0
    } else if head > 32, head > elements.count / 2 {
      elements.removeFirst(head)
      head = 0
    }
  }

  /// Takes out the elements at places counted from the front.
  mutating func remove(_ range: Range<Int>) {
    guard range.lowerBound > 0 else { return removeFirst(range.upperBound) }
    elements.removeSubrange(head + range.lowerBound..<head + range.upperBound)
  }

  /// Takes everything out.
  mutating func removeAll() {
    elements = []
    head = 0
  }
}

extension Ring: Sendable where Element: Sendable {}
