import ArgumentParser
import Export
import FoundationEssentials
import Glibc
import Media
import MediaFiles
import Queries
import Replay
import Tape
import Wire

/// Converts a take to other tools' formats.
struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write a take, or a part of it, into files of other tools' formats.",
    discussion: """
      --pcap writes every datagram as it was on the wire, with reconstructed IP and UDP headers \
      and times in nanoseconds, for Wireshark. A take of two peers contains most datagrams twice, \
      as sent and as received; --peer selects those of one.

      With --clear it replays the take and writes RTP and RTCP without SRTP, and SCTP without \
      DTLS: Wireshark then shows all of it, with no keys (it finds RTP when its heuristic rtp_udp \
      is on). Handshakes are left out.

      --pcapng writes the packets on the wire with their secrets into one interface of a capture, \
      and decrypted RTP and RTCP into a second one (each stream on separate ports, whose highest \
      bit is inverted), after SIP exchanges that name the codecs: Wireshark then needs no \
      settings. An import of that file reads only the first interface.

      --media replays the take and writes what each received track showed or played into a .y4m or \
      .wav file; video that this build cannot decode is written undecoded: .h264 for H.264, .ivf \
      with the times of the frames for other codecs.

      --format writes any of the formats below to --out, and reports what the format cannot hold. \
      Passwords and keys of descriptions and configurations are removed from webrtc-internals and \
      rtcstats unless --secrets is given.

        webm, ogg, ivf, mp4  recorded frames, undecoded: a file for each received
                             track in the folder --out, and tracks.json
        wav, y4m             the same decoded, as --media writes it
        mjr, rtpdump         received RTP without SRTP, for Janus and rtptools
        webrtc-internals, rtcstats  calls, events and statistics, for dump importers
        perfetto             a trace of every packet's life, for ui.perfetto.dev
        tracks               tracks.json alone: beginnings, names, who spoke when
        csv, jsonl           the rows of --query: a view or table, or a SELECT

      Ogg holds Opus, IVF and MP4 hold video; MP4 is H.264 and needs ffmpeg.

      Examples:
        retake export call.take --pcap call.pcap
        retake export call.take --format webm --format ogg --out call-media
        retake export call.take --format rtcstats --out call.rtcstats --peer caller
        retake export call.take --format perfetto --out call.pftrace --from 10s
        retake export call.take --format csv --query packet --out packets.csv
        retake export call.take --pcap clear.pcap --clear --peer 1
        retake export call.take --pcapng call.pcapng
        retake export call.take --media call-media --peer caller --from 10s --to 20s
      """)

  @Argument(
    help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  @Option(
    help: "The packet capture to write; - is standard output.",
    completion: .file(extensions: ["pcap"]), transform: Taking.path)
  var pcap: String?

  @Option(
    help: "The capture in the pcapng format to write, with secrets and packets in the clear.",
    completion: .file(extensions: ["pcapng"]), transform: Taking.path)
  var pcapng: String?

  @Flag(help: "Write the packets decrypted.")
  var clear = false

  @Option(
    help: "The folder to write media into; created if it does not exist.",
    completion: .directory, transform: Taking.path)
  var media: String?

  @Option(
    help: """
      The format to write; several may be given if they go into one folder: \
      \(ExportFormat.allCases.map(\.rawValue).joined(separator: ", ")).
      """,
    completion: .list(ExportFormat.allCases.map(\.rawValue)), transform: FormatName.read)
  var format: [ExportFormat] = []

  @Option(
    help: """
      Where to write --format: a file, or a folder for one file a track; - is standard output.
      """,
    completion: .file(), transform: Taking.path)
  var out: String?

  @Option(
    help: "What csv and jsonl hold: the name of a view or table, or a SELECT.",
    transform: Taking.query)
  var query: String?

  @Flag(help: "With webm, ogg, ivf and mp4, also write what was sent.")
  var sent = false

  @Flag(help: "Keep passwords and keys in webrtc-internals and rtcstats.")
  var secrets = false

  @OptionGroup var part: SelectionOptions

  @Option(
    name: [.customLong("frame-rate"), .customLong("rate")],
    help: "The frame rate of the .y4m files. Default: \(Self.usualRate).",
    transform: Taking.whole(1...120))
  var rate = Self.usualRate

  private static let usualRate = 30

  @Option(
    help: """
      The maximum length of all pauses over a second in a file of --media; pauses beyond that are \
      cut and reported. Default: \(TakeExport.usualGapSeconds) seconds.
      """,
    transform: Taking.seconds(0...1_000_000))
  var gap: Double?

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs: the files that were written.")
  var json = false

  func validate() throws {
    if json, pcap == "-" {
      throw ValidationError("--json and --pcap - both write to standard output: leave one out.")
    }
    if pcap == nil, pcapng == nil, media == nil, format.isEmpty {
      throw ValidationError(
        "Say what to write: --format NAME --out PATH, --pcap FILE, --pcapng FILE, --media FOLDER, "
          + "or several.")
    }
    try validateFormats()
    if gap != nil, media == nil, !format.contains(where: { [.wav, .y4m].contains($0) }) {
      throw ValidationError("--gap applies to media: add --media FOLDER.")
    }
    if clear, pcap == nil {
      throw ValidationError("--clear applies to packets: add --pcap FILE.")
    }
    if pcapng != nil, !part.span.isEmpty {
      throw ValidationError("--pcapng writes a whole take: leave --from and --to out.")
    }
  }

  func run() throws {
    reportEndings(of: take)
    let selection = try part.selection(in: take)
    let peer = try part.peers.number(in: take)
    let window = selection.fromNanoseconds...selection.toNanoseconds
    for path in [pcap, pcapng].compactMap({ $0 }) { try overwrite.check(path, reading: take) }
    var written: [JSONText] = []
    if let pcap { written += try exportPackets(to: pcap, of: peer, window) }
    if let pcapng { written += try exportWithSecrets(to: pcapng, of: peer) }
    if let media { written += try exportMedia(to: media, of: peer, window).json }
    if let out { written += try exportFormats(to: out, of: peer, window) }
    guard json else { return }
    try Output.json(JSONText.object([("take", .text(take)), ("files", .list(written))]).text)
  }

  func printLine(_ line: String) throws(CommandFailure) {
    if json { return }
    // Standard output may already carry the packet capture.
    if pcap == "-" || out == "-" { printError(line) } else { try Output.line(line) }
  }

  /// Returns a written capture's description as JSON.
  private func capture(_ path: String, _ packets: Int, inClear: Int? = nil) -> [JSONText] {
    [
      .object([
        ("file", .text(path)), ("kind", .text("packets")), ("packets", .integer(packets)),
        ("packets_in_clear", inClear.map { .integer($0) }),
      ])
    ]
  }

  // MARK: Packets

  private func exportPackets(
    to path: String, of peer: Int64?, _ window: ClosedRange<Int64>
  ) throws -> [JSONText] {
    let progress = Progress("exporting packets")
    defer { progress.clear() }
    let show = { (words: String) in progress.show("exporting packets: \(words)") }
    let export = TakeExport(
      take: take, peer: peer, window: window, present: overwrite.present)
    guard clear else {
      let count = try exporting { () throws(ExportFailure) in
        try export.packets(to: path, progress: show)
      }
      progress.clear()
      guard count > 0 else { throw nothing("no packet", path, peer) }
      try printLine("\(path): \(counted(count, "packet"))")
      return capture(path, count)
    }
    let result = try exporting { () throws(ExportFailure) in
      try export.clearPackets(to: path, progress: show)
    }
    progress.clear()
    if result.written > 0 { try printLine("\(path): \(counted(result.written, "packet"))") }
    try check(result.report, "packets")
    guard result.written > 0 else { throw nothing("no packet", path, peer) }
    return capture(path, result.written, inClear: result.written)
  }

  private func exportWithSecrets(to path: String, of peer: Int64?) throws -> [JSONText] {
    WritingWhole.cleanUpOnSignals()
    let export = try PcapngExport(take: take, only: peer, to: path, overwrite.present)
    let (report, counts) = try export.run()
    let isEmpty = counts.allSatisfy { $0 == 0 }
    if !isEmpty {
      try printLine("\(path): \(counted(counts[0], "packet")), \(counts[1]) in the clear")
    }
    try check(report, "packets")
    guard !isEmpty else { throw nothing("no packet", path, peer) }
    return capture(path, counts[0], inClear: counts[1])
  }

  /// Returns the failure for an export that found nothing to write.
  func nothing(_ what: String, _ path: String, _ peer: Int64?) -> CommandFailure {
    let isPart = !part.span.isEmpty
    let whose = peer.map { " of peer \($0)" } ?? ""
    let way =
      isPart
      ? "between --from and --to; choose other times"
      : peer == nil ? "in the take" : "in the take; leave --peer out, or choose another"
    return CommandFailure(.unmet, "\(take): \(path) is not written: \(what)\(whose) is \(way)")
  }

  /// Throws if a divergence cut an export short.
  func check(_ report: ReplayReport?, _ what: String) throws {
    guard let report else { return }
    guard case .identical = report.verdict else {
      printErrors(report.description)
      throw CommandFailure(
        .difference,
        "\(take): the replay reached only step \(report.steps + 1), so the \(what) end there")
    }
  }

  // MARK: Media

  func exportMedia(
    to folder: String, only kind: MediaKind? = nil, of peer: Int64?, _ window: ClosedRange<Int64>
  ) throws -> (json: [JSONText], written: [TrackFiles.Written]) {
    let progress = Progress("exporting media")
    defer { progress.clear() }
    let result = try exporting { () throws(ExportFailure) in
      try TakeExport(
        take: take, peer: peer, window: window, present: overwrite.present
      ).media(
        into: folder, only: kind, framesPerSecond: rate,
        gaps: gap.map { GapBudget(nanoseconds: Int64($0 * 1e9)) } ?? TakeExport.usualGaps,
        progress: { progress.show("exporting media: \($0)") })
    }
    progress.clear()
    for file in result.written {
      let frames =
        file.kind == .audio
        ? counted(file.frames, "block of audio", "blocks of audio")
        : counted(file.frames, "video frame")
      let begin = decimal(file.begin.seconds, 3)
      let gaps = file.leftOut.nanoseconds
      let left =
        gaps > 0
        ? "; \(decimal(Double(gaps) / 1e9, 1)) s of pauses are left out (--gap)"
        : ""
      try printLine("\(file.path): \(frames), from \(begin) s of the take on\(left)")
    }
    try check(result.report, "media")
    if result.written.isEmpty {
      let why = try reading { () throws(TapeError) in
        try UnheardMedia.reason(in: take, kind: kind?.rawValue)
      }
      guard let why, part.span.isEmpty else { throw nothing("no received track", folder, peer) }
      throw CommandFailure(.unmet, "\(take): \(folder) is not written: \(why)")
    }
    let json = result.written.map { file in
      JSONText.object([
        ("file", .text(file.path)), ("kind", .text(file.kind.rawValue)),
        ("frames", .integer(file.frames)), ("from_ns", .integer(file.begin.nanoseconds)),
        ("left_out_ns", .integer(file.leftOut.nanoseconds)),
      ])
    }
    return (json, result.written)
  }

  /// Runs an export, converting errors to command failures.
  func exporting<Value>(_ body: () throws(ExportFailure) -> Value) throws -> Value {
    WritingWhole.cleanUpOnSignals()
    do throws(ExportFailure) {
      return try body()
    } catch {
      switch error {
      case .take(let error): throw CommandFailure(error)
      case .file(let failure) where failure.code == EPIPE: throw CommandFailure.readerIsGone
      case .file(let failure): throw CommandFailure(failure)
      case .media(let words): throw CommandFailure(.inputOutput, words)
      case .folder(let path):
        throw CommandFailure(
          .inputOutput,
          "\(path): the folder cannot be made; choose another --\(media == nil ? "out" : "media")")
      case .nothing(let take, let reason): throw CommandFailure(.unmet, "\(take): \(reason)")
      case .noSuchPeer(let take, let number, let known):
        throw CommandFailure(
          .usage, "\(take): --peer \(number): there is no such peer; the take has \(known)")
      }
    }
  }
}
