import ArgumentParser
import FoundationEssentials
import Tape

/// Creates a take of calls between others that a packet capture holds.
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
    let summary = try WritingWhole.take(out, overwrite.present) { path in
      let taking = CaptureTaking(settings, writing: path)
      let counters = try CaptureFeed.read(capture, "importing") { try taking.show($0, of: $1) }
      guard var summary = try taking.finish(counters) else {
        throw counters.nothingFound(in: capture)
      }
      summary.take = out
      summary.notes += notes
      return summary
    }
    try json
      ? Output.json(CanonicalJSON.text(summary), in: JSONForm())
      : Output.line(summary.words)
  }

  /// Creates a take of each call.
  private func importCalls(_ settings: CaptureTaking.Settings) throws {
    guard capture != "-" else {
      throw CommandFailure(
        .usage, "a take of each call needs a capture in a file, because it is read twice")
    }
    let report = try CallFolder(
      capture: capture, folder: out, settings: settings, present: overwrite.present
    ).write()
    try json
      ? Output.json(CanonicalJSON.text(report), in: JSONForm())
      : Output.line(report.words)
  }
}
