import Foundation
import Testing

/// Real-time tests of how processes connect, which run one at a time.
@Suite(.serialized) enum LiveTests {}

/// Real-time tests of the media of calls, which run beside `LiveTests`.
///
/// A call in real time leaves most of two processors idle.
@Suite(.serialized) enum LiveMediaTests {}

/// Real-time tests of networks and of how calls end, which run beside the other two suites.
@Suite(.serialized) enum LiveConnectionTests {}

extension LiveTests {
  /// Tests `record serve` and `record call` with each other over loopback.
  struct CallTests {
    private func received(_ kind: String, _ path: String) throws -> Int64 {
      try Takes.number(
        path,
        "SELECT count(*) FROM frame WHERE kind = '\(kind)' AND direction = 'in' "
          + "AND outcome = 'decoded'")
    }

    @Test func twoProcessesCallEachOther() async throws {
      let folder = try Folder()
      let (answered, called) = (folder.file("serve.take"), folder.file("call.take"))
      let server = try await LiveTests.serve("--once", "--out", answered, at: "/offer")
      // On a busy machine, a call of less than five seconds may receive no video frames.
      let call = try await Tool.run(
        "record", "call", server.url, "--seconds", "5", "--bind", "127.0.0.1", "--out", called)
      #expect(call.status == 0, "\(call.errors)")
      #expect(call.output.split(separator: "\n").count == 1)
      let outcome = try await server.run.outcome()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.output.split(separator: "\n").count == 1)
      for path in [answered, called] {
        for kind in ["audio", "video"] {
          #expect(try received(kind, path) > 5, "\(kind) in \(path)")
        }
        try await Takes.expectIdentical(path)
        for type in ["offer", "answer"] {
          let count = "SELECT count(*) FROM signaling WHERE type = '\(type)'"
          #expect(try Takes.number(path, count) == 1)
        }
      }
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalEndsARecordingInOrder(signal: Int32) async throws {
      let folder = try Folder()
      let path = folder.file("call.take")
      let server = try await LiveTests.serve("--out", path, at: "/offer")
      let call = try Run(
        Tool.path,
        ["record", "call", server.url, "--bind", "127.0.0.1", "--out", folder.file("other.take")])
      try await poll("packets; \(server.run.errors) \(call.errors)") {
        FileManager.default.fileExists(atPath: path)
          && ((try? Takes.number(path, "SELECT count(*) FROM packet_store")) ?? 0) > 20
      }
      for run in [server.run, call] { run.send(signal) }
      for run in [server.run, call] {
        let outcome = try await run.outcome()
        #expect(outcome.status == 0 && !outcome.wasKilled, "\(outcome.errors)")
        #expect(outcome.output.split(separator: "\n").count == 1, "\(outcome.output)")
      }
      for name in ["call.take", "other.take"] {
        try await Takes.expectIdentical(folder.file(name))
        #expect(try Takes.number(folder.file(name), "SELECT count(*) FROM ending") == 1)
      }
    }

    @Test func eachCallHasASeparateTakeInAFolder() async throws {
      let folder = try Folder()
      let takes = folder.file("takes/")
      let server = try await LiveTests.serve("--out", takes, at: "/offer")
      for _ in 0..<2 {
        let call = try await Tool.run(
          "record", "call", server.url, "--seconds", "0.5", "--bind", "127.0.0.1", "--out", takes)
        #expect(call.status == 0, "\(call.errors)")
      }
      server.run.send(SIGINT)
      #expect(try await server.run.outcome().status == 0)
      let names = try FileManager.default.contentsOfDirectory(atPath: takes)
      #expect(names.filter { $0.hasSuffix(".take") }.count == 4, "\(names)")
    }

    @Test func aPortInUseIsReported() async throws {
      let folder = try Folder()
      let server = try await LiveTests.serve("--out", folder.file("a.take"), at: "/offer")
      let address = server.url.dropFirst("http://".count).dropLast("/offer".count)
      let second = try await Tool.run(
        "record", "serve", "--listen", String(address), "--out", folder.file("b.take"))
      #expect(second.status == 74)
      #expect(second.errorLines.count == 1 && second.errors.contains(address), "\(second.errors)")
      #expect(!FileManager.default.fileExists(atPath: folder.file("b.take")))
      server.run.send(SIGTERM)
      #expect(try await server.run.outcome().status == 0)
    }

    // MARK: Files

    /// A second of small video frames that grow brighter, ten per second.
    private var videoFrames: [UInt8] {
      var bytes = Array("YUV4MPEG2 W64 H48 F10:1 Ip A1:1 C420jpeg\n".utf8)
      for frame in 0..<10 {
        bytes += Array("FRAME\n".utf8)
        bytes += [UInt8](repeating: UInt8(40 + 20 * frame), count: 64 * 48)
        bytes += [UInt8](repeating: 128, count: 2 * 32 * 24)
      }
      return bytes
    }

    /// Half a second of a square wave at 8 kHz.
    private var audio: [UInt8] {
      func little(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * $0)) }
      }
      let samples = (0..<4000).flatMap { little($0 / 10 % 2 == 0 ? 6000 : 59_536, 2) }
      return Array("RIFF".utf8) + little(36 + 8000, 4) + Array("WAVEfmt ".utf8) + little(16, 4)
        + little(1, 2) + little(1, 2) + little(8000, 4) + little(16_000, 4) + little(2, 2)
        + little(16, 2) + Array("data".utf8) + little(8000, 4) + samples
    }

    @Test func filesAreSentFromBothSides() async throws {
      let folder = try Folder()
      let video = try folder.write("small.y4m", videoFrames)
      let audio = try folder.write("wave.WAV", audio)
      let (answered, called) = (folder.file("serve.take"), folder.file("call.take"))
      let files = ["--send", video, "--send", audio]
      let server = try await LiveTests.serve(
        "--once", "--out", answered, "--send", video, "--send", audio, at: "/offer")
      let call = try await Tool.run(
        ["record", "call", server.url, "--seconds", "2", "--bind", "127.0.0.1", "--out", called]
          + files)
      #expect(call.status == 0, "\(call.errors)")
      #expect(try await server.run.outcome().status == 0)
      for path in [answered, called] {
        let sizes =
          "SELECT count(*) FROM frame WHERE direction = 'in' AND width = 64 AND height = 48"
        #expect(try Takes.number(path, sizes) > 5)
        let loud = "SELECT max(peak) FROM frame WHERE direction = 'in' AND kind = 'audio'"
        #expect(try Takes.number(path, loud) > 2000)
        try await Takes.expectIdentical(path)
      }
    }

    /// Fifty undecodable H.264 video frames, with a key frame in every ten.
    private var encoded: [UInt8] {
      let sets: [UInt8] = [
        0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x11, 0xfe, 0xd0, 0, 0, 0, 1, 0x68, 0xce, 0x3c,
        0x80,
      ]
      return (0..<50).flatMap { number in
        let front = number == 0 ? sets : []
        let slice: [UInt8] = number % 10 == 0 ? [0, 0, 1, 0x65, 0xb0] : [0, 0, 1, 0x41, 0xe0]
        return front + slice + [UInt8](repeating: 100 + UInt8(number), count: 2000)
      }
    }

    @Test func h264IsSentUnchangedFromBothEnds() async throws {
      let folder = try Folder()
      let video = try folder.write("clip.h264", encoded)
      let (answered, called) = (folder.file("serve.take"), folder.file("call.take"))
      let server = try await LiveTests.serve(
        "--once", "--out", answered, "--send", video, at: "/offer")
      let call = try await Tool.run(
        "record", "call", server.url, "--seconds", "2", "--bind", "127.0.0.1", "--out", called,
        "--send", video, "--frame-rate", "50")
      #expect(call.status == 0, "\(call.errors)")
      #expect(try await server.run.outcome().status == 0)
      for (path, least) in [(answered, 50), (called, 25)] as [(String, Int64)] {
        let came = "FROM frame WHERE direction = 'in' AND codec = 'h264'"
        #expect(try Takes.number(path, "SELECT count(*) \(came)") > least)
        #expect(
          try Takes.number(path, "SELECT sum(key) > 2 AND min(length(bytes)) > 2000 \(came)") == 1)
        #expect(try Takes.number(path, "SELECT count(*) FROM capture WHERE kind = 'h264'") > 25)
        try await Takes.expectIdentical(path)
      }
    }

    @Test(.enabled(if: Tool.has("curl")))
    func aPeerWithoutH264IsReportedWhyAFileOfItStays() async throws {
      let folder = try Folder()
      let path = folder.file("serve.take")
      let video = try folder.write("clip.h264", encoded)
      let server = try await LiveTests.serve("--out", path, "--send", video, at: "/offer")
      let print = (0..<32).map { _ in "AB" }.joined(separator: ":")
      let offer = [
        "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=video 9 UDP/TLS/RTP/SAVPF 96",
        "c=IN IP4 0.0.0.0", "a=mid:0", "a=rtcp-mux", "a=sendrecv", "a=rtpmap:96 VP8/90000",
        "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx", "a=setup:actpass",
        "a=fingerprint:sha-256 \(print)",
      ].map { $0 + "\\r\\n" }.joined()
      let body = try folder.write("offer.json", Array("{\"sdp\":\"\(offer)\"}".utf8))
      let answer = try await Tool.shell(
        "curl -s -w '%{http_code}' -H 'Content-Type: application/json' "
          + "--data-binary '@\(body)' '\(server.url)'")
      #expect(
        answer.output.contains("does not accept the H.264 profile")
          && answer.output.hasSuffix("422"))
      #expect(answer.output.contains(video), "\(answer.output)")
      server.run.send(SIGINT)
      #expect(try await server.run.outcome().status == 0)
      try await Takes.expectIdentical(path)
    }

    @Test(arguments: ["broken.y4m", "broken.wav", "broken.h264"])
    func aFileWithoutMediaIsRefusedBeforeTheCall(name: String) async throws {
      let folder = try Folder()
      let file = try folder.write(name, "this is not media".utf8)
      let outcome = try await Tool.run(
        "record", "serve", "--listen", "127.0.0.1:0", "--send", file, "--out", folder.file("a.take")
      )
      #expect(outcome.status == 65)
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains(file), "\(outcome.errors)")
      #expect(!FileManager.default.fileExists(atPath: folder.file("a.take")))
    }
  }
}
