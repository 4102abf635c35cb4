package import Peer

// The contract; its behaviour is to be written.

/// Writes a take from a thread of its own; recording a step only hands it over.
package final class TapeWriter: Sendable {
  /// What a recording keeps.
  package struct Options: Sendable {
    /// Free text in the `take` row.
    package var label = ""
    /// Whether encoded frames are kept in the clear.
    package var keepsMedia = true
    /// The UTC time at the take's zero instant, nanoseconds since 1970.
    package var startUnixNanoseconds: Int64 = 0
    package init() {}
  }

  /// Creates the file, mode 0600; it must not exist.
  package init(path: String, options: Options) throws(TapeError) {
    throw TapeError(path: path, place: "", reason: "not written yet")
  }

  /// Adds a peer before its first step and gives its number.
  package func addPeer(label: String, role: String) -> UInt32 { 0 }

  /// Hands a step over; never blocks on the disk.
  package func record(_ step: StepRecord) {}

  /// Writes what is left, closes the file and says what it holds; throws when something was lost.
  package func finish() throws(TapeError) -> Summary { Summary() }

  /// What a finished take holds.
  package struct Summary: Sendable {
    package var steps = 0
    package var packets = 0
    package var bytes = 0
    package init() {}
  }
}

/// Why a take cannot be written or read: one sentence that names the file, the place and the reason.
public struct TapeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file.
  public var path: String
  /// The table, row or step; empty when the whole file is meant.
  public var place: String
  /// What is wrong and what to do, in words.
  public var reason: String

  /// Creates an error.
  public init(path: String, place: String, reason: String) {
    self.path = path
    self.place = place
    self.reason = reason
  }

  /// `path: place: reason`.
  public var description: String { [path, place, reason].filter { !$0.isEmpty }.joined(separator: ": ") }
}
