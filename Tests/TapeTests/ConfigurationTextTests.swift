import JSEP
import Lab
import Media
import Peer
import Testing
import Wire

@testable import Tape

/// Tests the configuration in genesis rows, which omit unset values.
struct ConfigurationTextTests {
  private static let today = #"""
    {"answersAsDTLSClient":false,"audioBitrate":32000,"bundlePolicy":"balanced","certificates":[],\#
    "establishmentNeedsAllCandidates":true,"establishmentTimeoutMilliseconds":30000,\#
    "iceServers":[],"iceTransportPolicy":"all","srtpProtections":["SRTP_AEAD_AES_128_GCM",\#
    "SRTP_AEAD_AES_256_GCM","SRTP_AES128_CM_HMAC_SHA1_80"],"videoBitrateMaximum":2500000,\#
    "videoBitrateStart":600000}
    """#

  @Test func theDefaultsReadAsTheyEverDid() throws {
    #expect(CanonicalJSON.text(PeerConfiguration()) == Self.today)
    let read = try #require(CanonicalJSON.value(PeerConfiguration.self, from: Self.today))
    #expect(read == PeerConfiguration())
    #expect(read.codecs == nil && read.headerExtensions == nil)
  }

  @Test func noticesAreNamesInGenesis() throws {
    var configuration = PeerConfiguration()
    configuration.notices = [.tracks, PeerNotice(rawValue: "of-later")]
    configuration.ownCodecs = [OwnCodec(codec: "vp8", role: .encoder, implementation: "mine")]
    let text = CanonicalJSON.text(configuration)
    #expect(text.contains(#""notices":["tracks","of-later"]"#))
    let own = #""ownCodecs":[{"codec":"vp8","implementation":"mine","role":"encoder"}]"#
    #expect(text.contains(own))
    #expect(CanonicalJSON.value(PeerConfiguration.self, from: text) == configuration)
  }

  /// New members of calls, replies and streams are absent from old rows.
  @Test func callsWithoutTracksAreReadAsBefore() {
    #expect(
      CanonicalJSON.text(PeerCall.replaceSource(transceiver: 3, nil))
        == #"{"replaceSource":{"transceiver":3}}"#)
    #expect(
      CanonicalJSON.text(PeerCall.addTrack(kind: .audio, streamIDs: ["s"], source: .echo))
        == #"{"addTrack":{"kind":"audio","source":{"echo":{}},"streamIDs":["s"]}}"#)
    let info = TransceiverInfo(
      id: 1, kind: .audio, mid: nil, direction: .sendrecv, currentDirection: nil,
      remoteStreamIDs: [], remoteTrackID: "a")
    #expect(
      CanonicalJSON.text(info)
        == #"{"direction":"sendrecv","id":1,"kind":"audio","remoteStreamIDs":[]}"#)
  }

  @Test func offeredCodecsAreInGenesis() throws {
    var configuration = PeerConfiguration()
    configuration.codecs = ["opus", "VP9"]
    configuration.headerExtensions = ["urn:ietf:params:rtp-hdrext:sdes:mid"]
    let text = CanonicalJSON.text(configuration)
    #expect(text.contains(#""codecs":["opus","VP9"]"#))
    #expect(text.contains(#""headerExtensions":["urn:ietf:params:rtp-hdrext:sdes:mid"]"#))
    #expect(CanonicalJSON.value(PeerConfiguration.self, from: text) == configuration)
  }
}
