import Foundation
import Testing

/// If a file for `--send` cannot be sent, it is refused with one sentence before recording starts.
struct SendFileTests {
  private func little(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private func wav(format: Int = 1, bits: Int = 16, rate: Int = 48_000, channels: Int = 1)
    -> [UInt8]
  {
    let width = channels * bits / 8
    return Array("RIFF".utf8) + little(36 + 100 * width, 4) + Array("WAVEfmt ".utf8)
      + little(16, 4) + little(format, 2) + little(channels, 2) + little(rate, 4)
      + little(rate * width, 4) + little(width, 2) + little(bits, 2) + Array("data".utf8)
      + little(100 * width, 4) + [UInt8](repeating: 0, count: 100 * width)
  }

  private func y4m(_ head: String, bytes: Int = 384) -> [UInt8] {
    Array("YUV4MPEG2 \(head)\nFRAME\n".utf8) + [UInt8](repeating: 9, count: bytes)
  }

  private func refusal(of name: String, _ bytes: [UInt8]) async throws -> Tool.Outcome {
    let folder = try Folder()
    let file = try folder.write(name, bytes)
    let take = folder.file("a.take")
    let outcome = try await Tool.run(
      "record", "call", "http://127.0.0.1:9", "--send", file, "--out", take)
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains(file), "\(outcome.errors)")
    #expect(outcome.output.isEmpty && !FileManager.default.fileExists(atPath: take))
    return outcome
  }

  @Test func eachFaultHasItsWayOut() async throws {
    let cases: [(name: String, bytes: [UInt8], fault: String, wayOut: String)] = [
      ("a.y4m", [], "empty", "name one"), ("a.h264", [], "empty", "name one"),
      ("a.h264", Array("a text".utf8), "not an H.264 byte stream", "ffmpeg"),
      ("a.y4m", Array("a text".utf8), "not a YUV4MPEG2", "ffmpeg"),
      ("a.wav", Array("this is a text".utf8), "not a WAV", "ffmpeg"),
      ("a.wav", wav(bits: 8), "8 bits are", "16-bit PCM"),
      ("a.wav", wav(format: 3, bits: 32), "32 bits in floating point", "16-bit PCM"),
      ("a.wav", wav(channels: 6), "6 channels", "one or two"),
      ("a.wav", wav(rate: 4_000), "4000 Hz", "8000 to 192000"),
      ("a.wav", Array(wav().prefix(40)), "before its audio begins", "again (byte 36)"),
      ("a.y4m", y4m("W16 H16 C444", bytes: 768), "colour space 444", "4:2:0"),
      ("a.y4m", y4m("W16 H16 F-5:1"), "frame rate is -5:1", "again"),
      ("a.y4m", y4m("W16 H16 F99999999999:1"), "frame rate is 99999999999:1", "again"),
      ("a.y4m", y4m("W0 H16"), "width is 0", "again"),
      (
        "a.y4m", y4m("W16 H16", bytes: 100), "in the middle of a video frame",
        "again (video frame 1"
      ),
    ]
    for (name, bytes, fault, wayOut) in cases {
      let outcome = try await refusal(of: name, bytes)
      #expect(outcome.status == 65)
      for word in [fault, wayOut] {
        #expect(outcome.errors.contains(word), "\(outcome.errors)")
      }
    }
  }

  @Test func foldersAndPipesAreRefusedImmediately() async throws {
    let folder = try Folder()
    let path = folder.file("a.h264")
    for (make, word) in [("mkdir", "folder"), ("mkfifo", "not a regular file")] {
      #expect(try await Tool.shell("rm -rf '\(path)'; \(make) '\(path)'").status == 0)
      let outcome = try await Tool.run("record", "serve", "--send", path, "--out", path + ".take")
      #expect(outcome.status == 65)
      #expect(outcome.errorLines.count == 1 && outcome.errors.contains(word), "\(outcome.errors)")
    }
  }

  @Test func twoFilesOfAKindExcludeEachOther() async throws {
    let folder = try Folder()
    let first = try folder.write("a.y4m", y4m("W16 H16"))
    let second = try folder.write("b.y4m", y4m("W16 H16"))
    let outcome = try await Tool.run(
      "record", "call", "http://127.0.0.1:9", "--send", first, "--send", second)
    #expect(outcome.status == 64 && outcome.errorLines.count == 1, "\(outcome.errors)")
    for word in [first, second, "video"] { #expect(outcome.errors.contains(word)) }
  }
}

extension LiveMediaTests {
  /// Sends unusual but valid files.
  struct UnusualFileTests {
    /// Makes a call whose caller sends a file; returns the caller's take.
    private func call(in folder: Folder, sending name: String, _ bytes: [UInt8], _ more: String...)
      async throws -> String
    {
      let file = try folder.write(name, bytes)
      let take = folder.file("call.take")
      let server = try Run(
        Tool.path,
        [
          "record", "serve", "--listen", "127.0.0.1:0", "--bind", "127.0.0.1", "--once", "--out",
          folder.file("serve.take"),
        ])
      try await server.waitForErrors(with: "/whep")
      let word = server.errors.split { $0 == " " || $0 == "\n" }.first { $0.hasSuffix("/offer") }
      let outcome = try await Tool.run(
        ["record", "call", String(try #require(word)), "--seconds", "1.5", "--bind", "127.0.0.1"]
          + ["--out", take, "--send", file] + more)
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(try await server.outcome().status == 0)
      return take
    }

    /// Tests odd sizes, a frame rate of 0, and a frame rate that is too high for any screen.
    @Test(arguments: [
      ("W63 H47 F10:1", 63, 47), ("W64 H48 F0:1", 64, 48), ("W1 H1 F100000000:1", 1, 1),
    ])
    func videoFramesAreSentInTheirSize(head: String, width: Int, height: Int) async throws {
      let size = width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)
      var bytes = Array("YUV4MPEG2 \(head)\n".utf8)
      for level: UInt8 in [40, 70, 100, 130, 160] {
        bytes += Array("FRAME\n".utf8)
        bytes += [UInt8](repeating: level, count: size)
      }
      let folder = try Folder()
      let take = try await call(in: folder, sending: "a.y4m", bytes)
      for direction in ["in", "out"] {
        let count = try Takes.number(
          take,
          "SELECT count(*) FROM frame WHERE direction = '\(direction)' AND width = \(width)"
            + " AND height = \(height)")
        #expect(count > 3, "\(direction): \(count)")
      }
    }

    /// If the file has only audio, received video is still echoed.
    @Test func aFileIsSentInsteadOfAnEcho() async throws {
      let samples = (0..<22_050).flatMap { sample -> [UInt8] in
        sample / 50 % 2 == 0 ? [0x70, 0x17] : [0x90, 0xe8]
      }
      func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
      }
      let head =
        Array("RIFF".utf8) + little(36 + samples.count, 4) + Array("WAVEfmt ".utf8) + little(16, 4)
        + little(1, 2) + little(1, 2) + little(44_100, 4) + little(88_200, 4) + little(2, 2)
        + little(16, 2) + Array("data".utf8) + little(samples.count, 4)
      let folder = try Folder()
      let take = try await call(in: folder, sending: "a.wav", head + samples, "--send", "echo")
      let loud = "SELECT max(peak) FROM frame WHERE direction = 'out' AND kind = 'audio'"
      #expect(try Takes.number(take, loud) > 2_000)
    }
  }
}
