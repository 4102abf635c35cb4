import ArgumentParser
import CallRecording
import FoundationEssentials
import Importing
import Media
import Observer
import Tape
import Wire

/// Imports packet captures, packet recordings and other stacks' reports as takes.
struct ImportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import a packet capture, or another stack's reports, as a take.",
    discussion: """
      Reads a pcap or pcapng file, optionally compressed with gzip or zstd, and makes one take of \
      the calls between others in it, or one take per call: both ends of each as peers, with \
      candidates, pairs, states, streams, RTCP and descriptions as far as the wire shows them. \
      Packets outside any call are counted and dropped. The table coverage and retake info show \
      what could not be observed, and why. Packets are decrypted with the keys of a key log as \
      written by browsers and other programs (SSLKEYLOGFILE), with one inside a pcapng file, or \
      with SRTP keys as servers log them.

      Also reads the reports of other stacks, compressed or not: dumps of \
      chrome://webrtc-internals from 2016 to 2026, rtcstats dumps, Jitsi logs, and getStats \
      reports as JSON. Such a take has descriptions, candidates, states, tracks, statistics and \
      levels, but no packets, and cannot be replayed.

      Also reads packets stored without network headers: Janus recordings (mjr, or the nfo that \
      names several), rtptools files, RTP_DUMP lines in logs, and RTC event logs, which have only \
      headers. They are read like a capture of an unencrypted call.

      The format is detected from the content; --as sets it if that fails.

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
    help: "The format, if its content does not show it.")
  var format: ImportedFormat?

  @OptionGroup var observing: ObservingOptions
  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs.")
  var json = false

  func run() throws {
    guard let format else {
      do {
        return try run(try importing { try ImportedFormat(of: capture) })
      } catch var failure as CommandFailure {
        // Standard input can be read only once, so its content is not searched for other formats.
        if capture == "-", failure.message.hasSuffix(CaptureError.notACapture.description) {
          failure.message += "; --as names another format"
        }
        throw failure
      }
    }
    do {
      try run(format)
    } catch var failure as CommandFailure {
      // The most likely cause is that `--as` named a format other than the file's.
      if failure.status == .invalidTake, capture != "-",
        let found = try? ImportedFormat(of: capture),
        found != format
      {
        failure.message +=
          "; its content is that of \(found.words); without --as it is imported as one"
      }
      throw failure
    }
  }

  private func run(_ format: ImportedFormat) throws {
    switch format {
    case .capture: break
    case .reported(let format): return try importReports(format)
    case .recording(let format): return try importRecording(format)
    }
    var settings = try observing.settings()
    // The take is deleted if the import fails.
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
    if TakeNames.isFolder(out) {
      notes.forEach { printError("retake: \($0)") }
      return try importCalls(settings)
    }
    try overwrite.check(out, reading: capture)
    var summary = try WritingWhole.writeTake(out, overwrite.present) { path in
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

  /// Returns the path of the single take to write; if `--out` is a folder, the take is named after
  /// the imported file.
  private func onlyTake() throws -> String {
    var path = out
    if TakeNames.isFolder(out) {
      if case .failure(let code) = WholeFile.makeFolder(out) {
        throw CommandFailure(
          .inputOutput, "\(CommandReading.oneLine(out)): the folder cannot be made: \(code)")
      }
      let name = capture == "-" ? "imported" : FileBytes.name(of: capture)
      path = (out.hasSuffix("/") ? out : out + "/") + name + ".take"
    }
    try overwrite.check(path, reading: capture)
    return path
  }

  /// Imports packets stored without the network headers around them.
  private func importRecording(_ format: PacketRecording.Format) throws {
    let path = try onlyTake()
    let settings = try observing.settings()
    let summary = try WritingWhole.writeTake(path, overwrite.present) { temporary in
      try importing {
        try CaptureImporter.record(
          PacketRecording.read(capture, format), of: capture, settings, writing: temporary,
          named: path, reports: .onTerminal())
      }
    }
    try json
      ? Output.json(CanonicalJSON.text(summary), in: JSONForm())
      : Output.line(summary.words)
  }

  /// Imports another stack's reports.
  private func importReports(_ format: ReportedFormat) throws {
    let path = try onlyTake()
    let summary = try WritingWhole.writeTake(path, overwrite.present) { temporary in
      try importing {
        var summary = try ReportedImport(
          capture, format, isSpecified: self.format != nil, label: observing.label,
          tags: observing.tagging.tags, reports: .onTerminal()
        ).write(to: temporary)
        summary.take = path
        return summary
      }
    }
    try json
      ? Output.json(CanonicalJSON.text(summary), in: JSONForm())
      : Output.line(summary.words)
  }

  /// Writes a take for each call of a capture.
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

/// Runs an import, converting errors to command failures.
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
  /// Returns reports that print damage and progress on standard error.
  static func onTerminal() -> ImportReports {
    let line = ProgressLine()
    return ImportReports(
      notice: { printError($0) },
      progress: { what, bytes in line.show(what, bytes) }, end: { line.clear() })
  }

  /// The progress line of the current part of an import.
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

extension ImportedFormat: ExpressibleByArgument {
  /// Creates the format of that name; nil if there is none.
  public init?(argument: String) { self.init(name: argument) }
  /// The names of all formats, for help and completion.
  public static var allValueStrings: [String] { names }
}

// MARK: - ObservingOptions

/// Options for observing calls between other endpoints: further inputs such as keys, and what to
/// keep.
struct ObservingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An SRTP key with its salt, in hexadecimal or base64, optionally preceded by the packets "
        + "it is for, as in ssrc:1234=KEY or 192.0.2.1:5000=KEY, and followed by its identifier, "
        + "as in KEY|1:4. \(Taking.secretForm)",
      valueName: "key"),
    transform: Taking.secret(ObservingOptions.key))
  var srtpKey: [String] = []

  @Option(
    help: "A session description of one of the ends; may be given several times.",
    completion: .file(), transform: Taking.path)
  var sdp: [String] = []

  @Option(
    help: "The codecs of payload types, as in 96=vp8,97=rtx,111=opus/48000.",
    transform: ObservingOptions.payloadTypes)
  var map: String?

  @Flag(
    help: """
      Read RTP without keys as unencrypted, even if its payloads do not show that.
      """)
  var clear = false

  @Flag(help: "Decode what the ends receive, for levels and digests of video and audio.")
  var decode = false

  @Flag(help: "Do not store unencrypted copies of the encoded frames.")
  var noMediaCopy = false

  @Option(
    help: ArgumentHelp(
      "The maximum number of paths between two addresses that are followed; an eighth of them may "
        + "be new within ten minutes without an answer. Packets on others count as outside any "
        + "call. Default: \(ObserverSettings.usualPathsMaximum).",
      valueName: "count"),
    transform: Taking.whole(8...1_000_000))
  var paths = ObserverSettings.usualPathsMaximum

  @Option(help: "A name for the take.", transform: Taking.text())
  var label = ""

  @OptionGroup var tagging: TagOption

  @Option(
    help: ArgumentHelp(
      "The name of the end at an address, as in 192.0.2.1=alice or 192.0.2.1:5000=bob; may be "
        + "given several times.",
      valueName: "address=name"),
    transform: ObservingOptions.endName)
  var name: [ObserverGenesis.EndName] = []

  private static let key: Taking.Reader<String> = { word in
    do throws(SRTPKeyError) {
      _ = try SRTPKey(parsing: word)
    } catch {
      throw Taking.Refusal(error.reason)
    }
    return word
  }

  private static let endName: Taking.Reader<ObserverGenesis.EndName> = { word in
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, (1...200).contains(parts[1].utf8.count),
      !parts[1].unicodeScalars.contains(where: { $0.value < 32 })
    else {
      throw Taking.Refusal("it is an address and a name, as in 192.0.2.1=alice")
    }
    let name = String(parts[1])
    if let address = SocketAddress(parts[0]) {
      return ObserverGenesis.EndName(address: address.description, name: name)
    }
    guard let address = IPAddress(parts[0]) else {
      throw Taking.Refusal("\(parts[0]) is not an address; give one as 192.0.2.1 or 192.0.2.1:5000")
    }
    return ObserverGenesis.EndName(address: address.description, name: name)
  }

  private static let payloadTypes: Taking.Reader<String> = { word in
    guard PayloadTypeMapping.list(parsing: word) != nil else {
      throw Taking.Refusal(
        "payload types are from 0 to 127, each with its codec, as in 96=vp8,97=rtx")
    }
    return word
  }

  /// Returns the settings for creating a take.
  func settings() throws(CommandFailure) -> ImportSettings {
    var settings = ImportSettings()
    settings.label = label
    settings.tags = tagging.tags
    settings.keepsMedia = !noMediaCopy
    settings.payloadTypes = map
    settings.isClear = clear
    settings.decodes = decode
    if decode { LibraryCodecs.missingDecoders.forEach { printError("retake: \($0)") } }
    settings.srtpKeys = srtpKey
    settings.pathsMaximum = paths
    settings.names = name
    for path in sdp { settings.descriptions.append(try Self.text(path)) }
    return settings
  }

  /// Returns a file's text; invalid UTF-8 is replaced.
  static func text(_ path: String) throws(CommandFailure) -> String {
    switch FileBytes.read(path) {
    case .success(let bytes): return String(decoding: bytes, as: UTF8.self)
    case .failure(let code):
      throw CommandFailure(.noSuchFile, "\(path): it cannot be read: \(code)")
    }
  }
}
