import Testing
import Wire

@testable import Observer

/// Whatever files of reports and recordings contain, readers finish without trapping.
struct AnyReportsTests {
  private static let lines = [
    "RTCStatsDump", #"{"fileFormat":3}"#, #"[39,"PC_0",{"iceServers":[]},1700000000000]"#,
    #"[3,"PC_0",{"type":"offer","sdp":"v=0\r\nm=audio 9\r\na=mid:0\r\n"},"1-0",5.5]"#,
    #"[6,"PC_0",{"type":"offer","sdp":"v=\r\nm=\r\n"},1]"#,
    #"["g","PC_0",{"t":1e3,"0":{"type":-9223372036854775808,"10":77,"14":1e308},"1":null},900]"#,
    #"{"statsSessionId":"x","type":"stats-entry","data":"{\"timestamp\":5}"}"#,
    #"["getstats","PC_0",{"A":{"timestamp":0,"x":{"y":[1]}},"timestamp":-1e300},1e300]"#,
  ]
  private static let document = """
    {"getUserMedia":[{"rid":1,"request_type":"getUserMedia","timestamp":-1}],\
    "PeerConnections":{"1-1":\
    {"rtcConfiguration":"{","stats":{"a-b-timestamp":{"startTime":"2026-06-03T09:00:01.000Z",\
    "endTime":"0000-99-99T99:99:99Z","values":"[1e300,-1e300,2]"},"a-b-[c/s]":{"values":[1,2]},\
    "-x":{"values":"[]"}},"updateLog":[{"type":"icecandidate",\
    "value":"sdpMid: 0, candidate: candidate:",\
    "time":"99/99/9999, 99:99:99 PM"}]}}}
    """

  private struct Dice {
    var state: UInt64
    mutating func next(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % max(1, count)
    }

    /// Returns the bytes with some changed, removed or doubled.
    mutating func altered(_ bytes: [UInt8]) -> [UInt8] {
      var bytes = bytes
      for _ in 0..<(1 + next(4)) where !bytes.isEmpty {
        let place = next(bytes.count)
        switch next(4) {
        case 0: bytes[place] = UInt8(next(256))
        case 1: bytes.removeSubrange(place..<min(bytes.count, place + 1 + next(20)))
        case 2: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 20)], at: place)
        default: bytes.insert(contentsOf: Array("-9223372036854775808".utf8), at: place)
        }
      }
      return bytes
    }
  }

  @Test func lines() {
    var dice = Dice(state: 1)
    for round in 0..<600 {
      var reader = ReportedLines(round % 2 == 0 ? .rtcstats : .jitsi)
      var keys: [(connection: String?, milliseconds: Double?)] = []
      for line in Self.lines {
        let bytes = round < 2 ? Array(line.utf8) : dice.altered(Array(line.utf8))
        guard let event = reader.event(ofLine: String(decoding: bytes, as: UTF8.self)) else {
          continue
        }
        keys.append((event.connection, event.unixMilliseconds))
        guard case .stats(let report) = event.content else { continue }
        // The report is the same after it has been written and read again.
        #expect(ReportedStats(report.value) == report)
      }
      #expect(ReportedEvent.order(&keys).sorted() == Array(keys.indices))
    }
  }

  @Test func documents() {
    var dice = Dice(state: 2)
    for round in 0..<600 {
      let bytes = round == 0 ? Array(Self.document.utf8) : dice.altered(Array(Self.document.utf8))
      _ = ReportedFormat(head: bytes)
      guard let value = try? JSONValue(parsing: String(decoding: bytes, as: UTF8.self)) else {
        continue
      }
      _ = ReportedDocument(value)
    }
  }

  /// Tests lines of log collectors, some of them split, and the text that Firefox copies.
  @Test func linesOfCollectorsAndCopiedReports() {
    let lines = [
      #"{"log":"[\"create\",\"PC_0\",{},1700000000000]\n","stream":"stdout","time":"x"}"#,
      #"{"log":"[\"create\",\"PC_0\",{","stream":"stdout"}"#,
      #"{"log":"},5]\n","stream":"stdout"}"#,
      #"2024-05-01T10:00:00Z stdout P ["getstats","PC_0",{"A":"#,
      #"2024-05-01T10:00:00Z stdout F {"type":"x"}},99]"#,
      #"[12:00] {[ (2024-05-01 10:00:00,123 +0200 "x": ["a",null,{}]"#,
    ]
    let report =
      #"{"pcid":"{a} 99999999999999999 (id=","timestamp":-1e300,"#
      + #""aStats":[{"type":"t","id":"i"},1],"reports":["#
      + #"{"sdpHistory":[{"sdp":"v=0","timestamp":1e300}],"closed":true}]}"#
    var dice = Dice(state: 7)
    var found = 0
    for round in 0..<600 {
      var unwrapper = LogUnwrapper()
      let altered = lines.map { round == 0 ? Array($0.utf8) : dice.altered(Array($0.utf8)) }
      for line in altered {
        let text = unwrapper.line(in: String(decoding: line, as: UTF8.self))
        if let text, round == 0, LogUnwrapper.event(in: text[...]) != nil { found += 1 }
      }
      _ = ReportedFormat(head: Array(altered.joined(separator: [0x0a])))
      let bytes = round == 0 ? Array(report.utf8) : dice.altered(Array(report.utf8))
      if let value = try? JSONValue(parsing: String(decoding: bytes, as: UTF8.self)) {
        let document = ReportedDocument(value)
        if round == 0 { #expect(document?.events.count == 4) }
      }
    }
    #expect(found == 3)
  }

  @Test func savedPages() {
    let page = """
      <html><!-- about-webrtc- --><div id="pc-heading: {a} 99999999999999999999">\
      <br class=x y='&quot;'/><span data-l10n-args="{&quot;packets&quot;:1e99}" \
      data-l10n-id="about-webrtc-sent-label"></span><h5>audio/opus - SSRC 9223372036854775807</h5>\
      <span data-l10n-id="about-webrtc-type-local"></span><span>1 outbound-rtp</span><span \
      data-l10n-id="about-webrtc-sent-label">x</span><span> (1e308 Kb</span>\
      <table><tr><th data-l10n-id="about-webrtc-ice-state"></th></tr><tr><td>a<td>b<td>c\
      <td>1:2/udp(host)<td>[::]:3/tcp<td>1<td>nan<td>-1<td>inf</tr></table><pre>v=0</pre></html
      """
    var dice = Dice(state: 5)
    for round in 0..<600 {
      let bytes = round == 0 ? Array(page.utf8) : dice.altered(Array(page.utf8))
      _ = SavedPage.begins(bytes)
      let events = SavedPage(String(decoding: bytes, as: UTF8.self)).events
      if round == 0 { #expect(events.count == 2) }
    }
  }

  /// The readable part of damaged JSON becomes valid JSON; intact JSON stays as it is.
  @Test(arguments: [
    (#"{"a":[1,2.5,true,null,"x\u00e9\n"],"b":{}}"#, #"{"a":[1,2.5,true,null,"xé\n"],"b":{}}"#, 0),
    (#"{"a":[1,{"b":2,"c":3"#, #"{"a":[1,{"b":2}]}"#, 1),
    (#"{"a":[1,{"b":2,"c""#, #"{"a":[1,{"b":2}]}"#, 1),
    (#"{"a":1,"b":"half of a str"#, #"{"a":1}"#, 1),
    (#"{"a":NaN,"b":[-Infinity,undefined,1e400],}"#, #"{"a":null,"b":[null,null,null]}"#, 0),
    ("[1,2,]", "[1,2]", 0),
    ("{\"a\":\"C:\\x\u{1}\"}", #"{"a":"C:\\x\u0001"}"#, 0),
    (#"{"a":1} and thanks"#, #"{"a":1}"#, 1),
    ("```json\n{\"a\":1}\n```\n", #"{"a":1}"#, 1),
    (#"{"a":1}{"a":2}[3]"#, #"[{"a":1},{"a":2},[3]]"#, 0),
    (#"{"a":1,b:2}"#, #"{"a":1}"#, 1),
    ("[9223372036854775807,0012]", "[9223372036854775807,12]", 0),
  ])
  func damagedJSONIsReadAsFarAsItGoes(text: String, wanted: String, notes: Int) throws {
    let repaired = try #require(RepairedJSON(Array(text.utf8)))
    let value = try JSONValue(parsing: String(decoding: repaired.text, as: UTF8.self))
    #expect(value == (try JSONValue(parsing: wanted)))
    #expect(repaired.notes.count == notes, "\(repaired.notes)")
  }

  @Test func whateverIsRepairedIsJSON() throws {
    let text = #"{"a":[1,{"b":"x\"y","c":[true,null,-1.5e3]},[]],"d":{"e":"\u00e9","f":NaN}}"#
    var dice = Dice(state: 6)
    var count = 0
    for round in 0..<2000 {
      let bytes =
        round < text.utf8.count ? Array(text.utf8.prefix(round)) : dice.altered(Array(text.utf8))
      guard let repaired = RepairedJSON(bytes) else { continue }
      var limits = JSONValue.Limits()
      limits.depth = 64
      _ = try JSONValue(parsing: String(decoding: repaired.text, as: UTF8.self), limits: limits)
      count += 1
    }
    #expect(count > 1000)
    let deep = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)
    let repaired = try #require(RepairedJSON(deep))
    #expect(repaired.text.count < 200)
  }

  @Test func scriptMessages() {
    let name = String(repeating: "0a", count: 16)
    let text =
      name + #" 18446744073709551615"# + "\n" + #"["create","PC_0",{"a":[1]},"1",1e300]"# + "\n"
      + #"["stats","PC_0",{"form":"changes","timestamp":1,"#
      + #""objects":{"T":{"x":1},"U":null}},null,5]"#
    let head =
      #"["\#(name)",9223372036854775807,[["PC_0",{"mid":"0","kind":"video","ssrc":-1,"size":2,"#
      + #""rtpTime":1e99,"mimeType":"video/","time":-1e300}],"#
      + #"["PC_0",{"mid":"1","size":1,"time":5}]]]"#
    let length = head.utf8.count
    let frame = [UInt8(length >> 8), UInt8(length & 255)] + Array(head.utf8) + [1, 2, 3]
    var dice = Dice(state: 4)
    for round in 0..<600 {
      let bytes = round == 0 ? Array(text.utf8) : dice.altered(Array(text.utf8))
      let unit = ScriptUnit(text: String(decoding: bytes, as: UTF8.self))
      if round == 0 { #expect(unit?.number == .max) }
      let other = ScriptUnit(frames: round == 0 ? frame : dice.altered(frame))
      if round == 0 {
        #expect(other?.load == name)
        guard case .frames(let frames)? = other?.content else {
          Issue.record("no frames")
          return
        }
        #expect(frames.map(\.bytes) == [[1, 2], [3]])
      }
      if let other { #expect(ScriptUnit.isName(other.load)) }
    }
  }

  /// Four million bits of deltas may claim four million packets.
  ///
  /// No batch of libwebrtc has as many, and decoding them would need a gigabyte.
  @Test func aBatchOfMillionsIsReadPartially() {
    func varint(_ value: Int) -> [UInt8] {
      value < 128 ? [UInt8(value)] : [UInt8(value & 127) | 128] + varint(value >> 7)
    }
    // The deltas have a fixed width of one bit, and all bits are set.
    let deltas = [0] + [UInt8](repeating: 255, count: 500_000)
    let fields: [(number: Int, bytes: [UInt8])] = [
      (1, [1]), (2, [0]), (3, [96]), (4, [1]), (5, [1]), (6, [1]), (8, [20]), (9, [12]), (10, [0]),
      (11, varint(4_000_000)),
    ]
    var batch = fields.flatMap { varint($0.number << 3) + $0.bytes }
    batch += varint(104 << 3 | 2) + varint(deltas.count) + deltas
    let begin: [UInt8] = [0x82, 0x01, 2, 8, 1]
    let recording = PacketRecording(
      .eventlog, begin + [0x12] + varint(batch.count) + batch)
    #expect(recording.packetCount > 100_000 && recording.packetCount <= 200_001)
  }

  /// The timestamps of a recording without arrival times may jump by hours with each packet.
  @Test func anOldRecordingWhoseTimesJump() {
    var file = Array("MEETECHO".utf8) + [0, 5] + Array("video".utf8)
    for number in 0..<40 {
      let time: [UInt8] = [[0, 0, 0, 0], [0x7f, 255, 255, 255], [255, 255, 255, 254]][number % 3]
      file += Array("MEETECHO".utf8) + [0, 14, 0x80, 96, 0, UInt8(number)] + time
      file += [0, 0, 0, 1, 1, 2]
    }
    #expect(PacketRecording(.mjr, file).packetCount == 40)
  }

  /// The offsets of an rtptools file and the times of day in a log may jump in the same way.
  @Test func offsetsAndTimesOfDayThatJump() {
    var file = Array("#!rtpplay1.0 1.2.3.4/5\n".utf8) + [UInt8](repeating: 255, count: 16)
    for number in 0..<9000 {
      let offset = UInt32(truncatingIfNeeded: number * 0x7fff_ffff)
      file += [0, 20, 0, 12] + (0..<4).map { UInt8(offset >> (24 - 8 * $0) & 255) }
      file += [0x80, 0, UInt8(number >> 8), UInt8(number & 255), 0, 0, 0, 1, 0, 0, 0, 1]
    }
    #expect(PacketRecording(.rtpdump, file).packetCount == 9000)
    let lines = ["23:59:59", "00:00:00"].map { "I \($0) 0000 80 00 00 01 # RTP_DUMP\n" }.joined()
    let text = String(repeating: lines, count: 110_000)
    #expect(PacketRecording(.rtpdumptext, Array(text.utf8)).packetCount == 220_000)
  }

  @Test(arguments: PacketRecording.Format.allCases)
  func recordings(format: PacketRecording.Format) {
    let head = #"{"t":"v","c":"vp8","u":9223372036854775807}"#
    let packet: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2]
    let seeds: [[UInt8]] =
      switch format {
      case .mjr:
        [
          Array("MJR00002".utf8) + [0, UInt8(head.utf8.count)] + Array(head.utf8)
            + Array("MEET".utf8) + [255, 255, 255, 255, 0, 14] + packet,
          Array("MEETECHO".utf8) + [0, 5] + Array("video".utf8) + Array("MEETECHO".utf8)
            + [0, 14] + packet,
        ]
      case .rtpdump:
        [
          Array("#!rtpplay1.0 1.2.3.4/5\n".utf8) + [UInt8](repeating: 255, count: 16)
            + [0, 22, 0, 14, 255, 255, 255, 255] + packet
        ]
      case .rtpdumptext:
        [Array("x I 23:59:61.999 000000 80 60 00 01 00 # RTP_DUMP\n".utf8)]
      case .eventlog:
        [
          [0x82, 0x01, 0x06, 0x08, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x12, 0x1a]
            + [0x08, 5, 0x20, 1, 0x35, 1, 2, 3, 4, 0x58, 0xff, 0xff, 0xff, 0xff, 0x0f]
            + [0xaa, 0x06, 8, 0x47, 0x0f, 1, 2, 3, 4, 5, 6],
          [0x0a, 31, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 16, 3]
            + [0x1a, 16, 8, 0, 24, 14, 0x22, 10, 0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0],
        ]
      case .rtpproxy:
        [
          [2, 0, 1, 1, 192, 0, 2, 1] + [UInt8](repeating: 0, count: 12)
            + [0, 0, 0, 0x40, 0xef, 0x54, 0xd9, 0x41, 14, 0] + packet
        ]
      }
    var dice = Dice(state: 3)
    for round in 0..<400 {
      let seed = seeds[round % seeds.count]
      let recording = PacketRecording(format, round < 2 ? seed : dice.altered(seed))
      var count = 0
      recording.capture { count += $0.count }
      #expect(count >= 24)
    }
  }
}
