import Foundation
import Testing

/// Imports packets that servers and browsers stored without network headers.
struct RecordingImportTests {
  private static func big(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
  }

  /// Makes a G.711 packet with a loud tone, 20 ms long.
  private static func packet(_ number: Int, type: UInt8 = 0) -> [UInt8] {
    [0x80, type] + big(number, 2) + big(160 * number, 4) + big(0x1234_5678, 4)
      + (0..<160).map { $0 / 4 % 2 == 0 ? 0x80 : 0x00 }
  }

  private static func imported(_ bytes: [UInt8], _ name: String, _ folder: Folder) async throws
    -> String
  {
    let path = folder.file(name)
    try Data(bytes).write(to: URL(filePath: path))
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    try #require(outcome.status == 0, "\(outcome.errors)")
    try await Takes.expectIdentical(path + ".take")
    return path + ".take"
  }

  /// Makes a Janus recording: its header, and a second of packets, two of which are missing.
  private static func recording(_ head: String) -> [UInt8] {
    var file = Array("MJR00002".utf8) + big(head.utf8.count, 2) + Array(head.utf8)
    for number in 0..<50 where number != 20 && number != 21 {
      let packet = packet(number)
      file += Array("MEET".utf8) + big(20 * number, 4) + big(packet.count, 2) + packet
    }
    return file
  }

  @Test func aRecordingOfJanusHasItsTimesItsCodecAndLevels() async throws {
    let folder = try Folder()
    let take = try await Self.imported(
      Self.recording(#"{"t":"a","c":"pcmu","s":1700000000000000,"u":1700000001000000}"#), "a.mjr",
      folder)
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 1_700_000_001_000_000_000)
    #expect(try Takes.number(take, "SELECT sum(lost) FROM loss WHERE direction = 'in'") == 2)
    #expect(try Takes.number(take, "SELECT count(*) FROM track WHERE codec = 'pcmu'") >= 1)
    #expect(try Takes.number(take, "SELECT count(*) FROM audio_level WHERE dbov > -20") > 5)
    #expect(try Takes.number(take, "SELECT count(*) FROM peer WHERE label = 'publisher'") == 1)
  }

  @Test func aListJoinsItsRecordings() async throws {
    let folder = try Folder()
    for (name, codec) in [("one.mjr", "pcmu"), ("two.mjr", "pcma")] {
      var bytes = Self.recording(#"{"t":"a","c":"\#(codec)","u":1700000001000000}"#)
      if codec == "pcma" {
        // Sets another SSRC and payload type in the packets.
        for place in bytes.indices.dropFirst(8)
        where bytes[place...].starts(with: [0x12, 0x34, 0x56, 0x78]) {
          bytes[place] = 0x99
          bytes[place - 7] = 8
        }
      }
      try Data(bytes).write(to: URL(filePath: folder.file(name)))
    }
    let list = "[17]\nname = x\naudio = one.mjr\nvideo = two\n"
    let take = try await Self.imported(Array(list.utf8), "call.nfo", folder)
    #expect(
      try Takes.number(take, "SELECT count(DISTINCT ssrc) FROM packet WHERE protocol = 'rtp'") == 2)
    #expect(
      try Takes.number(
        take, "SELECT count(DISTINCT codec) FROM track WHERE codec IN ('pcmu', 'pcma')") == 2)
    #expect(try Takes.number(take, "SELECT count(*) FROM frame WHERE codec = 'pcmu'") > 40)
    try "[17]\naudio = ../../etc/passwd\n".write(
      toFile: folder.file("bad.nfo"), atomically: true, encoding: .utf8)
    let bad = try await Tool.run("import", folder.file("bad.nfo"), "--out", folder.file("bad.take"))
    #expect(bad.status == 65 && bad.errors.contains("another folder"))
  }

  @Test func damageWithinARecordingCostsOnlyWhatItHits() async throws {
    let folder = try Folder()
    var file = Self.recording(#"{"t":"a","c":"pcmu","u":1700000001000000}"#)
    file.insert(contentsOf: Array("MEET damaged".utf8), at: file.count - 182 * 20)
    let path = folder.file("damaged.mjr")
    try Data(file).write(to: URL(filePath: path))
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("12 bytes between its packets are damaged"))
    #expect(
      try Takes.number(
        path + ".take", "SELECT count(*) FROM packet WHERE direction = 'in' AND protocol = 'rtp'")
        == 48)
    // A list that also names a missing recording.
    let list = folder.file("list.nfo")
    try "; made by hand\n\n[17]\naudio = damaged\nvideo = absent\n".write(
      toFile: list, atomically: true, encoding: .utf8)
    let listed = try await Tool.run("import", list, "--out", list + ".take")
    #expect(listed.status == 0 && listed.output.contains("absent.mjr"), "\(listed.errors)")
    try "[17]\nvideo = absent\n".write(toFile: list, atomically: true, encoding: .utf8)
    let bare = try await Tool.run("import", list, "--out", list + ".2.take")
    #expect(bare.status == 66 && bare.errors.contains("absent.mjr"), "\(bare.errors)")
  }

  @Test func anOldRecordingHasTheTimesOfItsMedia() async throws {
    let folder = try Folder()
    var file = Array("MEETECHO".utf8) + [0, 5] + Array("audio".utf8)
    for number in 0..<50 {
      var packet = Self.packet(number, type: 111)
      packet.replaceSubrange(4..<8, with: Self.big(960 * number, 4))
      file += Array("MEETECHO".utf8) + Self.big(packet.count, 2) + packet
    }
    let take = try await Self.imported(file, "old.mjr", folder)
    #expect(try Takes.number(take, "SELECT max(at_ns) FROM packet") == 980_000_000)
  }

  @Test func aFileOfRtptoolsAndCutPackets() async throws {
    let folder = try Folder()
    var file = Array("#!rtpplay1.0 192.0.2.9/5004\n".utf8)
    file += Self.big(1_700_000_000, 4) + Self.big(500_000, 4) + [UInt8](repeating: 0, count: 8)
    for number in 0..<60 {
      let packet = Self.packet(number)
      // In the second half, only the headers were stored.
      let stored = number < 30 ? packet : Array(packet.prefix(12))
      file +=
        Self.big(stored.count + 8, 2) + Self.big(packet.count, 2) + Self.big(20 * number, 4)
        + stored
    }
    let take = try await Self.imported(file, "call.rtpdump", folder)
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 1_700_000_000_500_000_000)
    #expect(
      try Takes.number(
        take, "SELECT count(*) FROM packet WHERE direction = 'in' AND protocol = 'rtp'") == 60)
    #expect(try Takes.number(take, "SELECT count(*) FROM coverage WHERE what = 'truncated'") > 0)
  }

  @Test func linesOfALogGoBothWaysAndPastMidnight() async throws {
    let folder = try Folder()
    // The text is longer than the part of a file that format detection reads.
    var text = String(repeating: "something else\n", count: 10_000)
    for number in 0..<60 {
      let packet = Self.packet(number).map { String(format: "%02x", $0) }.joined(separator: " ")
      let milliseconds = (23 * 3600 + 59 * 60 + 59) * 1000 + 20 * number * 4
      let (second, rest) = (milliseconds / 1000 % 86_400, milliseconds % 1000)
      let time = String(
        format: "%02d:%02d:%02d.%03d", second / 3600, second / 60 % 60, second % 60, rest)
      text += "[77:log] \(number % 2 == 0 ? "I" : "O") \(time) 000000 \(packet) # RTP_DUMP\n"
    }
    let take = try await Self.imported(Array(text.utf8), "chrome.log", folder)
    #expect(try Takes.number(take, "SELECT max(at_ns) FROM packet") == 4_720_000_000)
    #expect(try Takes.number(take, "SELECT count(DISTINCT path) FROM path WHERE peer = 0") == 2)
  }

  // MARK: RTC event logs

  private static func varint(_ value: UInt64) -> [UInt8] {
    var (rest, bytes) = (value, [UInt8]())
    repeat {
      bytes.append(UInt8(rest & 127) | (rest > 127 ? 128 : 0))
      rest >>= 7
    } while rest > 0
    return bytes
  }

  private static func field(_ number: Int, _ value: UInt64) -> [UInt8] {
    varint(UInt64(number << 3)) + varint(value)
  }

  private static func field(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
    varint(UInt64(number << 3 | 2)) + varint(UInt64(bytes.count)) + bytes
  }

  private static func fixed(_ number: Int, _ value: UInt32) -> [UInt8] {
    varint(UInt64(number << 3 | 5)) + (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Encodes equal deltas that fit into a byte: type 0, eight bits each.
  private static func deltas(_ step: UInt8, _ count: Int) -> [UInt8] {
    // Two bits for the type, six bits for the width minus one, and then the deltas.
    [0b00_000111] + [UInt8](repeating: step, count: count)
  }

  @Test func anEventLogHasTheHeadersOfItsPackets() async throws {
    let folder = try Folder()
    let more = 59
    var batch = Self.field(1, 5_000) + Self.field(2, 0) + Self.field(3, 111)
    batch += Self.field(4, 65_500) + Self.fixed(5, 1000) + Self.fixed(6, 0xabcd_ef01)
    batch += Self.field(8, 100) + Self.field(9, 12) + Self.field(10, 0)
    batch += Self.field(11, UInt64(more)) + Self.field(101, Self.deltas(20, more))
    // Sixteen bits wide, so that the numbers wrap; fields that never change have no deltas.
    let header: [UInt8] = [0b01_000111, 0b00_001111]
    batch += Self.field(104, header + [UInt8](repeating: 1, count: more))
    batch += Self.field(105, [0b00_001011] + Self.twelveBits(960, more))
    var log = Self.field(
      16, Self.field(1, 5_000) + Self.field(2, 2) + Self.field(3, 1_700_000_000_000))
    log += Self.field(2, batch)
    log += Self.field(19, Self.field(1, 5_000) + Self.field(2, 300_000))
    let take = try await Self.imported(log, "event.log", folder)
    let packets = "FROM packet WHERE protocol = 'rtp' AND direction = 'in'"
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 1_700_000_000_000_000_000)
    #expect(try Takes.number(take, "SELECT count(*) \(packets)") == 60)
    #expect(try Takes.number(take, "SELECT min(ssrc) \(packets)") == 0xabcd_ef01)
    #expect(try Takes.number(take, "SELECT max(at_ns) \(packets)") == 1_180_000_000)
    #expect(try Takes.number(take, "SELECT max(rtp_time) \(packets)") == 1000 + 59 * 960)
    #expect(try Takes.number(take, "SELECT sequence \(packets) ORDER BY row DESC LIMIT 1") == 23)
    #expect(try Takes.number(take, "SELECT max(size) \(packets)") == 112)
    #expect(try Takes.number(take, "SELECT sum(lost) FROM loss") == 0)
  }

  /// Encodes a number `count` times in twelve bits each, padded to a whole byte.
  private static func twelveBits(_ value: Int, _ count: Int) -> [UInt8] {
    var bits: [UInt8] = []
    for _ in 0..<count { bits += (0..<12).map { UInt8(value >> (11 - $0) & 1) } }
    while bits.count % 8 != 0 { bits.append(0) }
    return stride(from: 0, to: bits.count, by: 8).map { place in
      bits[place..<(place + 8)].reduce(0) { $0 << 1 | $1 }
    }
  }

  @Test func aRecordingOfRTPProxyHasItsTimesAndBytes() async throws {
    let folder = try Folder()
    var file: [UInt8] = []
    for number in 0..<50 where number != 20 {
      let packet = Self.packet(number)
      let seconds = 1_700_000_000.25 + 0.02 * Double(number)
      let address: [UInt8] =
        number < 25
        ? [2, 0] + Self.big(5004, 2) + [192, 0, 2, 9] + [UInt8](repeating: 0, count: 12)
        : [10, 0] + Self.big(5004, 2) + [0x20, 1, 0xd, 0xb8] + [UInt8](repeating: 0, count: 12)
      let time = (0..<8).map { UInt8(truncatingIfNeeded: seconds.bitPattern >> UInt64(8 * $0)) }
      file += address + time + Self.big(packet.count, 2).reversed() + packet
      // A record too short for a packet is skipped.
      if number == 3 { file += address + time + [2, 0, 1, 1] }
    }
    let take = try await Self.imported(file + [2, 0, 1], "call.o.rtp", folder)
    let start = try Takes.number(take, "SELECT start_unix_ns FROM take")
    #expect(start / 1000 == 1_700_000_000_250_000)
    #expect(try Takes.number(take, "SELECT sum(lost) FROM loss WHERE direction = 'in'") == 1)
    #expect(try Takes.number(take, "SELECT count(DISTINCT sequence) FROM rtp") == 49)
    #expect(try Takes.number(take, "SELECT max(size) FROM packet") == 172)
  }

  @Test func anEventLogOfVersion1HasHeadersDirectionsAndTimes() async throws {
    let folder = try Folder()
    func event(_ microseconds: Int, _ kind: UInt8, _ body: [UInt8]) -> [UInt8] {
      Self.field(1, [8] + Self.varint(UInt64(microseconds)) + [16, kind] + body)
    }
    var file = event(0, 1, [])
    for number in 0..<50 {
      for isIncoming in [UInt8(0), 1] where isIncoming == 0 || number % 10 != 5 {
        var head = Array(Self.packet(number).prefix(12))
        head[11] = isIncoming
        file += event(
          20_000 * number + 123, 3,
          Self.field(3, [8, isIncoming, 24] + Self.varint(172) + Self.field(4, head)))
      }
      file += event(20_000 * number, 5, Self.field(5, [16, 1]))
    }
    let report: [UInt8] = [0x80, 201, 0, 1, 1, 2, 3, 4]
    file += event(1_000_000, 4, Self.field(4, [8, 1] + Self.field(3, report)))
    let take = try await Self.imported(file, "event_log.log", folder)
    // The one RTCP packet is sent by one end and received by the other.
    #expect(try Takes.number(take, "SELECT count(*) FROM packet WHERE protocol = 'rtcp'") == 2)
    let lost = "SELECT sum(lost) FROM loss WHERE direction = 'in' AND peer ="
    let sender = try Takes.number(take, "SELECT peer FROM peer WHERE label = 'this side'")
    #expect(try Takes.number(take, "\(lost) \(sender)") == 5)
    #expect(
      try Takes.number(take, "SELECT max(at_ns) - min(at_ns) FROM rtp") == 49 * 20_000_000)
    #expect(try Takes.number(take, "SELECT min(size) FROM packet WHERE protocol = 'rtp'") == 172)
  }
}
