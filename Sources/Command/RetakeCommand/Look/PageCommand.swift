import ArgumentParser
import FoundationEssentials
import Page
import Synchronization
import Tape
import Wire

/// A take as a web page.
struct PageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page",
    abstract: "Draw a take as one web page: the call on one clock, with what went wrong first.",
    discussion: """
      The page needs no server and loads nothing. It tells the query behind each drawing, and the \
      command that goes to each place. It has no keys, but all signaling with its addresses and \
      ICE passwords, and audio and video up to 24 MB: keep it as you keep the take, or leave that \
      out. `retake open` shows the same page with all packets and media of any length.

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
    help: "The file to write; else the take's name with .html in the present folder.",
    completion: .file(extensions: ["html"]), transform: Taking.path)
  var out: String?

  @Flag(name: .customLong("no-media"), help: "Leave out audio and video.")
  var leavesMedia = false

  @Flag(name: .customLong("no-messages"), help: "Leave out the texts of signaling messages.")
  var leavesMessages = false

  @Flag(
    name: .customLong("no-addresses"),
    help: "Put a name in the place of each IP address, the same one everywhere.")
  var leavesAddresses = false

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    noteEndings(of: take)
    var options = TakePage.Options()
    options.keepsMedia = !leavesMedia
    options.keepsMessages = !leavesMessages
    options.keepsAddresses = !leavesAddresses
    let step = Mutex("")
    let wanted = options
    let name = FileBytes.stem(of: take)
    let file = out ?? name + ".html"
    try overwrite.check(file, reading: take)
    // What cannot be written is said before the work.
    _ = try WritingWhole.file(file, overwrite.present)
    let page = try Progress("drawing").follow(telling: { step.withLock { $0 } }) {
      try reading { () throws(TapeError) in
        try TakePage(path: take, options: wanted) { text in step.withLock { $0 = text } }
      }
    }
    // As secret as the take.
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
