import ArgumentParser
import FoundationEssentials
import Page
import Queries
import Replay
import Tape
import Wire

/// Puts everything for a bug report into one file.
struct BundleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bundle",
    abstract: "Put a redacted take, its findings and its page into one file for a bug report.",
    discussion: """
      Makes a zip archive, which every bug tracker accepts: the take as retake redact makes it, \
      the findings as text and as JSON, the page of the take, and a text with the commands that \
      repeat them. With --as-is, the take is included unchanged, with its keys and media: share \
      that only with people who may have them.

      Examples:
        retake bundle call.take
        retake bundle call.take --out report.zip --remove keys,media,messages
      """)

  @OptionGroup var options: TakeOptions

  @Option(
    help: "The archive. Default: call.zip for call.take, in the working directory.",
    completion: .file(extensions: ["zip"]), transform: Taking.path)
  var out: String?

  @OptionGroup var what: RemoveOption

  @Flag(help: "Include the take unchanged, with its keys and media.")
  var asIs = false

  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    reportEndings(of: options.take)
    let stem = FileBytes.stem(of: options.take)
    let out = out ?? stem + ".zip"
    try overwrite.check(out, reading: options.take)
    // Report an unwritable file before doing the work.
    let file = try WritingWhole.file(out, overwrite.present)
    var made: Redactor.Summary?
    let archive: [UInt8]
    if asIs {
      archive = try archived(options.take, stem, nil)
    } else {
      // Pages and findings contain their take's name, so use a name that reveals nothing.
      let folder = FileManager.default.temporaryDirectory.path + "/retake-" + UUID().uuidString
      try makeFolder(folder)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let take = folder + "/call.take"
      // A signal ends the process without running the `defer` block above.
      UnfinishedFiles.add(folder: folder)
      UnfinishedFiles.add(take)
      let summary = try Progress("redacting").follow {
        try reading { () throws(TapeError) in
          try Redactor.run(path: options.take, output: take, parts: what.remove)
        }
      }
      made = summary
      archive = try archived(take, "call", summary)
    }
    withExtendedLifetime(file) {}
    try write(archive, to: out)
    if options.json {
      return try Output.json(
        JSONText.object([
          ("take", .text(options.take)), ("file", .text(out)), ("bytes", .integer(archive.count)),
          ("redacted", made.map { .text($0.sentence) }),
        ]).text)
    }
    try Output.line("\(out): \(archive.count / 1000) kB, with the take, its findings and its page")
    try Output.line(
      made.map { "  \($0.sentence)" }
        ?? "  it contains keys and media: share it only with people you trust")
  }

  private func makeFolder(_ path: String) throws(CommandFailure) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch {
      throw CommandFailure(
        .inputOutput, "\(path) cannot be created: set TMPDIR to a writable folder")
    }
  }

  private func write(_ archive: [UInt8], to out: String) throws(CommandFailure) {
    do throws(WholeFile.Failure) {
      try WholeFile.write(archive, to: out, overwrite.present, mode: 0o600)
    } catch {
      throw CommandFailure(error)
    }
  }

  /// Returns an archive of a take, its findings and its page; the take and the page are named after
  /// `stem`.
  private func archived(_ take: String, _ stem: String, _ made: Redactor.Summary?) throws -> [UInt8]
  {
    let (found, page) = try Progress("looking").follow {
      try reading { () throws(TapeError) in
        (try TakeFindings(path: take), try TakePage(path: take, options: pageOptions))
      }
    }
    var zip = ZipFile()
    guard case .success(let content) = FileBytes.read(take) else {
      throw CommandFailure(.inputOutput, "\(take) cannot be read: check that it is still there")
    }
    let name = stem + ".take"
    let isWhole =
      zip.add(name, content)
      && zip.add("findings.json", Array((found.json(take: name) + "\n").utf8))
      && zip.add("findings.txt", Array((found.text()).utf8))
      && zip.add(stem + ".html", Array(page.html.utf8))
      && zip.add("README.txt", Array(instructions(name, made).utf8))
    guard isWhole, let archive = zip.finished() else {
      throw CommandFailure(
        .inputOutput,
        "\(options.take) is too large for an archive of 4 GB: share only the take, as retake "
          + "redact makes it")
    }
    return archive
  }

  private var pageOptions: TakePage.Options {
    var options = TakePage.Options()
    options.keepsMedia = asIs
    return options
  }

  private func instructions(_ name: String, _ made: Redactor.Summary?) -> String {
    """
    A WebRTC session, recorded by Retake and packed by version \(retakeVersion).

    \(name) is the take (SQLite); \(made?.sentence ?? "nothing was removed from it").
    findings.txt says what went wrong. \(name.dropLast(5)).html draws the call in a browser.

    To repeat this:

        retake findings \(name)
        retake replay \(name)
        retake page \(name)

    """
  }
}
