import ArgumentParser
import FoundationEssentials
import Importing
import Tape

/// Makes a take of calls between others that a packet capture holds.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Make a take of the calls in a packet capture.",
    discussion: """
      Reads a pcap or pcapng file, also one that gzip or zstd compressed, and makes a take of the \
      calls between others that it holds, or a take of each of them: both ends of each as peers, \
      with candidates, pairs, states, streams, RTCP and descriptions as far as the wire shows \
      them. Packets of no call are counted and not kept. What could not be seen, and why, stands \
      in the table coverage and in retake info. Packets are opened with the keys of a key log as \
      browsers and other programs write it (SSLKEYLOGFILE), with one inside of a pcapng file, or \
      with SRTP keys as servers log them.

      Examples:
        retake import call.pcap --keys keys.log --out call.take
        retake import call.pcapng --sdp offer.sdp --sdp answer.sdp --out call.take
        retake import call.pcap --map 96=vp8,97=rtx --decode --out call.take
        retake import day.pcap.zst --keys keys.log --out calls/
        tcpdump -w - udp | retake import - --out call.take
      """)

  @Argument(
    help: "The packet capture; - is standard input.",
    completion: .file(extensions: ["pcap", "pcapng"]), transform: Taking.path)
  var capture: String

  @Option(
    help: "The take to write, or a folder for a take of each call.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String

  @Option(
    help: "A key log (NSS format); may be given several times.", completion: .file(),
    transform: Taking.path)
  var keys: [String] = []

  @OptionGroup var observing: ObservingOptions
  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    var settings = try observing.settings()
    // What is not whole gets no name.
    settings.keepsIncomplete = false
    var notes: [String] = []
    for path in keys {
      let log = try ObservingOptions.text(path)
      if KeyLogGate.hasSecrets(log) {
        settings.keyLogs.append(log)
      } else {
        notes.append(CaptureSummary.noSecrets(CommandReading.oneLine(path)))
      }
    }
    if RecordOptions.isFolder(out) {
      notes.forEach { printError("retake: \($0)") }
      return try importCalls(settings)
    }
    try overwrite.check(out, reading: capture)
    var summary = try WritingWhole.take(out, overwrite.present) { path in
      try importing {
        try CaptureImporter(capture, settings: settings, reports: .onTerminal())
          .record(writing: path, named: out)
      }
    }
    summary.notes += notes
    try json
      ? Output.json(CanonicalJSON.text(summary), in: JSONForm())
      : Output.line(summary.words)
  }

  /// Makes a take of each call.
  private func importCalls(_ settings: ImportSettings) throws {
    guard capture != "-" else {
      throw CommandFailure(
        .usage, "a take of each call needs a capture in a file, because it is read twice")
    }
    WritingWhole.cleanUpOnSignals()
    let report = try importing {
      try CallFolder(
        capture: capture, folder: out, settings: settings, present: overwrite.present,
        reports: .onTerminal()
      ).write()
    }
    try json
      ? Output.json(CanonicalJSON.text(report), in: JSONForm())
      : Output.line(report.words)
  }
}

/// Imports something, or fails with one sentence and the right status.
func importing<Value>(_ body: () throws -> Value) throws -> Value {
  do {
    return try body()
  } catch let error as TapeError {
    throw CommandFailure(error)
  } catch let failure as WholeFile.Failure {
    throw CommandFailure(failure)
  }
}

extension ImportReports {
  /// Reports of damage on standard error, and a line there that follows the reading.
  static func onTerminal() -> ImportReports {
    let line = ProgressLine()
    return ImportReports(
      notice: { printError($0) },
      progress: { what, bytes in line.show(what, bytes) }, end: { line.clear() })
  }

  /// The line of what is done now.
  private final class ProgressLine {
    private var current: (what: String, progress: Progress)?

    func show(_ what: String, _ bytes: Int) {
      let progress =
        if let current, current.what == what { current.progress } else { Progress(what) }
      current = (what, progress)
      progress.show("\(what): \(bytes >> 20) MB")
    }

    func clear() {
      current?.progress.clear()
      current = nil
    }
  }
}
