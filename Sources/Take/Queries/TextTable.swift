import Wire

/// What a colour means.
package enum Ink: UInt32, CaseIterable, Sendable {
  // Noncharacters, which Unicode reserves for internal use, mark where a colour begins. Only on
  // output do they become control sequences.
  case good = 0xfdd0
  case bad = 0xfdd1
  case doubtful = 0xfdd2

  /// The noncharacter that marks the end of a colour.
  private static let end: UInt32 = 0xfdd3

  /// Encloses text in the colour's marks.
  package func paint(_ text: String) -> String {
    guard let begin = Unicode.Scalar(rawValue), let end = Unicode.Scalar(Ink.end) else {
      return text
    }
    return "\(begin)\(text)\(end)"
  }

  /// Returns the control sequence for a mark: one that selects a palette colour (ECMA-48, SGR 31 to
  /// 33) or ends it; nil for other characters.
  package static func sequence(of mark: Unicode.Scalar) -> String? {
    if mark.value == end { return "\u{1b}[m" }
    return switch Ink(rawValue: mark.value) {
    case .bad?: "\u{1b}[31m"
    case .good?: "\u{1b}[32m"
    case .doubtful?: "\u{1b}[33m"
    case nil: nil
    }
  }

  /// Picks a colour for the state of a connection, transport or similar; fails for neutral states.
  package init?(state: some StringProtocol) {
    switch state {
    case "connected", "completed", "established", "open": self = .good
    case "failed", "timed-out": self = .bad
    case "disconnected": self = .doubtful
    default: return nil
    }
  }
}

/// How a table is laid out.
package struct TableLook: Sendable {
  /// The terminal's width; nil for files, pipes and `--wide`, where no cell is cut.
  package var columns: Int?
  package var isColoured: Bool
  /// The width at which sentences wrap; nil for `--wide`.
  package private(set) var readingColumns: Int?

  /// The width at which sentences wrap in files and pipes.
  private static let usualReadingColumns = 100

  /// The same layout without any limit on width.
  package var wide: TableLook {
    var look = self
    (look.columns, look.readingColumns) = (nil, nil)
    return look
  }

  /// The same layout, but limited to the reading width in files and pipes too.
  var reading: TableLook {
    var look = self
    look.columns = readingColumns
    return look
  }

  /// Creates a layout; the default suits a file or pipe.
  package init(columns: Int? = nil, isColoured: Bool = false) {
    self.columns = columns
    self.isColoured = isColoured
    readingColumns = columns ?? Self.usualReadingColumns
  }

  /// Wraps a paragraph to the reading width, indenting all lines but the first.
  func paragraph(_ text: String, indent: Int = 0) -> String {
    guard let readingColumns else { return text }
    // Wrapping would drop the spaces at the beginning.
    let head = text.prefix { $0 == " " }
    let rest = max(readingColumns - indent, readingColumns / 2)
    let lines = TableLayout.wrapped(
      String(text.dropFirst(head.count)), max(1, readingColumns - head.count), further: rest)
    return head + lines.joined(separator: "\n" + String(repeating: " ", count: indent))
  }
}

/// A table with aligned columns.
package struct TextTable: Sendable {
  package var columns: [String]
  package var rows: [[String]]
  package var alignsRight: [Bool]
  /// Whether long text, such as sentences, wraps within its column; otherwise it is cut.
  package var wraps: Bool

  package init(
    columns: [String], rows: [[String]], alignsRight: [Bool] = [], wraps: Bool = false
  ) {
    self.columns = columns
    self.rows = rows.map { $0.map(TextTable.plain) }
    self.alignsRight = alignsRight
    self.wraps = wraps
  }

  /// The table without colours or a width limit.
  package var text: String { text() }

  /// Returns the table as text, laid out for a terminal or a file.
  ///
  /// - Parameter ink: returns the colour of a cell.
  package func text(
    _ look: TableLook = TableLook(), ink: (_ row: [String], _ column: Int) -> Ink? = { _, _ in nil }
  ) -> String {
    let layout = TableLayout(self, look)
    return layout.head + rows.map { layout.line($0, ink: ink) }.joined() + layout.foot
  }

  /// Returns text as one line for a cell, with control characters escaped.
  package static func plain(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { (0x20..<0x7f).contains($0) }
    guard !isPlain else { return text }
    return PrintableText.line(
      text.replacing("\r\n", with: "\n").replacing("\t", with: " "))
  }
}

/// The column widths of a table, fixed before its rows are printed one by one.
struct TableLayout {
  private let names: [String]
  /// The widths of the columns that are shown.
  private let widths: [Int]
  private let alignsRight: [Bool]
  private let wraps: Bool
  private let look: TableLook

  /// Returns the minimum width of a column that is shrunk.
  ///
  /// The minimum is larger in tables with many columns; columns that do not fit are left out there
  /// instead of becoming unreadable.
  private static func leastWidth(_ columns: Int) -> Int { columns > 8 ? 10 : 6 }

  /// The maximum column width where nothing is cut: a single longer cell extends past its column
  /// instead of widening all rows.
  private static let paddingLimit = 100

  /// Computes widths that fit the rows and, if there is one, the terminal.
  init(_ table: TextTable, _ look: TableLook) {
    names = table.columns
    let areNumbers = table.columns.indices.map {
      table.alignsRight.indices.contains($0) && table.alignsRight[$0]
    }
    alignsRight = areNumbers
    wraps = table.wraps && look.columns != nil
    self.look = look
    var widths = names.map(Self.width)
    for row in table.rows where !Self.isHeading(row, of: names) {
      for (column, cell) in row.enumerated() where column < widths.count {
        widths[column] = max(widths[column], Self.width(of: cell))
      }
    }
    guard let columns = look.columns else {
      self.widths = widths.map { min($0, Self.paddingLimit) }
      return
    }
    let least = Self.leastWidth(widths.count)
    var shown = widths.count
    while shown > 1 {
      let needed = (0..<shown).reduce(2 * (shown - 1)) { sum, column in
        sum + (areNumbers[column] ? widths[column] : min(widths[column], least))
      }
      guard needed > columns else { break }
      shown -= 1
    }
    self.widths = Self.fitted(Array(widths.prefix(shown)), areNumbers, columns, least)
  }

  /// Returns whether a row is a heading, that is, a single cell that spans all columns.
  private static func isHeading(_ row: [String], of names: [String]) -> Bool {
    row.count == 1 && names.count > 1
  }

  /// A line that names the columns that did not fit and how to see them; empty if all are shown.
  var foot: String {
    let names = names.dropFirst(widths.count)
    guard !names.isEmpty else { return "" }
    return "\n\(counted(names.count, "column")) left out, because the terminal is too narrow: "
      + "\(names.joined(separator: ", ")) (--wide shows all)\n"
  }

  /// Shrinks the widest columns first; columns of numbers are never shrunk.
  private static func fitted(
    _ widths: [Int], _ areNumbers: [Bool], _ columns: Int, _ leastWidth: Int
  ) -> [Int] {
    var widths = widths
    var excess = widths.reduce(0, +) + 2 * max(0, widths.count - 1) - columns
    while excess > 0 {
      let widest = widths.indices.filter { !areNumbers[$0] && widths[$0] > leastWidth }
        .max { widths[$0] < widths[$1] }
      guard let widest else { break }
      // One step shrinks the column to the width of the next widest.
      let next =
        widths.indices.filter { !areNumbers[$0] && widths[$0] < widths[widest] }
        .map { widths[$0] }.max() ?? 0
      let step = max(1, min(excess, widths[widest] - max(next, leastWidth)))
      widths[widest] -= step
      excess -= step
    }
    return widths
  }

  /// The header line and the line of dashes below it.
  var head: String {
    line(names) + line(widths.map { String(repeating: "-", count: max($0, 1)) })
  }

  /// Formats a row, on several lines if text wraps.
  ///
  /// A cell that is wider than its column is cut on a terminal, and elsewhere extends past the
  /// column.
  func line(
    _ cells: [String], ink: (_ row: [String], _ column: Int) -> Ink? = { _, _ in nil }
  ) -> String {
    if Self.isHeading(cells, of: names) {
      return Self.wrapped(cells[0], look.columns ?? .max).map { $0 + "\n" }.joined()
    }
    guard wraps else { return physicalLine(cells) { ink(cells, $0) } }
    let pieces = zip(cells, widths).map { Self.wrappedCell($0, $1) }
    return (0..<(pieces.map(\.count).max() ?? 0)).map { row in
      physicalLine(pieces.map { $0.indices.contains(row) ? $0[row] : "" }) { ink(cells, $0) }
    }.joined()
  }

  /// Wraps text between words, and breaks words longer than a line.
  ///
  /// - Parameter further: the width of the lines after the first; nil for the same width.
  static func wrapped(_ text: String, _ columns: Int, further: Int? = nil) -> [String] {
    guard width(of: text) > columns, columns > 0 else { return [text] }
    var lines: [String] = []
    var line = ""
    var used = 0
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let room = lines.isEmpty ? columns : further ?? columns
      let length = width(of: String(word))
      if used > 0, used + 1 + length <= room {
        line += " " + word
        used += 1 + length
        continue
      }
      if used > 0 { lines.append(line) }
      (line, used) = ("", 0)
      for character in word {
        let length = width(of: character)
        if used > 0, used + length > (lines.isEmpty ? columns : further ?? columns) {
          lines.append(line)
          (line, used) = ("", 0)
        }
        line.append(character)
        used += length
      }
    }
    return lines + [line]
  }

  /// Wraps a cell; further lines are indented as far as its text, after any spaces and arrow.
  private static func wrappedCell(_ cell: String, _ columns: Int) -> [String] {
    let spaces = cell.prefix { $0 == " " }.count
    let mark = spaces + (cell.dropFirst(spaces).hasPrefix("-> ") ? 3 : 0)
    guard mark > 0, mark < columns / 2 else { return wrapped(cell, columns) }
    let lines = wrapped(String(cell.dropFirst(mark)), columns - mark)
    return lines.enumerated().map {
      ($0 == 0 ? String(cell.prefix(mark)) : String(repeating: " ", count: mark)) + $1
    }
  }

  private func physicalLine(_ cells: [String], ink: (_ column: Int) -> Ink?) -> String {
    var text = ""
    var padding = 0
    var used = 0
    for (column, whole) in cells.enumerated() where column < widths.count {
      if column > 0 { padding += 2 }
      var cell = whole
      var room = Int.max
      if let columns = look.columns { room = columns - used - padding }
      guard room > 0 else { break }
      if look.columns != nil { cell = Self.cut(cell, min(room, widths[column])) }
      let width = Self.width(of: cell)
      let space = max(0, min(widths[column], room) - width)
      if alignsRight[column] { padding += space }
      if !cell.isEmpty {
        text += String(repeating: " ", count: padding)
        used += padding + width
        padding = 0
        text += (look.isColoured ? ink(column) : nil)?.paint(cell) ?? cell
      }
      if !alignsRight[column] { padding += space }
    }
    return text + "\n"
  }

  /// Cuts text to a width of `columns`, including the ellipsis at its end.
  private static func cut(_ text: String, _ columns: Int) -> String {
    guard width(of: text) > columns else { return text }
    var cut = ""
    var used = 0
    for character in text {
      used += width(of: character)
      guard used < columns else { break }
      cut.append(character)
    }
    return cut + "…"
  }

  // MARK: Characters

  private static func width(of text: String) -> Int {
    let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
    return isASCII ? text.utf8.count : text.reduce(0) { $0 + width(of: $1) }
  }

  /// Returns the number of terminal cells that a character occupies (Unicode Standard Annex 11):
  /// East Asian characters and pictographs occupy two.
  private static func width(of character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first?.value, scalar >= 0x1100 else { return 1 }
    return wide.contains { $0.contains(scalar) } ? 2 : 1
  }

  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff,
    0xfe30...0xfe6f, 0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1f64f, 0x1f900...0x1f9ff,
    0x20000...0x3fffd,
  ]
}
