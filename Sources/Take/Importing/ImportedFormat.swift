import FoundationEssentials
package import Observer
import Tape
import Wire

/// The format of a file to import.
package enum ImportedFormat: Hashable, Sendable {
  case capture
  case reported(ReportedFormat)
  case recording(PacketRecording.Format)

  /// Finds the format with this name; fails if there is none.
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

  /// The names of all formats.
  package static var names: [String] {
    ["capture"] + ReportedFormat.allCases.map(\.rawValue)
      + PacketRecording.Format.allCases.map(\.rawValue)
  }

  /// The format's name.
  package var words: String {
    switch self {
    case .capture: "packet capture"
    case .reported(let format): format.words
    case .recording(let format): format.words
    }
  }

  /// Whether a file begins as a packet capture does: pcap or pcapng, compressed or not.
  package static func isCapture(_ path: String) -> Bool {
    guard let head = try? head(of: path) else { return false }
    let beginnings: [[UInt8]] = [
      [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0xc3, 0xd4], [0x4d, 0x3c, 0xb2, 0xa1],
      [0xa1, 0xb2, 0x3c, 0x4d], [0x0a, 0x0d, 0x0d, 0x0a],
    ]
    return beginnings.contains { head.starts(with: $0) }
  }

  /// Detects a file's format by its content.
  ///
  /// Standard input is a capture unless the format is specified, because it can be read only once.
  package init(of path: String) throws {
    guard path != "-", let head = try Self.head(of: path) else {
      self = .capture
      return
    }
    if RecordingList(head) != nil {
      self = .recording(.mjr)
    } else if let format = PacketRecording.Format(head: head) {
      self = .recording(format)
    } else {
      self = ReportedFormat(head: head).map { .reported($0) } ?? .capture
    }
  }

  /// Returns a file's first bytes, decompressed; nil if nothing can be read, which the capture
  /// reader then reports.
  private static func head(of path: String) throws -> [UInt8]? {
    guard FileBytes.kind(of: path) == .file,
      case .success(let bytes) = FileBytes.read(path, atMost: 64 << 10)
    else { return nil }
    guard let format = Decompression.Format(bytes) else { return bytes }
    var head: [UInt8] = []
    do {
      try Decompression(format).expand(bytes) { head += $0 }
    } catch is Decompression.Damage {
      return head.isEmpty ? nil : head
    }
    return head
  }
}

/// The list of files in a Janus recording: the `.nfo` beside them.
struct RecordingList {
  /// The files' names, as in the list.
  var names: [String] = []

  /// Reads a list; fails for other files.
  init?(_ bytes: [UInt8]) {
    let lines = String(decoding: bytes.prefix(64 << 10), as: UTF8.self)
      .split(whereSeparator: \.isNewline)
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
  /// Reads a recording, or those in a list.
  package static func read(_ path: String, _ format: Format) throws -> PacketRecording {
    let file = try SpooledText(path).all()
    guard format == .mjr, let list = RecordingList(file) else {
      return PacketRecording(format, file)
    }
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    var joined: PacketRecording?
    for name in list.names {
      // A list may only name files in its own folder.
      guard !name.contains("/") else {
        throw TapeError(
          path: PrintableText.line(path), place: "", reason: "it names a file in another folder")
      }
      let part = PacketRecording(.mjr, try SpooledText(folder + name).all())
      if joined == nil { joined = part } else { joined?.merge(part) }
    }
    return joined ?? PacketRecording(.mjr, [])
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
