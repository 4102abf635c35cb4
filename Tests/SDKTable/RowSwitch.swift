import Wire

/// A change to the stack that disables a row's behaviour: a few words of source, and what replaces
/// them while the switch is set.
///
/// `make rows` applies all switches to a copy of the sources and expects each row's test to fail.
/// The words occur exactly once in all files with the switch's file name, in any folder.
package struct RowSwitch: Hashable, Sendable {
  /// The kind of Swift code that the words are.
  package enum Form: String, Hashable, Sendable {
    /// An expression, which is replaced by another.
    case value
    /// Complete statements, which are replaced or removed.
    case statement
    /// The start of a statement, before which other code is inserted.
    case before
  }

  /// The row, optionally followed by a dot and one of its parts, as in `GU12.candidates`.
  ///
  /// Switches with the same name are set together, and setting one name must make a test fail.
  package var name: String
  /// The file's name, without folders.
  package var file: String
  package var form: Form
  /// The words in the source, which occur only once in the file.
  package var words: String
  /// The replacement for the words, or the code inserted before them; empty for removed statements.
  package var others: String
  /// The test that fails, if it is not the row's own: `Suite/test`.
  package var test: String?

  /// The row's id, such as `GU12`.
  package var row: String { String(name.prefix { $0 != "." }) }

  /// Returns a switch that replaces an expression by `others`.
  static func value(
    _ name: String, _ file: String, _ words: String, becomes others: String,
    by test: String? = nil
  ) -> RowSwitch {
    RowSwitch(
      name: name, file: file, form: .value, words: words, others: others, test: test)
  }

  /// Returns a switch that removes statements, or replaces them by `others`.
  static func without(
    _ name: String, _ file: String, _ words: String, but others: String = "",
    by test: String? = nil
  ) -> RowSwitch {
    RowSwitch(
      name: name, file: file, form: .statement, words: words, others: others, test: test)
  }

  /// Returns a switch that inserts code before a statement, such as an early return.
  static func before(
    _ name: String, _ file: String, _ words: String, do others: String,
    by test: String? = nil
  ) -> RowSwitch {
    RowSwitch(
      name: name, file: file, form: .before, words: words, others: others, test: test)
  }

  /// All switches, document by document.
  package static let all = pixiv + sora + twilio + guide + connectLive

  var json: JSONText {
    .object([
      ("name", .text(name)), ("test", test.map { .text($0) }), ("file", .text(file)),
      ("form", .text(form.rawValue)), ("words", .text(words)), ("others", .text(others)),
    ])
  }
}

extension SDKRow {
  /// The switches that disable the row.
  package var switches: [RowSwitch] { RowSwitch.all.filter { $0.row == id } }
}
