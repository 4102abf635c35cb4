import ArgumentParser
import FoundationEssentials
import Page
import Queries
import Synchronization
import Tape
import Wire

/// Shows a take's contents.
struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Describe a take: peers, states, tracks, sizes, toolchain.",
    discussion: """
      For several takes, or a folder, it prints one line per take.

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

  /// Returns the lines about the contents, wrapped to the terminal's width.
  private func rows(of info: TakeInfo) -> String {
    let lines = info.description.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { wrapped($0) + "\n" }.joined()
  }

  /// Wraps a line to the terminal; continuation lines are indented to the value.
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

  /// The column in which values start.
  private static let margin = 14
}

/// Lists all peers' signaling and state changes.
struct TimelineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "timeline",
    abstract: "List the signaling, states, candidates and tracks of all peers in order of time.",
    discussion: """
      The lanes are \(Timeline.lanes.joined(separator: ", ")).

      Examples:
        retake timeline call.take
        retake timeline call.take --peer caller --lane state --lane pair
        retake timeline call.take --from 2s --to 3.5s
      """)

  @OptionGroup var options: TakeOptions
  @OptionGroup var part: SelectionOptions

  @Option(
    help: ArgumentHelp("Only this lane; may be given several times.", valueName: "lane"),
    completion: .list(Timeline.lanes),
    transform: LaneName.read)
  var lane: [String] = []

  @OptionGroup var pager: PagerOptions

  func run() throws {
    reportEndings(of: options.take)
    let selection = try part.selection(in: options.take)
    let timeline = try Progress("reading").follow {
      try reading { () throws(TapeError) in
        try Timeline(path: options.take, selection: selection, lanes: lane)
      }
    }
    if options.json { return try Output.json(SecretText.hidden(in: timeline.json)) }
    try pager.show(SecretText.hidden(in: timeline.text(pager.look)))
  }
}

// MARK: - SpeakersCommand

/// Shows who spoke when.
struct SpeakersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "speakers",
    abstract: "Show who spoke when and how much, who dominated, and how loud everybody was.",
    discussion: """
      A participant is an audio track of a peer: label/out/track for what the peer sends, \
      label/in/track for what it receives. Speech is audio of -47 dBov or more with pauses of up \
      to half a second; steady audio never dominates, only what stands out from its own \
      background. With --from and --to, speech is cut at those times and the totals are those \
      between them. For several takes, or a folder, it prints how much each participant of each \
      take spoke.

      Each bar is a person, who may have several tracks or connections. A cell is full if the \
      person speaks for at least half of its time. An interruption is speech that begins while \
      another person has been speaking for half a second; that person goes on for a quarter of a \
      second to three seconds and falls silent, and the interrupting one speaks for at least a \
      second after that.

      Examples:
        retake speakers call.take
        retake speakers takes/
        retake speakers call.take --peer caller --from 10s --to 1min
        retake sql call.take "SELECT * FROM talk_share"
        retake sql call.take "SELECT * FROM interruption"
      """)

  @OptionGroup var options: TakesOptions
  @OptionGroup var part: SelectionOptions
  @OptionGroup var pager: PagerOptions

  func run() throws {
    if options.areMany {
      let look = try FolderLook(
        options.takes, CatalogueReading(selection: part.ofEachTake))
      return try look.show("speakers", options, pager) { (look) throws(TapeError) in
        try look.catalogue.speakersText(pager.look)
      }
    }
    reportEndings(of: options.take)
    let selection = try part.selection(in: options.take)
    let timeline = try Progress("reading").follow {
      try reading { () throws(TapeError) in
        try SpeakerTimeline(path: options.take, selection: selection)
      }
    }
    if options.json { return try Output.json(timeline.json) }
    try pager.show(timeline.text(pager.look))
  }
}

// MARK: - PageCommand

/// Writes a take as a web page.
struct PageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page",
    abstract: "Draw a take as one web page: the call on one clock, with what went wrong first.",
    discussion: """
      The page needs no server and loads nothing. It shows the query behind each drawing, and the \
      command for each place. It contains no keys, but it has all signaling with addresses and ICE \
      passwords, and up to 24 MB of audio and video: protect it like the take, or leave those out. \
      `retake open` shows the same page with all packets and media of any length.

      Examples:
        retake page call.take
        retake page call.take --out /tmp/call.html
        retake page call.take --no-media --no-messages --no-addresses
      """)

  @Argument(
    help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  @Option(
    name: [.short, .long],
    help: "The file to write. Default: the take's name with .html in the working directory.",
    completion: .file(extensions: ["html"]), transform: Taking.path)
  var out: String?

  @Flag(name: .customLong("no-media"), help: "Leave out audio and video.")
  var leavesMedia = false

  @Flag(name: .customLong("no-messages"), help: "Leave out the texts of signaling messages.")
  var leavesMessages = false

  @Flag(
    name: .customLong("no-addresses"),
    help: "Replace each IP address by a name, the same one everywhere.")
  var leavesAddresses = false

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    reportEndings(of: take)
    var options = TakePage.Options()
    options.keepsMedia = !leavesMedia
    options.keepsMessages = !leavesMessages
    options.keepsAddresses = !leavesAddresses
    let step = Mutex("")
    let wanted = options
    let name = FileBytes.stem(of: take)
    let file = out ?? name + ".html"
    try overwrite.check(file, reading: take)
    // Report an unwritable file before doing the work.
    _ = try WritingWhole.file(file, overwrite.present)
    let page = try Progress("drawing").follow(telling: { step.withLock { $0 } }) {
      try reading { () throws(TapeError) in
        try TakePage(path: take, options: wanted) { text in step.withLock { $0 = text } }
      }
    }
    // The default mode 0600 fits: the page reveals as much as the take.
    try WritingWhole.text(page.html, to: file, overwrite.present)
    if json {
      return try Output.json(
        JSONText.object([
          ("take", .text(take)), ("page", .text(file)), ("bytes", .integer(page.html.utf8.count)),
          ("omitted_media_bytes", .integer(page.omittedMediaBytes)),
        ]).text)
    }
    try Output.line("\(file): \(page.html.utf8.count / 1000) kB; open it in a browser")
    if page.omittedMediaBytes > 0 {
      printError(
        "its \(page.omittedMediaBytes / 1_000_000) MB of media are left out; "
          + "\(ShellText.command("retake", "open", take)) plays them")
    }
  }
}
