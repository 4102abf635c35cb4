/// Where a take stopped being what was recorded: found by the digest chain, before any replay.
package struct Alteration: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  /// The step, counted from 1; the first one that is not as it was recorded.
  package var step: Int
  /// The time of the step, as far as it can still be read.
  package var atNanoseconds: Int64
  /// The table, or `tape` for the steps themselves; empty when several come into question.
  package var table: String
  /// What is wrong, in words.
  package var reason: String
  /// What a replay of the steps before it says should stand there; nil when that could not be told.
  package var expectation: String?

  init(step: Int, atNanoseconds: Int64, table: String = "", reason: String) {
    self.step = step
    self.atNanoseconds = atNanoseconds
    self.table = table
    self.reason = reason
  }

  package var description: String {
    let place = table.isEmpty ? "" : ", table \(table)"
    let more = expectation.map { " (\($0))" } ?? ""
    return "the file was altered after the recording at step \(step)\(place): \(reason)\(more)"
  }
}

/// Why reading steps ended early.
package enum TapeFault: Error, Sendable {
  /// The file cannot be read.
  case unreadable(TapeError)
  /// The file can be read and is not what was recorded; with the altered step, when it has a form.
  case altered(Alteration, TapeChunk?)

  /// The same as an error like another, for whoever only reads.
  package func reason(_ path: String) -> TapeError {
    switch self {
    case .unreadable(let reason): reason
    case .altered(let alteration, _):
      TapeError(
        path: path, place: "step \(alteration.step)",
        reason: "the file was altered: \(alteration.reason)")
    }
  }
}
