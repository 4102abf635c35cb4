import ArgumentParser
import Foundation
import Replay
import Tape

/// Turns a take into the formats of other tools.
struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write the packets or the received media of a take into files of other formats.",
    discussion: """
      --pcap writes every datagram as it was on the wire, with its IP and UDP headers made again \
      and times in nanoseconds, for Wireshark. A take of two peers holds most datagrams twice, as \
      sent and as received; --peer takes those of one.

      With --clear it replays the take and writes RTP and RTCP without SRTP, and SCTP without \
      DTLS: Wireshark then shows all of it, with no keys (it finds RTP when its heuristic rtp_udp \
      is on). Handshakes are left out.

      --media replays the take and writes what every received track showed and played into one \
      .y4m or .wav file each; pictures that are not decoded here go into a file as they came, one \
      of H.264 being a .h264 file, and others .ivf files with the times of their pictures.

      Examples:
        retake export call.take --pcap call.pcap
        retake export call.take --pcap clear.pcap --clear --peer 1
        retake export call.take --media call-media --peer 1
      """)

  @Argument(
    help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String

  @Option(
    help: "The packet capture to write; - is standard output.",
    completion: .file(extensions: ["pcap"]), transform: Taking.path)
  var pcap: String?

  @Flag(help: "Write the packets as they are without their protection.")
  var clear = false

  @Option(
    help: "The folder to write media into; it is made when it is not there.",
    completion: .directory, transform: Taking.path)
  var media: String?

  @Option(
    help: "Only the packets or media of the peer with this number; retake info lists them.",
    transform: Taking.peer)
  var peer: Int64?

  @Option(
    help: "The pictures per second of the .y4m files. Default: \(Self.usualRate).",
    transform: Taking.whole(1...120))
  var rate = Self.usualRate

  private static let usualRate = 30

  func validate() throws {
    if pcap == nil, media == nil {
      throw ValidationError("Say what to write: --pcap FILE, --media FOLDER, or both.")
    }
    if clear, pcap == nil {
      throw ValidationError("--clear is about packets: give --pcap FILE too.")
    }
  }

  func run() throws {
    noteEndings(of: take)
    if let pcap { try exportPackets(to: pcap) }
    if let media { try exportMedia(to: media) }
  }

  private func tell(_ line: String) throws(CommandFailure) {
    // Standard output may be the packet capture.
    if pcap == "-" { printError(line) } else { try Output.line(line) }
  }

  // MARK: Packets

  private func exportPackets(to path: String) throws {
    let history = try reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer)
    }
    try check(history.peers)
    var file = try PacketFile(path, startUnixNanoseconds: history.startUnixNanoseconds)
    if clear {
      let replay = ClearReplay(take: take, peers: history.peers, only: peer)
      let (report, written) = try replay.run(into: file)
      try written.finish()
      try tell("\(path): \(written.count) packets")
      return try check(report, "packets")
    }
    let progress = Progress("exporting packets")
    defer { progress.clear() }
    while let entry = try reading({ () throws(TapeError) in try history.next() }) {
      file.datagram(
        from: entry.source, to: entry.destination, entry.bytes,
        atNanoseconds: entry.atNanoseconds)
      if file.count % 1000 == 0 {
        try file.flush()
        progress.show("exporting packets: \(file.count) of \(history.count)")
      }
    }
    try file.finish()
    progress.clear()
    try tell("\(path): \(file.count) packets")
  }

  /// Refuses the number of a peer that the take does not have.
  private func check(_ peers: [(number: Int64, label: String)]) throws {
    guard let peer, !peers.contains(where: { $0.number == peer }) else { return }
    let known = peers.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
    throw CommandFailure(
      .usage, "\(take): --peer \(peer): there is no such peer; the take has \(known)")
  }

  /// Says where an export ends that a difference cut short.
  private func check(_ report: ReplayReport, _ what: String) throws {
    guard case .identical = report.verdict else {
      printError(report.description)
      throw CommandFailure(
        .difference,
        "\(take): the replay came to step \(report.steps + 1), so the \(what) end there")
    }
  }

  // MARK: Media

  private func exportMedia(to folder: String) throws {
    let peers = try reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer).peers
    }
    try check(peers)
    WritingWhole.cleanUpOnSignals()
    do {
      if !WholeFile.makeFolder(folder) {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      }
    } catch {
      throw CommandFailure(
        .inputOutput, "\(folder): the folder cannot be made; choose another --media")
    }
    let tracks = TrackFiles(folder: folder, framesPerSecond: rate)
    let report = try MediaReplay(take: take, peers: peers, only: peer, tracks: tracks).run()
    for line in try tracks.finish() { try tell(line) }
    try check(report, "media")
    if tracks.isEmpty {
      try tell("\(take): no track was received\(peer.map { " by peer \($0)" } ?? "")")
    }
  }
}
