import Foundation
import Testing

/// Logs of rtcstats and Jitsi in the forms in which log collectors and people keep them.
struct LoggedImportTests {
  private static let start = 1_714_557_600_000

  private static func date(_ second: Int) -> String { "2024-05-01T10:00:0\(second).000Z" }

  /// Lines of a Jitsi client without their times.
  private static let events = [
    #""create","PC_0",{}"#, #""createOffer","PC_0",null"#,
    #""getstats","PC_0",{"A":{"timestamp":0,"type":"inbound-rtp","ssrc":5,"packetsReceived":9},"#
      + #""timestamp":1714557602000}"#,
    #""oniceconnectionstatechange","PC_0","connected""#,
  ]

  /// Lines of an rtcstats dump without its head.
  private static let numbered = [
    #"[39,"PC_0",{},1714557600000]"#, #"[2,"PC_0",null,1000]"#,
    #"["g","PC_0",{"t":1714557602000,"0":{"type":1,"10":5,"14":9}},1000]"#,
    #"[24,"PC_0","connected",1000]"#,
  ]

  private static func quoted(_ text: String) throws -> String {
    String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
  }

  private func expectCall(_ text: String, _ options: [String] = []) async throws {
    let folder = try Folder()
    let take = try await ReportedImportTests.imported(text, "call.log", folder, options)
    func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
    #expect(try number("SELECT start_unix_ns FROM take") == Int64(Self.start) * 1_000_000)
    #expect(try number("SELECT at_ns FROM ending") == 3_000_000_000)
    #expect(
      try number("SELECT at_ns FROM event WHERE type = 'iceconnectionstatechange'") == 3_000_000_000
    )
    #expect(
      try number(
        "SELECT members ->> '$.packetsReceived' FROM stat WHERE type = 'inbound-rtp' "
          + "AND timestamp_ms = 1714557602000") == 9)
    #expect(try number("SELECT count(*) FROM peer WHERE label = 'PC_0'") == 1)
  }

  /// Imports lines after the time, level and names that loggers and collectors add, or as strings
  /// inside their JSON.
  @Test(arguments: [
    "DATE INFO LINE", "[DATE] [rtcstats] [client 7] LINE", "rtcstats-1  | DATE debug: LINE",
    "DATE stdout F LINE", "May  1 10:00:00 host app[12]: LINE",
    #"{"log":QUOTED,"stream":"stdout","time":"DATE"}"#,
    #"{"__REALTIME_TIMESTAMP":"1714557600000000","MESSAGE":QUOTED,"_PID":"1"}"#,
    #"{"level":30,"time":1714557600000,"msg":QUOTED}"#,
    #"{"log":DOUBLY,"stream":"stderr","time":"DATE"}"#,
  ])
  func linesOfALogCollector(form: String) async throws {
    let jitsi = Self.events.enumerated().map { "[\($1),\(Self.start + 1000 * $0)]" }
    for lines in [jitsi, Self.numbered] {
      let others = form.hasPrefix("{") ? #"{"log":"listening"}"# : "listening on port 3000"
      let text = try lines.enumerated().map { second, line in
        form.replacing("LINE", with: line)
          .replacing("QUOTED", with: try Self.quoted(line + "\n"))
          .replacing("DOUBLY", with: try Self.quoted("info: client 7 wrote \(line)\n"))
          .replacing("DATE", with: Self.date(second))
      }
      try await expectCall(([others] + text).joined(separator: "\n"))
      try await expectCall(
        text.joined(separator: "\n"), ["--as", lines == jitsi ? "jitsi" : "rtcstats"])
    }
  }

  /// Imports lines with dates in place of Unix times, lines whose only date is the collector's, and
  /// lines in an array.
  @Test(arguments: ["[LINE,\"DATE\"]", "DATE INFO [LINE]", "[LINE,\"DATE\"],"])
  func linesWithDates(form: String) async throws {
    let lines = Self.events.enumerated().map { second, line in
      form.replacing("LINE", with: line).replacing("DATE", with: Self.date(second))
    }
    try await expectCall(lines.joined(separator: "\n"))
    guard form.hasPrefix("["), form.hasSuffix("]") else { return }
    try await expectCall("[\n\(lines.joined(separator: ",\n"))\n]")
    let numbered = Self.numbered.enumerated().map { second, line in
      String(line[...(line.lastIndex(of: ",") ?? line.startIndex)]) + "\"\(Self.date(second))\"]"
    }
    for head in ["", "RTCStatsDump\n{\"fileFormat\":3}\n"] {
      try await expectCall(head + numbered.joined(separator: "\n"))
    }
  }

  @Test(arguments: [
    "", #""RTCStatsDump",{"fileFormat":3,"userAgent":"x"},"#, #"{"fileFormat":3},"#,
  ])
  func linesOfRtcstatsInAnArray(head: String) async throws {
    let text = "[\(head)\n\(Self.numbered.joined(separator: ",\n"))]"
    try await expectCall(text)
    try await expectCall(text, ["--as", "rtcstats"])
  }

  /// Docker and Kubernetes split lines after 16 kB.
  @Test(arguments: [true, false])
  func splitLinesAreJoined(isDocker: Bool) async throws {
    let filler = String(repeating: "\\\"é", count: 9000)
    let whole = Self.events.enumerated().map { "[\($1),\(Self.start + 1000 * $0)]" }
    var lines: [String] = []
    for (second, line) in whole.enumerated() {
      var rest = line.replacing(#""ssrc":5"#, with: #""ssrc":5,"note":"\#(filler)""#)[...]
      while !rest.isEmpty {
        let part = String(rest.prefix(16_384))
        rest = rest.dropFirst(16_384)
        let isLast = rest.isEmpty
        lines.append(
          isDocker
            ? "{\"log\":\(try Self.quoted(part + (isLast ? "\n" : ""))),\"stream\":\"stdout\","
              + "\"time\":\"\(Self.date(second))\"}"
            : "\(Self.date(second)) stdout \(isLast ? "F" : "P") \(part)")
      }
    }
    #expect(lines.count > whole.count)
    try await expectCall(lines.joined(separator: "\n"))
  }

  /// Jitsi's services write JSON objects; if an object has no time, the logger's time is used.
  @Test(arguments: [true, false])
  func objectsOfServicesBehindAPrefix(hasTime: Bool) async throws {
    let folder = try Folder()
    let lines = try (0..<4).map { second in
      let data = hasTime ? #"{"timestamp":\#(Self.start + 1000 * second)}"# : #"{"n":1}"#
      return #"\#(Self.date(second)) INFO {"type":"stats-entry","statsSessionId":"x","data":"#
        + (try Self.quoted(data)) + "}"
    }
    let take = try await ReportedImportTests.imported(
      lines.joined(separator: "\n"), "jvb.log", folder)
    #expect(
      try Takes.number(take, "SELECT start_unix_ns FROM take") == Int64(Self.start) * 1_000_000)
    #expect(try Takes.number(take, "SELECT at_ns FROM ending") == 3_000_000_000)
    #expect(try Takes.number(take, "SELECT count(*) FROM event WHERE type = 'stats-entry'") == 4)
  }
}
