import Foundation
import Testing

/// Tests a take's exports for other tools.
struct ExportTests {
  /// A capture parsed by hand: nanosecond pcap, packets starting with an IPv4 header.
  private struct Capture {
    var packets: [(seconds: Int64, nanoseconds: Int64, bytes: [UInt8])] = []
    var linkType: UInt32

    init(_ data: Data) throws {
      let bytes = [UInt8](data)
      func word(_ offset: Int) -> UInt32 {
        bytes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
      }
      try #require(bytes.count >= 24 && word(0) == 0xa1b2_3c4d)
      linkType = word(20)
      var offset = 24
      while offset < bytes.count {
        try #require(offset + 16 <= bytes.count)
        let length = Int(word(offset + 8))
        try #require(word(offset + 12) == word(offset + 8) && offset + 16 + length <= bytes.count)
        packets.append(
          (
            Int64(word(offset)), Int64(word(offset + 4)),
            Array(bytes[offset + 16..<offset + 16 + length])
          ))
        offset += 16 + length
      }
    }
  }

  /// Computes the Internet checksum; 0 if the bytes include a correct one.
  private func checksum(_ bytes: [UInt8]) -> UInt16 {
    var sum: UInt32 = 0
    for (index, byte) in bytes.enumerated() {
      sum += index % 2 == 0 ? UInt32(byte) << 8 : UInt32(byte)
      sum = sum >> 16 + sum & 0xffff
    }
    return ~UInt16(sum)
  }

  @Test func everyDatagramIsInThePacketCapture() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let path = folder.file("call.pcap")
    let outcome = try await Tool.run("export", made.path, "--pcap", path)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let capture = try Capture(Data(contentsOf: folder.url("call.pcap")))
    let count = try Takes.number(made.path, "SELECT count(*) FROM packet")
    #expect(outcome.output == "\(path): \(count) packets\n")
    #expect(capture.packets.count == count)
    #expect(capture.linkType == 101)
    let start = try Takes.number(made.path, "SELECT start_unix_ns FROM take")
    let first = try Takes.number(made.path, "SELECT min(at_ns) FROM packet")
    let times = capture.packets.map { $0.seconds * 1_000_000_000 + $0.nanoseconds }
    #expect(times.first == start + first)
    #expect(times == times.sorted())
    for (_, _, bytes) in capture.packets {
      #expect(bytes[0] == 0x45 && bytes[9] == 17)
      #expect(checksum(Array(bytes[..<20])) == 0)
      let length = bytes.count - 20
      let pseudo = Array(bytes[12..<20]) + [0, 17, UInt8(length >> 8), UInt8(length & 0xff)]
      #expect(checksum(pseudo + bytes[20...]) == 0)
    }
    let payload = try Takes.bytes(made.path, "SELECT bytes FROM packet ORDER BY at_ns, row LIMIT 1")
    #expect(Array(try #require(capture.packets.first).bytes[28...]) == payload)
  }

  @Test func packetsCanBeExportedDecrypted() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let path = folder.file("clear.pcap")
    let outcome = try await Tool.run("export", made.path, "--pcap", path, "--clear", "--peer", "1")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let packets = try Capture(Data(contentsOf: folder.url("clear.pcap"))).packets.map(\.bytes)
    #expect(outcome.output == "\(path): \(packets.count) packets\n")
    #expect(packets.allSatisfy { $0[0] == 0x45 && checksum(Array($0[..<20])) == 0 })
    // One packet contains the encoder's output unchanged.
    let frame = try Takes.bytes(
      made.path,
      """
      SELECT bytes FROM frame WHERE peer = 1 AND direction = 'out' AND kind = 'audio'
      ORDER BY row LIMIT 1 OFFSET 5
      """)
    #expect(packets.contains { $0[9] == 17 && $0.suffix(frame.count).elementsEqual(frame) })
    // RTCP is exported decrypted, so each packet begins with a report.
    let reports = packets.map { Array($0.dropFirst(28)) }
      .filter { $0.count > 8 && [200, 201].contains($0[1]) && $0[0] >> 6 == 2 }
    let sent = try Takes.number(
      made.path,
      """
      SELECT count(*) FROM (
        SELECT DISTINCT step, direction FROM rtcp WHERE peer = 1 AND type IN ('sr', 'rr'))
      """)
    #expect(reports.count == sent)
    // Data sent in DTLS is exported as SCTP, between the ports that WebRTC uses.
    let association = packets.filter { $0[9] == 132 }
    #expect(association.allSatisfy { Array($0[20..<24]) == [0x13, 0x88, 0x13, 0x88] })
    #expect(
      association.isEmpty
        == (try Takes.number(made.path, "SELECT count(*) FROM message WHERE peer = 1") == 0))
    #expect(!packets.contains { $0[9] == 17 && (20...63).contains($0[28]) })
  }

  @Test func decryptedExportNeedsAPacketCapture() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("export", made.path, "--clear", "--media", "folder")
    #expect(outcome.status == 64)
    #expect(outcome.errors.contains("--pcap FILE"))
  }

  @Test func onePeersPacketsCanBeExportedAlone() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let outcome = try await Tool.shell(
      "\"$RETAKE\" export '\(made.path)' --peer 2 --pcap - > '\(folder.file("a.pcap"))'")
    #expect(outcome.status == 0)
    let count = try Takes.number(made.path, "SELECT count(*) FROM packet WHERE peer = 2")
    #expect(outcome.errors == "-: \(count) packets\n")
    #expect(try Capture(Data(contentsOf: folder.url("a.pcap"))).packets.count == count)
  }

  @Test func everyReceivedTrackBecomesAFile() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let media = folder.file("media")
    let outcome = try await Tool.run("export", made.path, "--media", media, "--rate", "10")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let names = try FileManager.default.contentsOfDirectory(atPath: media).sorted()
    #expect(names.count == 4 && outcome.output.split(separator: "\n").count == 4, "\(names)")
    for peer in ["peer1-caller", "peer2-callee"] {
      let files = names.filter { $0.hasPrefix(peer) }
      let video = try #require(files.first { $0.hasSuffix("-video.y4m") })
      let videoFrames = try Data(contentsOf: folder.url("media/\(video)"))
      #expect(videoFrames.starts(with: Data("YUV4MPEG2 W160 H120 F10:1 ".utf8)))
      let size = 160 * 120 * 3 / 2 + 6
      let count = videoFrames.count / size
      #expect((15...40).contains(count), "\(count) video frames")
      let heard = try #require(files.first { $0.hasSuffix("-audio.wav") })
      let audio = try Data(contentsOf: folder.url("media/\(heard)"))
      #expect(audio.starts(with: Data("RIFF".utf8)))
      let seconds = Double(audio.count - 44) / 96_000
      #expect((1.5...4).contains(seconds), "\(seconds) s of audio")
      #expect(audio.dropFirst(44).contains { $0 != 0 })
    }
    let again = try await Tool.run("export", made.path, "--media", media)
    #expect(again.status == 74 && again.errors.contains("exists already"))
  }

  @Test func onePeersMediaCanBeExportedAlone() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let outcome = try await Tool.run("export", made.path, "--media", folder.path, "--peer", "2")
    #expect(outcome.status == 0)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names.count == 2 && names.allSatisfy { $0.hasPrefix("peer2-callee-") }, "\(names)")
    // Frames decoded from the take equal those decoded in a replay of all peers.
    let whole = try Folder()
    let all = try await Tool.run("export", made.path, "--media", whole.path)
    #expect(all.status == 0)
    for name in names {
      #expect(
        try Data(contentsOf: folder.url(name)) == Data(contentsOf: whole.url(name)), "\(name)")
    }
    // This selection starts with a frame that cannot be decoded without earlier frames.
    let part = try Folder()
    let few = try await Tool.run(
      "export", made.path, "--media", part.path, "--from", "1.5s", "--to", "2s")
    #expect(few.status == 0, "\(few.errors)")
    let video = try #require(names.first { $0.hasSuffix("-video.y4m") })
    let frames = try Data(contentsOf: part.url(video)).dropFirst(80)
    let last = frames.suffix(160 * 120 * 3 / 2)
    #expect(try Data(contentsOf: whole.url(video)).range(of: last) != nil)
  }
}
