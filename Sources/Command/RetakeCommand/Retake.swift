package import ArgumentParser
import FoundationEssentials
import Glibc
import Live
import Queries
import Tape
import Wire

/// The command line's root.
struct Retake: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retake",
    abstract: "Records a live WebRTC session into one file and re-drives the whole stack from it.",
    discussion: """
      A recorded session is a take: one SQLite file with everything that went in and out of the \
      client stack. Replaying executes the stack again and compares every output.

      Names and messages from others are printed as text: invisible characters, control characters \
      and those that change the writing direction are escaped as in \\u{1b}, in JSON as \\u001b, \
      also in files and pipes. Secrets are hidden; retake sql shows them. Options for secrets can \
      read them from a file (@FILE) or from the environment (env:NAME).

      Try it:
        retake record demo --out demo.take
        retake replay demo.take
        retake timeline demo.take

      A call went wrong?
        retake import call.pcap --out call.take
        retake findings call.take
        retake page call.take --out call.html

      The exit status is 0 for success, 1 for a difference or a failed check, 2 for a condition \
      that was never met, 64 for wrong usage, 65 for a file that is not a valid take, 66 for a \
      missing file, 74 for an I/O failure (but not if a reader such as head closes the pipe). \
      Existing files are only replaced with --force.
      """,
    version: retakeVersion,
    subcommands: [
      Record.self, ImportCommand.self, ReplayCommand.self, InfoCommand.self, TimelineCommand.self,
      StatsCommand.self, FindingsCommand.self, SummaryCommand.self,
      SpeakersCommand.self, SQLCommand.self, PageCommand.self, OpenCommand.self,
      ExportCommand.self,
      DebugCommand.self,
      WhatIfCommand.self, ReenactCommand.self, DiffCommand.self, VerifyCommand.self,
      PinCommand.self, MinimiseCommand.self, UpgradeCommand.self, MergeCommand.self,
      RedactCommand.self, BundleCommand.self,
      SDKCommand.self, ShareScreen.self, AnswerQueryCommand.self,
    ])
}

/// Runs a command and converts its outcome to an exit status.
package enum RetakeProgram {
  /// Runs the command in the process's arguments; exits unless it succeeds.
  ///
  /// The command runs on the main thread, so that no other thread exists when it forks.
  @MainActor package static func main() async {
    Output.prepare()
    SQLiteLibrary.countNoMemory()
    Interruption.unblock([SIGINT, SIGTERM, SIGHUP])
    LoopNotices.onNotice { printError($0) }
    do throws(CommandFailure) {
      guard !arguments.isEmpty else {
        // Swift reads the command line from /proc, so without /proc there are no arguments.
        throw CommandFailure(
          .inputOutput, "the command line cannot be read without /proc: mount it here")
      }
      do {
        try checkDescriptors()
        var command = try command(Array(arguments.dropFirst()))
        if var asynchronous = command as? any AsyncParsableCommand {
          try await asynchronous.run()
        } else {
          try command.run()
        }
      } catch {
        try report(error)
      }
    } catch {
      WritingWhole.yieldToSignal()
      // A command that failed leaves nothing behind, not even a folder for its files.
      UnfinishedFiles.removeAll()
      if !error.message.isEmpty { printError("retake: \(error.message)") }
      // Let the parent see that Ctrl-C ended the process, so that scripts end as well.
      if error.status == .interrupted { WritingWhole.end(by: SIGINT) }
      exit(error.status.rawValue)
    }
  }

  /// Runs the command line of another program, with the same exit statuses and error messages.
  @MainActor package static func run(_ root: any ParsableCommand.Type) async {
    Output.prepare()
    Interruption.unblock([SIGINT, SIGTERM, SIGHUP])
    do {
      var command = try root.parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let failure as CommandFailure {
      if !failure.message.isEmpty { printError(failure.message) }
      exit(failure.status.rawValue)
    } catch {
      root.exit(withError: error)
    }
  }

  /// Runs a command that only reads files, within the process, and returns its exit status.
  ///
  /// - Parameter words: a command line without the program's name.
  package static func status(of words: [String]) -> Int32 {
    do throws(CommandFailure) {
      do {
        var command = try command(words)
        try command.run()
      } catch {
        try report(error)
      }
      return 0
    } catch {
      if !error.message.isEmpty { printError("retake: \(error.message)") }
      return error.status.rawValue
    }
  }

  /// Prints the text that an error represents, or throws it as a failure.
  private static func report(_ error: any Error) throws(CommandFailure) {
    if let failure = error as? CommandFailure { throw failure }
    // The parser represents help, versions and completions as errors.
    guard let text = CommandReading.text(of: error) else {
      throw CommandFailure(.inputOutput, String(describing: error))
    }
    try Output.line(text)
  }

  /// The command line's arguments, read as bytes, since file names need not be UTF-8.
  private static let arguments: [String] = (0..<Int(CommandLine.argc)).compactMap { index in
    CommandLine.unsafeArgv[index].map { word in
      SystemPath.name(UnsafeRawBufferPointer(start: word, count: strlen(word)))
    }
  }

  /// The number of descriptors that suffices for any command: for a take's files, and for the
  /// sockets and timers of one thread per processor.
  private static var neededDescriptors: Int {
    32 + 4 * ProcessInfo.processInfo.activeProcessorCount
  }

  /// Checks the limit on descriptors, because libraries abort without them.
  private static func checkDescriptors() throws(CommandFailure) {
    let needed = neededDescriptors
    guard DescriptorLimit.spare(upTo: needed) < needed else { return }
    DescriptorLimit.raise()
    let spare = DescriptorLimit.spare(upTo: needed)
    guard spare < needed else { return }
    throw CommandFailure(
      .inputOutput,
      "the system lets this process open only \(spare) more files, but it may need \(needed): "
        + "raise the limit, as in `ulimit -n 1024`")
  }

  /// Parses a command line; throws a command failure if the command line is refused, and another
  /// error for requested text such as help.
  private static func command(_ words: [String]) throws -> any ParsableCommand {
    do {
      return try CommandReading.read(words)
    } catch {
      guard CommandReading.text(of: error) == nil else { throw error }
      throw CommandReading.failure(of: error, words)
    }
  }
}

/// Exit statuses, some of which are values of sysexits.h.
package enum ExitStatus: Int32 {
  /// The reader closed the output.
  case readerIsGone = 0
  case difference = 1
  /// A requested condition was not found.
  case unmet = 2
  case usage = 64
  case invalidTake = 65
  case noSuchFile = 66
  case inputOutput = 74
  /// Ctrl-C: 128 plus the signal's number, as in shells.
  case interrupted = 130
}

/// A failure with its exit status, described in one sentence.
package struct CommandFailure: Error {
  package var status: ExitStatus
  package var message: String

  package init(_ status: ExitStatus, _ message: String) {
    self.status = status
    // File names may contain anything, but a failure is printed on one line.
    self.message = CommandReading.oneLine(message)
  }

  /// Ends a command whose output is no longer read; not a failure, and without a message.
  static let readerIsGone = CommandFailure(.readerIsGone, "")
}

/// Points to the developers' program that has the table of client SDKs.
struct SDKCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sdk",
    abstract: "Show where the table of five client SDKs' capabilities and their tests is.",
    discussion: """
      Example:
        retake sdk
      """)

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    if json {
      return try Output.json(
        JSONText.object([
          ("command", .text("swift run sdk-table")), ("article", .text("Client SDKs")),
        ]).text)
    }
    try Output.write(
      "The table is printed by swift run sdk-table in a checkout of Retake; it is also in the "
        + "article Client SDKs of the documentation.\n")
  }
}

/// Completes values in the shell that depend on the take on the command line.
enum Completions {
  /// The maximum number of completions offered.
  private static let limit = 100

  /// Returns the labels and numbers of the peers in the first take on the command line.
  static func peers(in words: [String]) -> [String] {
    let peers = peers(of: takes(in: words).first)
    let labels = peers.map(\.label).filter { !$0.isEmpty }
    return (labels + peers.map { String($0.number) }).map(CommandReading.oneLine)
  }

  static func peerNumbers(in words: [String], take index: Int = 0) -> [String] {
    peers(of: takes(in: words).dropFirst(index).first).map { String($0.number) }
  }

  private static func peers(of take: String?) -> [(number: Int64, label: String)] {
    guard let take, let peers = try? TakePeers.all(in: take) else { return [] }
    return peers.prefix(limit).map { ($0.number, $0.label) }
  }

  /// Returns the takes on an incomplete command line.
  private static func takes(in words: [String]) -> [String] {
    words.dropFirst().filter { word in
      !word.hasPrefix("-") && FileBytes.kind(of: word) == .file
    }
  }
}
