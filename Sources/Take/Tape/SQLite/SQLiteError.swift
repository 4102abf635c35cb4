import CSQLite

/// A failure that SQLite reported: its extended result code and its words.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A result code; primary codes match their extended ones in `switch`.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package var rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    /// The code without its extension.
    package var primary: Code { Code(rawValue: rawValue & 0xff) }

    package static let full = Code(rawValue: SQLITE_FULL)
    package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
    package static let notADatabase = Code(rawValue: SQLITE_NOTADB)
    package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
    package static let readOnly = Code(rawValue: SQLITE_READONLY)
    package static let busy = Code(rawValue: SQLITE_BUSY)
    package static let misuse = Code(rawValue: SQLITE_MISUSE)
    package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
    package static let inputOutput = Code(rawValue: SQLITE_IOERR)
    package static let interrupted = Code(rawValue: SQLITE_INTERRUPT)
    package static let permission = Code(rawValue: SQLITE_PERM)
    package static let unauthorised = Code(rawValue: SQLITE_AUTH)
    package static let tooBig = Code(rawValue: SQLITE_TOOBIG)
    package static let noMemory = Code(rawValue: SQLITE_NOMEM)
  }

  package var code: Code
  package var message: String

  package init(code: Code, message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(message) (SQLite \(code.rawValue))" }
}
