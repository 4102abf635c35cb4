import ArgumentParser
import Debug
import Queries
import Tape

/// Tells how two takes differ.
struct DiffCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare two sessions, or one session under two builds, the first difference first.",
    discussion: """
      Both takes are put on one clock. Compared are the setup, signaling (descriptions section by \
      section, without what every session draws anew), states, tracks, pairs, frames, freezes, \
      refusals and stats. The exit status is 0 when nothing differs, 1 otherwise.

      Two folders are compared by what all of their takes came to, such as the captures of two \
      builds: the median, the tenth and the nine tenths of each measure, and in how many takes \
      each finding is. Takes of one label are pairs. A measure differs where its median or its \
      nine tenths moved by more than a tenth and by more than a person would notice, or where a \
      pair did.

      Examples:
        retake diff before.take after.take
        retake diff build-41/ build-42/
        retake diff good.take bad.take --align connected --json
      """)

  @Argument(
    help: "The first take, or a folder of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var first: String

  @Argument(
    help: "The second take, or a folder of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var second: String

  @Option(help: "What sets the clocks of two takes: start, connected or wall. Default: start.")
  var align: TakeDiff.Alignment?

  @Flag(help: "Print JSON for programs.")
  var json = false

  @OptionGroup var pager: PagerOptions

  func run() throws {
    let kinds = [first, second].map { FileBytes.kind(of: $0) }
    if kinds.contains(.folder) { return try compareFolders(kinds) }
    noteEndings(of: first, second)
    let diff = try Progress("comparing").follow {
      try reading { () throws(TapeError) in try TakeDiff(first, second, alignment: align ?? .start)
      }
    }
    try Output.verdict {
      try json
        ? Output.json(diff.json, in: JSONForm()) : pager.show(diff.text(pager.look) + "\n")
    }
    if !diff.isEmpty { throw CommandFailure(.difference, "") }
  }

  /// Compares what all takes of two folders came to.
  private func compareFolders(_ kinds: [FileBytes.Kind?]) throws {
    guard align == nil else {
      throw CommandFailure(.usage, "--align sets the clocks of two takes; leave it out for folders")
    }
    for (path, kind) in zip([first, second], kinds) where kind != .folder {
      let one =
        kind == nil ? "there is no such file or folder" : "it is no folder, and the other is"
      throw CommandFailure(
        kind == nil ? .noSuchFile : .usage, "\(path): \(one); compare two takes or two folders")
    }
    let looks = [try FolderLook([first]), try FolderLook([second])]
    let diff = try reading { () throws(TapeError) in
      try FolderDiff(looks[0].catalogue, looks[1].catalogue, folders: [first, second])
    }
    try Output.verdict {
      try json ? Output.json(diff.json) : pager.show(diff.text(pager.look))
    }
    for look in looks { FolderLook.report(look.catalogue.failures) }
    if !diff.isEmpty { throw CommandFailure(.difference, "") }
    try FolderLook.fail(of: looks.flatMap(\.catalogue.failures))
  }
}

extension TakeDiff.Alignment: ExpressibleByArgument {}
