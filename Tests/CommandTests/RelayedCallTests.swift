import Foundation
import Testing

/// Tests `packet` and the views built on it for observed calls through TURN servers or over TCP.
struct RelayedCallTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private let sample = Self.samples.appending(path: "chromium-aiortc.pcap").path
  private let keys = Self.samples.appending(path: "chromium-aiortc.keys").path

  private func imported(
    _ capture: [UInt8], _ folder: Folder, _ options: String...
  ) async throws -> (path: String, Tool.Outcome) {
    let path = folder.file("call.take")
    let pcap = try folder.write("call.pcap", capture)
    let made = try await Tool.run(["import", pcap, "--out", path] + options)
    #expect(made.status == 0, "\(made.errors)")
    return (path, made)
  }

  private func packets(_ path: String, _ peer: Int64, _ direction: String) throws -> Int64 {
    try Takes.number(
      path,
      """
      SELECT count(*) FROM packet
      WHERE protocol = 'rtp' AND peer = \(peer) AND direction = '\(direction)'
      """)
  }

  @Test(arguments: WrappedCall.Way.allCases)
  func eachPacketHasItsRow(_ way: WrappedCall.Way) async throws {
    let folder = try Folder()
    var call = try WrappedCall(sample: sample)
    let (path, _) = try await imported(call.capture(way), folder, "--keys", keys)
    // The observer chooses which end is the first.
    let first = try Takes.number(
      path, "SELECT peer FROM peer WHERE label LIKE '\(way == .tcp ? "%" : "198.51.100.9:50000")'")
    let other = 3 - first
    let isTurned = try way == .tcp && packets(path, first, "out") != call.rtp(ofFirst: true)
    #expect(try packets(path, first, "out") == call.rtp(ofFirst: !isTurned))
    #expect(try packets(path, other, "in") == call.rtp(ofFirst: !isTurned))
    #expect(try packets(path, first, "in") == call.rtp(ofFirst: isTurned))
    #expect(try packets(path, other, "out") == call.rtp(ofFirst: isTurned))
    let all = "SELECT count(*) FROM packet WHERE direction = 'in'"
    #expect(try Takes.number(path, all) == call.datagrams.count)

    // In both ends' rows, the addresses are the call's own, and the carrier is named. Only the
    // first end uses a relay, so only its rows have outer addresses.
    let carrier = ["channelsOverTCP": "turn-tcp", "tcp": "tcp"][way.rawValue] ?? "turn"
    #expect(
      try Takes.number(
        path, "SELECT count(DISTINCT local || remote) FROM packet WHERE carrier = '\(carrier)'")
        == 2)
    #expect(try Takes.number(path, all + " AND carrier IS NULL") == 0)
    if way != .tcp {
      let outside = "('192.168.7.7:40404', '198.51.100.9:3478')"
      for direction in ["out", "in"] {
        let count = """
          \(all.replacingOccurrences(of: "'in'", with: "'\(direction)'")) AND peer = \(first)
            AND (outer_\(direction == "out" ? "source" : "destination"),
              outer_\(direction == "out" ? "destination" : "source")) = \(outside)
          """
        #expect(
          try Takes.number(path, count)
            == call.datagrams.count { $0.isOfFirst == (direction == "out") }, "\(direction)")
      }
      let pair = """
        SELECT count(*) FROM selected_pair
        WHERE (local, local_type) = ('198.51.100.9:50000', 'relay') AND remote_type = 'host'
        """
      #expect(try Takes.number(path, pair) == 1)
    }
    #expect(try Takes.number(path, "SELECT count(*) FROM selected_pair") == 2)
    // Every view built on packets has rows.
    for view in [
      "stream", "bitrate", "loss", "jitter", "retransmission", "one_way_delay", "frame",
    ] {
      let rows = try Takes.number(path, "SELECT count(*) FROM \(view)")
      #expect(rows > 0 || view == "one_way_delay" || view == "retransmission", "\(view)")
    }
    for verb in ["replay", "info", "stats", "speakers", "timeline"] {
      let outcome = try await Tool.run(verb, path)
      #expect(outcome.status == 0, "\(verb): \(outcome.output) \(outcome.errors)")
    }
  }

  @Test(arguments: [WrappedCall.Way.channels, .channelsOverTCP])
  func lostPacketsOfARelayedCallAreFound(_ way: WrappedCall.Way) async throws {
    let folder = try Folder()
    var call = try WrappedCall(sample: sample)
    var packets = 0
    call.keep { _, datagram in
      packets += datagram.isRTP ? 1 : 0
      return !datagram.isRTP || packets % 5 != 0
    }
    let (path, _) = try await imported(call.capture(way), folder, "--keys", keys)
    let lost = "SELECT sum(lost) FROM loss"
    #expect(try Takes.number(path, lost) > 100)
    let problems = try await Tool.run("stats", path, "--problems")
    #expect(problems.output.contains("loss"), "\(problems.output)")
  }

  /// The export has the captured packets unchanged, so importing it yields the inner call again.
  @Test(arguments: WrappedCall.Way.allCases)
  func anExportContainsTheCallAsRecorded(_ way: WrappedCall.Way) async throws {
    let folder = try Folder()
    var call = try WrappedCall(sample: sample)
    let (path, _) = try await imported(call.capture(way), folder, "--keys", keys)
    let (pcap, again) = (folder.file("again.pcap"), folder.file("again.take"))
    let exported = try await Tool.run("export", path, "--pcap", pcap)
    #expect(exported.status == 0, "\(exported.errors)")
    let made = try await Tool.run("import", pcap, "--keys", keys, "--out", again)
    #expect(made.status == 0, "\(made.errors)")
    for query in [
      "SELECT count(*) FROM packet", "SELECT sum(size) FROM packet", "SELECT count(*) FROM stream",
    ] {
      #expect(try Takes.number(again, query) == Takes.number(path, query), "\(query)")
    }
  }

  /// Calls are found even if a capture lacks the allocation, the channel binding or the start of
  /// the connection.
  @Test(arguments: WrappedCall.Way.allCases)
  func aRelayedCallMayBeJoinedLate(_ way: WrappedCall.Way) async throws {
    let folder = try Folder()
    var call = try WrappedCall(sample: sample)
    let begin = (call.datagrams.first?.at ?? 0) + 3_000_000_000
    call.keep { _, datagram in datagram.at >= begin }
    let (path, made) = try await imported(call.capture(way, hasAllocation: false), folder)
    #expect(made.output.contains(": 1 call, 4 streams"))
    let seen = try Takes.number(
      path, "SELECT count(*) FROM packet WHERE protocol = 'rtp' AND direction = 'in'")
    #expect(seen > (call.rtp(ofFirst: true) + call.rtp(ofFirst: false)) * 97 / 100)
    // The capture lacks the allocation, but the consent checks show the addresses of both ends.
    let unknown = "SELECT count(*) FROM packet WHERE '0.0.0.0:16387' IN (local, remote)"
    #expect(try Takes.number(path, unknown) == 0)
    let untyped = "SELECT count(*) FROM selected_pair WHERE '' IN (local_type, remote_type)"
    #expect(try Takes.number(path, untyped) == 0)
    #expect(try Takes.number(path, "SELECT count(*) FROM selected_pair") == 2)
    #expect(try await Tool.run("replay", path).status == 0)
  }

  // MARK: Useless keys

  @Test func anInvalidKeyLogIsNamed() async throws {
    let folder = try Folder()
    let text = try folder.write("notes.txt", "# a comment\nhello there\n".utf8)
    let made = try await Tool.run(
      "import", sample, "--keys", text, "--out", folder.file("call.take"))
    #expect(made.status == 0)
    #expect(made.output.contains("notes.txt has no key log line"), "\(made.output)")
  }

  @Test func anUnrelatedKeyLogIsNamed() async throws {
    let folder = try Folder()
    let other = String(repeating: "ab", count: 32)
    let line = "CLIENT_RANDOM \(other) \(String(repeating: "cd", count: 48))\n"
    let log = try folder.write("keys.log", line.utf8)
    for out in ["call.take", "calls/"] {
      let made = try await Tool.run("import", sample, "--keys", log, "--out", folder.file(out))
      #expect(made.status == 0)
      #expect(made.output.contains("the key log belongs to other calls"), "\(made.output)")
    }
  }

  @Test func anUnrelatedSRTPKeyIsNamed() async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let made = try await Tool.run(
      "import", sample, "--srtp-key", String(repeating: "ab", count: 30), "--out", path)
    #expect(made.status == 0)
    #expect(made.output.contains("the SRTP key opens no packet"), "\(made.output)")
    let info = try await Tool.run("info", path)
    // The text is wrapped.
    let words = info.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    let told = "SRTP keys that open no packet (unused-key, 0.000 to 5.065 s)"
    #expect(words.contains(told), "\(info.output)")
  }
}
