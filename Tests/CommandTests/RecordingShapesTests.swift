import Foundation
import Testing

/// Imports recordings in the forms that real files have, and recordings with wrong headers.
struct RecordingShapesTests {
  private static func big(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
  }

  private static func packet(
    _ number: Int, type: UInt8, step: Int, ssrc: Int = 0x1234_5678, _ payload: [UInt8]
  ) -> [UInt8] {
    [0x80, type] + big(number, 2) + big(step * number, 4) + big(ssrc, 4) + payload
  }

  /// Packets of 20 ms whose payload starts with an Opus TOC byte.
  private static var opus: [(milliseconds: Int, bytes: [UInt8])] {
    (0..<120).map { number in
      let noise = (0..<80).map { UInt8(truncatingIfNeeded: $0 * 11 + number) }
      return (20 * number, packet(number, type: 111, step: 960, [0x78] + noise))
    }
  }

  /// VP8 with two packets a frame, and a key frame each second.
  private static var vp8: [(milliseconds: Int, bytes: [UInt8])] {
    (0..<90).flatMap { number -> [(milliseconds: Int, bytes: [UInt8])] in
      let start: [UInt8] =
        number % 30 == 0
        ? [0x10, 0x30, 1, 0, 0x9d, 1, 0x2a, 0x80, 2, 0xe0, 1] : [0x10, 0x31, 1, 0]
      return [start, [0]].enumerated().map { place, head in
        let noise = (0..<400).map { UInt8(truncatingIfNeeded: $0 * 7 + number) }
        var bytes = packet(number, type: place == 1 ? 224 : 96, step: 3000, head + noise)
        bytes.replaceSubrange(2..<4, with: big(2 * number + place, 2))
        return (33 * number, bytes)
      }
    }
  }

  private static func mjr(_ head: String, _ packets: [(milliseconds: Int, bytes: [UInt8])])
    -> [UInt8]
  {
    Array("MJR00002".utf8) + big(head.utf8.count, 2) + Array(head.utf8)
      + packets.flatMap { packet in
        Array("MEET".utf8) + big(packet.milliseconds, 4) + big(packet.bytes.count, 2) + packet.bytes
      }
  }

  private func imported(_ bytes: [UInt8], _ name: String, _ folder: Folder) async throws
    -> (take: String, said: String)
  {
    let path = try folder.write(name, bytes)
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    try #require(outcome.status == 0, "\(outcome.errors)")
    try await Takes.expectIdentical(path + ".take")
    return (path + ".take", outcome.output)
  }

  // MARK: Headers against packets

  /// If a Janus recording's header contradicts its packets, the import relies on the packets and
  /// reports the contradiction.
  @Test(arguments: [
    (#"{"t":"a","c":"opus","u":1700000000000000}"#, "vp8", "audio opus"),
    (#"{"t":"v","c":"vp8","u":1700000000000000}"#, "opus", "video vp8"),
    (#"{"t":"v","c":"h264","u":1700000000000000}"#, "vp8", "video h264"),
    (#"{"c":"vp8","u":1700000000000000}"#, "vp8", "vp8"),
  ])
  func aHeaderThatContradictsItsPackets(head: String, codec: String, says: String) async throws {
    let folder = try Folder()
    let file = Self.mjr(head, codec == "vp8" ? Self.vp8 : Self.opus)
    let (take, said) = try await imported(file, "call.mjr", folder)
    let kind = codec == "vp8" ? "video" : "audio"
    #expect(
      said.contains(
        "its header says \(says), but its packets are \(kind) \(codec), as which they are read"),
      "\(said)")
    let tracks = "SELECT count(*) FROM track WHERE direction = 'in' AND"
    #expect(try Takes.number(take, "\(tracks) kind = '\(kind)' AND codec = '\(codec)'") == 1)
    #expect(try Takes.number(take, "SELECT count(*) FROM frame WHERE codec = '\(codec)'") > 80)
  }

  @Test(arguments: [("v", "vp8"), ("a", "opus")])
  func aHeaderThatFitsItsPacketsIsBelieved(letter: String, codec: String) async throws {
    let folder = try Folder()
    let file = Self.mjr(
      #"{"t":"\#(letter)","c":"\#(codec)","u":1700000000000000}"#,
      codec == "vp8" ? Self.vp8 : Self.opus)
    let (take, said) = try await imported(file, "call.mjr", folder)
    #expect(!said.contains("its header"), "\(said)")
    #expect(try Takes.number(take, "SELECT count(*) FROM frame WHERE codec = '\(codec)'") > 80)
  }

  /// Old recordings have only media timestamps, whose unit depends on the kind of media.
  @Test func anOldHeaderThatContradictsItsPackets() async throws {
    let folder = try Folder()
    let packets = Self.vp8.flatMap { packet in
      Array("MEETECHO".utf8) + Self.big(packet.bytes.count, 2) + packet.bytes
    }
    let (take, said) = try await imported(
      Array("MEETECHO".utf8) + [0, 5] + Array("audio".utf8) + packets, "old.mjr", folder)
    #expect(said.contains("its header says audio opus, but its packets are video vp8"), "\(said)")
    #expect(try Takes.number(take, "SELECT max(at_ns) / 1000000 FROM packet") == 89 * 100 / 3)
  }

  // MARK: rtptools

  /// Makes an rtptools file: its first line, its binary header, and RTP and RTCP packets.
  private static func dump(
    _ line: String = "#!rtpplay1.0 192.0.2.9/5004\n",
    _ head: [UInt8] = big(1_700_000_000, 4) + big(500_000, 4) + big(0, 8), start: Int = 0
  ) -> [UInt8] {
    var file = Array(line.utf8) + head
    for number in 0..<60 {
      let bytes = packet(number, type: 0, step: 160, [UInt8](repeating: 0xff, count: 160))
      file += big(bytes.count + 8, 2) + big(bytes.count, 2) + big(start + 20 * number, 4) + bytes
      guard number % 20 == 19 else { continue }
      // For RTCP, the length on the wire is stated as 0.
      let report: [UInt8] =
        [0x80, 200, 0, 6] + big(0x1234_5678, 4) + [UInt8](repeating: 0, count: 20)
      file += big(report.count + 8, 2) + big(0, 2) + big(start + 20 * number, 4) + report
    }
    return file
  }

  @Test(arguments: [
    dump(), dump("#!rtpplay1.0 2001:db8::9/5004\n"), dump("#!rtpplay1.0\n"),
    dump("#!RTPencode1.0 0.0.0.0/0\r\n"),
    // The header as rtptools before 1.21 wrote it on 64-bit machines.
    dump(
      "#!rtpplay1.0 192.0.2.9/5004\n",
      big(1_700_000_000, 4) + big(0, 4) + big(500_000, 4) + big(0, 12)),
  ])
  func filesOfRtptools(file: [UInt8]) async throws {
    let folder = try Folder()
    let (take, _) = try await imported(file, "call.rtpdump", folder)
    func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
    #expect(try number("SELECT start_unix_ns FROM take") == 1_700_000_000_500_000_000)
    let packets = "SELECT count(*) FROM packet WHERE direction = 'in' AND protocol ="
    #expect(try number("\(packets) 'rtp'") == 60 && number("\(packets) 'rtcp'") == 3)
    #expect(try number("SELECT max(at_ns) FROM packet") == 1_180_000_000)
  }

  /// Offsets of 32 bits overflow after 49 days.
  @Test func offsetsThatOverflow() async throws {
    let folder = try Folder()
    let (take, _) = try await imported(Self.dump(start: 4_294_967_000), "long.rtpdump", folder)
    #expect(try Takes.number(take, "SELECT max(at_ns) FROM packet") == 1_180_000_000)
    #expect(try Takes.number(take, "SELECT sum(lost) FROM loss") == 0)
  }

  // MARK: Lines of logs

  private static func lines(before: String, zeros: String, after: String) -> String {
    (0..<80).map { number in
      let bytes = packet(
        number / 2, type: 0, step: 160, ssrc: number % 2 + 1, [UInt8](repeating: 0xff, count: 160))
      let hex = bytes.map { String(format: "%02x", $0) }.joined(separator: " ")
      let clock = String(format: "12:00:%02d.%03d", number / 50, number * 20 % 1000)
      return "\(before)\(number % 2 == 0 ? "O" : "I") \(clock) \(zeros) \(hex)\(after)\n"
    }.joined()
  }

  /// Lines as Chromium, Firefox and Janus write them, once with SCTP packets among them.
  @Test(arguments: [
    ("[1:2:VERBOSE1:srtp_session.cc(560)] \n", "0000", " # RTP_DUMP"),
    ("2024-05-01 10:00:00 UTC - [Child 1: Main]: D/RtpLogger x|", "000000", " | 7 | RTP_PACKET"),
    ("", "000000", " [handle 7]"),
    ("I 12:00:00.000 0000 13 88 13 88 00 00 00 00 # SCTP_PACKET\n", "0000", " # RTP_DUMP"),
  ])
  func linesOfPackets(before: String, zeros: String, after: String) async throws {
    let folder = try Folder()
    let text = Self.lines(before: before, zeros: zeros, after: after)
    let (take, _) = try await imported(Array(text.utf8), "browser.log", folder)
    let packets = "SELECT count(*) FROM packet WHERE protocol = 'rtp' AND direction = 'in'"
    #expect(try Takes.number(take, packets) == 80)
    #expect(try Takes.number(take, "SELECT max(at_ns) FROM packet") == 1_580_000_000)
  }

  // MARK: RTC event logs

  private static func varint(_ value: Int) -> [UInt8] {
    value < 128 ? [UInt8(value)] : [UInt8(value & 127) | 128] + varint(value >> 7)
  }

  private static func field(_ number: Int, _ value: Int) -> [UInt8] {
    varint(number << 3) + varint(value)
  }

  private static func field(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(bytes.count) + bytes
  }

  private static func fixed(_ number: Int, _ value: Int) -> [UInt8] {
    varint(number << 3 | 5) + big(value, 4).reversed()
  }

  /// Makes an event log whose clock began at `clock`: its start event, and a packet every 20 ms.
  private static func log(clock: Int, unix: Int, first: Int = 0) -> [UInt8] {
    let begin = field(16, field(1, clock) + field(2, 2) + field(3, unix))
    return begin
      + (first..<(first + 50)).flatMap { number in
        field(
          2,
          field(1, clock + 20 * (number - first)) + field(2, 0) + field(3, 111) + field(4, number)
            + fixed(5, 960 * number) + fixed(6, 0xabcd) + field(8, 100) + field(9, 12)
            + field(10, 0))
      }
  }

  /// Logs without their beginning have no date, but keep the intervals between their packets.
  @Test(arguments: [0, 20])
  func anEventLogWithoutItsBeginning(events: Int) async throws {
    let folder = try Folder()
    var file = Self.log(clock: 90_000_000, unix: 1_700_000_000_000)[...]
    // Removes whole events from the start; each has one byte of tag, and lengths under 128.
    for place in 0...events {
      file = file.dropFirst(
        (place == 0 ? 3 : 2) + Int(file[file.startIndex + (place == 0 ? 2 : 1)]))
    }
    let (take, said) = try await imported(Array(file), "event.log", folder)
    #expect(said.contains("it contains no date"), "\(said)")
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 0)
    let packets = "FROM packet WHERE protocol = 'rtp' AND direction = 'in'"
    #expect(try Takes.number(take, "SELECT count(*) \(packets)") == Int64(50 - events))
    #expect(
      try Takes.number(take, "SELECT max(at_ns) \(packets)") == Int64(49 - events) * 20_000_000)
  }

  /// Each event log in a file has its own clock, whose date is in that log's start event.
  @Test func eventLogsOneAfterAnother() async throws {
    let folder = try Folder()
    let file =
      Self.log(clock: 90_000_000, unix: 1_700_000_000_000)
      + Self.log(clock: 5_000, unix: 1_700_000_002_000, first: 50)
    let (take, said) = try await imported(file, "event.log", folder)
    #expect(said.contains("it contains 2 logs"), "\(said)")
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 1_700_000_000_000_000_000)
    #expect(try Takes.number(take, "SELECT max(at_ns) FROM packet") == 2_980_000_000)
    #expect(try Takes.number(take, "SELECT sum(lost) FROM loss") == 0)
  }

  // MARK: Refusals

  @Test(arguments: [
    ("844525628.240592 RTP len=176 from=192.0.2.1:46196 v=2 p=0 x=0\n", "rtpdump -F dump"),
    (
      "I 12:00:00.000 0000 13 88 13 88 00 00 00 00 00 00 00 00 # SCTP_PACKET\n", "only SCTP packets"
    ),
    ("#!rtpplay2.0 a/1\n", "unknown version"), ("#!RTPencode2.0 a/1\n", "unknown version"),
  ])
  func otherFormsAreReportedInOneSentence(text: String, words: String) async throws {
    let folder = try Folder()
    let path = try folder.write("call.rtp", Array(text.utf8))
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    #expect(outcome.status == 65 && outcome.errorLines.count == 1, "\(outcome.errors)")
    #expect(
      outcome.errors.contains("call.rtp") && outcome.errors.contains(words), "\(outcome.errors)")
  }

  @Test func anEventLogOfVersion3IsReportedInOneSentence() async throws {
    let folder = try Folder()
    let path = try folder.write(
      "event.log", [0x80, 0xd6, 0x80, 0x25] + [UInt8](repeating: 3, count: 99))
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    #expect(outcome.status == 65 && outcome.errors.contains("version 3"), "\(outcome.errors)")
  }
}
