import FoundationEssentials
import Glibc
import Queries

/// What standard output is: a terminal of some size, or a file or pipe.
struct Terminal: Sendable {
  /// The size in characters; nil if it is no terminal.
  let size: (columns: Int, rows: Int)?
  private let hasColours: Bool

  /// The one that was there when the command began: a pager may take its place.
  static let standard = Terminal(STDOUT_FILENO)

  private init(_ descriptor: Int32) {
    guard isatty(descriptor) != 0 else {
      (size, hasColours) = (nil, false)
      return
    }
    var window = winsize()
    let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0
    let columns = isKnown ? Int(window.ws_col) : Terminal.usualColumns
    let rows = isKnown && window.ws_row > 0 ? Int(window.ws_row) : Terminal.usualRows
    size = (columns: columns, rows: rows)
    let environment = ProcessInfo.processInfo.environment
    // https://no-color.org: whatever it says, as long as it says something.
    hasColours = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }

  /// Of a terminal that does not tell, such as a serial line: those of a VT100.
  private static let usualColumns = 80
  private static let usualRows = 24

  /// How tables look on it.
  var look: TableLook { TableLook(columns: size?.columns, isColoured: hasColours) }

  /// A text in a colour, where there are colours.
  func paint(_ text: String, _ ink: Ink?) -> String {
    hasColours ? ink?.paint(text) ?? text : text
  }

  /// The control sequence of a mark of colour, where there are colours.
  func sequence(of mark: Unicode.Scalar) -> String? {
    hasColours ? Ink.sequence(of: mark) : nil
  }
}
