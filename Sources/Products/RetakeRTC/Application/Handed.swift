// Delegates, renderers, factories and completion handlers are ordinary classes and closures of the
// application, as libwebrtc has them: nobody asks them to be Sendable. What carries them to another
// thread is here alone.

/// A closure or an object of the application on its way to the thread that calls it.
///
/// The compiler cannot check what the interface promises instead: it is kept and handed on, and
/// called one call at a time, on the factory's queue or on the thread that its documentation names.
package struct Handed<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) { self.value = value }
}

/// A delegate of the application, which is not kept alive; the same promise.
///
/// It is never cast: a class may conform on the main actor alone, and a cast asks where it is made.
package struct WeakDelegate<Delegate>: @unchecked Sendable {
  private let find: () -> Delegate?

  /// - Parameter find: holds the delegate weakly.
  package init(_ find: @escaping () -> Delegate?) { self.find = find }

  /// The delegate; nil when there is none any more.
  package var value: Delegate? { find() }

  func refers(toSameAs other: WeakDelegate) -> Bool {
    guard let own = find(), let other = other.find() else { return false }
    return (own as AnyObject) === (other as AnyObject)
  }
}
