import Foundation
import Testing

/// Imports captures from routers, clouds and radio, in which other layers enclose the call.
struct ImportLayersTests {
  private static let sample = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples/firefox-loop.pcap")

  private static func little(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private static func big(_ value: Int, _ width: Int) -> [UInt8] { little(value, width).reversed() }

  /// Makes a capture of one link type, with each of the sample's packets wrapped in other layers.
  private static func capture(
    linkType: Int, extra: [UInt8] = [], _ around: ([UInt8]) -> [UInt8]
  ) throws -> [UInt8] {
    let bytes = [UInt8](try Data(contentsOf: sample))
    func number(_ place: Int) -> Int {
      (0..<4).reduce(0) { $0 | Int(bytes[place + $1]) << (8 * $1) }
    }
    // The sample is Ethernet, with microseconds in this machine's byte order.
    try #require(number(0) == 0xa1b2_c3d4 && number(20) == 1)
    var made = Array(bytes[..<20]) + little(linkType, 4)
    var place = 24
    while place + 16 <= bytes.count {
      let count = number(place + 8)
      let frame = around(Array(bytes[place + 16 + 14..<place + 16 + count]))
      made += Array(bytes[place..<place + 8]) + little(frame.count, 4) + little(frame.count, 4)
      made += frame
      place += 16 + count
      guard !extra.isEmpty else { continue }
      made += Array(made[made.count - frame.count - 16..<made.count - frame.count - 8])
      made += little(extra.count, 4) + little(extra.count, 4) + extra
    }
    return made
  }

  private static func ethernet(_ type: Int, _ payload: [UInt8]) -> [UInt8] {
    [UInt8](repeating: 2, count: 12) + big(type, 2) + payload
  }

  private static func type(of packet: [UInt8]) -> Int { packet[0] >> 4 == 4 ? 0x0800 : 0x86dd }

  private static func vxlan(_ packet: [UInt8]) -> [UInt8] {
    let inner = [8, 0, 0, 0, 0, 0, 7, 0] + ethernet(type(of: packet), packet)
    let udp = big(50_000, 2) + big(4789, 2) + big(inner.count + 8, 2) + [0, 0] + inner
    return ethernet(
      0x0800,
      [0x45, 0] + big(udp.count + 20, 2) + [0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
        + udp)
  }

  /// An import of the wrapped call makes the same take as an import of the original call, digest
  /// included.
  @Test func aMirroredCallIsTheSameCall() async throws {
    let folder = try Folder()
    let plain = folder.file("plain.take")
    #expect(try await Tool.run("import", Self.sample.path, "--out", plain).status == 0)
    let digest = try Takes.bytes(plain, "SELECT digest FROM ending")
    let captures = [
      try Self.capture(linkType: 1, Self.vxlan),
      try Self.capture(linkType: 51) { packet in
        [0x11, 0, 0, 7] + Self.big(packet.count + 2, 2)
          + [0, packet[0] >> 4 == 4 ? 0x21 : 0x57] + packet
      },
    ]
    for (number, capture) in captures.enumerated() {
      let file = try folder.write("\(number).pcap", capture)
      let path = folder.file("\(number).take")
      let made = try await Tool.run("import", file, "--out", path)
      #expect(made.status == 0, "\(made.errors)")
      #expect(try Takes.bytes(path, "SELECT digest FROM ending") == digest)
    }
  }

  /// If a capture has a call and packets that cannot be unwrapped, the call's coverage counts these
  /// packets.
  @Test func undecryptedPacketsAreCounted() async throws {
    let folder = try Folder()
    let encrypted = Self.ethernet(0x88e5, [0x0c] + [UInt8](repeating: 9, count: 80))
    let capture = try folder.write(
      "call.pcap",
      try Self.capture(linkType: 1, extra: encrypted) { Self.ethernet(Self.type(of: $0), $0) })
    let path = folder.file("call.take")
    let made = try await Tool.run("import", capture, "--out", path)
    #expect(made.status == 0 && made.output.contains("unread-layer"), "\(made.errors)")
    let reason = "SELECT reason FROM coverage WHERE what = 'unread-layer' ORDER BY row DESC LIMIT 1"
    let info = try await Tool.run("info", path)
    #expect(info.output.contains("packets inside of encrypted MACsec"), "\(info.output)")
    #expect(try Takes.number(path, "SELECT count(*) FROM (\(reason))") == 1)
    let problems = try await Tool.run("stats", path, "--problems", "--wide")
    #expect(problems.output.contains("packets inside layers that are not opened"))
    #expect(try await Tool.run("replay", path).status == 0)
  }

  /// If nothing in a capture is readable, the command says what the capture contains.
  @Test func aCaptureWithoutACallIsDescribed() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let arp = Self.ethernet(0x0806, [UInt8](repeating: 0, count: 28))
    let cases: [(Int, [UInt8], String)] = [
      (147, arp, "packets of link type 147"),
      (1, arp, "packets of ARP"),
      (1, Self.ethernet(0x8864, [0x11, 0, 0, 7, 0, 10, 0xc0, 0x21, 1, 1, 0, 8]), "packets of LCP"),
    ]
    for (linkType, frame, words) in cases {
      let capture = try folder.write(
        "none.pcap", try Self.capture(linkType: linkType) { _ in frame })
      for verb in [["import", capture], ["record", "pcap", "-r", capture]] {
        let outcome = try await Tool.run(verb + ["--out", path])
        #expect(outcome.status == 65 && outcome.errorLines.count == 1, "\(outcome.errors)")
        #expect(outcome.errors.contains(words), "\(outcome.errors)")
        #expect(!outcome.errors.contains("no UDP or TCP packet"))
        #expect(!FileManager.default.fileExists(atPath: path))
      }
      let calls = try await Tool.run("import", capture, "--out", folder.path + "/calls/")
      #expect(calls.status == 65, "\(calls.errors)")
    }
  }
}
