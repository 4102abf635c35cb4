import Foundation
import Testing

/// A take exported as a capture that opens anywhere, and imported again.
struct PcapngExportTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private func sample(_ name: String) -> String { Self.samples.appending(path: name).path }

  /// Imports a sample and exports it again.
  private func exported(_ name: String, _ folder: Folder) async throws -> (
    take: String, capture: String
  ) {
    let (path, capture) = (folder.file("call.take"), folder.file("call.pcapng"))
    let made = try await Tool.run(
      "import", sample("\(name).pcap"), "--keys", sample("\(name).keys"), "--sdp",
      sample("\(name)-offer.sdp"), "--sdp", sample("\(name)-answer.sdp"), "--out", path)
    try #require(made.status == 0, "\(made.errors)")
    let export = try await Tool.run("export", path, "--pcapng", capture)
    try #require(export.status == 0, "\(export.errors)")
    return (path, capture)
  }

  @Test(arguments: ["chromium-aiortc", "firefox-loop"])
  func anExportedCallImportsAsTheSameTake(name: String) async throws {
    let folder = try Folder()
    let (path, capture) = try await exported(name, folder)
    let again = folder.file("again.take")
    let made = try await Tool.run("import", capture, "--out", again)
    #expect(made.status == 0, "\(made.errors)")
    for query in [
      "SELECT count(*) FROM packet", "SELECT count(*) FROM frame", "SELECT count(*) FROM rtcp",
      "SELECT count(*) FROM signaling", "SELECT sum(size) FROM frame",
    ] {
      #expect(try Takes.number(path, query) == Takes.number(again, query), "\(query)")
    }
    let digest = "SELECT digest FROM ending"
    #expect(try Takes.bytes(path, digest) == Takes.bytes(again, digest))
  }

  /// The same call over TCP, one connection per pair of ports (RFC 4571 framing): the export
  /// contains its segments too.
  @Test func anExportedCallOverTCPImportsAsTheSameTake() async throws {
    let folder = try Folder()
    let (path, capture) = (folder.file("call.take"), folder.file("call.pcapng"))
    let name = "chromium-aiortc"
    let original = try Data(contentsOf: URL(filePath: sample("\(name).pcap")))
    let connection = folder.file("tcp.pcap")
    try OverTCP(original).capture.write(to: URL(filePath: connection))
    let made = try await Tool.run(
      "import", connection, "--keys", sample("\(name).keys"), "--out", path)
    #expect(made.status == 0, "\(made.errors)")
    let clear = "SELECT count(*) FROM rtcp"
    #expect(try Takes.number(path, clear) > 5)
    let export = try await Tool.run("export", path, "--pcapng", capture)
    #expect(export.status == 0 && !export.output.contains(" 0 in the clear"), "\(export.errors)")
    let again = folder.file("again.take")
    #expect(try await Tool.run("import", capture, "--out", again).status == 0)
    let digest = "SELECT digest FROM ending"
    #expect(try Takes.bytes(path, digest) == Takes.bytes(again, digest))
  }

  /// Observed packets are exported decrypted, as an endpoint's are.
  @Test func observedPacketsAreExportedDecrypted() async throws {
    let folder = try Folder()
    let (path, _) = try await exported("chromium-aiortc", folder)
    let capture = folder.file("clear.pcap")
    let outcome = try await Tool.run("export", path, "--pcap", capture, "--clear")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let packets = try OverTCP(try Data(contentsOf: URL(filePath: capture))).datagrams
    let media = packets.filter { $0.payload.first.map { (128..<192).contains($0) } ?? false }
    let seen = "SELECT count(*) FROM packet WHERE protocol IN ('rtp', 'rtcp') AND direction = 'in'"
    #expect(Int64(media.count) == (try Takes.number(path, seen)))
    // Handshake packets are excluded, connectivity checks included.
    #expect(packets.contains { $0.payload.first == 0 || $0.payload.first == 1 })
    #expect(!packets.contains { $0.payload.first.map { (20..<64).contains($0) } ?? false })
  }
}

/// A capture of UDP over IPv4, and the same datagrams as TCP segments.
private struct OverTCP {
  /// A datagram: the record's times, the IP header, the ports and the payload.
  struct Datagram {
    var time: [UInt8]
    var internet: [UInt8]
    var ports: [UInt8]
    var payload: [UInt8]
  }

  private(set) var datagrams: [Datagram] = []
  private let head: [UInt8]

  /// Reads a little-endian pcap of Ethernet or raw IP.
  init(_ data: Data) throws {
    let bytes = [UInt8](data)
    head = Array(bytes.prefix(20))
    let link = bytes[20] == 1 ? 14 : 0
    var place = 24
    while place + 16 <= bytes.count {
      let length = bytes[place + 8..<place + 12].reversed().reduce(0) { $0 << 8 | Int($1) }
      let record = Array(bytes[place + 16..<place + 16 + length].dropFirst(link))
      if record.count > 28, record[0] == 0x45, record[9] == 17 {
        datagrams.append(
          Datagram(
            time: Array(bytes[place..<place + 8]), internet: Array(record[..<20]),
            ports: Array(record[20..<24]), payload: Array(record[28...])))
      }
      place += 16 + length
    }
  }

  /// A raw IP capture in which each datagram is a segment with a length prefix.
  var capture: Data {
    var out = head + word(101).reversed()
    var sequences: [[UInt8]: UInt32] = [:]
    for datagram in datagrams {
      let content = word(UInt32(datagram.payload.count)).suffix(2) + datagram.payload
      let key = datagram.internet[12..<20] + datagram.ports
      let sequence = sequences[Array(key), default: 1]
      sequences[Array(key)] = sequence &+ UInt32(content.count)
      var internet = datagram.internet
      internet[2...3] = word(UInt32(40 + content.count)).suffix(2)
      internet[9] = 6
      let segment =
        internet + datagram.ports + word(sequence) + [0, 0, 0, 0, 0x50, 0x18, 255, 255]
        + [0, 0, 0, 0] + content
      let length = Array(word(UInt32(segment.count)).reversed())
      out += datagram.time + length + length + segment
    }
    return Data(out)
  }

  private func word(_ value: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * $0)) }
  }
}
