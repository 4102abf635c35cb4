/// Why a session description is invalid.
public struct SDPError: Error, Hashable, Sendable {
  /// The line, counted from 1; 0 for the whole text.
  public var line: Int
  /// What is wrong, in words.
  public var reason: String

  /// Creates an error about a line.
  public init(line: Int, reason: String) {
    self.line = line
    self.reason = reason
  }
}

extension SDPError: CustomStringConvertible {
  /// `line 7: ...`, or only the reason for the whole text.
  public var description: String { line > 0 ? "line \(line): \(reason)" : reason }
}
