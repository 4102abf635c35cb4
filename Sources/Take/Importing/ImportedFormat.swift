import FoundationEssentials
package import Observer
import Tape
import Wire

/// The format of a file to import.
package enum ImportedFormat: Hashable, Sendable {
  case capture
  case reported(ReportedFormat)
  case recording(PacketRecording.Format)

  /// Creates the format with this name; fails if there is none.
  package init?(name: String) {
    if name == "capture" {
      self = .capture
    } else if let format = ReportedFormat(rawValue: name) {
      self = .reported(format)
    } else if let format = PacketRecording.Format(rawValue: name) {
      self = .recording(format)
    } else {
      return nil
    }
  }

  /// The names of all formats, for help and completion.
  package static var names: [String] {
    ["capture"] + ReportedFormat.allCases.map(\.rawValue)
      + PacketRecording.Format.allCases.map(\.rawValue)
  }

  /// Detects a file's format by its content.
  ///
  /// Standard input is a capture unless the format is specified, because it can be read only once.
  package init(of path: String) throws {
    guard path != "-", let head = try Self.head(of: path) else {
      self = .capture
      return
    }
    if CaptureParser.canBegin(with: head) {
      self = .capture
    } else if RecordingList(head) != nil {
      self = .recording(.mjr)
    } else if let format = PacketRecording.Format(head: head) {
      self = .recording(format)
    } else if let format = ReportedFormat(head: head) {
      self = .reported(format)
    } else if !head.contains(0), try SpooledText(path).contains("RTP_DUMP") {
      // A log may contain much other text before its first packet.
      self = .recording(.rtpdumptext)
    } else {
      throw TapeError(path: PrintableText.line(path), place: "", reason: Self.refusal(of: head))
    }
  }

  /// Returns the reason for refusing a file in an unknown format, as one sentence.
  private static func refusal(of head: [UInt8]) -> String {
    func begins(_ bytes: [UInt8]) -> Bool { head.starts(with: bytes) }
    func begins(_ text: String) -> Bool { begins(Array(text.utf8)) }
    if head.isEmpty { return "it is empty" }
    if begins("SQLite format 3\0") { return "it is a take or another database, not a capture" }
    if begins([0x50, 0x4b, 3, 4]) { return "it is a ZIP archive: unpack it, and import its files" }
    let archives: [(magic: [UInt8], name: String)] = [
      ([0xfd, 0x37, 0x7a, 0x58, 0x5a], "xz"), (Array("BZh".utf8), "bzip2"),
      ([0x37, 0x7a, 0xbc, 0xaf], "7-Zip"), ([0x1f, 0x8b], "gzip twice"),
    ]
    if let archive = archives.first(where: { begins($0.magic) }) {
      return "it is compressed with \(archive.name): unpack it first; only gzip and zstd are read"
    }
    if begins("v=0") { return "it is a session description: --sdp adds it to a capture's calls" }
    if EventLog.beginsLikeVersion3(head) {
      return
        "it is an RTC event log of version 3; only versions 1 and 2 are read, which browsers write"
    }
    if begins("#!rtpplay") || begins("#!RTPencode") {
      return "it is an rtptools file of an unknown version; version 1.0 is read"
    }
    let text = String(decoding: head.prefix(4096), as: UTF8.self)
    if isPrintedDump(text) {
      return "it is rtpdump's printed text, without the packets' bytes: write a file with rtpdump "
        + "-F dump"
    }
    if text.contains("SCTP_PACKET") {
      return "it is a log with only SCTP packets: logs with RTP packets (RTP_DUMP) are read"
    }
    if ["CLIENT_RANDOM ", "_TRAFFIC_SECRET_"].contains(where: text.contains) {
      return "it is a key log: --keys adds it to a capture"
    }
    return "its format was not recognized: it is neither a pcap or pcapng file nor a known dump, "
      + "log or recording; name the format with --as"
  }

  /// Returns whether text has the lines of `rtpdump -F ascii`, as in `1700000000.1 RTP len=172`.
  private static func isPrintedDump(_ text: String) -> Bool {
    text.split(whereSeparator: \.isNewline).prefix(5).contains { line in
      let words = line.split(separator: " ")
      return words.count > 2 && Double(words[0]) != nil && ["RTP", "RTCP"].contains(words[1])
        && words[2].hasPrefix("len=")
    }
  }

  /// The format's name with an indefinite article, such as `a packet capture`.
  package var words: String {
    switch self {
    case .capture: "a packet capture"
    case .reported(let format): (format == .rtcstats ? "an " : "a ") + format.words
    case .recording(let format):
      (format == .mjr || format == .rtpdumptext ? "a " : "an ") + format.words
    }
  }

  /// Returns a file's first bytes, decompressed; nil if the file is not a regular file, or if the
  /// bytes cannot be read or decompressed, which the capture reader then handles.
  private static func head(of path: String) throws -> [UInt8]? {
    guard FileBytes.kind(of: path) == .file,
      case .success(let bytes) = FileBytes.read(path, atMost: 64 << 10)
    else { return nil }
    guard let format = Decompression.Format(bytes) else { return ByteOrderMark.unmarked(bytes) }
    var head: [UInt8] = []
    do {
      try Decompression(format).expand(bytes) { head += $0 }
    } catch is Decompression.Damage {
      return head.isEmpty ? nil : ByteOrderMark.unmarked(head)
    }
    // A zstd block may be longer than the bytes read.
    return head.isEmpty ? nil : ByteOrderMark.unmarked(head)
  }
}

/// The list of a Janus recording's files: the `.nfo` file beside them.
struct RecordingList {
  /// The files' names, as in the list.
  var names: [String] = []

  /// Parses a list; fails if the bytes are not a list.
  init?(_ bytes: [UInt8]) {
    let lines = String(decoding: bytes.prefix(64 << 10), as: UTF8.self)
      .split(whereSeparator: \.isNewline).map(\.trimmed)
      .filter { !$0.isEmpty && !$0.hasPrefix(";") && !$0.hasPrefix("#") }
    guard let first = lines.first, first.first == "[", first.last == "]",
      first.dropFirst().dropLast().allSatisfy(\.isNumber)
    else { return nil }
    for line in lines {
      let halves = line.split(separator: "=", maxSplits: 1).map { $0.trimmed }
      guard halves.count == 2, ["audio", "video"].contains(halves[0]) else { continue }
      names.append(halves[1].hasSuffix(".mjr") ? halves[1] : halves[1] + ".mjr")
    }
    guard !names.isEmpty else { return nil }
  }
}

extension PacketRecording {
  /// Reads a recording, or all recordings named in a list.
  package static func read(_ path: String, _ format: Format) throws -> PacketRecording {
    let file = try SpooledText(path).recording()
    guard format == .mjr, let list = RecordingList(file) else {
      return PacketRecording(format, file)
    }
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    var joined: PacketRecording?
    var absent: [String] = []
    for name in list.names {
      // A list may only name files in its own folder.
      guard !name.contains("/") else {
        throw TapeError(
          path: PrintableText.line(path), place: "", reason: "it names a file in another folder")
      }
      guard FileBytes.kind(of: folder + name) == .file else {
        absent.append(name)
        continue
      }
      let part = PacketRecording(.mjr, try SpooledText(folder + name).recording())
      if joined == nil { joined = part } else { joined?.merge(part) }
    }
    let listed = absent.joined(separator: " and ")
    guard var joined else {
      throw TapeError(
        path: PrintableText.line(path), place: "",
        reason: "it lists \(listed), but its folder has none of them", kind: .missing)
    }
    if !absent.isEmpty { joined.notes.append("its list names \(listed), not in its folder") }
    return joined
  }
}

extension CaptureImporter {
  /// Creates a take from packets that were stored without network headers.
  package static func record(
    _ recording: PacketRecording, of path: String, _ settings: ImportSettings,
    writing temporary: String, named take: String, reports: ImportReports
  ) throws -> CaptureSummary {
    var settings = settings
    settings.keepsIncomplete = false
    settings.isClear = true
    settings.awaitsKeys = false
    settings.descriptions += recording.descriptions
    if settings.names.isEmpty {
      settings.names = recording.ends.map {
        ObserverGenesis.EndName(address: $0.address, name: $0.name)
      }
    }
    let recorder = CaptureRecorder(settings, writing: temporary)
    let feed = CaptureFeed(path, notice: reports.notice)
    try recording.capture { try feed.receive($0) { try recorder.show($0, of: $1) } }
    try feed.finish { try recorder.show($0, of: $1) }
    guard recording.packetCount > 0, var summary = try recorder.finish(feed.counters),
      summary.calls > 0
    else {
      throw TapeError(
        path: PrintableText.line(path), place: "",
        reason: "no stream of RTP is in this \(recording.format.words)"
          + recording.notes.map { "; \($0)" }.joined())
    }
    summary.take = take
    summary.notes += recording.notes
    // Media known to be unencrypted needs no `--clear`.
    summary.hints.removeAll { $0.contains("--clear") }
    return summary
  }
}
