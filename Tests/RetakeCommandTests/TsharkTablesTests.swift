import ArgumentParser
import Foundation
import Testing
import TsharkTables

@testable import RetakeCommand
@testable import Tape

/// Compares every sample, as a take, as a page and as an export, with tshark's tables.
struct TsharkTablesTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")
  /// The tolerance for tshark's printed times, in milliseconds.
  private static let tolerance = 0.01

  /// A stream's jitter in milliseconds.
  private struct Jitter {
    var mean = 0.0
    var maximum = 0.0
  }

  /// A stream received by a peer of a take.
  private struct Stream: Hashable {
    var peer: Int64
    var ssrc: UInt32
    /// The port from which the stream was sent.
    var port: UInt16
    var packets: Int
    var lost: Int
    /// The clock rate, or 0 if it is unknown.
    var clockRate: Int64
    var isRepair: Bool
  }

  @Test(
    .enabled(if: TsharkStream.tool != nil, "tshark is not installed"),
    arguments: [
      "aiortc-offers-chromium.pcap", "chromium-aiortc.pcap", "chromium-firefox-cr-offers.pcap",
      "firefox-loop.pcap", "chromium-noenc-H264.pcap", "chromium-noenc-VP8.pcap",
      "chromium-rtpdump.pcapng",
    ])
  func everyStreamIsAsTsharkCountsIt(file: String) async throws {
    let folder = try Folder()
    let (take, capture) = (folder.file("call.take"), folder.file("call.pcapng"))
    let page = folder.file("call.html")
    try ImportCommand.parse(arguments(of: file) + ["--out", take]).run()
    try ExportCommand.parse([take, "--pcapng", capture]).run()
    try PageCommand.parse([take, "--out", page]).run()
    let rows = try TsharkStream.streams(in: capture)
    let connection = try TakeFile.openForQueries(take)
    let streams = try streams(connection)
    #expect(rows.count == streams.count && rows.count >= 3, "\(rows)")
    let drawn = try drawn(page)
    var hasJitter = false
    for stream in streams {
      // Each stream has its own ports, which differ from the ports on the wire mainly in the
      // highest bit.
      let first = stream.port ^ 0x8000
      let row = try #require(
        rows.first { $0.ssrc == stream.ssrc && (first..<first + 40).contains($0.port) },
        "\(stream) \(rows)")
      #expect(row.packets == stream.packets && row.lost == stream.lost, "\(stream) \(row)")
      #expect(drawn["\(stream.peer) \(stream.ssrc)"] == row.packets, "\(stream)")
      // Retransmissions have the original packets' timestamps.
      guard stream.clockRate > 0, !stream.isRepair else { continue }
      let jitter = try jitter(of: stream, connection)
      hasJitter = hasJitter || jitter.maximum > 0
      #expect(abs(jitter.mean - row.meanJitter) < Self.tolerance, "\(stream) \(jitter) \(row)")
      #expect(
        abs(jitter.maximum - row.maximumJitter) < Self.tolerance, "\(stream) \(jitter) \(row)")
    }
    let known = streams.filter { $0.clockRate > 0 && !$0.isRepair }
    #expect(known.count >= 2 && hasJitter)
  }

  private func arguments(of file: String) -> [String] {
    let path = Self.samples.appending(path: file).path
    let name = path.prefix { $0 != "." }
    guard FileManager.default.fileExists(atPath: "\(name).keys") else { return [path] }
    return [
      path, "--keys", "\(name).keys", "--sdp", "\(name)-offer.sdp", "--sdp", "\(name)-answer.sdp",
    ]
  }

  private func streams(_ connection: borrowing SQLiteConnection) throws -> [Stream] {
    let rows = try connection.prepare(
      """
      SELECT p.peer, p.ssrc, min(p.remote), count(*), l.lost,
        (SELECT max(clock_rate) FROM track AS t
          WHERE t.peer = p.peer AND t.ssrc = p.ssrc AND codec <> ''),
        (SELECT max(codec = 'rtx') FROM track AS t WHERE t.peer = p.peer AND t.ssrc = p.ssrc)
      FROM packet AS p JOIN loss AS l USING (peer, direction, ssrc)
      WHERE p.protocol = 'rtp' AND direction = 'in' GROUP BY p.peer, p.ssrc ORDER BY 1, 2
      """)
    var streams: [Stream] = []
    while try rows.step() {
      let address = rows.values(Int64.self, Int64.self, String.self).2
      let port = try #require(address.split(separator: ":").last.flatMap { UInt16($0) })
      streams.append(
        Stream(
          peer: rows.integer(0), ssrc: UInt32(truncatingIfNeeded: rows.integer(1)), port: port,
          packets: Int(rows.integer(3)), lost: Int(rows.integer(4)),
          clockRate: rows.isNull(5) ? 0 : rows.integer(5),
          isRepair: !rows.isNull(6) && rows.integer(6) != 0))
    }
    return streams
  }

  /// Computes the jitter of RFC 3550 as tshark does: without marked packets, whose sequence numbers
  /// still count.
  private func jitter(of stream: Stream, _ connection: borrowing SQLiteConnection) throws -> Jitter
  {
    let rows = try connection.prepare(
      """
      SELECT at_ns, rtp_time, marker FROM packet WHERE protocol = 'rtp' AND direction = 'in'
      AND peer = \(stream.peer) AND ssrc = \(stream.ssrc) ORDER BY at_ns, row
      """)
    var (result, jitter, count) = (Jitter(), 0.0, 0.0)
    var last: (at: Int64, time: UInt32)?
    while try rows.step() {
      let (at, time) = (rows.integer(0), UInt32(truncatingIfNeeded: rows.integer(1)))
      if let last {
        count += 1
        let ticks = Double(Int32(bitPattern: time &- last.time))
        let drift = Double(at - last.at) / 1e6 - ticks * 1000 / Double(stream.clockRate)
        jitter += (abs(drift) - jitter) / 16
        if rows.integer(2) == 0 {
          result.mean += (jitter - result.mean) / count
          result.maximum = max(result.maximum, jitter)
        }
      }
      last = (at, time)
    }
    return result
  }

  /// Returns how many packets a page draws for each received stream.
  private func drawn(_ page: String) throws -> [String: Int] {
    let html = try String(contentsOfFile: page, encoding: .utf8)
    let start = try #require(html.range(of: "id=\"data\">")?.upperBound)
    let end = try #require(html.range(of: "</script>", range: start..<html.endIndex)?.lowerBound)
    struct Content: Decodable {
      struct Series: Decodable {
        var what: String
        var peer: Int64?
        var direction: String?
        var ssrc: Int64?
        var count: Int
      }

      var series: [Series]
    }
    let content = try JSONDecoder().decode(Content.self, from: Data(html[start..<end].utf8))
    var counts: [String: Int] = [:]
    for series in content.series where series.what == "packets" && series.direction == "in" {
      guard let peer = series.peer, let ssrc = series.ssrc else { continue }
      counts["\(peer) \(ssrc)", default: 0] += series.count
    }
    return counts
  }
}
