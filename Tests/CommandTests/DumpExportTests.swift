import Foundation
import Testing

@testable import Tape

/// Tests exports of a take's calls, events and statistics as dumps and traces for other tools.
struct DumpExportTests {
  // MARK: Reports

  /// Returns the members of each statistics object, sample by sample.
  private static func statistics(_ path: String) throws -> [String: [[String: NSObject]]] {
    let connection = try SQLiteConnection(path: path, mode: .readOnly)
    let rows = try connection.prepare(
      "SELECT peer || ' ' || type || ' ' || id, members FROM stat ORDER BY row")
    var found: [String: [[String: NSObject]]] = [:]
    while try rows.step() {
      let members = try JSONSerialization.jsonObject(with: Data(rows.bytes(1)))
      let object = try #require(members as? [String: NSObject])
      let name = rows.text(0) ?? ""
      if found[name]?.last != object { found[name, default: []].append(object) }
    }
    return found
  }

  private static func withVanishedMembers(
    _ samples: [[String: NSObject]]
  ) -> [[String: NSObject]] {
    var found: [[String: NSObject]] = []
    for sample in samples {
      let whole = (found.last ?? [:]).merging(sample) { $1 }
      if found.last != whole { found.append(whole) }
    }
    return found
  }

  @Test(arguments: ["webrtc-internals", "rtcstats"])
  func aDumpHasTheSameStatistics(_ format: String) async throws {
    for name in ["chromium-negotiates", "live-loopback"] {
      let folder = try Folder()
      let take = Exports.capture(name)
      let dump = folder.file("dump")
      _ = try await Exports.export(take, "--format", format, "--out", dump)
      let again = try await Exports.imported(dump)
      var before = try Self.statistics(take)
      // The changes-only format cannot express that an object has lost a member.
      if format == "rtcstats" { before = before.mapValues(Self.withVanishedMembers) }
      let after = try Self.statistics(again)
      #expect(Set(before.keys) == Set(after.keys))
      for (object, samples) in before { #expect(after[object] == samples, "\(object)") }
      let states = """
        SELECT peer || machine || to_state FROM state
        WHERE machine IN ('signaling', 'ice-connection', 'connection') ORDER BY row
        """
      #expect(try Exports.rows(take, states).sorted() == Exports.rows(again, states).sorted())
      let calls = """
        SELECT peer || name FROM call_request
        WHERE name IN ('setLocalDescription', 'setRemoteDescription') ORDER BY row
        """
      #expect(try Exports.rows(take, calls) == Exports.rows(again, calls))
    }
  }

  @Test func aDumpOfADumpIsTheSame() async throws {
    let folder = try Folder()
    let first = folder.file("one")
    _ = try await Exports.export(
      Exports.capture("chromium-peer-offers"), "--format", "rtcstats", "--out", first)
    let take = try await Exports.imported(first)
    _ = try await Exports.export(take, "--format", "rtcstats", "--out", folder.file("two"))
    let (one, two) = try (
      String(contentsOfFile: first, encoding: .utf8),
      String(contentsOfFile: folder.file("two"), encoding: .utf8)
    )
    func calls(_ text: String) -> [String] {
      text.split(separator: "\n").dropFirst(2).map { String($0.split(separator: ",")[0]) }
    }
    #expect(calls(one) == calls(two))
  }

  /// Checks everything that rtcstats' importer of 2026 requires of a webrtc-internals dump.
  @Test func aDumpOfInternalsHasWhatImportersRequire() async throws {
    let folder = try Folder()
    let path = folder.file("dump")
    _ = try await Exports.export(
      Exports.capture("chromium-peer-offers"), "--format", "webrtc-internals", "--out", path)
    let dump = try Exports.json(Data(contentsOf: URL(filePath: path)))
    #expect(dump["UserAgentData"] is [[String: Any]] && dump["getUserMedia"] is [Any])
    let connections = try #require(dump["PeerConnections"] as? [String: [String: Any]])
    for connection in connections.values {
      #expect(connection["url"] is String && connection["rtcConfiguration"] is String)
      let log = try #require(connection["updateLog"] as? [[String: Any]])
      #expect(log.count > 5)
      for entry in log {
        let value = try #require(entry["value"] as? String, "\(entry)")
        #expect(entry["timestamp"] is NSNumber && entry["type"] is String)
        // Importers recognize descriptions by their first characters.
        if value.contains("\"sdp\":") { #expect(value.hasPrefix("{\"type\":")) }
        if value.hasPrefix("{") { _ = try Exports.json(Data(value.utf8)) }
      }
      let stats = try #require(connection["stats"] as? [String: [String: Any]])
      for (key, series) in stats {
        let id = key.split(separator: "-", omittingEmptySubsequences: false).dropLast()
        let times = try #require(stats[id.joined(separator: "-") + "-timestamp"], "\(key)")
        func list(_ series: [String: Any]) throws -> [Any] {
          let text = try #require(series["values"] as? String)
          return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [Any])
        }
        #expect(try list(series).count <= list(times).count)
        #expect(series["statsType"] is String && series["startTime"] is String)
      }
    }
  }

  @Test func passwordsAreInADumpOnlyOnRequest() async throws {
    let folder = try Folder()
    let take = Exports.capture("chromium-peer-offers")
    let lines = try await Tool.run(
      "sql", take, "SELECT value FROM sdp_line WHERE attribute = 'ice-pwd'", "--csv")
    let passwords = lines.output.split(whereSeparator: \.isNewline).dropFirst()
    try #require(!passwords.isEmpty)
    for format in ["webrtc-internals", "rtcstats"] {
      let path = folder.file(format)
      _ = try await Exports.export(take, "--format", format, "--out", path)
      let plain = try String(contentsOfFile: path, encoding: .utf8)
      #expect(passwords.filter { plain.contains($0) } == [])
      _ = try await Exports.export(take, "--format", format, "--out", path, "--force", "--secrets")
      let whole = try String(contentsOfFile: path, encoding: .utf8)
      #expect(passwords.allSatisfy { whole.contains($0) })
    }
  }

  // MARK: Traces

  /// Parses the fields of a Protocol Buffers message.
  private static func fields(_ bytes: ArraySlice<UInt8>) throws -> [(
    Int, UInt64, ArraySlice<UInt8>
  )] {
    var found: [(Int, UInt64, ArraySlice<UInt8>)] = []
    var rest = bytes
    func variable() throws -> UInt64 {
      var value: UInt64 = 0
      for shift in stride(from: 0, to: 64, by: 7) {
        let first = rest.popFirst()
        let byte = try #require(first)
        value |= UInt64(byte & 0x7f) << UInt64(shift)
        if byte < 0x80 { break }
      }
      return value
    }
    while !rest.isEmpty {
      let tag = try variable()
      switch tag & 7 {
      case 0: found.append((Int(tag >> 3), try variable(), []))
      case 1:
        let value = rest.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(8)
        found.append((Int(tag >> 3), value, []))
      case 2:
        let length = Int(try variable())
        try #require(length <= rest.count)
        found.append((Int(tag >> 3), 0, rest.prefix(length)))
        rest = rest.dropFirst(length)
      default: Issue.record("wire type \(tag & 7)"); return found
      }
    }
    return found
  }

  @Test func aTraceFollowsAPacketFromTheEncoderToTheScreen() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    _ = try await Exports.export(
      made.path, "--format", "perfetto", "--out", folder.file("call.pftrace"))
    let file = try [UInt8](Data(contentsOf: folder.url("call.pftrace")))
    var tracks: [UInt64: String] = [:]
    var depth: [UInt64: Int] = [:]
    var stations: [UInt64: Set<String>] = [:]
    for (field, _, packet) in try Self.fields(file[...]) {
      #expect(field == 1)
      let parts = try Self.fields(packet)
      #expect(parts.contains { $0.0 == 10 && $0.1 == 1 } && parts.contains { $0.0 == 13 })
      for (field, _, body) in parts where field == 60 {
        let descriptor = try Self.fields(body)
        let name = descriptor.first { $0.0 == 2 }.map { String(decoding: $0.2, as: UTF8.self) }
        tracks[try #require(descriptor.first { $0.0 == 1 }?.1)] = name ?? "process"
      }
      for (field, _, body) in parts where field == 11 {
        #expect(parts.contains { $0.0 == 8 })
        let event = try Self.fields(body)
        let track = try #require(event.first { $0.0 == 11 }?.1)
        let name = try #require(tracks[track])
        let type = try #require(event.first { $0.0 == 9 }?.1)
        if type == 1 { depth[track, default: 0] += 1 }
        if type == 2 { depth[track, default: 0] -= 1 }
        #expect((0...1).contains(depth[track] ?? 0), "\(name): slices that overlap")
        let station = name.split(separator: " ").prefix(name.hasPrefix("jitter") ? 2 : 1)
          .joined(separator: " ")
        for (field, flow, _) in event where field == 47 || field == 48 {
          stations[flow, default: []].insert(
            station == "SRTP" || station == "socket" ? name : station)
        }
      }
    }
    #expect(depth.values.allSatisfy { $0 == 0 })
    let whole: Set<String> = [
      "encoder", "SRTP out", "socket out", "socket in", "SRTP in", "jitter buffer",
      "decoder", "screen",
    ]
    #expect(stations.values.contains { whole.isSubset(of: $0) })
    let decoded = try Takes.number(
      made.path, "SELECT count(*) FROM rtp WHERE direction = 'in'")
    #expect(stations.values.count { $0.contains("socket in") } == Int(decoded))
    #expect(stations.values.contains { $0.contains("lost on the way") || $0.contains("lost") })
  }
}
