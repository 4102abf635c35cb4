/// Why a take cannot be written or read: one sentence that names the file, the place and the
/// reason.
public struct TapeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure it is, for exit statuses.
  public enum Kind: Hashable, Sendable {
    /// There is no such file.
    case missing
    /// The file is there and is not a take that can be used.
    case invalid
    /// Reading or writing failed.
    case failed
  }

  /// The file.
  public var path: String
  /// The table, row or step; empty when the whole file is meant.
  public var place: String
  /// What is wrong and what to do, in words.
  public var reason: String
  /// What kind of failure it is.
  public var kind: Kind

  /// Creates an error.
  public init(path: String, place: String, reason: String, kind: Kind = .invalid) {
    self.path = path
    self.place = place
    self.reason = reason
    self.kind = kind
  }

  /// `path: place: reason`.
  public var description: String {
    [path, place, reason].filter { !$0.isEmpty }.joined(separator: ": ")
  }
}

extension TapeError {
  /// A failure that SQLite reported, in the words of somebody who has the file and not the code.
  package init(path: String, place: String = "", _ error: SQLiteError) {
    let reason =
      switch error.code.primary {
      case .full: "the disk is full; free some space and record again"
      case .cannotOpen: "it cannot be opened: \(error.message)"
      case .permission, .readOnly: "no permission: \(error.message)"
      case .notADatabase: "it is not a take: not a SQLite file"
      case .corrupt:
        "it is corrupted or cut short: \(error.message); restore it from a copy"
          + (TakeEnding.missingLog(of: path).map { " that has \($0) beside it" } ?? "")
      case .busy: "another process is writing to it; try again when it has finished"
      case .inputOutput: "the disk failed: \(error.message)"
      case .tooBig:
        "a value in it is larger than Retake reads there, which no recorder writes; it was altered"
      default: error.description
      }
    let kind: Kind =
      switch error.code.primary {
      case .full, .cannotOpen, .permission, .readOnly, .busy, .inputOutput: .failed
      default: .invalid
      }
    self.init(path: path, place: place, reason: reason, kind: kind)
  }
}
