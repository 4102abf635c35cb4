import ArgumentParser
import Debug
import FoundationEssentials
import Glibc
import Peer
import Replay
import Tape
import Wire

/// Readers for the values of options and arguments; each parses a word or throws a refusal that
/// states what is expected.
///
/// Options use them as `transform: Taking.seconds(0.1...600)`, so that values need no further
/// checks.
package enum Taking {
  /// A refusal: what is expected, with its range.
  struct Refusal: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  /// Parses a word, or throws an error that says what is expected.
  package typealias Reader<Value> = @Sendable (String) throws -> Value

  // MARK: Times and numbers

  /// Reads a duration, in seconds unless a unit is given.
  package static func seconds(_ range: ClosedRange<Double>) -> Reader<Double> {
    { word in
      guard let seconds = TimeText.seconds(word), range.contains(seconds) else {
        throw Refusal(
          "a time is from \(plain(range.lowerBound)) to \(plain(range.upperBound)) seconds, "
            + "as in 5, 1.5s, 80ms or 2min")
      }
      return seconds
    }
  }

  /// Reads a duration in whole seconds.
  package static func wholeSeconds(_ range: ClosedRange<Int>) -> Reader<Int> {
    { word in
      let seconds = TimeText.seconds(word).flatMap { Int(exactly: $0) }
      guard let seconds, range.contains(seconds) else {
        throw Refusal(
          "a time here is from \(range.lowerBound) to \(range.upperBound) whole seconds, "
            + "as in 5 or 5s")
      }
      return seconds
    }
  }

  /// Reads a duration, in milliseconds unless a unit is given.
  static func milliseconds(_ range: ClosedRange<Double>) -> Reader<Double> {
    { word in
      guard let seconds = TimeText.seconds(word, in: .milliseconds),
        range.contains((seconds * 1e6).rounded() / 1e3)
      else {
        throw Refusal(
          "a time is from \(plain(range.lowerBound)) to \(plain(range.upperBound)) milliseconds, "
            + "as in 40, 40ms or 0.04s")
      }
      return (seconds * 1e6).rounded() / 1e3
    }
  }

  /// Reads a number that need not be whole, optionally followed by its unit.
  static func number(_ range: ClosedRange<Double>, unit: String = "") -> Reader<Double> {
    { word in
      let digits = !unit.isEmpty && word.hasSuffix(unit) ? word.dropLast(unit.count) : word[...]
      guard let number = TimeText.number(digits), range.contains(number) else {
        throw Refusal(
          "a number is from \(plain(range.lowerBound)) to \(plain(range.upperBound))"
            + (unit.isEmpty ? "" : " \(unit)"))
      }
      return number
    }
  }

  /// Reads a whole number in a range, written in decimal digits only.
  package static func whole<Value: FixedWidthInteger & Sendable>(_ range: ClosedRange<Value>)
    -> Reader<Value>
  {
    { word in
      guard word.utf8.count <= digitLimit, word.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = Value(word), range.contains(number)
      else {
        throw Refusal("a whole number is from \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
  }

  /// Reads a peer's number, which is at least 1.
  static func peer<Value: FixedWidthInteger & Sendable>(_ word: String) throws -> Value {
    try whole(1...Value(clamping: UInt32.max))(word)
  }

  /// The maximum number of digits, more than any sensible number has.
  private static let digitLimit = 40

  private static func plain(_ number: Double) -> String {
    Int(exactly: number).map { String($0) } ?? String(number)
  }

  // MARK: Names and text

  /// Reads the path of a file or folder.
  package static func path(_ word: String) throws -> String {
    guard (1...pathLimit).contains(word.utf8.count), !word.utf8.contains(0) else {
      throw Refusal("the name of a file has from 1 to \(pathLimit) bytes, none of them NUL")
    }
    return word
  }

  /// Reads text that is used verbatim.
  static func text(_ range: ClosedRange<Int> = 0...textLimit) -> Reader<String> {
    { word in
      guard range.contains(word.utf8.count), !word.utf8.contains(0) else {
        throw Refusal(
          "a text has from \(range.lowerBound) to \(range.upperBound) bytes, none of them NUL")
      }
      return word
    }
  }

  /// Reads two parts with a separator, such as `NAME=VALUE`; the first must not be empty.
  static func pair(_ shape: String, separator: Character) -> Reader<String> {
    { word in
      guard (2...textLimit).contains(word.utf8.count), !word.utf8.contains(0),
        let place = word.firstIndex(of: separator), place > word.startIndex
      else { throw Refusal("the value is \(shape), from 2 to \(textLimit) bytes long") }
      return word
    }
  }

  /// Reads an SQL statement.
  static func query(_ word: String) throws -> String {
    guard !word.isEmpty else {
      throw Refusal("the query is empty: it is a statement of 1 to \(queryLimit) bytes")
    }
    return try text(1...queryLimit)(word)
  }

  /// The maximum length of a statement, in bytes.
  private static let queryLimit = 1_000_000

  /// PATH_MAX without the NUL at the end.
  private static let pathLimit = 4095
  static let textLimit = 10_000

  /// Reads a server's URL with one of the schemes.
  static func url(_ schemes: [String]) -> Reader<String> {
    { word in
      guard word.utf8.count <= urlLimit, !word.utf8.contains(0),
        let parts = URLComponents(string: word), let scheme = parts.scheme,
        schemes.contains(scheme.lowercased()), parts.host?.isEmpty == false
      else {
        let names = schemes.map { "\($0)://HOST" }.joined(separator: " or ")
        throw Refusal(
          "an address begins with \(names) and has from 8 to \(urlLimit) bytes, as in "
            + "\(schemes[0])://127.0.0.1:8081/")
      }
      return word
    }
  }

  private static let urlLimit = 4096

  /// Reads a value of a type that parses its own argument; `wanted` is the refusal's text.
  static func value<Value: ExpressibleByArgument>(_ wanted: String) -> Reader<Value> {
    { word in
      guard word.utf8.count <= textLimit, !word.utf8.contains(0), let value = Value(argument: word)
      else { throw Refusal(wanted) }
      return value
    }
  }

  // MARK: Places in takes

  /// Reads a condition, or a place in a take.
  static func condition(_ word: String) throws -> StepCondition {
    guard word.utf8.count <= textLimit else {
      throw Refusal("a condition has from 1 to \(textLimit) bytes")
    }
    return try StepCondition(word)
  }

  /// Reads a point in a take: a time or a step.
  static func place(_ word: String) throws -> StepCondition {
    let wanted = Refusal(
      "a place in a take is a time from 0 to 1000000000 seconds, as in 12.5 or 12.5s, or a step "
        + "from 1, as in step:120")
    guard word.utf8.count <= textLimit, let place = try? StepCondition(word), place.stopsBefore
    else { throw wanted }
    return place
  }

  /// Reads a packet edit, which is validated here and passed on verbatim.
  static func edit(_ read: @escaping @Sendable (String) throws -> PacketEdit) -> Reader<String> {
    { word in
      guard word.utf8.count <= textLimit else {
        throw Refusal("a selector has from 0 to \(textLimit) bytes")
      }
      _ = try read(word)
      return word
    }
  }
}

// MARK: - Secrets

/// Secret values: any user on a machine can read all command lines.
extension Taking {
  /// The help text that all options with secrets share.
  static let secretForm = "@FILE reads it from a file, env:NAME from the environment."

  /// Reads a value that may come from a file (`@FILE`) or the environment (`env:NAME`), where other
  /// users do not see it.
  ///
  /// Line ends at the end of a file are ignored. A value that itself begins with `@` or `env:` must
  /// come from a file. Refused values are never printed.
  static func secret<Value>(_ read: @escaping Reader<Value>) -> Reader<Value> {
    { word in
      let value: String
      if word.hasPrefix("@") {
        value = try secret(inFile: String(word.dropFirst()))
      } else if word.hasPrefix("env:") {
        let name = String(word.dropFirst(4))
        guard let found = ProcessInfo.processInfo.environment[name], !found.isEmpty else {
          throw SecretFailure(
            "the secret is to be read from \(name), which is not set in the environment")
        }
        value = found
      } else {
        return try read(word)
      }
      do {
        return try read(value)
      } catch {
        // Report this without the parser, which would quote the word as the invalid value, although
        // the word only says where the value is.
        throw SecretFailure("the contents of \(word) cannot be used: \(error)")
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
        throw SecretFailure("\(path): a secret must be UTF-8, and this is not")
      }
      return text
    }
  }

  private typealias SecretFailure = Refusal
}
