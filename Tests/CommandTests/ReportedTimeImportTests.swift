import Foundation
import Testing

/// Tests the times in other stacks' dumps and logs, whose units, forms and order differ.
struct ReportedTimeImportTests {
  /// The lines that a page buffered follow a line from its server, whose clock is years ahead.
  @Test(arguments: [(false, []), (true, []), (true, ["--as", "jitsi"])])
  func linesOfJitsiAreInTheOrderOfTheirTimes(isArray: Bool, options: [String]) async throws {
    let folder = try Folder()
    let lines = [
      #"["connectionInfo",null,{"userAgent":"x"},1900000000000]"#,
      #"["create","PC_0",{},1700000000000]"#,
      #"["oniceconnectionstatechange","PC_0","checking",1700000000100]"#,
      #"["create","PC_1",{},1699999999000]"#,
      #"["getstats","PC_0",{"A":{"timestamp":0,"type":"inbound-rtp","ssrc":5,"#
        + #""packetsReceived":1},"B":{"timestamp":0,"type":"codec"},"#
        + #""timestamp":1700000001000},1700000001000]"#,
      #"["oniceconnectionstatechange","PC_0","connected",1700000000900]"#,
      #"["getstats","PC_0",{"A":{"timestamp":0,"packetsReceived":2},"#
        + #""timestamp":1700000002000},1700000002000]"#,
    ]
    let text =
      isArray ? "[\n\(lines.joined(separator: ",\n"))\n]" : lines.joined(separator: "\n")
    let take = try await ReportedImportTests.imported(text, "jitsi.jsonl", folder, options)
    #expect(try Takes.number(take, "SELECT start_unix_ns FROM take") == 1_699_999_999_000_000_000)
    #expect(try Takes.number(take, "SELECT at_ns FROM ending") == 3_000_000_000)
    #expect(try Takes.number(take, "SELECT peer FROM peer WHERE label = 'PC_1'") == 1)
    #expect(
      try Takes.number(
        take,
        "SELECT count(*) FROM stat WHERE id = 'A' AND members ->> '$.ssrc' = 5 AND members "
          + "->> '$.packetsReceived' = 2"
      )
        == 1)
    // An object missing from a report is removed.
    #expect(
      try Takes.number(take, "SELECT count(*) FROM call_reply WHERE reply LIKE '%[\"B\"]%'") == 1)
  }

  /// Chromium once wrote dates in the format of the user's locale; here the call starts on 3 June
  /// 2026.
  @Test(arguments: [
    ("6/3/2026, 9:09:02 AM", 32_942), ("6/3/2026, 12:09:02 AM", 542),
    ("6/3/2026, 12:09:02 PM", 43_742), ("6/3/2026, 9:09:02\u{202f}PM", 76_142),
    ("03/06/2026, 9:09:02 pm", 76_142), ("03/06/2026, 21:09:02", 76_142),
  ])
  func datesOfLocales(date: String, second: Int64) async throws {
    let folder = try Folder()
    let dump =
      #"{"PeerConnections":{"1-1":{"updateLog":[{"time":"\#(date)","type":"createOffer","#
      + #""value":""}]}}}"#
    let take = try await ReportedImportTests.imported(dump, "internals.txt", folder)
    #expect(
      try Takes.number(take, "SELECT start_unix_ns / 1000000000 FROM take")
        == 1_780_444_800 + second)
  }

  /// Native libraries report seconds, microseconds or nanoseconds where browsers report
  /// milliseconds.
  @Test(arguments: ["", "000000", "000000000"])
  func timesInOtherUnitsThanMilliseconds(zeros: String) async throws {
    let folder = try Folder()
    let times = [1_700_000_000, 1_700_000_001].map { "\($0)\(zeros)" }
    let reports = times.enumerated().map { place, time in
      #"[{"id":"A","type":"inbound-rtp","timestamp":\#(time),"packetsReceived":\#(place),"#
        + #""lastPacketReceivedTimestamp":\#(time)}]"#
    }
    let lines = times.map { time in
      #"["getstats","PC_0",{"A":{"timestamp":\#(time),"type":"inbound-rtp","ssrc":5,"#
        + #""lastPacketReceivedTimestamp":\#(time)},"timestamp":\#(time)},\#(time)]"#
    }
    for (name, text) in [("reports.json", reports), ("jitsi.jsonl", lines)] {
      let take = try await ReportedImportTests.imported(text.joined(separator: "\n"), name, folder)
      func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
      #expect(try number("SELECT start_unix_ns FROM take") == 1_700_000_000_000_000_000)
      #expect(try number("SELECT at_ns FROM ending") == 1_000_000_000)
      #expect(
        try number("SELECT max(timestamp_ms) FROM stat WHERE id = 'A'") == 1_700_000_001_000)
      let received = "SELECT max(members ->> '$.lastPacketReceivedTimestamp') FROM stat"
      #expect(try number(received) == 1_700_000_001_000)
    }
  }

  /// Entries of webrtc-internals whose times are strings: Unix times, dates, or times of day.
  ///
  /// The call started at 09:09:00 UTC on 3 June 2026.
  @Test(arguments: [
    "2026-06-03T09:09:0S.000Z", "2026-06-03T11:09:0S+02:00", "178047774S000", "11:09:0S.000",
    "5:09:0S PM", "3.6.2026, 11:09:0S", "2026/6/3 下午5:09:0S", "3.6.2026 klo 11.09.0S",
    "Wed Jun 03 2026 11:09:0S GMT+0200 (MEZ)", "٣/٦/٢٠٢٦، ١١:٠٩:٠S ص", "09:09:0S 3/6/2026",
  ])
  func timesOfEntriesAsTexts(form: String) async throws {
    let folder = try Folder()
    for name in ["time", "timestamp"] {
      let entries = [
        (0, "createOffer", ""), (2, "iceconnectionstatechange", "connected"), (3, "close", ""),
      ]
      .map { second, type, value in
        let time = form.replacing("S", with: String(second))
        return #"{"\#(name)":"\#(time)","type":"\#(type)","value":"\#(value)"}"#
      }
      let span =
        #""startTime":"2026-06-03T09:09:01.000Z","endTime":"2026-06-03T09:09:03.000Z""#
      let dump =
        #"{"PeerConnections":{"1-1":{"stats":{"A-packetsReceived":{"statsType":"inbound-rtp","#
        + #"\#(span),"values":"[1,2,3]"},"A-timestamp":{"statsType":"inbound-rtp",\#(span),"#
        + #""values":"[\"2026-06-03T09:09:01.000Z\",\"2026-06-03T09:09:02.000Z\","#
        + #"\"2026-06-03T09:09:03.000Z\"]"}},"updateLog":[\#(entries.joined(separator: ","))]}}}"#
      let take = try await ReportedImportTests.imported(dump, "\(name).txt", folder)
      func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
      #expect(try number("SELECT start_unix_ns / 1000000 FROM take") == 1_780_477_740_000)
      #expect(try number("SELECT at_ns FROM state") == 2_000_000_000)
      #expect(
        try number("SELECT max(at_ns) FROM call_request WHERE name = 'close'") == 3_000_000_000)
      #expect(try number("SELECT max(timestamp_ms) FROM stat") == 1_780_477_743_000)
      let missing = "SELECT count(*) FROM coverage WHERE what IN"
      #expect(try number("\(missing) ('report-times', 'entry-times', 'no-clock')") == 0)
    }
  }

  /// Times of day may pass midnight; the take records how many times could not be read.
  @Test func timesOfDayAndUnreadableTimes() async throws {
    let folder = try Folder()
    func dump(_ times: [String]) -> String {
      let entries = times.map { #"{"time":"\#($0)","type":"restartIce","value":""}"# }
      return #"{"PeerConnections":{"1-1":{"updateLog":[\#(entries.joined(separator: ","))]}}}"#
    }
    let night = try await ReportedImportTests.imported(
      dump(["23:59:59.500", "00:00:01.000", "00:00:02.500"]), "night.txt", folder)
    #expect(try Takes.number(night, "SELECT at_ns FROM ending") == 3_000_000_000)
    #expect(try Takes.number(night, "SELECT count(*) FROM coverage WHERE what = 'no-clock'") == 1)
    let strange = try await ReportedImportTests.imported(
      dump(["2026-06-03T09:09:00Z", "half past nine"]), "strange.txt", folder)
    let noted =
      "SELECT count(*) FROM coverage WHERE what = 'entry-times' AND reason LIKE '%1 entry%'"
    #expect(try Takes.number(strange, noted) == 1)
  }

  /// What Firefox's about:webrtc copies, now and before it kept a history of descriptions.
  @Test(arguments: ["now", "before", "history"])
  func reportsThatFirefoxCopies(version: String) async throws {
    let folder = try Folder()
    func report(_ second: Int, _ packets: Int, _ more: String) -> String {
      let time = 1_700_000_000_000 + 1000 * second
      return #"{"pcid":"1700000000250000 (id=3 url=https://a.example/)","browserId":1,"#
        + #""timestamp":\#(time),"closed":false,"offerer":true,"configuration":{"iceServers":[]},"#
        + #""codecStats":[{"id":"c","type":"codec","timestamp":\#(time),"mimeType":"audio/opus","#
        + #""payloadType":109}],"inboundRtpStreamStats":[{"id":"i","type":"inbound-rtp","ssrc":77,"#
        + #""kind":"audio","timestamp":\#(time),"packetsReceived":\#(packets),"codecId":"c"}],"#
        + #""rawLocalCandidates":["candidate:0"]\#(more)}"#
    }
    let history =
      #""sdpHistory":[{"timestamp":1700000001000,"isLocal":true,"#
      + #""sdp":"v=0\r\na=setup:actpass\r\n"},{"timestamp":1700000002000,"#
      + #""isLocal":false,"sdp":"v=0\r\na=setup:active\r\n"}]"#
    let text =
      switch version {
      case "now": report(5, 300, ",\(history)")
      case "before":
        report(5, 300, #","localSdp":"v=0\r\na=setup:actpass\r\n","remoteSdp":"v=0\r\n""#)
      default:
        #"{"pcid":"1700000000250000 (id=3 url=https://a.example/)","reports":["#
          + report(4, 200, "") + "," + report(5, 300, "")
          + #"],"sdpHistories":[{"pcid":"x",\#(history)}]}"#
      }
    let take = try await ReportedImportTests.imported(text, "copied.json", folder)
    func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
    #expect(try number("SELECT count(*) FROM peer WHERE peer > 0") == 1)
    #expect(try number("SELECT start_unix_ns / 1000000 FROM take") == 1_700_000_000_250)
    #expect(try number("SELECT max(members ->> '$.packetsReceived') FROM stat") == 300)
    #expect(
      try number("SELECT count(*) FROM stat WHERE type = 'inbound-rtp'")
        == (version == "history" ? 2 : 1))
    #expect(try number("SELECT count(*) FROM track WHERE codec = 'opus'") == 1)
    #expect(
      try number("SELECT count(*) FROM signaling WHERE type = 'offer' AND direction = 'out'") == 1)
    #expect(
      try number("SELECT count(*) FROM signaling WHERE type = 'answer' AND direction = 'in'") == 1)
  }

  /// Firefox's statistics until 2017, whose types have no hyphens.
  @Test func oldStatisticsOfFirefox() async throws {
    let folder = try Folder()
    let text =
      #"{"p":{"id":"p","timestamp":1424334373346.029,"type":"candidatepair","#
      + #""localCandidateId":"a","remoteCandidateId":"b","#
      + #""nominated":true,"selected":true,"state":"succeeded"},"#
      + #""a":{"id":"a","type":"localcandidate","timestamp":1424334373346.029,"candidateType":"#
      + #""serverreflexive","ipAddress":"192.0.2.1","portNumber":5000,"transport":"udp"},"#
      + #""b":{"id":"b","type":"remotecandidate","timestamp":1424334373346.029,"candidateType":"#
      + #""peerreflexive","ipAddress":"192.0.2.2","portNumber":6000,"transport":"udp"}}"#
    let take = try await ReportedImportTests.imported(text, "old.json", folder)
    #expect(
      try Takes.number(
        take,
        "SELECT count(*) FROM candidate_pair WHERE selected AND local = '192.0.2.1:5000' "
          + "AND local_type = 'srflx' AND remote_type = 'prflx'") == 1)
  }

  /// Firefox's `inprogress` becomes the `in-progress` of webrtc-stats; `cancelled`, for a check
  /// that became unnecessary, has no counterpart there and stays, because it is no failure.
  @Test func statesOfFirefoxsPairs() async throws {
    let folder = try Folder()
    let pairs = ["inprogress", "cancelled"].map {
      #""\#($0)":{"id":"\#($0)","timestamp":1764334373346,"type":"candidate-pair","#
        + #""localCandidateId":"a","remoteCandidateId":"b","state":"\#($0)"}"#
    }
    let take = try await ReportedImportTests.imported(
      "{" + pairs.joined(separator: ",") + "}", "pairs.json", folder)
    func count(_ id: String, _ state: String) throws -> Int64 {
      try Takes.number(
        take,
        "SELECT count(*) FROM stat WHERE id = '\(id)' AND members ->> '$.state' = '\(state)'")
    }
    #expect(try count("inprogress", "in-progress") == 1)
    #expect(try count("cancelled", "cancelled") == 1)
  }
}
