import ArgumentParser
import Foundation
import Page
import Tape

/// A take as a web page.
struct PageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page",
    abstract: "Draw a take as one web page: states, paths, speakers and curves on one clock.",
    discussion: """
      The page needs no server and loads nothing. It tells the query behind each drawing, and \
      names the problems that `retake stats --problems` finds. It has no media and no keys, but \
      all signaling with its addresses and ICE passwords: keep it as you keep the take.

      Examples:
        retake page call.take
        retake page call.take --out /tmp/call.html
      """)

  @Argument(
    help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  @Option(
    help: "The file to write; else the take's name with .html in the present folder.",
    completion: .file(extensions: ["html"]), transform: Taking.path)
  var out: String?

  func run() throws {
    noteEndings(of: take)
    let page = try Progress("drawing").follow {
      try reading { () throws(TapeError) in try TakePage(path: take) }
    }
    let name = URL(fileURLWithPath: take).deletingPathExtension().lastPathComponent
    let file = out ?? name + ".html"
    // As secret as the take.
    try WritingWhole.text(page.html, to: file)
    try Output.line("\(file): \(page.html.utf8.count / 1000) kB; open it in a browser")
  }
}
