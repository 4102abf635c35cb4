import Foundation
import Testing

/// Exports takes as captures that any tool can open, and imports them again.
struct PcapngExportTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private func sample(_ name: String) -> String { Self.samples.appending(path: name).path }

  /// Imports a sample with its keys and descriptions, and exports the take as pcapng.
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

  /// Exports the same call over TCP, with one connection per pair of ports (RFC 4571 framing).
  ///
  /// The export contains the TCP segments too.
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

  /// Descriptions passed to the import, and those from signaling, stay with their call when each
  /// call becomes a take.
  @Test(arguments: ["description", "signaling"])
  func anExportedCallKeepsItsDescriptionsInAFolder(call: String) async throws {
    let folder = try Folder()
    let name = "chromium-aiortc"
    var (path, capture) = (folder.file("call.take"), folder.file("call.pcapng"))
    if call == "signaling" {
      let descriptions = try ["offer", "answer"].map {
        try Data(contentsOf: URL(filePath: sample("\(name)-\($0).sdp")))
      }
      let original = try Data(contentsOf: URL(filePath: sample("\(name).pcap")))
      let signaled = try folder.write(
        "signaled.pcap", Self.capture(original, withSIP: descriptions))
      let made = try await Tool.run(
        "import", signaled, "--keys", sample("\(name).keys"), "--out", path)
      try #require(made.status == 0, "\(made.errors)")
      let export = try await Tool.run("export", path, "--pcapng", capture)
      try #require(export.status == 0, "\(export.errors)")
    } else {
      (path, capture) = try await exported(name, folder)
    }
    let made = try await Tool.run("import", capture, "--out", folder.file("calls") + "/")
    #expect(made.status == 0, "\(made.errors)")
    let again = folder.file("calls/call-1.take")
    for query in [
      "SELECT count(*) FROM call_request WHERE name = '\(call)'",
      "SELECT count(*) FROM signaling", "SELECT count(*) FROM frame",
    ] {
      let count = try Takes.number(path, query)
      #expect(try count > 0 && count == Takes.number(again, query), "\(query)")
    }
    // One gap: the signaling's packets, which belong to no call and are not in the export.
    let unseen = "SELECT count(*) FROM coverage WHERE what = 'ignored'"
    #expect(try Takes.number(again, unseen) == (call == "signaling" ? 1 : 0))
  }

  /// Returns a capture of UDP over Ethernet that begins with descriptions in SIP.
  private static func capture(_ original: Data, withSIP descriptions: [Data]) -> Data {
    let bytes = [UInt8](original)
    func big(_ value: Int) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xff)] }
    var out = Array(bytes[..<24])
    for description in descriptions {
      let message = Array("INVITE sip:a@b SIP/2.0\r\n\r\n".utf8) + description
      // The first record's headers, with the ports of SIP and the new lengths.
      var frame = Array(bytes[40..<82])
      frame[16..<18] = big(28 + message.count)[...]
      frame[34..<40] = (big(5060) + big(5060) + big(8 + message.count))[...]
      frame += message
      let length = Array(big(frame.count).reversed()) + [0, 0]
      out += bytes[24..<32] + length + length + frame
    }
    return Data(out + bytes[24...])
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
    // Handshake packets are excluded; connectivity checks are included.
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
