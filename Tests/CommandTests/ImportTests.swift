import Foundation
import Testing

/// Imports observed calls from packet captures of browsers and other stacks.
struct ImportTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private func sample(_ name: String) -> String { Self.samples.appending(path: name).path }

  /// Expects the RTP packets that tshark counts; each is `out` at one end and `in` at the other.
  @Test(arguments: [
    ("chromium-aiortc", 835), ("aiortc-offers-chromium", 844), ("firefox-loop", 304),
    ("chromium-firefox-cr-offers", 1186),
  ])
  func anObservedCallBecomesATakeThatReplays(_ name: String, _ packets: Int) async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let made = try await Tool.run(
      "import", sample("\(name).pcap"), "--keys", sample("\(name).keys"), "--sdp",
      sample("\(name)-offer.sdp"), "--sdp", sample("\(name)-answer.sdp"), "--out", path)
    #expect(made.status == 0, "\(made.errors)")
    #expect(made.output.contains(": 1 call, "))
    for direction in ["in", "out"] {
      let count =
        "SELECT count(*) FROM packet WHERE protocol = 'rtp' AND direction = '\(direction)'"
      #expect(try Takes.number(path, count) == packets)
    }
    #expect(try Takes.number(path, "SELECT count(*) FROM peer WHERE role = 'observed'") == 2)
    #expect(try Takes.number(path, "SELECT count(*) FROM rtcp WHERE direction = 'in'") > 20)
    let connected = "SELECT count(*) FROM state WHERE machine = 'dtls' AND to_state = 'connected'"
    #expect(try Takes.number(path, connected) == 2)
    // The import made frames and statistics samples from what each end received. Firefox sends its
    // video frames in RED (RFC 2198).
    let isInRED = try Takes.number(path, "SELECT count(*) FROM track WHERE codec = 'red'") > 0
    #expect(isInRED == name.contains("firefox"))
    for kind in ["audio", "video"] {
      let frames = "SELECT count(*) FROM frame WHERE kind = '\(kind)' AND size > 0"
      #expect(try Takes.number(path, frames) > 10, "\(kind)")
    }
    let received = "SELECT count(DISTINCT id) FROM stat WHERE type = 'inbound-rtp'"
    #expect(try Takes.number(path, received) >= 2)
    for verb in ["replay", "verify", "info", "timeline", "speakers", "stats"] {
      let outcome = try await Tool.run(verb, path, "--json")
      #expect(outcome.status == 0, "\(verb): \(outcome.errors)")
    }
  }

  /// Sets an ECN mark in every IP header of a capture (RFC 3168 section 5), and expects it in every
  /// row and in the receivers' counts per stream, which include packets that waited for keys.
  @Test(arguments: [(3, "packetsReceivedWithCe"), (1, "packetsReceivedWithEct1")])
  func marksInTheIPHeadersAreCounted(mark: UInt8, member: String) async throws {
    let folder = try Folder()
    var capture = [UInt8](try Data(contentsOf: URL(filePath: sample("chromium-aiortc.pcap"))))
    var offset = 24
    while offset + 16 <= capture.count {
      let length = Int(capture[offset + 8]) | Int(capture[offset + 9]) << 8
      // After the record header (16 bytes) and the Ethernet header (14).
      let header = offset + 30
      if capture[header] >> 4 == 4 { capture[header + 1] = capture[header + 1] & 0xfc | mark }
      offset += 16 + length
    }
    let path = folder.file("call.take")
    let made = try await Tool.run(
      "import", try folder.write("marked.pcap", capture), "--keys", sample("chromium-aiortc.keys"),
      "--sdp", sample("chromium-aiortc-offer.sdp"), "--sdp", sample("chromium-aiortc-answer.sdp"),
      "--out", path)
    #expect(made.status == 0, "\(made.errors)")
    let others = "SELECT count(*) FROM packet WHERE ecn IS NOT \(mark)"
    #expect(try Takes.number(path, others) == 0)
    let last = """
      FROM stat
      WHERE row IN (SELECT max(row) FROM stat WHERE type = 'inbound-rtp' GROUP BY peer, id)
      """
    let marked = try Takes.number(path, "SELECT sum(members ->> '$.\(member)') \(last)")
    let all = try Takes.number(path, "SELECT sum(members ->> '$.packetsReceived') \(last)")
    #expect(marked == all && all > 500)
    try await Takes.expectIdentical(path)
    // The export keeps the received marks.
    let out = folder.file("out.pcap")
    #expect(try await Tool.run("export", path, "--pcap", out).status == 0)
    let written = [UInt8](try Data(contentsOf: URL(filePath: out)))
    var headers: Set<UInt8> = []
    offset = 24
    while offset + 18 <= written.count {
      headers.insert(written[offset + 17])
      offset += 16 + Int(written[offset + 8]) + Int(written[offset + 9]) << 8
    }
    #expect(headers == [mark])
  }

  /// A browser logs the secrets of all its connections, but a take keeps only the secrets of its
  /// own call.
  @Test func onlyTheKeysOfItsCallsAreInATake() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let other = String(repeating: "ab", count: 32)
    let lines = "CLIENT_RANDOM \(other) \(String(repeating: "cd", count: 48))\n"
    let whole = try String(contentsOfFile: sample("chromium-aiortc.keys"), encoding: .utf8)
    let keys = try folder.write("keys.log", (lines + whole + lines).utf8)
    let made = try await Tool.run(
      "import", sample("chromium-aiortc.pcap"), "--keys", keys, "--out", path)
    #expect(made.status == 0, "\(made.errors)")
    #expect(made.output.contains("888 RTP and RTCP packets (888 in the clear)"))
    let told = "SELECT count(*) FROM call_request WHERE name = 'keyLog'"
    #expect(try Takes.number(path, told) == 1)
    #expect(
      try Takes.number(path, told + " AND instr(arguments, '\(other)') > 0") == 0)
  }

  /// Observed video frames and audio are exported to files if they were decoded.
  @Test func observedReceivedMediaIsExported() async throws {
    let folder = try Folder()
    let (path, media) = (folder.file("call.take"), folder.file("media"))
    let made = try await Tool.run(
      "import", sample("chromium-noenc-VP8.pcap"), "--decode", "--out", path)
    #expect(made.status == 0, "\(made.errors)")
    let digests = "SELECT count(*) FROM frame WHERE digest IS NOT NULL"
    #expect(try Takes.number(path, digests) > 100)
    #expect(try await Tool.run("replay", path).status == 0)
    #expect(try await Tool.run("stats", path, "--at", "2").status == 0)
    let export = try await Tool.run("export", path, "--media", media)
    #expect(export.status == 0, "\(export.errors)")
    let files = try FileManager.default.contentsOfDirectory(atPath: media)
    #expect(files.contains { $0.hasSuffix(".y4m") } && files.contains { $0.hasSuffix(".wav") })
  }

  @Test func withoutKeysHeadersAreReadAndTheRestIsReportedMissing() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let made = try await Tool.run("import", sample("chromium-aiortc.pcap"), "--out", path)
    #expect(made.status == 0 && made.output.contains("not seen: no-keys"), "\(made.errors)")
    #expect(try Takes.number(path, "SELECT count(*) FROM packet WHERE protocol = 'rtp'") == 2 * 835)
    #expect(try Takes.number(path, "SELECT count(*) FROM rtcp") == 0)
    // The import and the finding count the same packets: 888 = 835 RTP + 53 RTCP.
    #expect(made.output.contains(" 888 RTP and RTCP packets (0 in the clear)"))
    #expect(
      try await Tool.run("findings", path, "--wide").output
        .contains(" 835 packets of RTP and 53 of RTCP"))
    // `info` explains the code `no-keys` and names the option that helps.
    let info = try await Tool.run("info", path).output
    #expect(info.contains("not seen    888 packets not decrypted, without a key; "), "\(info)")
    #expect(info.contains("retake import --keys FILE") && info.contains("(no-keys, 0.000 to "))
    #expect(try await Tool.run("replay", path).status == 0)
  }

  @Test func aCaptureIsReadFromAPipe() async throws {
    let folder = try Folder()
    let (whole, piped) = (folder.file("whole.take"), folder.file("piped.take"))
    let capture = sample("firefox-loop.pcap")
    #expect(try await Tool.run("import", capture, "--out", whole).status == 0)
    let outcome = try await Tool.shell("'\(Tool.path)' import - --out '\(piped)' < '\(capture)'")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let digest = "SELECT digest FROM ending"
    #expect(try Takes.bytes(whole, digest) == Takes.bytes(piped, digest))
  }

  @Test func anAlteredObservedTakeIsDetected() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    #expect(
      try await Tool.run("import", sample("firefox-loop.pcap"), "--out", path).status == 0)
    let altered = try await Tool.shell(
      "sqlite3 '\(path)' \"UPDATE state SET to_state = 'failed' WHERE to_state = 'connected'\"")
    try #require(altered.status == 0, "\(altered.errors)")
    let found = try await Tool.run("replay", path)
    #expect(found.status == 1 && found.output.contains("altered"))
  }

  @Test(arguments: [
    (["/dev/null"], 65), (["/nowhere.pcap"], 66), ([#filePath], 65),
    (["/nowhere.pcap", "--map", "96"], 64), (["/nowhere.pcap", "--srtp-key", "zz"], 64),
  ])
  func otherFilesThanCapturesAreReportedInOneSentence(_ arguments: [String], _ status: Int)
    async throws
  {
    let folder = try Folder()
    let path = folder.file("call.take")
    let outcome = try await Tool.run(["import"] + arguments + ["--out", path])
    #expect(Int(outcome.status) == status, "\(outcome.errors)")
    #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
