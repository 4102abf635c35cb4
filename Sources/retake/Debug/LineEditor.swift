import Debug
import Foundation

/// Reads lines from a terminal with editing, history and completion.
final class LineEditor {
  private var buffer = LineBuffer()
  private let complete: (String) -> [String]
  private var isSecondTab = false

  /// How many possibilities are listed at most.
  private static let listedMaximum = 60

  /// Creates an editor that asks what may follow a line.
  init(complete: @escaping (String) -> [String]) { self.complete = complete }

  /// Reads a line; nil at the end of the input.
  func readLine(prompt: String) -> String? {
    var cooked = termios()
    guard tcgetattr(STDIN_FILENO, &cooked) == 0 else { return Swift.readLine() }
    var raw = cooked
    cfmakeraw(&raw)
    // Line feeds of output keep returning to the first column.
    raw.c_oflag |= tcflag_t(OPOST)
    guard tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0 else { return Swift.readLine() }
    defer { tcsetattr(STDIN_FILENO, TCSADRAIN, &cooked) }
    draw(prompt)
    var byte: UInt8 = 0
    while read(STDIN_FILENO, &byte, 1) == 1 {
      let isTab = byte == 0x09
      switch buffer.take(byte) {
      case .edited: draw(prompt)
      case .entered(let line):
        write("\n")
        return line
      case .cancelled:
        write("^C\n")
        return ""
      case .ended:
        write("\n")
        return nil
      case .completion:
        offer()
        draw(prompt)
      }
      isSecondTab = isTab
    }
    return nil
  }

  /// Completes as far as there is no choice; a second tab lists the choices.
  private func offer() {
    let line = buffer.beforeCursor
    let last = line.split(separator: " ", omittingEmptySubsequences: false).last ?? ""
    let choices = complete(line)
    let common = commonPrefix(choices)
    if common.count > last.count {
      buffer.insert(String(common.dropFirst(last.count)) + (choices.count == 1 ? " " : ""))
    } else if isSecondTab, !choices.isEmpty {
      let listed = choices.prefix(LineEditor.listedMaximum).joined(separator: "  ")
      let rest = choices.count - LineEditor.listedMaximum
      write("\n\(listed)\(rest > 0 ? "  and \(rest) more" : "")\n")
    }
  }

  private func draw(_ prompt: String) {
    let back = buffer.characters.count - buffer.cursor
    write("\r\u{1b}[K\(prompt)\(buffer.text)" + (back > 0 ? "\u{1b}[\(back)D" : ""))
  }

  private func write(_ text: String) {
    // A terminal that is gone ends the session at the next line that is read or printed.
    try? Output.write(text)
  }
}
