import Foundation
import Testing

@testable import Tape

/// Tests what other tools read in the files of `retake export --format`, and what an import
/// restores from them.
struct FormatExportTests {
  // MARK: Media

  /// Parses an Ogg file's pages: granule position, flags, and the packets that end on each.
  private static func pages(_ file: [UInt8]) throws -> [(
    end: Int64, flags: UInt8, packets: [[UInt8]]
  )] {
    var pages: [(end: Int64, flags: UInt8, packets: [[UInt8]])] = []
    var place = 0
    while place < file.count {
      try #require(file[place...].starts(with: Array("OggS".utf8)))
      let end = (0..<8).reduce(Int64(0)) { $0 | Int64(file[place + 6 + $1]) << Int64(8 * $1) }
      let lengths = file[(place + 27)..<(place + 27 + Int(file[place + 26]))]
      var packets: [[UInt8]] = []
      var packet: [UInt8] = []
      var body = place + 27 + lengths.count
      for length in lengths {
        packet += file[body..<(body + Int(length))]
        body += Int(length)
        if length < 255 {
          packets.append(packet)
          packet = []
        }
      }
      var page = Array(file[place..<body])
      let stated = (0..<4).reduce(UInt32(0)) { $0 | UInt32(page[22 + $1]) << UInt32(8 * $1) }
      for index in 22..<26 { page[index] = 0 }
      var check: UInt32 = 0
      for byte in page {
        check ^= UInt32(byte) << 24
        for _ in 0..<8 { check = check & 0x8000_0000 == 0 ? check << 1 : check << 1 ^ 0x04c1_1db7 }
      }
      #expect(check == stated)
      pages.append((end, file[place + 5], packets))
      place = body
    }
    return pages
  }

  @Test func receivedOpusIsInAnOggFileWithItsLossesConcealed() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let outcome = try await Exports.export(
      made.path, "--format", "ogg", "--peer", "1", "--out", folder.file("m"), "--json")
    let files = try #require(
      try Exports.json(Data(outcome.output.utf8))["files"] as? [[String: Any]])
    let audio = try #require(files.first { $0["kind"] as? String == "ogg" })
    let file = try [UInt8](Data(contentsOf: URL(filePath: #require(audio["file"] as? String))))
    let pages = try Self.pages(file)
    #expect(pages[0].flags == 2 && pages[0].packets[0].starts(with: Array("OpusHead".utf8)))
    #expect(pages[1].packets[0].starts(with: Array("OpusTags".utf8)))
    #expect(pages.last?.flags == 4)
    // Each received packet is stored unchanged, and its duration follows from the sender's
    // timestamps.
    let came = try Exports.rows(
      made.path,
      """
      SELECT hex(bytes) FROM frame WHERE peer = 1 AND kind = 'audio' AND direction = 'in'
        AND outcome = 'decoded' ORDER BY row
      """)
    let packets = pages.dropFirst(2).flatMap(\.packets)
    let whole = packets.filter { $0.count > 1 }.map { packet in
      packet.map { String(format: "%02X", $0) }.joined()
    }
    #expect(whole == came)
    let ticks = try Takes.number(
      made.path,
      """
      SELECT max(rtp_time) - min(rtp_time) + 960 FROM frame
      WHERE peer = 1 AND kind = 'audio' AND direction = 'in' AND outcome = 'decoded'
      """)
    #expect(pages.last?.end == ticks)
    #expect(packets.count == Int(ticks / 960) && packets.count > came.count)
    let concealed = try #require(audio["concealed_ns"] as? Int64)
    #expect(concealed == Int64(packets.count - came.count) * 20_000_000)
  }

  /// Parses the elements in a part of a Matroska file.
  private static func elements(_ bytes: ArraySlice<UInt8>) -> [(
    id: UInt32, body: ArraySlice<UInt8>
  )] {
    var found: [(id: UInt32, body: ArraySlice<UInt8>)] = []
    var rest = bytes
    while let first = rest.first {
      let width = first.leadingZeroBitCount + 1
      let id = rest.prefix(width).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      rest = rest.dropFirst(width)
      guard let mark = rest.first else { break }
      let count = mark.leadingZeroBitCount + 1
      let length = rest.dropFirst().prefix(count - 1).reduce(Int(mark) & (0xff >> count)) {
        $0 << 8 | Int($1)
      }
      rest = rest.dropFirst(count)
      found.append((id, rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    return found
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reduce(0) { $0 << 8 | Int($1) }
  }

  @Test func recordedFramesAreInAWebMFileThatPlayersCanSeekIn() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    _ = try await Exports.export(
      made.path, "--format", "webm", "--out", folder.file("m"), "--peer", "caller")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("m")).sorted()
    #expect(names.count == 3 && names.last == "tracks.json", "\(names)")
    let name = try #require(names.first { $0.hasSuffix("-video.webm") })
    let file = try [UInt8](Data(contentsOf: folder.url("m/\(name)")))
    let top = Self.elements(file[...])
    #expect(top.map(\.id) == [0x1a45_dfa3, 0x1853_8067])
    let segment = top[1].body
    let parts = Self.elements(segment)
    let clusters = parts.filter { $0.id == 0x1f43_b675 }
    let blocks = clusters.flatMap { cluster in Self.elements(cluster.body).filter { $0.id == 0xa3 }
    }
    let came = try Exports.rows(
      made.path,
      """
      SELECT hex(bytes) FROM frame WHERE peer = 1 AND kind = 'video' AND direction = 'in'
        AND outcome = 'decoded' ORDER BY row
      """)
    #expect(blocks.map { $0.body.dropFirst(4).map { String(format: "%02X", $0) }.joined() } == came)
    // Each index entry leads to a cluster that starts with a key frame.
    let cues = try #require(parts.first { $0.id == 0x1c53_bb6b })
    let points = Self.elements(cues.body)
    #expect(!points.isEmpty)
    for point in points {
      let places = try #require(Self.elements(point.body).first { $0.id == 0xb7 })
      let position = Self.number(
        try #require(Self.elements(places.body).first { $0.id == 0xf1 }).body)
      let cluster = try #require(Self.elements(segment.dropFirst(position)).first)
      #expect(cluster.id == 0x1f43_b675)
      let block = try #require(Self.elements(cluster.body).first { $0.id == 0xa3 })
      #expect(block.body[block.body.startIndex + 3] == 0x80)
    }
    // The header has the index's position and the file's duration.
    let seek = try #require(parts.first { $0.id == 0x114d_9b74 })
    let entry = try #require(Self.elements(seek.body).last)
    let place = try #require(Self.elements(entry.body).first { $0.id == 0x53ac })
    #expect(
      segment.dropFirst(Self.number(place.body)).starts(with: [0x1c, 0x53, 0xbb, 0x6b]))
    let head = try #require(parts.first { $0.id == 0x1549_a966 })
    let length = try #require(Self.elements(head.body).first { $0.id == 0x4489 })
    let duration = Double(bitPattern: UInt64(Self.number(length.body)))
    let span = try Takes.number(
      made.path,
      """
      SELECT max(at_ns) - min(at_ns) FROM frame
      WHERE peer = 1 AND kind = 'video' AND direction = 'in' AND outcome = 'decoded'
      """)
    #expect(abs(duration - Double(span) / 1e6) < 400, "\(duration)")
  }

  @Test func aPartOfATakeBeginsWithAKeyFrame() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let outcome = try await Exports.export(
      made.path, "--format", "ivf", "--from", "2s", "--to", "2.5s", "--out", folder.file("m"),
      "--json", "--peer", "2")
    let files = try #require(
      try Exports.json(Data(outcome.output.utf8))["files"] as? [[String: Any]])
    let video = try #require(files.first { $0["kind"] as? String == "ivf" })
    let file = try [UInt8](Data(contentsOf: URL(filePath: #require(video["file"] as? String))))
    #expect(file.starts(with: Array("DKIF".utf8)) && file[8..<12].elementsEqual(Array("VP80".utf8)))
    #expect(file[32 + 12] & 1 == 0, "VP8's first bit is 0 in a key frame")
    let from = try #require(video["from_ns"] as? Int64)
    let key = try Takes.number(
      made.path,
      """
      SELECT max(at_ns) FROM frame WHERE peer = 2 AND kind = 'video' AND direction = 'in'
        AND key = 1 AND at_ns <= 2000000000 AND outcome = 'decoded'
      """)
    #expect(from == key)
    let count = try Takes.number(
      made.path,
      """
      SELECT count(*) FROM frame WHERE peer = 2 AND kind = 'video' AND direction = 'in'
        AND at_ns BETWEEN \(key) AND 2500000000 AND outcome = 'decoded'
      """)
    #expect(video["frames"] as? Int64 == count)
  }

  @Test func tracksSayWhoIsInWhichFileAndSpokeWhen() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    _ = try await Exports.export(
      made.path, "--format", "webm", "--format", "ogg", "--out", folder.file("m"))
    let list = try Exports.json(Data(contentsOf: folder.url("m/tracks.json")))
    let tracks = try #require(list["tracks"] as? [[String: Any]])
    let received = tracks.filter { $0["direction"] as? String == "in" }
    #expect(received.count == 4)
    for track in received {
      let files = try #require(track["files"] as? [[String: Any]])
      #expect(files.count == (track["kind"] as? String == "audio" ? 2 : 1))
      for file in files {
        let name = try #require(file["file"] as? String)
        #expect(FileManager.default.fileExists(atPath: folder.file("m/\(name)")))
        #expect((file["from_ns"] as? Int64 ?? 0) > 0)
      }
    }
    let speech = try #require(list["speech"] as? [[String: Any]])
    #expect(Int64(speech.count) == (try Takes.number(made.path, "SELECT count(*) FROM speaker")))
    #expect(speech.allSatisfy { $0["person"] is String })
  }

  @Test func h264IsMuxedIntoMP4ByFfmpegOrItsAbsenceIsReported() async throws {
    let folder = try Folder()
    let take = Exports.capture("chromium-retake-offers-h264")
    let without = try await Tool.run(
      ["export", take, "--format", "mp4", "--out", folder.file("none")],
      environment: ["PATH": "/nonexistent"])
    #expect(without.status == 74 && without.errorLines.count == 1)
    #expect(without.errors.contains("install the package ffmpeg"))
    #expect(!FileManager.default.fileExists(atPath: folder.file("none")))
    guard Tool.has("ffmpeg") else { return }
    let outcome = try await Exports.export(
      take, "--format", "mp4", "--format", "ivf", "--out", folder.file("m"))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("m")).sorted()
    #expect(names.map { $0.suffix(4) } == [".ivf", ".mp4", "json"], "\(names) \(outcome.output)")
    let file = try Data(contentsOf: folder.url("m/\(names[1])"))
    #expect(file.dropFirst(4).starts(with: Data("ftyp".utf8)))
    // The frames are the take's, with size prefixes in place of start codes.
    let frame = try Takes.bytes(
      take,
      """
      SELECT bytes FROM frame WHERE kind = 'video' AND direction = 'in' AND key = 0 AND size > 0
      ORDER BY row LIMIT 1
      """)
    #expect(file.range(of: Data(frame.suffix(frame.count / 2))) != nil)
  }

  // MARK: Packets

  private static let packets = """
    SELECT ssrc || ' ' || sequence || ' ' || rtp_time || ' ' || marker || ' ' || payload_type
    FROM rtp
    """

  @Test func rtptoolsReadThePacketsThatAPeerReceived() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let path = folder.file("call.rtpdump")
    _ = try await Exports.export(made.path, "--format", "rtpdump", "--peer", "1", "--out", path)
    let file = try [UInt8](Data(contentsOf: URL(filePath: path)))
    let line = try #require(file.firstIndex(of: 10))
    #expect(String(decoding: file[..<line], as: UTF8.self).hasPrefix("#!rtpplay1.0 "))
    // Each record states its own length and the packet's original length, which is 0 for RTCP.
    var place = line + 17
    var kinds = [0, 0]
    while place + 8 <= file.count {
      let length = Int(file[place]) << 8 | Int(file[place + 1])
      let original = Int(file[place + 2]) << 8 | Int(file[place + 3])
      let type = file[place + 9]
      #expect(original == ((192...223).contains(type) ? 0 : length - 8))
      kinds[original == 0 ? 0 : 1] += 1
      place += length
    }
    #expect(place == file.count && kinds[0] > 0)
    let take = try await Exports.imported(path)
    let came = Self.packets + " WHERE direction = 'in' AND peer = "
    #expect(
      try Exports.rows(take, came + "(SELECT peer FROM peer WHERE label LIKE '%recorder%')")
        .sorted()
        == Exports.rows(made.path, came + "1").sorted())
    // The exported packets lack the SRTP tag.
    let sizes = "SELECT sum(size) FROM rtp WHERE direction = 'in' AND peer = "
    let count = try Takes.number(
      made.path, "SELECT count(*) FROM rtp WHERE direction = 'in' AND peer = 1")
    let before = try Takes.number(made.path, sizes + "1")
    let after = try Takes.number(
      take, sizes + "(SELECT peer FROM peer WHERE label LIKE '%recorder%')")
    #expect((before - after) % count == 0 && [10, 16].contains((before - after) / count))
  }

  @Test func janusRecordingsContainTheSameFrames() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    _ = try await Exports.export(
      made.path, "--format", "mjr", "--peer", "2", "--out", folder.file("m"))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("m")).sorted()
    #expect(names.filter { $0.hasSuffix(".mjr") }.count == 2 && names.contains("tracks.json"))
    let list = try #require(names.first { $0.hasSuffix(".nfo") })
    let take = try await Exports.imported(folder.file("m/\(list)"))
    let frames = """
      SELECT kind || ' ' || rtp_time || ' ' || hex(bytes) FROM frame
      WHERE direction = 'in' AND outcome NOT IN ('concealed', 'recovered', 'undecodable')
      """
    let before = try Exports.rows(made.path, frames + " AND peer = 2")
    let after = Set(try Exports.rows(take, frames))
    // The two jitter buffers drop different frames of a lossy call; the frames that both have are
    // equal.
    let shared = before.count { after.contains($0) }
    #expect(shared * 10 >= before.count * 7, "\(shared) of \(before.count)")
    let media =
      "SELECT DISTINCT ssrc FROM track WHERE direction = 'in' AND peer = 2 AND codec <> 'rtx'"
    let sources = try Exports.rows(made.path, media).joined(separator: ", ")
    let choice = Self.packets + " WHERE direction = 'in' AND ssrc IN (\(sources))"
    #expect(
      try Exports.rows(take, choice).sorted()
        == Exports.rows(made.path, choice + " AND peer = 2").sorted())
  }

  /// If a take has no copies of its frames, the export assembles them from the packets.
  @Test func framesOfACallBetweenOthersAreAssembledFromItsPackets() async throws {
    let folder = try Folder()
    let take = Exports.capture("observed-aiortc")
    try #require(try Takes.number(take, "SELECT count(*) FROM frame WHERE bytes IS NOT NULL") == 0)
    let outcome = try await Exports.export(
      take, "--format", "webm", "--format", "ogg", "--out", folder.file("m"), "--json")
    let files = try #require(
      try Exports.json(Data(outcome.output.utf8))["files"] as? [[String: Any]])
    let frames = files.filter { $0["kind"] as? String == "webm" }
      .reduce(0) { $0 + ($1["frames"] as? Int ?? 0) + ($1["frames_left_out"] as? Int ?? 0) }
    #expect(
      try frames
        == Takes.number(
          take,
          """
          SELECT count(*) FROM frame WHERE direction = 'in' AND size > 0
            AND outcome NOT IN ('undecodable', 'concealed', 'recovered')
          """))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("m"))
    #expect(names.allSatisfy { !$0.hasSuffix(".take") && !$0.contains("retake") }, "\(names)")
  }

  // MARK: Rows

  @Test func rowsOfAViewOrAQueryGoIntoAFile() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let path = folder.file("rows")
    _ = try await Exports.export(
      made.path, "--format", "csv", "--query", "state", "--peer", "1", "--to", "1s", "--out", path)
    let printed = try await Tool.run(
      "sql", made.path, "SELECT * FROM state WHERE peer = 1 AND at_ns <= 1000000000", "--csv")
    #expect(try String(contentsOfFile: path, encoding: .utf8) == printed.output)
    let lines = try await Exports.export(
      made.path, "--format", "jsonl", "--query", "SELECT peer, label FROM peer", "--out", "-")
    #expect(
      lines.output == "{\"peer\":1,\"label\":\"caller\"}\n{\"peer\":2,\"label\":\"callee\"}\n")
    let wrong = try await Tool.run(
      "export", made.path, "--format", "csv", "--query", "take", "--peer", "1", "--out",
      folder.file("x"))
    #expect(wrong.status == 64 && wrong.errors.contains("no column peer"))
  }

  // MARK: Refusals

  @Test func existingFilesAreKept() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    for arguments in [
      ["--format", "tracks", "--out", folder.file("t")],
      ["--format", "ogg", "--out", folder.file("m")],
    ] {
      let first = try await Tool.run(["export", made.path] + arguments)
      #expect(first.status == 0, "\(first.errors)")
      let again = try await Tool.run(["export", made.path] + arguments)
      #expect(again.status == 74 && again.errors.contains("exists already"), "\(again.errors)")
      let forced = try await Tool.run(["export", made.path] + arguments + ["--force"])
      #expect(forced.status == 0, "\(forced.errors)")
    }
    let itself = try await Tool.run(
      "export", made.path, "--format", "tracks", "--out", made.path, "--force")
    #expect(itself.status == 64)
  }

  @Test func nothingIsWrittenWhereThereIsNothing() async throws {
    let folder = try Folder()
    let take = Exports.capture("observed-firefox-no-keys")
    for format in ["webm", "rtpdump", "mjr"] {
      let outcome = try await Tool.run(
        "export", take, "--format", format, "--out", folder.file(format))
      #expect(outcome.status == 2 && outcome.errorLines.count == 1, "\(outcome.errors)")
      #expect(!FileManager.default.fileExists(atPath: folder.file(format)))
    }
  }

  @Test func optionsThatDoNotBelongTogetherAreRefused() async throws {
    let made = try await Takes.lossyCall()
    for (arguments, word) in [
      (["--format", "ogg"], "--out"), (["--out", "x"], "--format"),
      (["--format", "ogg", "--out", "-"], "folder"),
      (["--format", "csv", "--out", "x"], "--query"),
      (["--format", "tracks", "--query", "peer", "--out", "x"], "--query"),
      (["--format", "rtpdump", "--format", "tracks", "--out", "x"], "one --format"),
      (["--format", "tracks", "--sent", "--out", "x"], "--sent"),
      (["--format", "tracks", "--secrets", "--out", "x"], "--secrets"),
      (["--format", "webmm", "--out", "x"], "webm"),
      (["--format", "csv", "--query", "SELECT 1", "--peer", "1", "--out", "x"], "complete SELECT"),
    ] {
      let outcome = try await Tool.run(["export", made.path] + arguments)
      #expect(
        outcome.status == 64 && outcome.errors.contains(word), "\(arguments) \(outcome.errors)")
    }
  }
}

/// Helpers that export tests share.
enum Exports {
  static func capture(_ name: String) -> String {
    DebugTests.root.appending(path: "Captures/\(name).take").path
  }

  /// Returns the first column of a query's rows as text.
  static func rows(_ path: String, _ sql: String) throws -> [String] {
    let connection = try SQLiteConnection(path: path, mode: .readOnly)
    let statement = try connection.prepare(sql)
    var found: [String] = []
    while try statement.step() { found.append(statement.text(0) ?? "") }
    return found
  }

  static func export(_ arguments: String...) async throws -> Tool.Outcome {
    let outcome = try await Tool.run(["export"] + arguments)
    try #require(outcome.status == 0, "\(arguments) \(outcome.errors)")
    return outcome
  }

  static func imported(_ path: String) async throws -> String {
    let outcome = try await Tool.run("import", path, "--out", path + ".take")
    try #require(outcome.status == 0, "\(outcome.errors)")
    return path + ".take"
  }

  static func json(_ data: Data) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }
}
