import Foundation
import Testing

extension LiveMediaTests {
  /// Tests that H.264 files are sent unchanged or not at all.
  struct H264ClipTests {
    /// Returns undecodable H.264 video frames, with a key frame in every ten.
    ///
    /// - Parameters:
    ///   - level: ten times the level; the profile is constrained baseline.
    ///   - bad: the number, from 0, of a video frame that refers to later ones; nil if there is
    ///     none.
    static func clip(_ count: Int = 50, level: UInt8 = 30, bad: Int? = nil) -> [UInt8] {
      let sets: [UInt8] = [
        0, 0, 0, 1, 0x67, 0x42, 0xc0, level, 0xda, 0x11, 0xfe, 0xd0, 0, 0, 0, 1, 0x68, 0xce, 0x3c,
        0x80,
      ]
      return (0..<count).flatMap { number in
        let front = number == 0 ? sets : []
        var slice: [UInt8] = number % 10 == 0 ? [0, 0, 1, 0x65, 0xb0] : [0, 0, 1, 0x41, 0xe0]
        // first_mb_in_slice 0 and slice_type 1, as Exp-Golomb numbers.
        if number == bad { slice = [0, 0, 1, 0x01, 0b1010_1000] }
        return front + slice + [UInt8](repeating: 100 + UInt8(number % 100), count: 300)
      }
    }

    /// The sizes of the parameter sets and of each video frame, including start codes.
    private static let front = 20
    private static let videoFrame = 305

    // MARK: Damaged files

    @Test(arguments: ["call", "whip"])
    func aFileThatBecomesBadIsReportedAndTheRecordingContinues(verb: String) async throws {
      let folder = try Folder()
      let (answered, called) = (folder.file("serve.take"), folder.file("call.take"))
      let file = try folder.write("clip.h264", Self.clip(100, bad: 80))
      let server = try await LiveTests.serve("--once", "--out", answered)
      let call = try await Tool.run(
        "record", verb, server.url + (verb == "call" ? "/offer" : "/whip"), "--seconds", "3",
        "--bind", "127.0.0.1", "--out", called, "--send", file, "--frame-rate", "100", "--json")
      #expect(try await server.run.outcome().status == 0)
      #expect(call.status == 65, "\(call.errors)")
      #expect(call.errorLines.count == 1, "\(call.errors)")
      let place = "video frame 81, byte \(Self.front + 80 * Self.videoFrame + 3)"
      for word in [file, place, "encode without B pictures", "the recording continues"] {
        #expect(call.errors.contains(word), "\(word): \(call.errors)")
      }
      let report = try #require(
        try JSONSerialization.jsonObject(with: Data(call.output.utf8)) as? [String: Any])
      let failures = try #require(report["sendFailures"] as? [[String: Any]])
      #expect(failures.count == 1)
      #expect(failures.first?["file"] as? String == file)
      #expect(failures.first?["videoFrame"] as? Int == 81)
      #expect(failures.first?["cause"] as? String == "content")
      #expect((report["takes"] as? [[String: Any]])?.first?["path"] as? String == called)
      // The video frames before the faulty one were sent, and audio was sent until the end.
      let videoFrames = "SELECT count(*) FROM frame WHERE direction = 'out' AND codec = 'h264'"
      // At first the feed may skip to key frames, so at most 80 are sent.
      let sent = try Takes.number(called, videoFrames)
      #expect(sent > 30 && sent <= 80, "\(sent)")
      let late = """
        SELECT count(*) FROM frame WHERE direction = 'out' AND kind = 'audio' AND at_ns >
        (SELECT max(at_ns) FROM frame WHERE direction = 'out' AND codec = 'h264')
        """
      #expect(try Takes.number(called, late) > 20)
      #expect(try Takes.number(called, "SELECT count(*) FROM ending") == 1)
      for path in [answered, called] { try await Takes.expectIdentical(path) }
    }

    @Test func aServerReportsADeletedFileAndContinues() async throws {
      let folder = try Folder()
      let answered = folder.file("serve.take")
      let file = try folder.write("clip.h264", Self.clip())
      let server = try await LiveTests.serve("--out", answered, "--send", file)
      try FileManager.default.removeItem(atPath: file)
      let call = try await Tool.run(
        "record", "call", server.url, "--seconds", "1", "--bind", "127.0.0.1", "--out",
        folder.file("call.take"))
      #expect(call.status == 0, "\(call.errors)")
      server.run.send(SIGINT)
      let outcome = try await server.run.outcome()
      #expect(outcome.status == 66)
      let told = outcome.errorLines.filter { $0.contains(file) }
      #expect(told.count == 1 && told[0].contains("No such file"), "\(outcome.errors)")
      #expect(outcome.output.split(separator: "\n").count == 1)
      let audio = "SELECT count(*) FROM frame WHERE direction = 'out' AND kind = 'audio'"
      #expect(try Takes.number(answered, audio) > 10)
      try await Takes.expectIdentical(answered)
    }

    // MARK: Peers without H.264

    @Test(.enabled(if: RefusingPeer.isPossible), arguments: ["call", "whip"])
    func aPeerWithoutH264EndsARecordingWithTheReason(verb: String) async throws {
      let folder = try Folder()
      let path = folder.file("call.take")
      let file = try folder.write("clip.h264", Self.clip())
      let peer = try await RefusingPeer()
      let url = peer.url + "/\(verb == "call" ? "offer" : verb)"
      let call = try await Tool.run(
        "record", verb, url, "--bind", "127.0.0.1", "--out", path, "--send", file)
      #expect(call.status == 74)
      #expect(call.errorLines.count == 1 && call.output.isEmpty, "\(call)")
      for word in [url, "does not accept the H.264 profile", file, ".y4m"] {
        #expect(call.errors.contains(word), "\(call.errors)")
      }
      try await Takes.expectIdentical(path)
    }

    @Test(.enabled(if: RefusingPeer.isPossible && Tool.has("curl")))
    func anAnswerWithoutH264IsRefusedAndEndsItsCall() async throws {
      let folder = try Folder()
      let path = folder.file("serve.take")
      let file = try folder.write("clip.h264", Self.clip())
      let server = try await LiveTests.serve("--once", "--out", path, "--send", file)
      func post(_ place: String, _ data: String) async throws -> String {
        try await Tool.shell(
          "curl -s -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "
            + "'\(data)' '\(server.url)\(place)'"
        ).output
      }
      let offer = try await post("/mkoffer", "{}")
      #expect(offer.hasSuffix("200"))
      let body = try folder.write("offer.json", offer.dropLast(3).utf8)
      let described = try #require(
        try JSONSerialization.jsonObject(with: Data(offer.dropLast(3).utf8)) as? [String: Any])
      let answered = try await RefusingPeer.answer(toOfferIn: body)
      var answer = try #require(
        try JSONSerialization.jsonObject(with: Data(answered.utf8)) as? [String: Any])
      answer["id"] = described["id"]
      answer["type"] = "answer"
      let sent = try folder.write(
        "answer.json", Array(try JSONSerialization.data(withJSONObject: answer)))
      let refusal = try await post("/answer", "@\(sent)")
      #expect(
        refusal.contains("does not accept the H.264 profile") && refusal.hasSuffix("422"),
        "\(refusal)")
      #expect(refusal.contains(file))
      // The call is over, but does not count for `--once`.
      #expect(server.run.isRunning)
      let ended = "SELECT count(*) FROM state WHERE machine = 'connection' AND to_state = 'closed'"
      try await poll("the end of the call") { try Takes.number(path, ended) == 1 }
      server.run.send(SIGINT)
      let outcome = try await server.run.outcome()
      #expect(outcome.status == 0, "\(outcome)")
      try await Takes.expectIdentical(path)
    }

    /// A player offers audio and VP8 video, and later stops the video.
    @Test(.enabled(if: Tool.has("curl"))) func aPlayerWithoutH264IsRefused() async throws {
      let folder = try Folder()
      let path = folder.file("serve.take")
      let file = try folder.write("clip.h264", Self.clip())
      let server = try await LiveTests.serve("--out", path, "--send", file)
      let print = (0..<32).map { _ in "AB" }.joined(separator: ":")
      let transport = [
        "c=IN IP4 0.0.0.0", "a=rtcp-mux", "a=recvonly", "a=ice-ufrag:abcd",
        "a=ice-pwd:abcdefghijklmnopqrstuvwx", "a=setup:actpass", "a=fingerprint:sha-256 \(print)",
      ]
      func offer(_ port: Int, _ codec: String) -> String {
        let head = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0"]
        let audio = ["m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=mid:0", "a=rtpmap:111 opus/48000/2"]
        let videoFrame = [
          "m=video \(port) UDP/TLS/RTP/SAVPF 96", "a=mid:1", "a=rtpmap:96 \(codec)",
        ]
        return (head + audio + transport + videoFrame + transport).map { $0 + "\r\n" }.joined()
      }
      for (port, codec, status) in [(9, "VP8/90000", "422"), (0, "VP8/90000", "201")] {
        let body = try folder.write("offer", offer(port, codec).utf8)
        let answer = try await Tool.shell(
          "curl -s -w '%{http_code}' -H 'Content-Type: application/sdp' --data-binary '@\(body)' "
            + "'\(server.url)/whep'")
        #expect(answer.output.hasSuffix(status), "\(port) \(codec): \(answer.output)")
        #expect(answer.output.contains("does not accept the H.264 profile") == (status == "422"))
      }
      server.run.send(SIGINT)
      #expect(try await server.run.outcome().status == 0)
      try await Takes.expectIdentical(path)
    }

    // MARK: Levels

    @Test(arguments: [(UInt8(40), true), (31, false)])
    func aLevelAboveThePeersIsReportedOnBothSides(level: UInt8, isAbove: Bool) async throws {
      let folder = try Folder()
      let file = try folder.write("clip.h264", Self.clip(level: level))
      let server = try await LiveTests.serve(
        "--once", "--out", folder.file("serve.take"), "--send", file)
      let call = try await Tool.run(
        "record", "call", server.url, "--seconds", "1", "--bind", "127.0.0.1", "--out",
        folder.file("call.take"), "--send", file)
      let answered = try await server.run.outcome()
      for outcome in [call, answered] {
        #expect(outcome.status == 0)
        let told = outcome.errorLines.filter { $0.contains("warning: --send \(file)") }
        #expect(told.count == (isAbove ? 1 : 0), "\(outcome.errors)")
        #expect(told.allSatisfy { $0.contains("level 4,") && $0.contains("level 3.1:") })
      }
      let came = "SELECT count(*) FROM frame WHERE direction = 'in' AND codec = 'h264'"
      #expect(try Takes.number(folder.file("call.take"), came) > 5)
    }
  }
}
