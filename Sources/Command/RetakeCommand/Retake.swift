package import ArgumentParser
import FoundationEssentials
import Glibc
import Live
import Queries
import Tape
import Wire

/// The root of the command line.
struct Retake: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retake",
    abstract: "Records a live WebRTC session into one file and re-drives the whole stack from it.",
    discussion: """
      A recorded session is a take: one SQLite file with everything that went in and out of the \
      client stack. Replaying executes the stack again and compares every output.

      Names and messages of others are printed as text: what has no shape of its own, control \
      characters, what turns the direction of writing, is escaped, as in \\u{1b} and in JSON as \
      \\u001b, also in files and pipes. Secrets are hidden; retake sql shows them. Options that \
      hold a secret read it from a file (@FILE) or from the environment (env:NAME).

      Try it:
        retake record demo --out demo.take
        retake replay demo.take
        retake timeline demo.take

      A call went wrong?
        retake import call.pcap --out call.take
        retake findings call.take
        retake page call.take --out call.html

      The exit status is 0 when all is well, 1 for a difference or a failed check, 2 for a \
      condition that nothing met, 64 for wrong usage, 65 for a file that is not a valid take, 66 \
      for a file that is not there, 74 for an I/O failure. A reader who has enough, as head, is \
      none. A file that is there is replaced with --force alone.
      """,
    version: retakeVersion,
    subcommands: [
      Record.self, ImportCommand.self, ReplayCommand.self, InfoCommand.self, TimelineCommand.self,
      StatsCommand.self, FindingsCommand.self, SummaryCommand.self,
      SpeakersCommand.self, SQLCommand.self, PageCommand.self, OpenCommand.self,
      ExportCommand.self,
      DebugCommand.self,
      WhatIfCommand.self, DiffCommand.self, VerifyCommand.self,
      PinCommand.self, MinimiseCommand.self, UpgradeCommand.self, MergeCommand.self,
      RedactCommand.self, BundleCommand.self,
      SDKCommand.self, ShareScreen.self, AnswerQueryCommand.self,
    ])
}

/// Runs a command and turns its outcome into an exit status.
package enum RetakeProgram {
  /// Runs the command of the process's own command line, and ends the process unless all is well.
  ///
  /// On the first thread, so that a command that copies the process has no other one.
  @MainActor package static func main() async {
    Output.prepare()
    SQLiteLibrary.countNoMemory()
    Interruption.unblock([SIGINT, SIGTERM, SIGHUP])
    LoopNotices.onNotice { printError($0) }
    do throws(CommandFailure) {
      guard !arguments.isEmpty else {
        // Swift reads it there.
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
      if !error.message.isEmpty { printError("retake: \(error.message)") }
      // Whoever started this sees that it was Ctrl-C, and a script ends with it.
      if error.status == .interrupted { WritingWhole.end(by: SIGINT) }
      exit(error.status.rawValue)
    }
  }

  /// Runs another program's command line as `retake` runs its own.
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

  /// Runs a command that only looks into files, within the process, and returns its exit status.
  ///
  /// - Parameter words: a command line, the name of the program left out.
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

  /// Prints the text that an error stands for; throws the failure that any other one is.
  private static func report(_ error: any Error) throws(CommandFailure) {
    if let failure = error as? CommandFailure { throw failure }
    // Help, versions and completions are errors to the parser.
    guard let text = CommandReading.text(of: error) else {
      throw CommandFailure(.inputOutput, String(describing: error))
    }
    try Output.line(text)
  }

  /// The words of the command line with all their bytes: names of files need not be UTF-8.
  private static let arguments: [String] = (0..<Int(CommandLine.argc)).compactMap { index in
    CommandLine.unsafeArgv[index].map { word in
      SystemPath.name(UnsafeRawBufferPointer(start: word, count: strlen(word)))
    }
  }

  /// What any command may have open: files of a take, and sockets and timers of its threads, of
  /// which there are as many as processors.
  private static var neededDescriptors: Int {
    32 + 4 * ProcessInfo.processInfo.activeProcessorCount
  }

  /// Makes sure that there are descriptors enough: the libraries below end a process without them.
  private static func checkDescriptors() throws(CommandFailure) {
    let needed = neededDescriptors
    guard DescriptorLimit.spare(upTo: needed) < needed else { return }
    DescriptorLimit.raise()
    let spare = DescriptorLimit.spare(upTo: needed)
    guard spare < needed else { return }
    throw CommandFailure(
      .inputOutput,
      "the system lets this process open \(spare) more files where \(needed) may be needed: raise "
        + "the limit, as in `ulimit -n 1024`")
  }

  /// The command that a command line means; what it refuses is a failure, what it prints another
  /// error.
  private static func command(_ words: [String]) throws -> any ParsableCommand {
    do {
      return try CommandReading.read(words)
    } catch {
      guard CommandReading.text(of: error) == nil else { throw error }
      throw CommandReading.failure(of: error, words)
    }
  }
}

/// How a command ends: two of its own, and values of sysexits.h.
package enum ExitStatus: Int32 {
  /// Whoever read the output of the command has enough of it.
  case readerIsGone = 0
  case difference = 1
  /// A condition that nothing met.
  case unmet = 2
  case usage = 64
  case invalidTake = 65
  case noSuchFile = 66
  case inputOutput = 74
  /// Ctrl-C: 128 and the signal's number, as shells have it.
  case interrupted = 130
}

/// A failure in one sentence, with the exit status that belongs to it.
package struct CommandFailure: Error {
  package var status: ExitStatus
  package var message: String

  package init(_ status: ExitStatus, _ message: String) {
    self.status = status
    // Names of files may hold anything, and a failure is one sentence on one line.
    self.message = CommandReading.oneLine(message)
  }

  /// The end of a command whose output nobody reads any more: no failure, and nothing to say.
  static let readerIsGone = CommandFailure(.readerIsGone, "")
}

/// Names the developers' program that has the table of the client SDKs.
struct SDKCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sdk",
    abstract: "Say where the capabilities of five client SDKs are listed, with their tests.",
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
      "The table is printed by swift run sdk-table in a checkout of Retake, and stands in the"
        + " article Client SDKs of the documentation.\n")
  }
}

/// What the shell offers where a value depends on a take that stands in the line already.
enum Completions {
  /// A take of any size has far more peers than a person looks through.
  private static let limit = 100

  /// The labels and numbers of the peers.
  static func peers(in words: [String]) -> [String] {
    let peers = peers(of: takes(in: words).first)
    let labels = peers.map(\.label).filter { !$0.isEmpty }
    return (labels + peers.map { String($0.number) }).map(CommandReading.oneLine)
  }

  /// The numbers of the peers of one of the takes.
  static func peerNumbers(in words: [String], take index: Int = 0) -> [String] {
    peers(of: takes(in: words).dropFirst(index).first).map { String($0.number) }
  }

  private static func peers(of take: String?) -> [(number: Int64, label: String)] {
    guard let take, let peers = try? TakePeers.all(in: take) else { return [] }
    return peers.prefix(limit).map { ($0.number, $0.label) }
  }

  /// The takes of a line that is being typed.
  private static func takes(in words: [String]) -> [String] {
    words.dropFirst().filter { word in
      !word.hasPrefix("-") && FileBytes.kind(of: word) == .file
    }
  }
}
