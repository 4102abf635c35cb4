import FoundationEssentials
import Glibc
import Tape

/// Values that nobody else may see: any user of a machine reads the command lines of all others.
extension Taking {
  /// What help says of every option that takes one.
  static let secretForm = "@FILE reads it from a file, env:NAME from the environment."

  /// A value that may also stand in a file (`@FILE`) or in the environment (`env:NAME`), where
  /// other users do not see it.
  ///
  /// Line ends behind the value in a file do not belong to it. A value that begins with `@` or
  /// `env:` itself has to come from a file. What is refused is never printed.
  static func secret<Value>(_ read: @escaping Reader<Value>) -> Reader<Value> {
    { word in
      let value: String
      if word.hasPrefix("@") {
        value = try secret(inFile: String(word.dropFirst()))
      } else if word.hasPrefix("env:") {
        let name = String(word.dropFirst(4))
        guard let found = ProcessInfo.processInfo.environment[name], !found.isEmpty else {
          throw SecretFailure("the environment has no \(name), from which a secret was to be read")
        }
        value = found
      } else {
        return try read(word)
      }
      do {
        return try read(value)
      } catch {
        // The parser would quote the word, which is only where the value is.
        throw SecretFailure("what \(word) holds cannot be used: \(error)")
      }
    }
  }

  private static let secretLimit = 64 << 10

  private static func secret(inFile path: String) throws -> String {
    switch FileBytes.read(path, atMost: secretLimit + 1) {
    case .failure(let code): throw SecretFailure("\(path): the secret cannot be read: \(code)")
    case .success(var bytes):
      guard bytes.count <= secretLimit else {
        throw SecretFailure("\(path): a secret has at most \(secretLimit) bytes")
      }
      while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") {
        bytes.removeLast()
      }
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw SecretFailure("\(path): a secret is UTF-8, and this is not")
      }
      return text
    }
  }

  private typealias SecretFailure = Refusal
}
