import RTP
import SDP
import Testing
import Wire

@testable import JSEP

/// Peers offer and accept the codecs they are configured with, by default the usual ones.
struct CapabilitiesTests {
  private func side(_ name: String, _ codecs: [String]?, extensions: [String]? = nil) -> Side {
    var side = Side(name)
    side.negotiation = Negotiation(
      entropy: Entropy(seed: Array(name.utf8)).stream("sdp"), cname: "cname-" + name,
      capabilities: Capabilities(codecs: codecs, extensions: extensions))
    return side
  }

  private func names(_ description: SessionDescription, section: Int = 0) throws -> [String] {
    try document(description).sections[section].rtpMaps.map(\.name).filter { $0 != "rtx" }
  }

  /// Returns the codec names in order of their first occurrence.
  private func codecs(_ description: SessionDescription, section: Int = 0) throws -> [String] {
    try names(description, section: section).reduce(into: []) { found, name in
      if !found.contains(name) { found.append(name) }
    }
  }

  @Test func withoutAListTheDefaultsAreOffered() throws {
    var plain = Side("a")
    var named = side("a", ["opus", "VP8", "VP9", "H264"])
    for kind in [MediaKind.audio, .video] {
      _ = try plain.add(kind)
      _ = try named.add(kind)
    }
    let offer = try plain.offer()
    #expect(try names(offer) == ["opus"])
    #expect(try codecs(offer, section: 1) == ["VP8", "VP9", "H264"])
    #expect(try document(offer).sections[1].formats.count == 12)
    #expect(try named.offer() == offer)
    #expect(Capabilities.usual.extensions == ExtensionCapability.all)
  }

  @Test(arguments: [
    (["opus", "VP9", "VP8"], ["VP9", "VP8"]), (["vp8", "Opus", "VP8", "none"], ["VP8"]),
    // Codecs that are only passed through are last, wherever the list has them.
    (["H264", "VP8"], ["VP8", "H264"]),
  ])
  func aListIsOfferedInOrder(list: [String], offered: [String]) throws {
    var offerer = side("a", list)
    _ = try offerer.add(.video)
    let offer = try offerer.offer()
    #expect(try codecs(offer) == offered)
    // A codec that is not offered is not accepted.
    var answerer = side("b", ["VP8"])
    try answerer.apply(offer)
    let answer = try answerer.answer()
    #expect(try codecs(answer) == ["VP8"])
    try offerer.apply(answer)
    #expect(offerer.negotiation.sections.first?.codecs.map(\.name) == ["vp8"])
  }

  @Test func av1IsOfferedAndAcceptedWhenListed() throws {
    var offerer = side("a", ["opus", "VP8", "AV1"])
    _ = try offerer.add(.video)
    let offer = try offerer.offer()
    let section = try document(offer).sections[0]
    #expect(section.formats == ["96", "97", "45", "46"])
    #expect(section.formatParameters.contains { $0.parameters == "level-idx=5;profile=0;tier=0" })
    #expect(try document(offer).text.contains("a=rtpmap:45 AV1/90000"))

    for (list, expected) in [(nil, false), (["opus", "VP8", "AV1"], true)] {
      for name in ["chromium-offer", "firefox-offer"] {
        var answerer = side("b", list)
        try answerer.apply(.offer, try sample(name))
        let answer = try answerer.answer().sdp
        #expect(answer.contains(" AV1/90000") == expected, "\(name)")
        let agreed = answerer.negotiation.sections.flatMap(\.codecs).filter { $0.name == "av1" }
        #expect(agreed.count == (expected ? 1 : 0))
      }
    }
  }

  /// A different profile or level is no obstacle for media that is only passed through.
  @Test func av1IsAnsweredWithTheOfferedLevel() throws {
    var offerer = side("a", ["AV1"])
    _ = try offerer.add(.video)
    let offer = try offerer.offer()
    var answerer = side("b", ["AV1"])
    try answerer.apply(.offer, offer.sdp.with("level-idx=5;profile=0;tier=0", "profile=1;tier=x"))
    #expect(try answerer.answer().sdp.contains("a=fmtp:45 level-idx=5;profile=1;tier=0\r\n"))
  }

  @Test func mediaWithoutAListedCodecIsRefused() throws {
    var audio = side("a", ["opus"])
    let error = #expect(throws: JSEPError.self) { _ = try audio.add(.video) }
    #expect(error?.reason.contains("video") == true)
    _ = try audio.add(.audio)
    var offerer = Side("b")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try audio.apply(try offerer.offer())
    let answer = try document(try audio.answer())
    #expect(answer.sections.map(\.isRejected) == [false, true])
  }

  @Test func onlyListedExtensionsAreUsed() throws {
    let uris = ["urn:ietf:params:rtp-hdrext:sdes:mid", "urn:none", ExtensionCapability.all[0].uri]
    var offerer = side("a", nil, extensions: uris)
    _ = try offerer.add(.audio)
    let offer = try document(try offerer.offer())
    #expect(offer.sections[0].extensionMaps.map(\.uri) == [uris[0], uris[2]])
    var answerer = side("b", nil, extensions: [])
    try answerer.apply(try offerer.offer())
    #expect(try document(try answerer.answer()).sections[0].extensionMaps.isEmpty)
  }

  @Test func preferencesApplyToThePeersCodecs() throws {
    var peer = side("a", ["VP9"])
    let id = try peer.add(.video)
    let vp9 = RTPCodec.capabilities(.video, offering: ["VP9"])
    #expect(vp9.map(\.mimeType) == ["video/VP9", "video/rtx"])
    try peer.negotiation.setCodecPreferences(vp9, of: id)
    let vp8 = RTPCodec.capabilities(.video).filter { $0.mimeType == "video/VP8" }
    let error = #expect(throws: JSEPError.self) {
      try peer.negotiation.setCodecPreferences(vp8, of: id)
    }
    #expect(error?.kind == .invalidModification)
  }
}
