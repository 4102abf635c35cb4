import SDP
import Testing
import Wire

@testable import JSEP

struct CodecPreferenceTests {
  private static let vp8 = RTPCodec(mimeType: "video/VP8", clockRate: 90_000)
  private static let rtx = RTPCodec(mimeType: "video/rtx", clockRate: 90_000)
  private static let opus = RTPCodec(
    mimeType: "audio/opus", clockRate: 48_000, channels: 2,
    sdpFmtpLine: "minptime=10;useinbandfec=1")

  private static let vp9 = RTPCodec(
    mimeType: "video/VP9", clockRate: 90_000, sdpFmtpLine: "profile-id=0")
  private static let h264 = RTPCodec(
    mimeType: "video/H264", clockRate: 90_000,
    sdpFmtpLine: "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f")
  /// The offer without preferences: VP8, VP9, four variants of H.264, each with its RTX.
  private static let allFormats = ["96", "97", "98", "99"] + (102...109).map { String($0) }

  @Test func theCapabilitiesMatchTheOffer() {
    #expect(RTPCodec.capabilities(.audio).first == Self.opus)
    let video = RTPCodec.capabilities(.video)
    #expect(video.first == Self.vp8 && video[1] == Self.vp9 && video.last == Self.rtx)
    #expect(video.contains(Self.h264) && video.count == 7)
  }

  private static let preferences: [([RTPCodec], [String])] = [
    ([vp8, rtx], ["96", "97"]), ([rtx, vp8], ["96", "97"]), ([vp8], ["96"]), ([], allFormats),
    ([RTPCodec(mimeType: "VIDEO/vp8", clockRate: 90_000)], ["96"]), ([vp8, vp8], ["96"]),
    ([vp9, vp8, rtx], ["98", "99", "96", "97"]), ([h264, rtx, vp8], ["104", "105", "96", "97"]),
  ]

  @Test(arguments: preferences)
  func offersAndAnswersFollowThePreferences(codecs: [RTPCodec], formats: [String]) throws {
    var offerer = Side("a")
    var answerer = Side("b")
    let id = try offerer.add(.video)
    try offerer.negotiation.setCodecPreferences(codecs, of: id)
    let offer = try offerer.offer()
    #expect(try document(offer).sections[0].formats == formats)

    // An answer to an offer of all formats has the same preferences.
    _ = try answerer.add(.video, byAddTrack: true)
    var other = Side("c")
    _ = try other.add(.video)
    try answerer.negotiation.setCodecPreferences(codecs, of: 1)
    try answerer.apply(try other.offer())
    let answer = try answerer.answer()
    #expect(try document(answer).sections[0].formats == formats)
    try other.apply(answer)
    let rtx = other.negotiation.sections[0].codecs[0].rtxPayloadType
    #expect((rtx == nil) == (formats.count == 1))
  }

  @Test(arguments: [
    [rtx], [opus], [RTPCodec(mimeType: "video/H264", clockRate: 90_000)],
    [vp8, RTPCodec(mimeType: "video/VP8", clockRate: 48_000)],
  ])
  func codecsThatCannotBeSentAreRefused(codecs: [RTPCodec]) throws {
    var side = Side("a")
    let id = try side.add(.video)
    let error = #expect(throws: JSEPError.self) {
      try side.negotiation.setCodecPreferences(codecs, of: id)
    }
    #expect(error?.kind == .invalidModification)
    #expect(try document(try side.offer()).sections[0].formats == Self.allFormats)
  }

  @Test func aStoppedTransceiverHasNoPreferences() throws {
    var side = Side("a")
    let id = try side.add(.video)
    try side.negotiation.stop(transceiver: id)
    let error = #expect(throws: JSEPError.self) {
      try side.negotiation.setCodecPreferences([Self.vp8], of: id)
    }
    #expect(error?.kind == .invalidState)
  }
}
