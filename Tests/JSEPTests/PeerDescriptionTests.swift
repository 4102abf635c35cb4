import SDP
import Testing
import Wire

@testable import JSEP

/// Tests descriptions that peers made in calls with this stack.
struct PeerDescriptionTests {
  /// Returns a side that offered audio and video, as in the calls that the answers come from.
  static func offering() throws -> Side {
    var side = Side("a")
    _ = try side.add(.audio, byAddTrack: true)
    _ = try side.add(.video, byAddTrack: true)
    _ = try side.offer()
    return side
  }

  struct Answer: Sendable {
    var name: String
    var agreed = ["0 audio sendrecv", "1 video sendrecv"]
    var hasRTX = true
    var extensions: [[UInt8]] = []
    var candidates = 1
    var sources = [1, 1]
  }

  static let answers = [
    Answer(name: "chromium-called", extensions: [[1, 2, 3, 4], [2, 3, 4]], candidates: 2),
    Answer(name: "firefox-called", extensions: [[1, 3, 4], [2, 3, 4]], candidates: 2),
    Answer(name: "libwebrtc-called", extensions: [[1, 2, 3, 4], [2, 3, 4]], candidates: 6),
    Answer(name: "gstreamer-called", hasRTX: false, extensions: [[], []], candidates: 9),
    Answer(name: "janus-echo-called", extensions: [[1, 3, 4], [3, 4]]),
    Answer(
      name: "janus-room-called", agreed: ["0 audio sendonly", "1 video sendonly"],
      extensions: [[1, 4], [3, 4]], sources: [0, 0]),
    // The bridge has no video, so it rejects the section, with a format that was not offered.
    Answer(
      name: "janus-bridge-called", agreed: ["0 audio sendrecv"], extensions: [[1, 4]],
      sources: [1]),
  ]

  @Test(arguments: answers)
  func answersFromOtherStacksAreAccepted(answer: Answer) throws {
    var side = try PeerDescriptionTests.offering()
    try side.apply(.answer, try sample(answer.name))
    #expect(side.agreed == answer.agreed)
    let sections = side.negotiation.sections
    #expect(sections.map { $0.extensions.map(\.id) } == answer.extensions)
    #expect(sections.map(\.remoteSSRCs.count) == answer.sources)
    if sections.count == 2 {
      #expect((sections[1].codecs[0].rtxPayloadType != nil) == answer.hasRTX)
      #expect(sections[1].codecs[0].feedback.contains("nack pli"))
    }
    let transport = try #require(side.negotiation.remoteTransport)
    #expect(transport.localIsDTLSClient == false)
    #expect(transport.fingerprints.count == 1)
    #expect(transport.candidates.count == answer.candidates)
    #expect(side.negotiation.signalingState == .stable)
  }

  @Test(arguments: answers)
  func anyLineOfAnAnswerMayBeMissingOrTwice(answer: Answer) throws {
    let start = try PeerDescriptionTests.offering()
    let lines = try sample(answer.name).split(separator: "\r\n")
    for index in lines.indices {
      for copies in [0, 2] {
        var changed = lines
        changed.replaceSubrange(
          index...index, with: Array(repeating: lines[index], count: copies))
        var side = start
        do {
          try side.apply(.answer, changed.joined(separator: "\r\n") + "\r\n")
          #expect(side.negotiation.signalingState == .stable)
        } catch let error as JSEPError {
          #expect(error.kind == .syntax || error.kind == .invalidAccess, "\(error)")
          #expect(side.negotiation.signalingState == .haveLocalOffer)
        }
      }
    }
  }

  @Test func aBundleOnlySectionIsAccepted() throws {
    // In GStreamer's offer, the second section has no port of its own, the sections have unusual
    // names, and the codec is in capitals.
    let (side, answer) = try RemoteOfferTests.answer(try sample("gstreamer-offer"))
    #expect(side.agreed == ["audio0 audio sendrecv", "video1 video sendrecv"])
    #expect(answer.bundles == [["audio0", "video1"]])
    #expect(answer.sections.map(\.formats) == [["111"], ["96"]])
    #expect(answer.sections.allSatisfy { !$0.isRejected && $0.extensionMaps.isEmpty })
    #expect(side.negotiation.sections.map(\.remoteSSRCs) == [[357_594_611], [3_576_406_480]])
    #expect(side.negotiation.remoteTransport?.candidates.count == 9)
  }

  @Test func malformedFormatParametersAreIgnored() throws {
    // Janus's bridge writes a number before the Opus parameters.
    let offer = try sample("janus-bridge-offer")
    #expect(offer.contains("a=fmtp:111 0 maxplaybackrate=48000; stereo=0;"))
    let (side, answer) = try RemoteOfferTests.answer(offer)
    #expect(side.agreed == ["0 audio sendrecv"])
    #expect(answer.sections.map(\.formats) == [["111"]])
    #expect(answer.bundles == [["0"]])
  }
}
