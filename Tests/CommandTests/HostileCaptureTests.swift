import Foundation
import Testing

/// Captures that no real network produces, but that an attacker may send or write.
struct HostileCaptureTests {
  /// Imports a capture; the import has to succeed.
  private func imported(
    _ folder: Folder, _ name: String, _ bytes: some Collection<UInt8>, _ options: String...
  ) async throws -> (take: String, made: Tool.Outcome) {
    let file = try folder.write(name, Array(bytes))
    let take = folder.file("\(name).take")
    let made = try await Tool.run(["import", file, "--out", take] + options)
    #expect(made.status == 0 && !made.wasKilled, "\(made.errors)")
    return (take, made)
  }

  // MARK: Hostile packets

  /// In an earlier version, three RTP-like datagrams longer than the probation limit ended the
  /// import.
  @Test(arguments: [4100, 20_000])
  func threeLargeDatagramsEndNothing(_ length: Int) async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<6 {
      capture.add(
        Capture.udp(Capture.rtp(number) + [UInt8](repeating: 0x55, count: length), from: 5000),
        at: Int64(number) * 20_000_000)
    }
    let file = try folder.write("large.pcap", capture.pcap)
    for decode in [[], ["--decode"]] {
      let take = folder.file("large\(decode.count).take")
      let made = try await Tool.run(["import", file, "--out", take] + decode)
      #expect(made.status == 0 && !made.wasKilled, "\(made.errors)")
      // Datagrams longer than jumbo frames are dropped during probation, until the third one starts
      // the call.
      #expect(made.output.contains("6 datagrams"))
      if length < 9000 { #expect(made.output.contains("1 call,")) }
      try await Takes.expectIdentical(take)
    }
    let recorded = try await Tool.run(
      "record", "pcap", "-r", file, "--out", folder.file("recorded.take"))
    #expect(recorded.status == 0 && !recorded.wasKilled, "\(recorded.errors)")
  }

  /// ICE checks from 33,000 ports, in one call or each in a separate call: the take contains some
  /// of them.
  @Test(arguments: [false, true])
  func checksFromTensOfThousandsOfPortsAreATake(_ hasNames: Bool) async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<33_000 {
      capture.add(
        Capture.udp(
          Capture.check(hasNames ? "abcd:\(number)" : "abcd:efgh", number), from: number),
        at: Int64(number) * 100_000)
    }
    let file = try folder.write("flood.pcap", capture.pcap)
    let take = folder.file("flood.take")
    let made = try await Tool.run("import", file, "--out", take)
    #expect(made.status == 0, "\(made.errors)")
    #expect(made.output.contains("30952 packets of no call left out"))
    #expect(try Takes.number(take, "SELECT count(*) FROM candidate_pair") < 65_536)
    try await Takes.expectIdentical(take)
    guard !hasNames else { return }
    let each = try await Tool.run("import", file, "--out", folder.file("calls") + "/")
    #expect(each.status == 0, "\(each.errors)")
  }

  /// An address that answers is accepted after any number of silent addresses, so a flood cannot
  /// hide a call.
  @Test func aCallBehindAFloodIsSeen() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<4000 {
      capture.add(
        Capture.udp(Capture.check("abcd:\(number)", number), from: number),
        at: Int64(number) * 100_000)
    }
    for number in 0..<3 {
      let at = 1_000_000_000 + Int64(number) * 50_000_000
      let check = Capture.check("real:peer", 100_000 + number)
      capture.add(Capture.udp(check, from: 60_000), at: at)
      capture.add(Capture.udp(Capture.answer(to: check), from: 60_000, isBack: true), at: at + 1000)
    }
    let (take, _) = try await imported(folder, "flood.pcap", capture.pcap)
    let succeeded = "SELECT count(*) FROM candidate_pair WHERE state = 'succeeded'"
    #expect(try Takes.number(take, succeeded) > 0)
  }

  /// If one input makes more rows than a step may contain, further steps contain the rest.
  @Test func manyAnsweredPathsAreReported() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<9000 {
      let check = Capture.check("abcd:efgh", number)
      let at = Int64(number) * 100_000
      capture.add(Capture.udp(check, from: number), at: at)
      capture.add(
        Capture.udp(Capture.answer(to: check), from: number, isBack: true), at: at + 1000)
    }
    let (take, _) = try await imported(folder, "answered.pcap", capture.pcap)
    let most = "SELECT max(n) FROM (SELECT count(*) AS n FROM candidate_pair GROUP BY step)"
    #expect((1...16_500).contains(try Takes.number(take, most)))
    try await Takes.expectIdentical(take)
  }

  @Test func thePathsAreAsManyAsOneWants() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<200 {
      capture.add(
        Capture.udp(Capture.check("abcd:\(number)", number), from: number),
        at: Int64(number) * 100_000)
    }
    let file = try folder.write("checks.pcap", capture.pcap)
    for (limit, calls) in [("80", 10), ("8000", 200)] {
      let take = folder.file("\(limit).take")
      let made = try await Tool.run("import", file, "--paths", limit, "--out", take)
      #expect(made.output.contains(": \(calls) calls, "), "\(made.output)\(made.errors)")
    }
    let refused = try await Tool.run(
      "import", file, "--paths", "0", "--out", folder.file("no.take"))
    #expect(refused.status == 64)
  }

  // MARK: Hostile files

  @Test func lostFramesAreCountedUpToTheEnd() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<3 {
      capture.add(Capture.udp(Capture.rtp(number), from: 5000), at: Int64(number), dropped: .max)
    }
    let (take, made) = try await imported(folder, "drops.pcapng", capture.pcapng())
    #expect(made.output.contains("\(Int64.max) frames lost while capturing"))
    try await Takes.expectIdentical(take)
  }

  /// Tests seconds since 1970 that are out of range, written as an offset that a capture's
  /// interface adds to all times.
  @Test(arguments: [
    Int64.min, -9_300_000_000 as Int64, 9_300_000_000 as Int64, 60_000_000_000 as Int64,
    Int64.max - 1,
  ])
  func anImpossibleDateIsReported(_ offset: Int64) async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<60 {
      capture.add(
        Capture.udp(Capture.rtp(number), from: 5000), at: Int64(number) * 20_000_000)
    }
    capture.addStream()
    capture.addFragments()
    let file = try folder.write("date.pcapng", capture.pcapng(offset: offset))
    let take = folder.file("date.take")
    let made = try await Tool.run("import", file, "--decode", "--out", take)
    #expect(made.status == 0 && !made.wasKilled, "\(made.errors)")
    #expect(made.output.contains("1 call, 1 stream, 60 RTP"))
    #expect(made.output.contains("outside-of-time"))
    // The intervals between packets are those that the file states.
    #expect(try Takes.number(take, "SELECT max(at_ns) FROM packet") == 59 * 20_000_000)
    let info = try await Tool.run("info", take)
    #expect(info.output.contains("before 1823 or after 2116"))
    try await Takes.expectIdentical(take)
    for arguments in [["--pcap", folder.file("out.pcapng")], ["--media", folder.file("media")]] {
      let export = try await Tool.run(["export", take] + arguments)
      #expect(!export.wasKilled, "\(export.errors)")
    }
  }

  @Test func aTruncatedCaptureIsReported() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<40 {
      capture.add(
        Capture.udp(Capture.rtp(number), from: 5000), at: Int64(number) * 20_000_000)
    }
    for (name, bytes) in [("cut.pcap", capture.pcap), ("cut.pcapng", capture.pcapng())] {
      let file = try folder.write(name, bytes.dropLast(30))
      let take = folder.file("\(name).take")
      let made = try await Tool.run("import", file, "--out", take)
      #expect(made.status == 0, "\(made.errors)")
      #expect(made.errors.contains("ends in the middle of a record"))
      #expect(made.output.contains("39 datagrams") && made.output.contains("cut-capture"))
      let info = try await Tool.run("info", take)
      #expect(info.output.contains("bytes of a record that is not whole"))
      let whole = try await Tool.run(
        "import", try folder.write("whole-\(name)", bytes), "--out", folder.file("w\(name).take"))
      #expect(!whole.errors.contains("middle") && !whole.output.contains("cut-capture"))
    }
  }

  /// An export's comments in the capture header are not trusted, because anyone may have changed
  /// them.
  @Test func numbersAtTheHeadOfACaptureAreNotBelieved() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<40 {
      capture.add(
        Capture.udp(Capture.rtp(number), from: 5000), at: Int64(number) * 20_000_000)
    }
    let genesis =
      "\"awaitsKeys\":true,\"decodes\":false,\"payloadTypes\":\"\",\"startUnixNanoseconds\":-1,"
    for (peer, most) in [("4294967295", "9223372036854775807"), ("0", "-9223372036854775808")] {
      let comments = [
        "Retake observer {\(genesis)\"firstPeer\":\(peer),\"waitingBytesMaximum\":\(most),"
          + "\"waitingPacketsMaximum\":\(most),\"wakeMilliseconds\":\(most),"
          + "\"rowsPerStep\":\(most)}",
        "Retake not seen {\"count\":18446744073709551615,\"detail\":\"\",\"kind\":\"dropped\"}",
        "Retake not seen {\"count\":1,\"detail\":\"\",\"kind\":\"dropped\"}",
      ]
      let (take, made) = try await imported(
        folder, "\(peer).pcapng", capture.pcapng(comments: comments))
      #expect(made.output.contains("1 call,"))
      try await Takes.expectIdentical(take)
    }
  }

  /// An incomplete take is removed, and no output claims that it contains anything.
  @Test func aMissingTakeHoldsNothing() async throws {
    let folder = try Folder()
    var capture = Capture()
    for number in 0..<3000 {
      capture.add(
        Capture.udp(Capture.rtp(number), from: 5000), at: Int64(number) * 20_000_000)
    }
    let file = try folder.write("call.pcap", capture.pcap)
    let take = folder.file("call.take")
    let made = try await Tool.shell(
      "trap '' XFSZ; ulimit -f 200; \"$RETAKE\" import '\(file)' --out '\(take)'")
    #expect(made.status != 0)
    #expect(!made.errors.contains("the take holds"), "\(made.errors)")
    #expect(!FileManager.default.fileExists(atPath: take))
  }
}

/// A capture built by a test.
struct Capture {
  private var records: [(at: Int64, frame: [UInt8], dropped: UInt64?)] = []

  mutating func add(_ frame: [UInt8], at nanoseconds: Int64, dropped: UInt64? = nil) {
    records.append((nanoseconds, frame, dropped))
  }

  /// Appends a TCP connection whose segments are out of order and whose sequence numbers wrap
  /// around.
  mutating func addStream() {
    for (sequence, flags) in [(0xffff_fff0, 2), (20, 0x18), (0xffff_fff1, 0x18), (90, 0x11)] {
      let segment =
        Self.big(7000, 2) + Self.big(80, 2) + Self.big(sequence, 4) + Self.big(0, 4)
        + [0x50, UInt8(flags), 1, 0, 0, 0, 0, 0] + [UInt8](repeating: 0x41, count: 30)
      add(Self.ethernet(segment, transport: 6), at: records.last?.at ?? 0)
    }
  }

  mutating func addFragments() {
    for offset in [2, 1] {
      add(
        Self.ethernet([UInt8](repeating: 0, count: 8), transport: 17, fragment: 0x2000 | offset),
        at: records.last?.at ?? 0)
    }
  }

  // MARK: Packets

  static func big(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
  }

  static func ethernet(
    _ payload: [UInt8], transport: UInt8, host: Int = 1, fragment: Int = 0, isBack: Bool = false
  ) -> [UInt8] {
    let (from, to) = ([10, 0] + big(host, 2), [192, 0, 2, 1] as [UInt8])
    return [UInt8](repeating: 2, count: 12) + [8, 0, 0x45, 0] + big(20 + payload.count, 2)
      + [0, 0] + big(fragment, 2) + [64, transport, 0, 0] + (isBack ? to + from : from + to)
      + payload
  }

  /// Makes a datagram from (or back to) one of many hosts and ports.
  static func udp(_ payload: [UInt8], from number: Int, isBack: Bool = false) -> [UInt8] {
    let (port, server) = (big(1024 + number % 64_000, 2), big(5000, 2))
    return ethernet(
      (isBack ? server + port : port + server) + big(payload.count + 8, 2) + [0, 0] + payload,
      transport: 17, host: 1 + number / 64_000, isBack: isBack)
  }

  /// Makes 20 ms of silence in PCMU.
  static func rtp(_ number: Int) -> [UInt8] {
    [0x80, 0] + big(number, 2) + big(number * 160, 4) + big(7, 4)
      + [UInt8](repeating: 0xff, count: 160)
  }

  static func check(_ name: String, _ number: Int) -> [UInt8] {
    let name = Array(name.utf8)
    let padded = name + [UInt8](repeating: 0, count: (4 - name.count % 4) % 4)
    let attributes =
      big(6, 2) + big(name.count, 2) + padded + big(0x24, 2) + big(4, 2) + big(1, 4)
      + big(0x802a, 2) + big(8, 2) + big(1, 8) + big(0x25, 2) + big(0, 2)
    return big(1, 2) + big(attributes.count, 2) + big(0x2112_a442, 4) + big(0, 4) + big(number, 8)
      + attributes
  }

  static func answer(to check: [UInt8]) -> [UInt8] {
    big(0x101, 2) + big(0, 2) + check[4..<20]
  }

  // MARK: Files

  private static let began: Int64 = 1_700_000_000_000_000_000

  private static func little(_ value: UInt64, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
  }

  var pcap: [UInt8] {
    var bytes = Self.little(0xa1b2_3c4d, 4) + Self.little(2, 2) + Self.little(4, 2)
    bytes += Self.little(0, 8) + Self.little(262_144, 4) + Self.little(1, 4)
    for record in records {
      let at = UInt64(Self.began + record.at)
      bytes += Self.little(at / 1_000_000_000, 4) + Self.little(at % 1_000_000_000, 4)
      bytes +=
        Self.little(UInt64(record.frame.count), 4) + Self.little(UInt64(record.frame.count), 4)
      bytes += record.frame
    }
    return bytes
  }

  /// - Parameter offset: seconds to write in place of the date.
  func pcapng(offset: Int64? = nil, comments: [String] = []) -> [UInt8] {
    var bytes: [UInt8] = []
    func padded(_ bytes: [UInt8]) -> [UInt8] {
      bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
    func option(_ code: UInt64, _ value: [UInt8]) -> [UInt8] {
      Self.little(code, 2) + Self.little(UInt64(value.count), 2) + padded(value)
    }
    func block(_ type: UInt64, _ body: [UInt8]) {
      let length = Self.little(UInt64(padded(body).count + 12), 4)
      bytes += Self.little(type, 4) + length + padded(body) + length
    }
    var head = Self.little(0x1a2b_3c4d, 4) + Self.little(1, 4) + Self.little(.max, 8)
    for comment in comments { head += option(1, Array(comment.utf8)) }
    block(0x0a0d_0d0a, head)
    var interface = Self.little(1, 4) + Self.little(0, 4) + option(9, [9])
    if let offset { interface += option(14, Self.little(UInt64(bitPattern: offset), 8)) }
    block(1, interface)
    for record in records {
      let at = UInt64((offset == nil ? Self.began : 0) + record.at)
      var body = Self.little(0, 4) + Self.little(at >> 32, 4) + Self.little(at, 4)
      body +=
        Self.little(UInt64(record.frame.count), 4) + Self.little(UInt64(record.frame.count), 4)
      body += padded(record.frame)
      if let dropped = record.dropped { body += option(4, Self.little(dropped, 8)) }
      block(6, body)
    }
    return bytes
  }
}
