import Lab
import Peer
import SDP
import Testing
import Wire

@testable import Queries

/// An offer with only unavailable codecs causes a finding that names them.
struct RefusedSectionTests {
  private static let transport = """
    a=ice-ufrag:abcd
    a=ice-pwd:0123456789012345678901
    a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:\
    88:99:AA:BB:CC:DD:EE:FF
    a=setup:actpass
    a=rtcp-mux

    """

  private static func offer(_ sections: String...) -> String {
    "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=- \"\\n\\\\\nt=0 0\n"
      + sections.map { $0 + "\n" + transport }.joined()
  }

  /// Returns a take's evidence about a peer that got an offer.
  private func evidence(
    _ offer: String, _ configuration: PeerConfiguration = PeerConfiguration()
  ) throws -> [String] {
    let folder = try TakeFolder()
    let path = folder.file("call.take")
    let recorded = try RecordedVirtualCall(
      path: path, seed: 9, links: [LinkSettings(), LinkSettings()], labels: ["caller", "callee"],
      configurations: [PeerConfiguration(), configuration])
    recorded.call.call(1, .setRemoteDescription(SessionDescription(type: .offer, sdp: offer)))
    recorded.run(for: .milliseconds(100))
    _ = try recorded.finish()
    return try TakeFindings(path: path).detections
      .filter { $0.rule == "refused-section" && $0.peer == 2 }.map(\.evidence)
  }

  private static let speech =
    "m=audio 9 UDP/TLS/RTP/SAVPF 0 8 101\na=mid:0\na=rtpmap:8 PCMA/8000\n"
    + "a=rtpmap:101 telephone-event/8000"
  private static let video =
    "m=video 9 UDP/TLS/RTP/SAVPF 96 97\na=mid:1\na=rtpmap:96 VP8/90000\n"
    + "a=rtpmap:97 rtx/90000\na=fmtp:97 apt=96"

  @Test func aSectionWithoutACommonCodecIsNamedWithItsCodecs() throws {
    let found = try evidence(Self.offer(Self.speech, Self.video))
    #expect(
      found == [
        "the offer's audio (mid 0) was refused: none of its codecs is supported (PCMA/8000, "
          + "PCMU/8000)"
      ])
  }

  @Test func theConfigurationDecidesTheContents() throws {
    var configuration = PeerConfiguration()
    configuration.codecs = ["opus", "vp9"]
    let found = try evidence(Self.offer(Self.video), configuration)
    #expect(
      found == [
        "the offer's video (mid 1) was refused: none of its codecs is supported (VP8/90000)"
      ])
  }

  @Test func acceptedOrDisabledSectionsAreNoFinding() throws {
    #expect(
      try evidence(
        Self.offer(
          Self.video, "m=audio 9 UDP/TLS/RTP/SAVPF 0 111\na=rtpmap:111 opus/48000/2",
          "m=audio 0 UDP/TLS/RTP/SAVPF 0")
      ).isEmpty)
  }
}
