import Foundation
import Tape
import Testing

/// Tests that H.264 and AV1 video frames are decoded if the build has the libraries.
@Suite struct DecodingTests {
  private static let hasH264 = (try? Toolchain.current(for: ""))?.openh264 != nil

  private static let sample = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples/chromium-noenc-H264.pcap")

  private static let digests = """
    SELECT count(*) FROM frame WHERE codec = 'h264' AND outcome = 'decoded' AND width > 0
    AND digest IS NOT NULL
    """

  /// A take recorded without decoded video frames has them after an upgrade.
  @Test(.enabled(if: hasH264, "this build has no libopenh264"))
  func observedVideoFramesAreDecodedImmediatelyOrLater() async throws {
    let folder = try Folder()
    let (plain, decoded) = (folder.file("plain.take"), folder.file("decoded.take"))
    let upgraded = folder.file("upgraded.take")
    let options = [
      "import", Self.sample.path, "--map", "102=h264,103=rtx,111=opus", "--out",
    ]
    #expect(try await Tool.run(options + [plain]).status == 0)
    #expect(try await Tool.run(options + [decoded, "--decode"]).status == 0)
    #expect(try Takes.number(plain, Self.digests) == 0)
    let videoFrames = try Takes.number(decoded, Self.digests)
    #expect(videoFrames > 60)
    let refused = "SELECT count(*) FROM frame WHERE outcome = 'undecodable'"
    #expect(try Takes.number(decoded, refused) == 0)
    let upgrade = try await Tool.run("upgrade", plain, "--decode", "--out", upgraded)
    #expect(upgrade.status == 0, "\(upgrade.output) \(upgrade.errors)")
    #expect(try Takes.number(upgraded, Self.digests) == videoFrames)
    for path in [plain, decoded, upgraded] { try await Takes.expectIdentical(path) }
    // In a take without decoded frames, it makes no difference whether the build could decode them.
    let info = try await Tool.run("info", decoded)
    #expect(info.output.contains("OpenH264 "), "\(info.output)")
    #expect(try await !Tool.run("info", plain).output.contains("OpenH264 "))
  }
}
