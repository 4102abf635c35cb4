import Synchronization

/// Distributes events to any number of streams.
///
/// The owner keeps it under a lock, so that all readers get everything in the same order.
/// Cancelling a reader's task calls `onTermination` while the task's record is locked, and yielding
/// takes that lock while the owner's is held: so `onTermination` must take no lock. It only marks
/// the reader, who is removed later.
struct Readers<Element: Sendable>: Sendable {
  private final class Reader: Sendable {
    let continuation: AsyncStream<Element>.Continuation
    private let isGone = Atomic(false)

    init(_ continuation: AsyncStream<Element>.Continuation) { self.continuation = continuation }

    var isHere: Bool { !isGone.load(ordering: .relaxed) }
    func leave() { isGone.store(true, ordering: .relaxed) }
  }

  private var readers: [Reader] = []

  /// The number of readers; one that has gone counts until the next event or reader.
  var count: Int { readers.count }

  /// Adds a reader.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) {
    readers.removeAll { !$0.isHere }
    let reader = Reader(continuation)
    readers.append(reader)
    continuation.onTermination = { [weak reader] _ in reader?.leave() }
  }

  /// Passes an element to all readers.
  mutating func yield(_ element: Element) {
    for reader in readers { reader.continuation.yield(element) }
    readers.removeAll { !$0.isHere }
  }

  /// Ends all streams.
  mutating func finish() {
    for reader in readers { reader.continuation.finish() }
    readers = []
  }
}
