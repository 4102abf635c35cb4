// Delegates, renderers, factories and completion handlers are ordinary classes and closures of the
// application, as in libwebrtc; they are not required to be Sendable. Only the types here carry
// them to another thread.

/// A closure or an object of the application that is passed to the thread that calls it.
///
/// The compiler cannot verify what the interface guarantees: it is stored and passed on, and called
/// one call at a time, on the factory's queue or on the documented thread.
package struct Handed<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) { self.value = value }
}

/// A delegate of the application, held weakly, with the same guarantee as `Handed`.
///
/// It is never cast: a class may conform on the main actor only, and a cast checks the isolation
/// where it happens.
package struct WeakDelegate<Delegate>: @unchecked Sendable {
  private let find: () -> Delegate?

  /// - Parameter find: holds the delegate weakly.
  package init(_ find: @escaping () -> Delegate?) { self.find = find }

  /// The delegate; nil once it is deallocated.
  package var value: Delegate? { find() }

  func refers(toSameAs other: WeakDelegate) -> Bool {
    guard let own = find(), let other = other.find() else { return false }
    return (own as AnyObject) === (other as AnyObject)
  }
}
