import Glibc

/// A refusal of the operating system.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was asked for, in words: `open a UDP socket`, ...
  public var operation: String
  /// The positive errno value.
  public var code: Int32

  /// Creates an error from an errno value of either sign, as the C shims give it.
  public init(operation: String, code: Int32) {
    self.operation = operation
    self.code = code == .min ? .max : abs(code)
  }

  /// `cannot open a UDP socket: Too many open files`.
  public var description: String { "cannot \(operation): \(String(cString: strerror(code)))" }
}

/// Returns the descriptor or count of a C shim, or throws its negative errno.
@discardableResult
package func checked(_ operation: String, _ result: Int32) throws(SystemError) -> Int32 {
  guard result >= 0 else { throw SystemError(operation: operation, code: result) }
  return result
}
