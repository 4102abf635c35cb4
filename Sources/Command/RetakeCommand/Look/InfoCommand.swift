import ArgumentParser
import Queries
import Tape

/// What a take holds, at a glance.
struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Say what a take holds: peers, states, tracks, sizes, toolchain.",
    discussion: """
      Of several takes, or of a folder, it is a line of each.

      Examples:
        retake info call.take
        retake info takes/
      """)

  @OptionGroup var options: TakesOptions
  @OptionGroup var pager: PagerOptions

  func run() throws {
    if options.areMany {
      return try FolderLook(options.takes).show("info", options, pager) {
        (look) throws(TapeError) in
        try look.catalogue.infoText(pager.look)
      }
    }
    let info = try reading { () throws(TapeError) in try TakeInfo(path: options.take) }
    if options.json { return try Output.json(info.json, in: .info) }
    let head = try reading { () throws(TapeError) in
      try TakeSummary(path: options.take, findings: TakeFindings(path: options.take))
    }
    try pager.show(head.text(pager.look) + "\n" + rows(of: info))
  }

  /// The lines of what the take holds, wrapped.
  private func rows(of info: TakeInfo) -> String {
    let lines = info.description.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { wrapped($0) + "\n" }.joined()
  }

  /// A line in as many as the terminal needs for it, those after the first below its value.
  private func wrapped(_ line: Substring) -> String {
    guard let columns = pager.look.columns, columns > 2 * Self.margin else { return String(line) }
    var text = ""
    var used = 0
    for (index, word) in line.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
      if used > Self.margin, used + 1 + word.count > columns {
        text += "\n" + String(repeating: " ", count: Self.margin)
        used = Self.margin
      } else if index > 0 {
        text += " "
        used += 1
      }
      text += word
      used += word.count
    }
    return text
  }

  /// Where the values begin.
  private static let margin = 14
}
