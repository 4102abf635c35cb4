import CEdit
import FoundationEssentials
import Glibc
import Wire

/// Reads lines from a terminal, with the editing, history and completion of libedit.
///
/// It lives in the process that talks with the user, and is made after the session: the processes
/// that walk were copied from it by then, so none of them has the terminal's settings or lines.
final class LineEditor {
  /// What came of reading a line.
  enum Line: Equatable {
    case text(String)
    /// Ctrl-C.
    case cancelled
    /// Ctrl-D, or a terminal that is gone.
    case end
  }

  private let history: OpaquePointer?
  private var editor: OpaquePointer?
  private let historyFile: String?
  private let complete: (String) -> [String]
  private var prompt: UnsafeMutablePointer<CChar>?
  private var isCancelled = false

  /// How many lines are kept, and how many possibilities are listed at most.
  private static let historyMaximum: Int32 = 1_000
  private static let listedMaximum = 100

  /// Creates an editor that asks what may follow a line.
  init(history path: String? = LineEditor.usualHistory, complete: @escaping (String) -> [String]) {
    self.complete = complete
    historyFile = path
    history = history_init()
    // Characters of more than one byte count as one.
    setlocale(LC_CTYPE, "")
    guard let history else { return }
    _ = cedit_limit(history, LineEditor.historyMaximum)
    if let path { _ = cedit_load(history, path) }
    editor = cedit_open(
      history, Unmanaged.passUnretained(self).toOpaque(), { LineEditor.owner(of: $0)?.prompt },
      { editor, _ in LineEditor.owner(of: editor)?.offer() ?? UInt8(CC_ERROR) },
      { editor, _ in LineEditor.owner(of: editor)?.cancel() ?? UInt8(CC_ERROR) })
  }

  deinit {
    if let editor { el_end(editor) }
    if let history { history_end(history) }
    free(prompt)
  }

  private static func owner(of editor: OpaquePointer?) -> LineEditor? {
    guard let editor, let owner = cedit_owner(editor) else { return nil }
    return Unmanaged<LineEditor>.fromOpaque(owner).takeUnretainedValue()
  }

  /// Reads a line.
  func readLine(prompt text: String) -> Line {
    guard let editor else { return Swift.readLine().map { .text($0) } ?? .end }
    free(prompt)
    prompt = strdup(PrintableText.line(text))
    isCancelled = false
    var count: Int32 = 0
    guard let line = cedit_line(editor, &count) else { return isCancelled ? .cancelled : .end }
    let words = String(cString: line).trimmed
    return .text(words)
  }

  // MARK: History

  /// `debug_history` in the folder for state of the XDG Base Directory Specification; nil if the
  /// user has no home.
  static var usualHistory: String? {
    let environment = ProcessInfo.processInfo.environment
    if let folder = environment["XDG_STATE_HOME"], folder.hasPrefix("/") {
      return folder + "/retake/debug_history"
    }
    guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
    return home + "/.local/state/retake/debug_history"
  }

  /// Adds a line to the history, also of later sessions; a home that cannot be written has none.
  func remember(_ line: String) {
    guard let history, !line.isEmpty else { return }
    _ = cedit_remember(history, line)
    guard let path = historyFile else { return }
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    try? FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    // It has names of peers and files, which are nobody else's business.
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    fchmod(descriptor, 0o600)
    close(descriptor)
    _ = cedit_save(history, path)
  }

  // MARK: Keys

  /// Ctrl-C: the line is left as it stands on the terminal, and another one begins.
  private func cancel() -> UInt8 {
    isCancelled = true
    cedit_print(editor, "^C\n")
    cedit_clear(editor)
    return UInt8(CC_NEWLINE)
  }

  /// The tabulator: completes as far as there is no choice, and else lists the choices.
  private func offer() -> UInt8 {
    guard let info = el_line(editor)?.pointee, let start = info.buffer, let cursor = info.cursor
    else { return UInt8(CC_ERROR) }
    let bytes = UnsafeRawBufferPointer(start: start, count: cursor - start)
    let line = String(decoding: bytes, as: UTF8.self)
    let last = line.split(separator: " ", omittingEmptySubsequences: false).last ?? ""
    let choices = complete(line)
    guard let first = choices.first else { return UInt8(CC_ERROR) }
    let common = choices.dropFirst().reduce(first) { common, choice in
      String(zip(common, choice).prefix { $0 == $1 }.map(\.0))
    }
    var more = String(common.dropFirst(last.count))
    if choices.count == 1, !":=>".contains(first.last ?? "=") { more += " " }
    if !more.isEmpty {
      return el_insertstr(editor, more) == 0 ? UInt8(CC_REFRESH) : UInt8(CC_ERROR)
    }
    list(choices)
    return UInt8(CC_REDISPLAY)
  }

  /// Lists choices below the line, in columns.
  private func list(_ choices: [String]) {
    let shown = choices.prefix(LineEditor.listedMaximum).map(PrintableText.line)
    let width = (shown.map(\.count).max() ?? 0) + 2
    let columns = max(1, (Terminal.standard.size?.columns ?? 80) / width)
    var text = "\n"
    for (index, choice) in shown.enumerated() {
      let isLast = index % columns == columns - 1 || index == shown.count - 1
      text += choice + (isLast ? "\n" : String(repeating: " ", count: width - choice.count))
    }
    if choices.count > shown.count { text += "and \(choices.count - shown.count) more\n" }
    cedit_print(editor, text)
  }
}
