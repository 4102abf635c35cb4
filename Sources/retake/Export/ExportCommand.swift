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

      --media replays the take and writes what every received track showed and played into one \
      .y4m or .wav file each; pictures of H.264, which are not decoded here, become a .h264 file.

      Examples:
        retake export call.take --pcap call.pcap
        retake export call.take --media call-media --peer 1
      """)

  @Argument(help: "The take.", completion: .file(extensions: ["take"]))
  var take: String

  @Option(help: "The packet capture to write; - is standard output.")
  var pcap: String?

  @Option(help: "The folder to write media into; it is made when it is not there.")
  var media: String?

  @Option(help: "Only the packets or media of the peer with this number; retake info lists them.")
  var peer: Int64?

  @Option(help: "The pictures per second of the .y4m files.")
  var rate = 30

  func validate() throws {
    if pcap == nil, media == nil {
      throw ValidationError("Say what to write: --pcap FILE, --media FOLDER, or both.")
    }
    if !(1...120).contains(rate) {
      throw ValidationError("--rate takes a number from 1 to 120, not \(rate).")
    }
  }

  func run() throws {
    if let pcap { try exportPackets(to: pcap) }
    if let media { try exportMedia(to: media) }
  }

  private func tell(_ line: String) {
    // Standard output may be the packet capture.
    if pcap == "-" { printError(line) } else { print(line) }
  }

  // MARK: Packets

  private func exportPackets(to path: String) throws {
    let history = try reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer)
    }
    try check(history.peers)
    let file = try CaptureFile(path)
    let progress = Progress("exporting packets")
    defer { progress.clear() }
    var written = 0
    while let entry = try reading({ () throws(TapeError) in try history.next() }) {
      guard entry.bytes.count <= UDPPacket.payloadMaximum else { continue }
      file.append(
        UDPPacket.bytes(
          from: entry.source, to: entry.destination, payload: entry.bytes,
          identification: UInt16(truncatingIfNeeded: written)),
        unixNanoseconds: history.startUnixNanoseconds + entry.atNanoseconds)
      written += 1
      if written % 1000 == 0 {
        try file.flush()
        progress.show("exporting packets: \(written) of \(history.count)")
      }
    }
    try file.flush()
    progress.clear()
    tell("\(path): \(written) packets")
  }

  /// Refuses the number of a peer that the take does not have.
  private func check(_ peers: [(number: Int64, label: String)]) throws {
    guard let peer, !peers.contains(where: { $0.number == peer }) else { return }
    let known = peers.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
    throw CommandFailure(
      .usage, "\(take): --peer \(peer): there is no such peer; the take has \(known)")
  }

  // MARK: Media

  private func exportMedia(to folder: String) throws {
    let peers = try reading { () throws(TapeError) in
      try DatagramHistory(path: take, peer: peer).peers
    }
    try check(peers)
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure(
        .inputOutput, "\(folder): the folder cannot be made; choose another --media")
    }
    let tracks = TrackFiles(folder: folder, framesPerSecond: rate)
    let report = try MediaReplay(take: take, peers: peers, only: peer, tracks: tracks).run()
    for line in try tracks.finish() { tell(line) }
    guard case .identical = report.verdict else {
      printError(report.description)
      throw CommandFailure(
        .difference,
        "\(take): the replay came to step \(report.steps + 1), so the media end there")
    }
    if tracks.isEmpty {
      tell("\(take): no track was received\(peer.map { " by peer \($0)" } ?? "")")
    }
  }
}
