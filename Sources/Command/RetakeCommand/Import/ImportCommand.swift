import ArgumentParser
import FoundationEssentials
import Observer
import Tape

/// Makes a take of calls between others that a packet capture holds.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Make a take of a packet capture, or of what another stack reported.",
    discussion: """
      Reads a pcap or pcapng file, also one that gzip or zstd compressed, and makes a take of the \
      calls between others that it holds, or a take of each of them: both ends of each as peers, \
      with candidates, pairs, states, streams, RTCP and descriptions as far as the wire shows \
      them. Packets of no call are counted and not kept. What could not be seen, and why, stands \
      in the table coverage and in retake info. Packets are opened with the keys of a key log as \
      browsers and other programs write it (SSLKEYLOGFILE), with one inside of a pcapng file, or \
      with SRTP keys as servers log them.

      Also reads what other stacks report about themselves, compressed or not: dumps of \
      chrome://webrtc-internals of 2016 to 2026, rtcstats dumps, logs of Jitsi, and reports of \
      getStats as JSON. Of those the take has descriptions, candidates, states, tracks, statistics \
      and levels, and no packets; nothing of it is executed again.

      And packets that were stored without the network around them: recordings of Janus (mjr, or \
      the nfo that names several), files of rtptools, RTP_DUMP lines in logs, and RTC event logs, \
      which have headers alone. They are read like a capture of a call in the clear.

      The format is found by the content, and --as names it where that fails.

      Examples:
        retake import call.pcap --keys keys.log --out call.take
        retake import call.pcapng --sdp offer.sdp --sdp answer.sdp --out call.take
        retake import call.pcap --map 96=vp8,97=rtx --decode --out call.take
        retake import day.pcap.zst --keys keys.log --out calls/
        tcpdump -w - udp | retake import - --out call.take
        retake import webrtc_internals_dump.txt --out call.take
        retake import rtcstats_dump.gz --out call.take
        retake import recording.mjr --decode --out call.take
      """)

  @Argument(
    help: "The packet capture or file of reports; - is standard input.",
    completion: .file(), transform: Taking.path)
  var capture: String

  @Option(
    help: "The take to write, or a folder for a take of each call.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String

  @Option(
    help: "A key log (NSS format); may be given several times.", completion: .file(),
    transform: Taking.path)
  var keys: [String] = []

  @Option(
    name: .customLong("as"),
    help:
      "The format, where its content does not tell: capture, rtcstats, jitsi, internals, getstats, mjr, rtpdump, rtpdumptext, eventlog."
  )
  var format: ImportFormat?

  @OptionGroup var observing: ObservingOptions
  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    switch try format ?? ImportFormat(of: capture) {
    case .capture: break
    case .reported(let format): return try importReports(SpooledText(capture), format)
    case .recording(let format): return try importRecording(format)
    }
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

  /// The take of a file that holds one call; a folder gets it under the name of the file.
  private func onlyTake() throws -> String {
    var path = out
    if RecordOptions.isFolder(out) {
      try RecordOptions.makeFolder(out)
      let name = capture == "-" ? "imported" : FileBytes.name(of: capture)
      path = (out.hasSuffix("/") ? out : out + "/") + name + ".take"
    }
    try overwrite.check(path, reading: capture)
    return path
  }

  /// Makes a take of packets that were stored without the network around them.
  private func importRecording(_ format: PacketRecording.Format) throws {
    let path = try onlyTake()
    let recording = try PacketRecording.read(capture, format)
    guard recording.packetCount > 0 else {
      throw CommandFailure(
        .invalidTake,
        "\(CommandReading.oneLine(capture)): no packet is in this \(format.words)"
          + recording.notes.map { "; \($0)" }.joined())
    }
    var settings = try observing.settings()
    settings.keepsIncomplete = false
    settings.isClear = true
    settings.awaitsKeys = false
    settings.descriptions += recording.descriptions
    if settings.names.isEmpty {
      settings.names = recording.ends.map {
        ObserverGenesis.EndName(address: $0.address, name: $0.name)
      }
    }
    let summary = try WritingWhole.take(path, overwrite.present) { temporary in
      let taking = CaptureTaking(settings, writing: temporary)
      let feed = CaptureFeed(capture)
      try recording.capture { try feed.take($0) { try taking.show($0, of: $1) } }
      try feed.finish { try taking.show($0, of: $1) }
      guard var summary = try taking.finish(feed.counters), summary.calls > 0 else {
        throw CommandFailure(
          .invalidTake,
          "\(CommandReading.oneLine(capture)): the packets of this \(format.words) are no streams of RTP"
        )
      }
      summary.take = path
      summary.notes += recording.notes
      // What is known to be in the clear needs no option that says so.
      summary.hints.removeAll { $0.contains("--clear") }
      return summary
    }
    try json
      ? Output.json(CanonicalJSON.text(summary), in: JSONForm())
      : Output.line(summary.words)
  }

  /// Makes a take of what another stack reported.
  private func importReports(_ text: SpooledText, _ format: ReportedFormat) throws {
    let path = try onlyTake()
    let source = ReportedImport(
      text: text, name: CommandReading.oneLine(capture), format: format, label: observing.label)
    let summary = try WritingWhole.take(path, overwrite.present) { temporary in
      var summary = try source.write(to: temporary)
      summary.take = path
      return summary
    }
    try json
      ? Output.json(CanonicalJSON.text(summary), in: JSONForm())
      : Output.line(summary.words)
  }

  /// Makes a take of each call.
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
