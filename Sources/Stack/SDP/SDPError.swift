/// Why a text is not a session description that can be used.
public struct SDPError: Error, Hashable, Sendable {
  /// The line, counted from 1; 0 when the whole text is meant.
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
  /// `line 7: ...`, or only the reason when the whole text is meant.
  public var description: String { line > 0 ? "line \(line): \(reason)" : reason }
}
