import Foundation
import Testing

/// Imports statistics dumps and logs of other stacks as a user would.
struct ReportedImportTests {
  private static let sdp = "v=0\\r\\ns=-\\r\\nm=audio 9 UDP/TLS/RTP/SAVPF 111\\r\\na=mid:0\\r\\n"

  /// Five seconds of an rtcstats dump with numeric names and changes only: a tenth of the packets
  /// is lost in two of the seconds, and the video freezes in one.
  private static var rtcstats: String {
    var lines = [
      "RTCStatsDump", #"{"fileFormat":3,"userAgent":"Browser 1","clientProtocol":"rtcstats#5.0"}"#,
      #"[39,"PC_0",{"iceServers":[]},1700000000000]"#,
      #"[2,"PC_0",null,"1-0",10]"#,
      #"[3,"PC_0",{"type":"offer","sdp":"\#(sdp)"},"1-0",5.5]"#,
      #"[6,"PC_0",{"type":"offer","sdp":"v=\r\nm=\r\n"},"2-0",1]"#,
      #"[23,"PC_0","have-local-offer",1]"#, #"[7,"PC_0",null,"2-0",1]"#,
      #"[20,"PC_0",{"candidate":"candidate:1 1 udp 2122260223 192.0.2.7 50000 typ "#
        + #"host","sdpMid":"0"},1]"#,
      #"[8,"PC_0",{"type":"answer","sdp":"\#(sdp)"},"3-0",20]"#, #"[9,"PC_0",null,"3-0",1]"#,
      #"[10,"PC_0",{"candidate":"candidate:2 1 udp 2122260223 192.0.2.8 50001 typ "#
        + #"host","sdpMid":"0"},"4-0",1]"#,
      #"[16,"PC_0","OperationError: no","4-0",1]"#,
      #"[23,"PC_0","stable",0]"#, #"[24,"PC_0","connected",30]"#, #"[25,"PC_0","connected",1]"#,
      #"["dominant speaker","PC_0","somebody",1]"#, ":custom is no JSON",
    ]
    let first =
      #"{"t":1700000001000,"0":{"type":1,"10":77,"11":"video","18":"1","14":0,"15":0,"41":0,"#
      + #""12":"1","#
      + #""20":0,"32":0,"33":0,"23":640,"24":480},"1":{"type":14,"6":"video/VP8","4":96,"#
      + #""7":90000},"#
      + #""2":{"type":1,"10":78,"11":"audio","18":"0","14":0,"58":0,"59":0,"57":0.5},"#
      + #""3":{"type":6,"118":"succeeded","150":true,"148":"4","149":"5","152":0.02},"#
      + #""4":{"type":7,"134":"192.0.2.7","135":50000,"136":"host","116":"udp"},"#
      + #""5":{"type":8,"134":"192.0.2.8","135":50001,"136":"host","116":"udp"},"#
      + #""6":{"type":5,"125":"3","123":"connected"},"7":{"type":"new-type","new":{"a":1,"b":2}}}"#
    lines.append(#"["g","PC_0",\#(first),900]"#)
    for second in 1...5 {
      let lost = second < 2 ? 0 : second == 2 ? 10 : 20
      let freeze = second < 4 ? "" : #","32":1,"33":0.75"#
      let gone = second == 5 ? #","7":null"# : second == 2 ? #","7":{"new":{"b":3}}"# : ""
      lines.append(
        #"["g","PC_0",{"t":\#(1_700_000_001_000 + 1000 * second),"0":{"14":\#(90 * second),"#
          + #""15":\#(lost),"41":\#(90_000 * second),"20":\#(25 * second)\#(freeze)},"#
          + #""2":{"14":\#(50 * second),"58":\#(second < 3 ? 0.01 * Double(second) : 0.02),"#
          + #""59":\#(second)}\#(gone)},1000]"#)
    }
    lines.append(#"["close",null,1001,5]"#)
    return lines.joined(separator: "\n") + "\n"
  }

  static func imported(
    _ text: String, _ name: String, _ folder: Folder, _ options: [String] = []
  ) async throws -> String {
    let path = folder.file(name)
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    let outcome = try await Tool.run(["import", path, "--out", path + ".take"] + options)
    try #require(outcome.status == 0, "\(outcome.errors)")
    let replay = try await Tool.run("replay", path + ".take")
    #expect(replay.status == 0, "\(replay.output)")
    #expect(replay.output.contains("nothing can be executed again"))
    return path + ".take"
  }

  @Test func descriptionsOfADumpAreInTheirViews() async throws {
    let folder = try Folder()
    let path = try await Self.imported(Self.rtcstats, "a.txt", folder)
    let outcome = try await Tool.run(
      "sql", path, "SELECT DISTINCT direction, type FROM description ORDER BY 1 DESC", "--csv")
    #expect(outcome.output == "direction,type\r\nout,offer\r\nin,answer\r\n", "\(outcome.errors)")
    let lines = try await Tool.run(
      "sql", path, "SELECT count(*) > 3 AS many FROM sdp_line WHERE mid = '0'", "--csv")
    #expect(lines.output == "many\r\n1\r\n", "\(lines.errors)")
    let steps = try await Tool.run(
      "sql", path, "SELECT count(*) AS steps FROM milestone WHERE name LIKE '% offer'", "--csv")
    #expect(steps.output == "steps\r\n1\r\n", "\(steps.errors)")
  }

  @Test func anRtcstatsDumpFoldsIntoWholeReports() async throws {
    let folder = try Folder()
    let take = try await Self.imported(Self.rtcstats, "dump.txt", folder)
    func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
    #expect(try number("SELECT start_unix_ns FROM take") == 1_700_000_000_000_000_000)
    // All calls, results, events and reports are imported.
    #expect(try number("SELECT count(*) FROM call_request WHERE name = 'getStats'") == 6)
    #expect(
      try number("SELECT count(*) FROM call WHERE name = 'createOffer' AND reply IS NOT NULL") == 1)
    #expect(
      try number("SELECT count(*) FROM call WHERE name = 'addIceCandidate' AND error LIKE '%no%'")
        == 1)
    #expect(try number("SELECT count(*) FROM event WHERE type = 'dominant speaker'") == 1)
    #expect(try number("SELECT count(*) FROM coverage WHERE what = 'strange-lines'") == 1)
    // `createOffer` returned the offer, but the call that set it omitted its text: the import fills
    // that in.
    #expect(
      try number(
        "SELECT count(*) FROM signaling WHERE direction = 'out' AND type = 'offer' AND "
          + "message LIKE '%m=audio 9%a=mid:0%'"
      ) == 1)
    // Unchanged members are filled in, names are W3C's, and nested objects are merged.
    #expect(
      try number(
        "SELECT max(members ->> '$.packetsReceived') FROM stat WHERE members ->> '$.ssrc' = 77")
        == 450)
    #expect(
      try number(
        "SELECT count(*) FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.mid' IS NULL") == 0
    )
    #expect(
      try number(
        "SELECT count(*) FROM stat WHERE members ->> '$.new.a' = 1 AND members ->> '$.new.b' = 3")
        == 1)
    #expect(
      try number("SELECT count(*) FROM call_reply WHERE reply LIKE '%\"gone\":[\"7\"]%'") == 1)
    // States, candidates, the selected pair and the tracks are derived from calls and statistics.
    #expect(
      try number(
        "SELECT count(*) FROM state WHERE machine = 'signaling' AND to_state = 'have-local-offer'")
        == 1)
    #expect(try number("SELECT count(*) FROM candidate") == 2)
    #expect(
      try number(
        "SELECT count(*) FROM selected_pair WHERE local = '192.0.2.7:50000' AND "
          + "remote_type = 'host'"
      ) == 1)
    #expect(try number("SELECT count(*) FROM track WHERE codec = 'vp8' AND payload_type = 96") == 1)
    // -20 dBov in the first two seconds, then silence.
    #expect(try number("SELECT count(*) FROM audio_level WHERE round(dbov) = -20") == 2)
    #expect(try number("SELECT count(*) FROM speaker WHERE seconds = 2.0") == 1)
  }

  @Test func everyFindingThatCannotBeReplayedSaysWhy() async throws {
    let folder = try Folder()
    let take = try await Self.imported(Self.rtcstats, "dump.txt", folder)
    let outcome = try await Tool.run("findings", take, "--explain", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let value = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
    let findings = try #require(value?["findings"] as? [[String: Any]])
    let texts = findings.compactMap { $0["explanation"] as? String }
    #expect(texts.count == findings.count && texts.count > 1, "\(texts)")
    #expect(texts.allSatisfy { $0.hasPrefix("not explained: ") }, "\(texts)")
    // One reason concerns the loss that caused a freeze, and the other concerns a finding that
    // froze no picture.
    #expect(texts.contains { $0.contains("this end was only observed") }, "\(texts)")
    #expect(texts.contains { $0.contains("it froze no picture") }, "\(texts)")
  }

  @Test func findingsNameFaultsThatCountersShow() async throws {
    let folder = try Folder()
    let take = try await Self.imported(Self.rtcstats, "dump.txt", folder)
    let findings = try await Tool.run("findings", take, "--json")
    #expect(findings.output.contains("\"freeze\""))
    #expect(findings.output.contains("\"loss\""))
    #expect(!findings.output.contains("late-first-frame"))
    let summary = try await Tool.run("summary", take, "--wide")
    #expect(summary.output.contains("640x480, 25"))
    #expect(summary.output.contains("0.8 s (1)"))
    #expect(summary.output.contains("192.0.2.7:50000 (host) to 192.0.2.8:50001 (host)"))
    #expect(summary.output.contains("because another stack reported"))
    #expect(summary.output.contains("packets of RTP by its statistics"))
    // The take contains no packets, but `info` must not say that the connection had none.
    let info = try await Tool.run("info", take)
    #expect(info.output.contains("none in the take: another stack reported this connection"))
    #expect(!info.output.contains("% of a packet capture"))
    #expect(info.output.contains("complete; reports of another stack, without packets"))
    for verb in ["info", "timeline", "stats", "speakers"] {
      #expect(try await Tool.run(verb, take).status == 0, "\(verb)")
    }
  }

  /// Other stacks' reports contain no messages; a channel's last report says how many there were.
  @Test(arguments: [
    (#","messagesSent":3,"messagesReceived":20"#, "1, messages 20 in, 3 out"),
    (#","messagesSent":3"#, "1, messages unknown in, 3 out"),
    ("", "1, number of messages unknown"),
  ])
  func reportedChannelsHaveTheMessagesThatWereCounted(counted: String, line: String) async throws {
    let folder = try Folder()
    func report(_ second: Int, _ counted: String) -> String {
      #"["getStats","PC_0",{"D1":{"id":"D1","type":"data-channel","timestamp":\#(second)000,"#
        + #""label":"chat","state":"open"\#(counted)}},\#(second)000]"#
    }
    let lines = [
      "RTCStatsDump", #"{"fileFormat":2}"#, #"["create","PC_0",{},1700000000000]"#,
      report(1_700_000_001, counted.isEmpty ? "" : #","messagesSent":1"#),
      report(1_700_000_002, counted),
    ]
    let take = try await Self.imported(lines.joined(separator: "\n") + "\n", "dump.txt", folder)
    let info = try await Tool.run("info", take)
    #expect(info.output.contains(line), "\(info.output)")
  }

  @Test func aWrongFormatIsNamedWithTheRightOne() async throws {
    let folder = try Folder()
    let capture = folder.file("call.pcap")
    let source = DebugTests.root.appending(path: "Captures/virtual-loss.take").path
    _ = try await Tool.run("export", source, "--pcap", capture)
    let outcome = try await Tool.run("import", capture, "--as", "internals", "--out", "x.take")
    #expect(outcome.status == 65 && outcome.errorLines.count == 1, "\(outcome.errors)")
    #expect(
      outcome.errors.contains(
        "its content is that of a packet capture; without --as it is imported as one"),
      "\(outcome.errors)")
  }

  @Test(arguments: [true, false])
  func dumpsOfWebrtcInternalsOfAllYears(isNew: Bool) async throws {
    func series(_ name: String, _ type: String, _ values: String) -> String {
      let kind = isNew ? #""statsType":"\#(type)","# : ""
      return
        #""\#(name)":{"startTime":"2026-06-03T09:00:01.000Z","#
        + #""endTime":"2026-06-03T09:00:03.000Z",\#(kind)"values":"\#(values)"}"#
    }
    let id = isNew ? "IT01V77" : "RTCInboundRTPVideoStream_77"
    var stats = [
      series("\(id)-ssrc", "inbound-rtp", "[77,77,77]"),
      series("\(id)-packetsReceived", "inbound-rtp", "[100,200,300]"),
      // This series starts late, so its values belong to the last reports.
      series("\(id)-frameWidth", "inbound-rtp", "[320]"),
      series("\(id)-[packetsReceived/s]", "inbound-rtp", "[0,100,100]"),
      series("\(id)-lastPacketReceivedTimestamp", "inbound-rtp", #"[\"Invalid Date\",null,5]"#),
    ]
    if isNew {
      stats.append(
        series("\(id)-timestamp", "inbound-rtp", "[1780477201000,1780477202000,1780477203000]"))
    }
    let log =
      isNew
      ? #"{"type":"onsignalingstatechange","value":"\"have-local-offer\"","#
        + #""timestamp":1780477200500},"#
        + #"{"type":"setLocalDescription","value":"{\"type\":\"offer\","#
        + #"\"sdp\":\"v=0\\r\\n\"}","timestamp":1780477200400}"#
        // The user's local time, which is two hours ahead of UTC.
      : #"{"time":"03/06/2026, "#
        + #"11:00:03","type":"legacyIceConnectionStateChange","value":"completed"},"#
        + #"{"time":"03/06/2026, 11:00:03","type":"setLocalDescription","value":"type: offer, "#
        + #"sdp: v=0\r\n"}"#
    let dump = #"""
      {"getUserMedia":[{"rid":1,"pid":2,"request_id":3,"request_type":"getUserMedia",
      "timestamp":1780477200000,"video":""},
      {"rid":1,"pid":2,"request_id":3,"request_type":"getUserMedia",
      "timestamp":1780477200100,"error":"NotAllowedError"}],
      "UserAgent":"x","PeerConnections":{"7-1":{"rtcConfiguration":"{ iceServers: [] }",
      "url":"https://a.example",
      "stats":{\#(stats.joined(separator: ","))},"updateLog":[\#(log)]}}}
      """#
    let folder = try Folder()
    let take = try await Self.imported(dump, "internals.txt", folder)
    func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
    #expect(try number("SELECT count(*) FROM stat WHERE type = 'inbound-rtp'") == 3)
    #expect(
      try number("SELECT max(at_ns) - min(at_ns) FROM stat") == 2_000_000_000)
    #expect(
      try number(
        "SELECT members ->> '$.packetsReceived' FROM stat WHERE members ->> '$.frameWidth' = 320")
        == 300)
    #expect(
      try number("SELECT count(*) FROM stat WHERE members LIKE '%[packetsReceived/s]%'") == 3)
    #expect(try number("SELECT count(*) FROM stat WHERE members LIKE '%Invalid%'") == 0)
    #expect(
      try number("SELECT count(*) FROM signaling WHERE type = 'offer' AND message LIKE 'v=0%'") == 1
    )
    #expect(
      try number(
        "SELECT count(*) FROM call WHERE name = 'getUserMedia' AND error LIKE '%NotAllowed%'") == 1)
    #expect(try number("SELECT count(*) FROM state") == 1)
    #expect(
      try number("SELECT count(*) FROM coverage WHERE what = 'report-times'") == (isNew ? 0 : 1))
    #expect(try number("SELECT at_ns FROM ending") < 10_000_000_000)
  }

  @Test(arguments: [
    #"{"A":{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"#
      + #""packetsReceived":9}}"#,
    #"[{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"packetsReceived":9}]"#,
    #"[["A",{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"#
      + #""packetsReceived":9}]]"#,
    #"{"mine":{"stats":{"A":{"type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"#
      + #""packetsReceived":9}}}}"#,
    #"{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"packetsReceived":9}"#,
    // A report on each line.
    #"[{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"packetsReceived":4}]"#
      + "\n"
      + #"[{"id":"A","type":"inbound-rtp","timestamp":1700000001000,"packetsReceived":9}]"#,
    // An object on each line.
    #"{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"packetsReceived":4}"#
      + "\n"
      + #"{"id":"A","type":"inbound-rtp","timestamp":1700000001000,"ssrc":5,"packetsReceived":9}"#,
    // `NaN` as Python writes it, in a pasted code fence that was cut off.
    "```\n" + #"{"A":{"type":"inbound-rtp","timestamp":1700000000000,"ssrc":5,"jitter":NaN,"#
      + #""packetsReceived":9},"B":{"type":"trans"#,
    "\u{feff}"
      + #"[{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"packetsReceived":9}]"#,
  ])
  func reportsAsPeoplePasteThem(text: String) async throws {
    let folder = try Folder()
    let take = try await Self.imported(text, "pasted.json", folder)
    #expect(
      try Takes.number(
        take, "SELECT max(members ->> '$.packetsReceived') FROM stat WHERE id = 'A'") == 9
    )
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 1_700_000_000_000_000_000)
  }

  @Test func compressedDumpsAndDumpsFromAPipe() async throws {
    let folder = try Folder()
    let path = folder.file("dump.txt")
    try Self.rtcstats.write(toFile: path, atomically: true, encoding: .utf8)
    let outcome = try await Tool.shell(
      "gzip -k '\(path)' && \"$RETAKE\" import '\(path).gz' --out '\(path).1.take' && "
        + "cat '\(path).gz' | \"$RETAKE\" import - --as rtcstats --out '\(path).2.take'")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let counted = "SELECT count(*) FROM stat"
    #expect(
      try Takes.number(path + ".1.take", counted) == (try Takes.number(path + ".2.take", counted)))
  }

  @Test(arguments: [
    ("{", "no report of a connection"),
    ("v=0\r\n", "--sdp"), ("CLIENT_RANDOM 00 00\n", "--keys"), ("SQLite format 3\0", "a take"),
    ("PK\u{3}\u{4}", "ZIP archive"), ("BZh9", "bzip2"), ("#!rtpplay2.0 a/1\n", "rtptools"),
    ("hello\n", "format was not recognized"), ("", "empty"),
    (#"{"PeerConnections":{}}"#, "no report of a connection"),
    ("RTCStatsDump\n{}\n", "no report of a connection"),
    (#"{"hello":{"world":[1,2,3]}}"#, "no report of a connection"),
  ])
  func otherFilesThanDumpsAreReportedInOneSentence(text: String, words: String) async throws {
    let folder = try Folder()
    let path = folder.file("dump.txt")
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    #expect(outcome.status == 65)
    #expect(outcome.errorLines.count == 1)
    #expect(outcome.errors.contains("dump.txt") && outcome.errors.contains(words))
    #expect(!FileManager.default.fileExists(atPath: path + ".take"))
  }

  /// A dump that was cut off, or saved as UTF-16 by Windows, is imported as far as it goes.
  @Test func cutDumpsAndDumpsInUTF16() async throws {
    let folder = try Folder()
    let dump =
      #"{"getUserMedia":[],"PeerConnections":{"1-1":{"pid":1,"stats":{},"updateLog":["#
      + #"{"timestamp":1700000000000,"type":"createOffer","value":""},"#
      + #"{"timestamp":1700000001000,"type":"close","value":""}]}},"UserAgent":"x 😀"}"#
    let whole = folder.file("whole.txt")
    try dump.data(using: .utf16)?.write(to: URL(filePath: whole))
    let cut = folder.file("cut.txt")
    try String(dump.prefix(150)).write(toFile: cut, atomically: true, encoding: .utf8)
    for (path, calls) in [(whole, 3), (cut, 2)] {
      let outcome = try await Tool.run("import", path, "--out", path + ".take")
      try #require(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.contains("cut off at its end") == (path == cut))
      try await Takes.expectIdentical(path + ".take")
      let count = "SELECT count(*) FROM call_request WHERE peer = 1"
      #expect(try Takes.number(path + ".take", count) == calls)
    }
    #expect(
      try Takes.number(whole + ".take", "SELECT count(*) FROM event WHERE detail LIKE '%😀%'")
        + Takes.number(
          whole + ".take", "SELECT count(*) FROM actor WHERE configuration LIKE '%😀%'") > 0)
  }

  /// If the given format does not fit, the error names it and the format that the content has.
  @Test func theWrongFormatIsAnsweredWithTheRightOne() async throws {
    let folder = try Folder()
    let path = folder.file("dump.txt")
    try Self.rtcstats.write(toFile: path, atomically: true, encoding: .utf8)
    for name in ["internals", "mjr", "capture", "getstats"] {
      let outcome = try await Tool.run("import", path, "--as", name, "--out", path + ".take")
      #expect(outcome.status == 65)
      #expect(
        outcome.errors.contains("its content is that of an rtcstats dump"), "\(outcome.errors)")
      #expect(!outcome.errors.contains("looks like"))
    }
  }

  /// Part of Firefox 153's about:webrtc page, in a language other than English.
  private static let aboutWebRTC = """
    <html lang="de"><head><title data-l10n-id="about-webrtc-document-title">x</title></head><body>
    <div id="pc-heading: {ab-1} 1700000000250000 (id=3 url=http://a.example/)"><h3><span \
    data-l10n-args="{&quot;now&quot;:&quot;2023-11-14T22:13:25.500Z&quot;}" \
    data-l10n-id="about-webrtc-connection-open">offen</span></h3></div>
    <div class="peer-connection-config">RTCConfiguration<br>bundlePolicy: balanced</div>
    <div id="rtp-stats: {ab-1} 1"><div><h5>audio/opus - SSRC 77</h5><svg><text>AVG: 1</text></svg>
    <div><span data-l10n-id="about-webrtc-decoder-label">Decoder</span><span>: </span><span>\
    109 audio/opus</span><span data-l10n-args="{&quot;channels&quot;:2}" \
    data-l10n-id="about-webrtc-channels">2</span><span> 48000 stereo=1</span></div>
    <div><span data-l10n-id="about-webrtc-type-local">Lokal</span><span>: </span><span>\
    22:13:25 inbound-rtp</span><span data-l10n-args="{&quot;packets&quot;:300}" \
    data-l10n-id="about-webrtc-received-label">300</span><span> (2.50 Kb , 8.3 KBps)</span><span \
    data-l10n-args="{&quot;packets&quot;:7}" data-l10n-id="about-webrtc-lost-label">7</span></div>
    </div></div><table><tr><th data-l10n-id="about-webrtc-ice-state">x</th></tr><tr>\
    <td>succeeded</td><td>true</td><td>true</td><td>192.0.2.1:5000/udp(host) [x]</td>\
    <td>[2001:db8::1]:6000/udp(prflx)</td><td>1</td><td>12</td><td>193294</td><td>5</td></tr>\
    </table>
    <h4 data-l10n-id="about-webrtc-local-sdp-heading">x</h4>\
    <h5 data-l10n-args="{&quot;timestamp&quot;:1700000000300}" \
    data-l10n-id="about-webrtc-sdp-set-timestamp">x</h5><pre>v=0
    a=setup:actpass
    a=msid:&lt;&amp;&gt;
    </pre></body></html>
    """

  @Test func aSavedPageOfFirefoxHasItsStatisticsPairsAndDescriptions() async throws {
    let folder = try Folder()
    let take = try await Self.imported(Self.aboutWebRTC, "aboutWebrtc.html", folder)
    func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
    #expect(try number("SELECT start_unix_ns / 1000000 FROM take") == 1_700_000_000_250)
    let stream = "FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.ssrc' = 77"
    #expect(try number("SELECT members ->> '$.packetsReceived' \(stream)") == 300)
    #expect(try number("SELECT members ->> '$.packetsLost' \(stream)") == 7)
    #expect(try number("SELECT members ->> '$.bytesReceived' \(stream)") == 2560)
    #expect(
      try number("SELECT count(*) FROM track WHERE codec = 'opus' AND payload_type = 109") == 1)
    #expect(
      try number(
        """
        SELECT count(*) FROM candidate_pair WHERE selected AND local = '192.0.2.1:5000'
          AND remote = '[2001:db8::1]:6000' AND remote_type = 'prflx'
        """) == 1)
    #expect(
      try number(
        """
        SELECT count(*) FROM signaling WHERE type = 'offer' AND direction = 'out'
          AND at_ns = 50000000 AND message LIKE '%a=msid:<&>%'
        """) == 1)
    #expect(try number("SELECT count(*) FROM coverage WHERE what = 'one-report'") == 1)
  }
}
