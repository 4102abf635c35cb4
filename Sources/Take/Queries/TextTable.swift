import Wire

/// The meaning of a colour.
package enum Ink: UInt32, CaseIterable, Sendable {
  // Unicode noncharacters, which are reserved for internal use, mark where a colour begins; only
  // these become control sequences on output.
  case good = 0xfdd0
  case bad = 0xfdd1
  case doubtful = 0xfdd2

  /// The noncharacter that marks the end of a colour.
  private static let end: UInt32 = 0xfdd3

  /// Wraps a text in the colour's marks.
  package func paint(_ text: String) -> String {
    guard let begin = Unicode.Scalar(rawValue), let end = Unicode.Scalar(Ink.end) else {
      return text
    }
    return "\(begin)\(text)\(end)"
  }

  /// Returns a mark's control sequence, which selects a colour from the terminal's palette
  /// (ECMA-48, SGR 31 to 33); nil for other characters.
  package static func sequence(of mark: Unicode.Scalar) -> String? {
    if mark.value == end { return "\u{1b}[m" }
    return switch Ink(rawValue: mark.value) {
    case .bad?: "\u{1b}[31m"
    case .good?: "\u{1b}[32m"
    case .doubtful?: "\u{1b}[33m"
    case nil: nil
    }
  }

  /// Classifies the state of a connection or a part of it; fails for neutral states.
  package init?(state: some StringProtocol) {
    switch state {
    case "connected", "completed", "established", "open": self = .good
    case "failed", "timed-out": self = .bad
    case "disconnected": self = .doubtful
    default: return nil
    }
  }
}

/// A table's layout options.
package struct TableLook: Sendable {
  /// The terminal's width; nil for files, pipes and `--wide`, where nothing is cut.
  package var columns: Int?
  package var isColoured: Bool

  /// The same options without a width limit.
  package var wide: TableLook { TableLook(columns: nil, isColoured: isColoured) }

  /// Creates options; the default is for a file or pipe.
  package init(columns: Int? = nil, isColoured: Bool = false) {
    self.columns = columns
    self.isColoured = isColoured
  }
}

/// A table with aligned columns.
package struct TextTable: Sendable {
  package var columns: [String]
  package var rows: [[String]]
  package var alignsRight: [Bool]
  /// Whether text that does not fit wraps within its column, as sentences do; values are cut.
  package var wraps: Bool

  package init(
    columns: [String], rows: [[String]], alignsRight: [Bool] = [], wraps: Bool = false
  ) {
    self.columns = columns
    self.rows = rows.map { $0.map(TextTable.plain) }
    self.alignsRight = alignsRight
    self.wraps = wraps
  }

  /// The table with a header and a rule, ending in a line feed.
  package var text: String { text() }

  /// Returns the table laid out for a terminal.
  ///
  /// - Parameter ink: returns a cell's colour, by its row and column.
  package func text(
    _ look: TableLook = TableLook(), ink: (_ row: [String], _ column: Int) -> Ink? = { _, _ in nil }
  ) -> String {
    let layout = TableLayout(self, look)
    return layout.head + rows.map { layout.line($0, ink: ink) }.joined() + layout.foot
  }

  /// Returns a text for a table cell: one line, control characters escaped.
  package static func plain(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { (0x20..<0x7f).contains($0) }
    guard !isPlain else { return text }
    return PrintableText.line(
      text.replacing("\r\n", with: "\n").replacing("\t", with: " "))
  }
}

/// Fixed column widths for printing rows one by one.
struct TableLayout {
  private let names: [String]
  /// The visible columns' widths.
  private let widths: [Int]
  private let alignsRight: [Bool]
  private let wraps: Bool
  private let look: TableLook

  /// Returns a shrunken column's minimum width: with many columns, enough to be readable; those
  /// that do not fit are left out and named.
  private static func leastWidth(_ columns: Int) -> Int { columns > 8 ? 10 : 6 }

  /// The maximum padding where nothing is cut: a single long text sticks out of its row instead of
  /// widening every line.
  private static let paddingLimit = 100

  /// Computes the widths that the rows need, limited to the terminal.
  init(_ table: TextTable, _ look: TableLook) {
    names = table.columns
    let areNumbers = table.columns.indices.map {
      table.alignsRight.indices.contains($0) && table.alignsRight[$0]
    }
    alignsRight = areNumbers
    wraps = table.wraps && look.columns != nil
    self.look = look
    var widths = names.map(Self.width)
    for row in table.rows {
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

  /// Names the columns that did not fit, and how to see them; empty if all are shown.
  var foot: String {
    let names = names.dropFirst(widths.count)
    guard !names.isEmpty else { return "" }
    return "\n\(counted(names.count, "column")) left out for want of width: "
      + "\(names.joined(separator: ", ")) (--wide shows all)\n"
  }

  /// Shrinks the widest columns first; numbers are never cut.
  private static func fitted(
    _ widths: [Int], _ areNumbers: [Bool], _ columns: Int, _ leastWidth: Int
  ) -> [Int] {
    var widths = widths
    var excess = widths.reduce(0, +) + 2 * max(0, widths.count - 1) - columns
    while excess > 0 {
      let widest = widths.indices.filter { !areNumbers[$0] && widths[$0] > leastWidth }
        .max { widths[$0] < widths[$1] }
      guard let widest else { break }
      // Shrinks to the next widest column's width at once.
      let next =
        widths.indices.filter { !areNumbers[$0] && widths[$0] < widths[widest] }
        .map { widths[$0] }.max() ?? 0
      let step = max(1, min(excess, widths[widest] - max(next, leastWidth)))
      widths[widest] -= step
      excess -= step
    }
    return widths
  }

  /// The header and a rule.
  var head: String {
    line(names) + line(widths.map { String(repeating: "-", count: max($0, 1)) })
  }

  /// Returns a row ending in a line feed, on several lines if text wraps.
  ///
  /// Cells wider than the computed widths are cut on a terminal and stick out elsewhere.
  func line(
    _ cells: [String], ink: (_ row: [String], _ column: Int) -> Ink? = { _, _ in nil }
  ) -> String {
    guard wraps else { return physicalLine(cells) { ink(cells, $0) } }
    let pieces = zip(cells, widths).map { Self.wrapped($0, $1) }
    return (0..<(pieces.map(\.count).max() ?? 0)).map { row in
      physicalLine(pieces.map { $0.indices.contains(row) ? $0[row] : "" }) { ink(cells, $0) }
    }.joined()
  }

  /// Wraps a text at words; longer words are broken.
  private static func wrapped(_ text: String, _ columns: Int) -> [String] {
    guard width(of: text) > columns, columns > 0 else { return [text] }
    var lines: [String] = []
    var line = ""
    var used = 0
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let length = width(of: String(word))
      if used > 0, used + 1 + length <= columns {
        line += " " + word
        used += 1 + length
        continue
      }
      if used > 0 { lines.append(line) }
      (line, used) = ("", 0)
      for character in word {
        let length = width(of: character)
        if used > 0, used + length > columns {
          lines.append(line)
          (line, used) = ("", 0)
        }
        line.append(character)
        used += length
      }
    }
    return lines + [line]
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

  /// Cuts a text to `columns` cells, the last of which is an ellipsis.
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

  /// Returns a character's number of cells (Unicode Standard Annex 11): two for East Asian
  /// characters and pictographs.
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
