import Foundation
import Testing

/// Tests what commands say about the streams of unencrypted calls, and of calls that began before
/// the capture.
struct StreamImportTests {
  private func imported(_ folder: Folder, _ capture: Capture, _ options: String...) async throws
    -> (take: String, made: Tool.Outcome)
  {
    try await imported(folder, capture.pcap, options)
  }

  private func imported(_ folder: Folder, _ bytes: [UInt8], _ options: [String]) async throws
    -> (take: String, made: Tool.Outcome)
  {
    let take = folder.file("\(UUID()).take")
    let made = try await Tool.run(
      ["import", try folder.write("call.pcap", bytes), "--out", take] + options)
    #expect(made.status == 0, "\(made.errors)")
    return (take, made)
  }

  private func rtp(
    _ sequence: Int, time: Int, ssrc: Int = 7, type: UInt8 = 0, _ payload: [UInt8]
  ) -> [UInt8] {
    [0x80, type] + Capture.big(sequence, 2) + Capture.big(time, 4) + Capture.big(ssrc, 4) + payload
  }

  /// Returns bytes that look encrypted.
  private func random(_ seed: Int, _ count: Int) -> [UInt8] {
    var state = UInt64(seed + 1) &* 0x9e37_79b9_7f4a_7c15
    return (0..<count).map { _ in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return UInt8(truncatingIfNeeded: state >> 32)
    }
  }

  private let sound = [UInt8](repeating: 0xd5, count: 160)
  private let milliseconds: Int64 = 1_000_000

  private func problems(_ take: String) async throws -> String {
    let said = try await Tool.run("stats", take, "--problems", "--json")
    #expect(said.status == 0, "\(said.errors)")
    return said.output
  }

  /// G.711 is decoded by default: the peer with a voice counts as speaking, the silent one does
  /// not.
  @Test(arguments: [(UInt8(0), UInt8(0xff)), (8, 0xd5)])
  func g711AudioIsDecoded(type: UInt8, silence: UInt8) async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<300 {
      let at = Int64(number) * 20 * milliseconds
      let speech = random(number, 160)
      capture.add(
        Capture.udp(rtp(number, time: number * 160, ssrc: 7, type: type, speech), from: 1), at: at)
      let quiet = [UInt8](repeating: silence, count: 160)
      capture.add(
        Capture.udp(
          rtp(number, time: number * 160, ssrc: 8, type: type, quiet), from: 1, isBack: true),
        at: at + 3 * milliseconds)
    }
    let (take, _) = try await imported(folder, capture)
    let decoded = "SELECT count(*) FROM frame WHERE outcome = 'decoded' AND digest IS NOT NULL"
    #expect(try Takes.number(take, decoded) > 580)
    let speaks = "SELECT count(DISTINCT peer) FROM speaker"
    #expect(try Takes.number(take, speaks) == 1)
    let levels = "SELECT count(*) FROM audio_level WHERE dbov > -20"
    #expect(try Takes.number(take, levels) > 40)
    #expect(try Takes.number(take, "SELECT count(*) FROM audio_level WHERE dbov < -60") > 40)
    let media = folder.file("media")
    let export = try await Tool.run("export", take, "--media", media)
    #expect(export.status == 0, "\(export.errors)")
    let files = try FileManager.default.contentsOfDirectory(atPath: media)
    #expect(files.count == 2 && files.allSatisfy { $0.hasSuffix(".wav") }, "\(files)")
    // An excerpt is decoded from its own frames only, and sounds the same.
    let part = folder.file("part")
    let range = try await Tool.run(
      "export", take, "--media", part, "--from", "1s", "--to", "3s")
    #expect(range.status == 0, "\(range.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: part).count == 2)
    try await Takes.expectIdentical(take)
    let page = try await Tool.run("page", take, "--out", folder.file("call.html"))
    #expect(page.status == 0, "\(page.errors)")
    let text = try String(contentsOfFile: folder.file("call.html"), encoding: .utf8)
    #expect(text.contains("audio/wav"))
  }

  @Test func aCallInMidCallIsWhole() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<400 {
      let at = Int64(number) * 20 * milliseconds
      for ssrc in 0..<4 {
        let packet = rtp(
          number, time: number * 960, ssrc: 100 + ssrc, type: 111, random(number * 4 + ssrc, 80))
        capture.add(
          Capture.udp(packet, from: 1, isBack: ssrc > 1), at: at + Int64(ssrc) * milliseconds)
      }
      guard number % 150 == 149 else { continue }
      let check = Capture.check("abcd:efgh", number)
      capture.add(Capture.udp(check, from: 1), at: at + 10 * milliseconds)
      capture.add(
        Capture.udp(Capture.answer(to: check), from: 1, isBack: true), at: at + 11 * milliseconds)
    }
    let (take, made) = try await imported(folder, capture)
    #expect(made.output.contains("1 call, 4 streams, 1600 RTP"), "\(made.output)")
    #expect(!made.output.contains("left out"))
    let ice = "FROM state WHERE machine = 'ice-connection' AND to_state = 'connected'"
    #expect(try Takes.number(take, "SELECT count(*) \(ice)") == 2)
    let sent = "SELECT sum(received) FROM loss WHERE direction = 'out'"
    #expect(try Takes.number(take, sent) == 1600)
    // All packets count as sent, including those from before the codec was known.
    let counted = """
      SELECT min(n) FROM (
        SELECT max(members ->> '$.packetsSent') AS n FROM stat WHERE type = 'outbound-rtp'
        GROUP BY id)
      """
    #expect(try Takes.number(take, counted) == 400)
    try await Takes.expectIdentical(take)
  }

  @Test func restartedNumbersAreNamedAndNotLost() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<600 {
      let sequence = number < 300 ? 32_000 + number : 20_000 + number
      let at = Int64(number) * 20 + (number < 300 ? 0 : 5000)
      let time = number * 160 + (number < 300 ? 0 : 40_000)
      capture.add(
        Capture.udp(rtp(sequence, time: time, type: 8, sound), from: 1), at: at * milliseconds)
    }
    let (take, _) = try await imported(folder, capture)
    let said = try await problems(take)
    #expect(said.contains("sequence-restart") && said.contains("from 32299 to 20300"))
    // No stream froze, and no packet was lost or late, because the sender's clock continued during
    // a pause.
    #expect(!said.contains("starved") && !said.contains("concealed-audio"), "\(said)")
    #expect(!said.contains("\"loss"), "\(said)")
    #expect(try Takes.number(take, "SELECT max(lost) FROM loss") == 0)
    #expect(try Takes.number(take, "SELECT max(expected) FROM loss") == 600)
  }

  /// After a jump back by fewer than a hundred sequence numbers, statistics, findings and views
  /// agree; late or repeated packets do not count as a jump.
  @Test(arguments: [5, 50, 99, 0])
  func nearRestartsOfNumbersAreNamedToo(_ back: Int) async throws {
    let folder = try Folder()
    var capture = Capture()
    func add(_ sequence: Int, _ time: Int, _ at: Int, _ fill: Int) {
      let payload = (0..<160).map { UInt8(truncatingIfNeeded: $0 &* fill) }
      capture.add(
        Capture.udp(rtp(sequence, time: time, type: 8, payload), from: 1),
        at: Int64(at) * milliseconds)
    }
    for number in 0..<600 {
      // Packets 100 and 102 are swapped, and packet 200 is repeated a second later.
      let shown = number == 100 ? 102 : number == 102 ? 100 : number
      let sequence = shown - (number < 300 ? 0 : back)
      add(32_000 + sequence, shown * 160, number * 20, shown + 1)
      if number == 250 { add(32_200, 200 * 160, number * 20 + 5, 201) }
    }
    let (take, made) = try await imported(folder, capture)
    #expect(made.output.contains("601 RTP"), "\(made.output)")
    let said = try await problems(take)
    #expect(said.contains("sequence-restart") == (back > 0), "\(said)")
    #expect(!said.contains("\"loss"), "\(said)")
    if back > 0 { #expect(said.contains("from 32299 to \(32_300 - back)"), "\(said)") }
    // The file's own view, which `sqlite3` reads, and the computed view return the same result.
    let loss = "SELECT expected * 1000000 + received * 1000 + lost AS sum FROM loss WHERE peer = 2"
    #expect(try Takes.number(take, loss) == 600_600_000)
    let asked = try await Tool.run("sql", take, loss, "--json")
    #expect(asked.output.contains("600600000"), "\(asked.output)")
    // A repeated packet counts as received (RFC 3550 appendix A.3), so the loss is -1. The numbers
    // that occur again after the restart do not make up for lost packets.
    let counted = "SELECT members ->> '$.packetsLost' FROM stat WHERE type = 'inbound-rtp'"
    #expect(try Takes.number(take, "\(counted) ORDER BY row DESC LIMIT 1") == -1)
    try await Takes.expectIdentical(take)
  }

  /// VP8 in RED, as browsers with ULPFEC repair send it: its frames are found even without a
  /// description.
  @Test func videoInsideOfREDIsFound() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<90 {
      let key: [UInt8] = [0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 64, 0, 48, 0]
      let content = [120, 0x10] + (number == 0 ? key : [0x31, 0x01]) + random(number, 300)
      capture.add(
        Capture.udp(rtp(number, time: number * 3000, type: 0x80 | 122, content), from: 1),
        at: Int64(number) * 33 * milliseconds)
    }
    let (take, made) = try await imported(folder, capture, "--clear")
    // All frames but the last, which its receiver would show after the end of the capture.
    #expect(made.output.contains("89 frames"), "\(made.output)")
    #expect(try Takes.number(take, "SELECT count(*) FROM frame WHERE codec = 'vp8'") == 89)
    #expect(try await problems(take).contains("late-first-frame") == false)
    try await Takes.expectIdentical(take)
  }

  @Test func reportsOfAnotherSourceAreNamed() async throws {
    let folder = try Folder()
    for source in [7, 8] {
      var capture = Capture()
      for number in 0..<200 {
        let at = Int64(number) * 20 * milliseconds
        capture.add(
          Capture.udp(rtp(number, time: number * 160, type: 8, sound), from: 1), at: at)
        guard number % 50 == 49 else { continue }
        let report: [UInt8] =
          [0x80, 200, 0, 6] + Capture.big(source, 4) + Capture.big(number, 8)
          + Capture.big(number * 160, 4) + Capture.big(number, 4) + Capture.big(number * 160, 4)
        capture.add(Capture.udp(report, from: 1), at: at + milliseconds)
      }
      let (take, _) = try await imported(folder, capture)
      let said = try await problems(take)
      #expect(said.contains("rtcp-other-ssrc") == (source == 8), "\(said)")
    }
  }

  /// Timestamp steps that do not match packet durations are reported, except after omitted silence.
  @Test(arguments: ["even", "off", "long", "pauses"])
  func unevenTimestampsAreNamed(_ kind: String) async throws {
    let folder = try Folder()
    var capture = Capture()
    var (time, at) = (0, Int64(0))
    for number in 0..<300 {
      let isOdd = number % 3 == 2
      let payload: [UInt8] = [0x78] + random(number, 70)
      capture.add(
        Capture.udp(rtp(number, time: time, type: 111, payload), from: 1), at: at * milliseconds)
      switch kind {
      case "off": time += [953, 960, 967][number % 3]
      case "long": time += isOdd ? 2880 : 960
      case "pauses": time += isOdd ? 9600 : 960
      default: time += 960
      }
      at += kind == "pauses" && isOdd ? 200 : 20
    }
    let (take, made) = try await imported(folder, capture, "--map", "111=opus")
    #expect(made.output.contains("(300 in the clear)"), "\(made.output)")
    let said = try await problems(take)
    #expect(said.contains("uneven-timestamps") == (kind == "off" || kind == "long"), "\(said)")
  }

  /// Unencrypted media that cannot be recognized as such is not read, and the output names the
  /// option that reads it.
  @Test func theOptionForMediaInTheClearIsNamed() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<50 {
      let packet = rtp(number, time: number * 960, type: 111, random(number, 70))
      capture.add(Capture.udp(packet, from: 1), at: Int64(number) * 20 * milliseconds)
    }
    let (_, made) = try await imported(folder, capture)
    #expect(made.output.contains("(0 in the clear)") && made.output.contains("--clear"))
    let (take, forced) = try await imported(folder, capture, "--clear")
    #expect(forced.output.contains("(50 in the clear)") && !forced.output.contains("--clear"))
    try await Takes.expectIdentical(take)
  }

  /// The clock rate is unknown, yet packets, losses and bytes are counted.
  @Test func aStreamWithoutAClockHasStatistics() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<100 where number % 10 != 3 {
      let packet = rtp(number, time: number * 37 * (number % 5), type: 97, random(number, 70))
      capture.add(Capture.udp(packet, from: 1), at: Int64(number) * 20 * milliseconds)
    }
    let (take, made) = try await imported(folder, capture)
    #expect(made.output.contains("--map"), "\(made.output)")
    let inbound = "FROM stat WHERE type = 'inbound-rtp'"
    #expect(
      try Takes.number(take, "SELECT max(members ->> '$.packetsReceived') \(inbound)") == 90)
    #expect(try Takes.number(take, "SELECT max(members ->> '$.packetsLost') \(inbound)") == 10)
    let sent = "SELECT max(members ->> '$.packetsSent') FROM stat WHERE type = 'outbound-rtp'"
    #expect(try Takes.number(take, sent) == 90)
  }

  /// SIP descriptions in the same capture define the payload types.
  @Test func callsOfSIPAreUnderstood() async throws {
    let folder = try Folder()
    var capture = Capture()
    let body =
      "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
      + "m=audio 5000 RTP/AVP 97\r\na=rtpmap:97 speex/16000\r\n"
    let answer = "SIP/2.0 200 OK\r\nContent-Type: application/sdp\r\n\r\n\(body)"
    capture.add(Capture.udp(Array(answer.utf8), from: 5060 - 1024), at: 0)
    for number in 0..<50 {
      let packet = rtp(number, time: number * 320, type: 97, random(number, 70))
      capture.add(Capture.udp(packet, from: 1), at: Int64(number + 1) * 20 * milliseconds)
    }
    let (take, made) = try await imported(folder, capture)
    #expect(made.output.contains("(50 in the clear)"), "\(made.output)")
    let clock = "SELECT max(clock_rate) FROM track WHERE codec = 'speex'"
    #expect(try Takes.number(take, clock) == 16_000)
  }

  /// A damaged record in the middle of a capture costs only its own packet, and the take reports
  /// the damage.
  @Test func aDamagedRecordCostsItself() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<100 {
      capture.add(
        Capture.udp(Capture.rtp(number), from: 1), at: Int64(number) * 20 * milliseconds)
    }
    var bytes = capture.pcap
    let length = (bytes.count - 24) / 100
    for place in 0..<4 { bytes[24 + 60 * length + 8 + place] = 0x7f }
    let (take, made) = try await imported(folder, bytes, [])
    #expect(made.errors.contains("damaged") && made.errorLines.count == 1, "\(made.errors)")
    #expect(made.output.contains("99 RTP and RTCP packets"), "\(made.output)")
    #expect(try Takes.number(take, "SELECT max(lost) FROM loss") == 1)
    let row = "SELECT count(*) FROM coverage WHERE what = 'damaged-capture'"
    #expect(try Takes.number(take, row) == 1)
  }
}
