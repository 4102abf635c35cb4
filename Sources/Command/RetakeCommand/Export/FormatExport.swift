import ArgumentParser
import Export
import FoundationEssentials
import Glibc
import Live
import Media
import Queries
import Replay
import Tape
import Wire

/// Parses a format's name on the command line.
enum FormatName {
  static func read(_ word: String) throws -> ExportFormat {
    guard let format = ExportFormat(rawValue: word) else {
      let known = ExportFormat.allCases.map(\.rawValue)
      throw Taking.Refusal("there is no such format\(Nearest.hint(word, among: known))")
    }
    return format
  }
}

/// Implements `retake export --format`.
extension ExportCommand {
  func validateFormats() throws {
    guard let first = format.first else {
      if out != nil { throw ValidationError("--out is for --format: add --format NAME.") }
      if query != nil {
        throw ValidationError("--query is for --format csv and jsonl: add one of them.")
      }
      if sent { throw ValidationError("--sent is for --format webm, ogg, ivf and mp4.") }
      if secrets {
        throw ValidationError("--secrets is for --format webrtc-internals and rtcstats.")
      }
      return
    }
    guard let out else {
      throw ValidationError("Say where to write --format \(first.rawValue): add --out PATH.")
    }
    if format.count > 1, format.contains(where: { $0.shape == .file }) {
      throw ValidationError(
        "Each of these formats is a single file with its own --out: give one --format.")
    }
    if first.shape == .folder, out == "-" {
      throw ValidationError(
        "--format \(first.rawValue) writes a folder of files: --out cannot be standard output.")
    }
    if json, out == "-" {
      throw ValidationError("--json and --out - both write to standard output: leave one out.")
    }
    let isQuery = first == .csv || first == .jsonl
    if isQuery, query == nil {
      throw ValidationError(
        "--format \(first.rawValue) needs --query: a view, as in --query packet, or a SELECT.")
    }
    if !isQuery, query != nil {
      throw ValidationError("--query is for --format csv and jsonl, not for \(first.rawValue).")
    }
    if isQuery, !part.isEmpty, let query, !Self.isName(query) {
      throw ValidationError("--query is a complete SELECT: select the peer and the time in it.")
    }
    if sent, !format.contains(where: { $0.container != nil }) {
      throw ValidationError("--sent is for --format webm, ogg, ivf and mp4.")
    }
    if secrets, ![.internals, .rtcstats].contains(first) {
      throw ValidationError("--secrets is for --format webrtc-internals and rtcstats.")
    }
  }

  /// Writes all requested formats; returns the files as JSON.
  func exportFormats(
    to out: String, of peer: Int64?, _ window: ClosedRange<Int64>
  ) throws -> [JSONText] {
    guard let first = format.first else { return [] }
    if out != "-", first.shape == .file { try overwrite.check(out, reading: take) }
    WritingWhole.cleanUpOnSignals()
    let files =
      try first.shape == .file
      ? [exportFile(first, to: out, of: peer, window)]
      : exportFolder(out, of: peer, window)
    for format in format where !json { printError("\(format.rawValue): \(format.limits)") }
    return files
  }

  private func written(
    _ format: ExportFormat, _ path: String, _ facts: [(String, JSONText?)]
  ) -> JSONText {
    .object(
      [("file", .text(path)), ("kind", .text(format.rawValue))] + facts
        + [("limits", .text(format.limits))])
  }

  // MARK: Single files

  private func exportFile(
    _ format: ExportFormat, to path: String, of peer: Int64?, _ window: ClosedRange<Int64>
  ) throws -> JSONText {
    let progress = Progress("exporting")
    defer { progress.clear() }
    let show = { (words: String) in progress.show("exporting \(format.rawValue): \(words)") }
    let present = overwrite.present
    switch format {
    case .rtpdump:
      let result = try exporting { () throws(ExportFailure) in
        try PacketExport(take: take, peer: peer, window: window, present: present)
          .writeDump(to: path, progress: show)
      }
      progress.clear()
      if let file = result.written { try printLine("\(path): \(counted(file.packets, "packet"))") }
      try check(result.report, "packets")
      guard let file = result.written else { throw nothing("no RTP in the clear", path, peer) }
      return written(
        format, path,
        [
          ("packets", .integer(file.packets)), ("from_ns", .integer(file.from)),
          ("to_ns", .integer(file.to)),
        ])
    case .internals, .rtcstats:
      let file = try exporting { () throws(ExportFailure) in
        try ReportExport(
          take: take, peer: peer, window: window, present: present, withSecrets: secrets
        ).write(format == .internals ? .internals : .rtcstats, to: path, progress: show)
      }
      guard file.connections > 0 else { throw nothing("no connection", path, peer) }
      try printLine(
        "\(path): \(counted(file.connections, "connection")), \(counted(file.events, "event")), "
          + "\(counted(file.reports, "report")) of statistics")
      return written(
        format, path,
        [
          ("connections", .integer(file.connections)), ("events", .integer(file.events)),
          ("reports", .integer(file.reports)),
        ])
    case .perfetto:
      let file = try exporting { () throws(ExportFailure) in
        try PerfettoExport(take: take, peer: peer, window: window, present: present)
          .write(to: path, progress: show)
      }
      guard file.events > 0 else { throw nothing("no event", path, peer) }
      try printLine("\(path): \(counted(file.events, "event")), \(counted(file.flows, "packet"))")
      return written(
        format, path, [("events", .integer(file.events)), ("packets", .integer(file.flows))])
    case .csv, .jsonl:
      return written(
        format, path, [("rows", .integer(try exportRows(format, to: path, of: peer, window)))])
    case .tracks, .webm, .ogg, .ivf, .mp4, .wav, .y4m, .mjr:
      // Folder formats are handled elsewhere: they write a file per track.
      let count = try exporting { () throws(ExportFailure) in
        try TracksFile(take: take, peer: peer, window: window).write(to: path, present)
      }
      guard count > 0 else { throw nothing("no track with packets", path, peer) }
      try printLine("\(path): \(counted(count, "track"))")
      return written(format, path, [("tracks", .integer(count))])
    }
  }

  // MARK: Rows

  private static func isName(_ query: String) -> Bool {
    query.utf8.allSatisfy {
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || $0 == UInt8(ascii: "_")
        || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
    }
  }

  /// Returns the SQL statement for `--query`, limited to the selected part of the take.
  private func statement(of peer: Int64?, _ window: ClosedRange<Int64>) throws -> String {
    guard let query, Self.isName(query) else { return query ?? "" }
    var conditions: [String] = []
    if !part.isEmpty {
      let columns = try reading { () throws(TapeError) in
        let connection = try TakeFile.openForQueries(take)
        do throws(SQLiteError) {
          let rows = try connection.prepare("SELECT name FROM pragma_table_info('\(query)')")
          var names: Set<String> = []
          while try rows.step() { names.insert(rows.text(0) ?? "") }
          return names
        } catch {
          throw TapeError(path: take, error)
        }
      }
      func needs(_ column: String, _ option: String) throws {
        if columns.contains(column) || columns.isEmpty { return }
        throw CommandFailure(
          .usage,
          "\(take): \(query) has no column \(column), so \(option) cannot select its rows")
      }
      if let peer {
        try needs("peer", "--peer")
        conditions.append("peer = \(peer)")
      }
      if !part.span.isEmpty {
        if columns.contains("from_ns"), columns.contains("to_ns") {
          conditions.append("to_ns >= \(window.lowerBound) AND from_ns <= \(window.upperBound)")
        } else {
          try needs("at_ns", part.span.from == nil ? "--to" : "--from")
          conditions.append("at_ns BETWEEN \(window.lowerBound) AND \(window.upperBound)")
        }
      }
    }
    let choice = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
    return "SELECT * FROM \(query)\(choice)"
  }

  /// Writes the query's rows and returns their number.
  private func exportRows(
    _ format: ExportFormat, to path: String, of peer: Int64?, _ window: ClosedRange<Int64>
  ) throws -> Int {
    let isCSV = format == .csv
    let run = QueryRun(
      take: take, query: try statement(of: peer, window), format: isCSV ? .csv : .jsonl,
      look: TableLook(), limit: nil)
    if path == "-" {
      let pieces = OutputPieces(isCSV ? .text : .json)
      return try run.answer { (text) throws(CommandFailure) in try pieces.write(text) }
    }
    let file = try WritingWhole.file(path, overwrite.present)
    let descriptor: FileDescriptor
    do throws(WholeFile.Failure) {
      descriptor = FileDescriptor(try file.open())
    } catch {
      throw CommandFailure(error)
    }
    let count = try run.answer { (text) throws(CommandFailure) in
      let plain = isCSV ? PrintableText.lines(text) : PrintableText.json(text)
      let code = WholeFile.write(Array(plain.utf8), into: descriptor.number)
      if code != 0 { throw CommandFailure(WholeFile.Failure(path: path, code: code)) }
    }
    try WritingWhole.finish(file)
    try printLine("\(path): \(counted(count, "row"))")
    return count
  }

  // MARK: Folders

  private func exportFolder(
    _ folder: String, of peer: Int64?, _ window: ClosedRange<Int64>
  ) throws -> [JSONText] {
    let mux = try format.contains(.mp4) ? Self.mux() : { _, _ in nil }
    let list = folder.hasSuffix("/") ? "\(folder)tracks.json" : "\(folder)/tracks.json"
    // Refuse existing files before writing anything.
    if FileBytes.kind(of: folder) == .folder {
      withExtendedLifetime(try WritingWhole.file(list, overwrite.present)) {}
    }
    try makeFolder(folder)
    var json: [JSONText] = []
    var media: [TracksFile.Media] = []
    for format in format {
      let (files, tracks) = try exportTracks(format, into: folder, of: peer, window, mux)
      json += files
      media += tracks
    }
    guard !media.isEmpty else {
      let names = format.map(\.rawValue).joined(separator: " or ")
      throw nothing("no track for \(names)", folder, peer)
    }
    let count = try exporting { () throws(ExportFailure) in
      try TracksFile(take: take, peer: peer, window: window)
        .write(to: list, overwrite.present, media: media)
    }
    guard count > 0 else { return json }
    try printLine("\(list): \(counted(count, "track"))")
    return json + [written(.tracks, list, [("tracks", .integer(count))])]
  }

  private func makeFolder(_ folder: String) throws {
    guard case .failure = WholeFile.makeFolder(folder) else { return }
    throw CommandFailure(
      .inputOutput, "\(folder): the folder cannot be made; choose another --out")
  }

  private func exportTracks(
    _ format: ExportFormat, into folder: String, of peer: Int64?, _ window: ClosedRange<Int64>,
    _ mux: FrameExport.Mux
  ) throws -> ([JSONText], [TracksFile.Media]) {
    let progress = Progress("exporting")
    defer { progress.clear() }
    let show = { (words: String) in progress.show("exporting \(format.rawValue): \(words)") }
    if let container = format.container {
      let files = try exporting { () throws(ExportFailure) in
        try FrameExport(
          take: take, peer: peer, window: window, present: overwrite.present, withSent: sent
        ).write(container, into: folder, mux: mux, progress: show)
      }
      progress.clear()
      for file in files { try printLine(Self.words(file)) }
      return (files.map { facts($0, format) }, files.map { TracksFile.Media($0) })
    }
    if format == .mjr {
      let result = try exporting { () throws(ExportFailure) in
        try PacketExport(take: take, peer: peer, window: window, present: overwrite.present)
          .writeRecordings(into: folder, progress: show)
      }
      progress.clear()
      for file in result.written {
        try printLine("\(file.path): \(counted(file.packets, "packet"))")
      }
      try check(result.report, "packets")
      let json = result.written.map { file in
        written(
          format, file.path,
          [
            ("packets", .integer(file.packets)), ("from_ns", .integer(file.from)),
            ("to_ns", .integer(file.to)),
          ])
      }
      return (json, result.written.compactMap { TracksFile.Media($0) })
    }
    let (json, files) = try exportMedia(
      to: folder, only: format == .wav ? .audio : .video, of: peer, window)
    return (json, files.compactMap { TracksFile.Media($0) })
  }

  private static func words(_ file: FrameExport.Written) -> String {
    let unit = file.track.isVideo ? "video frame" : "packet"
    var words = "\(file.path): \(counted(file.frames, unit))"
    words += " of \(file.track.codec), from \(decimal(Double(file.from) / 1e9, 3)) s of the take on"
    if file.sizes.count > 1 { words += "; sizes \(file.sizes.joined(separator: ", "))" }
    if file.concealed > 0 {
      words += "; \(decimal(Double(file.concealed) / 1e9, 2)) s lost or not sent are concealed"
    }
    if file.leftOut > 0 {
      words += "; \(decimal(Double(file.leftOut) / 1e9, 1)) s of pauses are left out"
    }
    if file.dropped > 0 {
      words +=
        "; \(counted(file.dropped, "frame")) "
        + (file.track.isVideo ? "before the first key frame" : "that were late or duplicated")
        + " left out"
    }
    return words
  }

  private func facts(_ file: FrameExport.Written, _ format: ExportFormat) -> JSONText {
    written(
      format, file.path,
      [
        ("peer", .integer(file.track.peer)), ("track", .integer(file.track.number)),
        ("direction", .text(file.track.isSent ? "out" : "in")), ("codec", .text(file.track.codec)),
        ("frames", .integer(file.frames)), ("from_ns", .integer(file.from)),
        ("to_ns", .integer(file.to)), ("concealed_ns", .integer(file.concealed)),
        ("left_out_ns", .integer(file.leftOut)), ("frames_left_out", .integer(file.dropped)),
        ("sizes", .list(file.sizes.map { .text($0) })),
      ])
  }

  /// Returns a muxer that runs ffmpeg, which puts H.264 into MP4 without decoding it.
  private static func mux() throws -> FrameExport.Mux {
    let program = MediaProgram.system
    guard let path = program.path else {
      throw CommandFailure(
        .inputOutput,
        "--format mp4: \(program.missing), or write --format ivf, which needs no program")
    }
    return { ivf, mp4 in
      let arguments = [
        "-nostdin", "-loglevel", "error", "-y", "-f", "ivf", "-i", "file:\(ivf)", "-c", "copy",
        "-movflags", "+faststart", "-f", "mp4", "file:\(mp4)",
      ]
      do throws(SystemError) {
        let process = try ChildProcess(path, arguments, output: .nothing, errors: .nothing)
        let status = process.waitUntilExit().status
        return status == 0
          ? nil : "ffmpeg could not put its video into MP4; --format ivf writes it without"
      } catch {
        return "ffmpeg cannot be started: \(error.description)"
      }
    }
  }
}
