import Wire

/// How the behaviour of a row is taken out: a few words of the stack, and what is there in their
/// place while the switch of the row is set.
///
/// `make rows` puts all switches into a copy of the sources and sees the test of each row fail. The
/// words stand once in the files of that name, wherever those are.
package struct RowSwitch: Hashable, Sendable {
  /// What kind of Swift the words are.
  package enum Form: String, Hashable, Sendable {
    /// An expression: another one is evaluated.
    case value
    /// Whole statements: others are executed, or none.
    case statement
    /// The beginning of a statement: something else is done before it.
    case before
  }

  /// The row, and one of its parts after a dot, as in `GU12.candidates`.
  ///
  /// What has one name is set together, and each name fails a test by itself.
  package var name: String
  /// The name of the file, without its folders.
  package var file: String
  package var form: Form
  /// The words as they stand there, which are in no other place of the file.
  package var words: String
  /// What is there instead, or before; nothing for statements that are left out.
  package var others: String
  /// The test that fails, where that is not the row's own: `Suite/test`.
  package var test: String?

  /// The row: `GU12`.
  package var row: String { String(name.prefix { $0 != "." }) }

  /// Evaluates another expression.
  static func value(
    _ name: String, _ file: String, _ words: String, becomes others: String,
    by test: String? = nil
  ) -> RowSwitch {
    RowSwitch(
      name: name, file: file, form: .value, words: words, others: others, test: test)
  }

  /// Leaves statements out, or executes others.
  static func without(
    _ name: String, _ file: String, _ words: String, but others: String = "",
    by test: String? = nil
  ) -> RowSwitch {
    RowSwitch(
      name: name, file: file, form: .statement, words: words, others: others, test: test)
  }

  /// Does something before a statement, as to return there.
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
  /// What takes the behaviour of the row out.
  package var switches: [RowSwitch] { RowSwitch.all.filter { $0.row == id } }
}
