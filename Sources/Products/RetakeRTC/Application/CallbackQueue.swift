package import Dispatch
import Synchronization

/// The serial queue on which a product calls its application, which may set another one.
package final class CallbackQueue: Sendable {
  private let chosen: Mutex<DispatchQueue>

  /// Creates a queue with a label.
  package init(label: String) { chosen = Mutex(DispatchQueue(label: label)) }

  /// The queue.
  package var queue: DispatchQueue {
    get { chosen.withLock { $0 } }
    set { chosen.withLock { $0 = newValue } }
  }

  /// Calls a closure on the queue, after all earlier ones.
  package func call(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}
