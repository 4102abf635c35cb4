import Foundation
import Testing

/// Imports a lossy call between two Chromiums, one of which received FlexFEC (`flexfec-03`).
struct FlexFECImportTests {
  private static let samples = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "ObserverTests/Samples")

  private static func sample(_ name: String) -> String { samples.appending(path: name).path }

  /// The receiver's own getStats at the end of the capture.
  private static let counted: [(name: String, value: Int64)] = [
    ("packetsReceived", 181), ("bytesReceived", 138_000), ("headerBytesReceived", 6104),
    ("packetsLost", 15), ("nackCount", 16), ("pliCount", 0), ("fecPacketsReceived", 33),
    ("fecBytesReceived", 29_378), ("fecSsrc", 3_593_020_408),
    ("retransmittedPacketsReceived", 21), ("retransmittedBytesReceived", 12_806),
    ("framesDecoded", 109), ("keyFramesDecoded", 2), ("framesDropped", 0), ("freezeCount", 1),
  ]

  /// Imports the call with descriptions, which name the repair stream, and without them.
  ///
  /// In the second case, only the repair packets show what they protect.
  @Test(arguments: [true, false])
  func anObservedReceiverCountsAsChromiumDoes(isDescribed: Bool) async throws {
    let folder = try Folder()
    let path = folder.file("call.take")
    let descriptions = ["offer", "answer"].flatMap {
      ["--sdp", Self.sample("chromium-flexfec-\($0).sdp")]
    }
    let made = try await Tool.run(
      ["import", Self.sample("chromium-flexfec.pcap"), "--decode", "--out", path]
        + (isDescribed ? descriptions : []))
    #expect(made.status == 0, "\(made.errors)")
    let inbound = "SELECT count(DISTINCT id) FROM stat WHERE type = 'inbound-rtp'"
    #expect(try Takes.number(path, inbound) == 1)
    for (name, value) in Self.counted {
      // Without descriptions, retransmissions are recognized only after a while, too late for the
      // first key frame, so only the counts of FEC can be compared.
      if !isDescribed, !name.hasPrefix("fec") { continue }
      let last = """
        SELECT members ->> '$.\(name)' FROM stat WHERE type = 'inbound-rtp'
        ORDER BY row DESC LIMIT 1
        """
      let counted = try Takes.number(path, last)
      // The last frame may be shown before the capture ends, or after.
      let tolerance: Int64 = name == "framesDecoded" ? 1 : 0
      #expect(abs(counted - value) <= tolerance, "\(name)")
    }
    try await Takes.expectIdentical(path)
  }
}
