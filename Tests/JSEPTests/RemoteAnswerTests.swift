import SDP
import Testing
import Wire

@testable import JSEP

struct RemoteAnswerTests {
  /// Applies another side's answer to an offer of audio and video, changed by the test.
  static func apply(
    _ policy: BundlePolicy = .balanced, _ change: (inout SDPDocument) -> Void
  ) throws -> Side {
    var side = Side("a")
    side.negotiation = Negotiation(
      entropy: Entropy(seed: [1]).stream("sdp"), cname: "c", bundlePolicy: policy)
    var other = Side("b")
    _ = try side.add(.audio)
    _ = try side.add(.video)
    _ = try other.add(.audio, byAddTrack: true)
    _ = try other.add(.video, byAddTrack: true)
    try other.apply(try side.offer())
    var answer = try document(try other.answer())
    change(&answer)
    try side.apply(.answer, answer.text)
    return side
  }

  @Test func answersInOtherStacksStyleAreAccepted() throws {
    // Janus answers with the offer's payload types, and puts its fingerprint at session level.
    let side = try RemoteAnswerTests.apply { answer in
      for index in answer.sections.indices {
        let prints = answer.sections[index].fingerprints
        if index == 0 { answer.append(prints[0]) }
        answer.sections[index].lines.removeAll {
          $0.text.hasPrefix("a=fingerprint") || $0.text.hasPrefix("a=mid")
        }
      }
    }
    #expect(side.agreed == ["0 audio sendrecv", "1 video sendrecv"])
  }

  @Test func anAnswerLimitsWhatIsSent() throws {
    let side = try RemoteAnswerTests.apply { answer in
      for index in answer.sections.indices {
        answer.sections[index].lines.insert(
          .other(type: UInt8(ascii: "b"), value: "TIAS:\(index + 1)00000"), at: 0)
      }
      answer.sections[0].lines = answer.sections[0].lines.map {
        $0.text == "a=sendrecv" ? SDPLine(MediaDirection.sendonly.attributeName) : $0
      }
    }
    // Nothing is sent in the first section.
    #expect(side.agreed == ["0 audio recvonly", "1 video sendrecv"])
    #expect(side.negotiation.sections.map(\.sendBitrateLimit) == [nil, 200_000])
  }

  @Test func aRejectedSectionStopsItsTransceiver() throws {
    let side = try RemoteAnswerTests.apply { answer in
      answer.sections[0].port = 0
      answer.lines = answer.lines.filter { !$0.text.hasPrefix("a=group") }
    }
    #expect(side.agreed == ["1 video sendrecv"])
    #expect(side.negotiation.transceivers.map(\.id) == [2])
    #expect(side.changes.contains(.transceiverStopped(id: 1)))
    #expect(side.negotiation.remoteTransport != nil)
  }

  @Test func rejectingEverythingLeavesNothing() throws {
    let side = try RemoteAnswerTests.apply { answer in
      for index in answer.sections.indices { answer.sections[index].port = 0 }
    }
    #expect(side.negotiation.sections.isEmpty && side.negotiation.transceivers.isEmpty)
    #expect(side.negotiation.remoteTransport == nil)
    #expect(side.negotiation.signalingState == .stable)
  }

  @Test func anAnswerMayOmitOptionalLines() throws {
    let side = try RemoteAnswerTests.apply { answer in
      let dropped = [
        "a=rtcp-rsize", "a=rtcp-fb:96 nack", "a=fmtp:97", "a=extmap:3", "a=rtcp-fb:111",
      ]
      for index in answer.sections.indices {
        answer.sections[index].lines.removeAll { line in
          dropped.contains { line.text.hasPrefix($0) }
        }
      }
    }
    #expect(side.negotiation.sections.allSatisfy { !$0.reducedSizeRTCP })
    let video = side.negotiation.sections[1].codecs[0]
    #expect(video.feedback == ["goog-remb", "transport-cc", "ccm fir", "rrtr"])
    #expect(video.rtxPayloadType == nil)
    #expect(side.negotiation.sections[0].extensions.map(\.id) == [1, 2, 4, 5])
    #expect(side.negotiation.sections[0].codecs[0].feedback.isEmpty)
  }

  @Test func anAnswerCannotExceedTheOffer() throws {
    var side = Side("a")
    var other = Side("b")
    _ = try side.add(.audio, .sendonly)
    try other.apply(try side.offer())
    let answer = try other.answer().sdp.with("a=recvonly", "a=sendrecv")
      .with("a=extmap:1 ", "a=extmap:9 ").with(
        "a=rtcp-mux\r\n", "a=rtcp-mux\r\na=ssrc:7 cname:x\r\n")
    try side.apply(.answer, answer)
    #expect(side.agreed == ["0 audio sendonly"])
    #expect(side.negotiation.sections[0].remoteSSRCs.isEmpty)
    #expect(side.negotiation.sections[0].extensions.map(\.id) == [2, 3, 4, 5])
    #expect(!side.changes.contains(.trackAdded(transceiver: 1, streamIDs: [])))
  }

  enum Fault: String, CaseIterable {
    case missingSection, extraSection, otherKind, otherMID, noBundle, partialBundle, noMux
    case noCodec, noFingerprint, noCredentials, unparsable
  }

  @Test(arguments: Fault.allCases)
  func mismatchedAnswersAreRefused(fault: Fault) throws {
    let error = try #require(throws: JSEPError.self) {
      // A section offered without a separate transport can only be bundled.
      let isOfBundle = fault == .noBundle || fault == .partialBundle
      return try RemoteAnswerTests.apply(isOfBundle ? .maxBundle : .balanced) { answer in
        RemoteAnswerTests.damage(&answer, fault)
      }
    }
    #expect(error.kind == (fault == .unparsable ? .syntax : .invalidAccess), "\(error)")
    #expect(error.reason.contains(fault == .unparsable ? "line 6" : "section"), "\(error)")
  }

  private static func damage(_ answer: inout SDPDocument, _ fault: Fault) {
    func drop(_ prefix: String) {
      for index in answer.sections.indices {
        answer.sections[index].lines.removeAll { $0.text.hasPrefix(prefix) }
      }
    }
    switch fault {
    case .missingSection: answer.sections.removeLast()
    case .extraSection:
      answer.sections.append(SDPSection(kind: .audio, port: 0, transport: "X", formats: ["0"]))
    case .otherKind: answer.sections[0].kind = .video
    case .otherMID:
      drop("a=mid:0")
      answer.sections[0].append(SDPLine(.mid, "zero"))
    case .noBundle: answer.lines.removeAll { $0.text.hasPrefix("a=group") }
    case .partialBundle:
      answer.lines.removeAll { $0.text.hasPrefix("a=group") }
      answer.append(SectionGroup(semantics: "BUNDLE", mids: ["0"]))
    case .noMux: drop("a=rtcp-mux")
    case .noCodec:
      drop("a=rtpmap")
    case .noFingerprint: drop("a=fingerprint")
    case .noCredentials: drop("a=ice-pwd")
    case .unparsable:
      answer.lines.insert(.other(type: UInt8(ascii: "s"), value: "again"), at: 2)
    }
  }

  /// A codec missing from the answer is still received, because libwebrtc sends the offer's first
  /// choice.
  @Test(arguments: [true, false])
  func codecsOmittedFromAnAnswerAreReceived(receivesAllOffered: Bool) throws {
    var side = Side(
      "left", capabilities: Capabilities(receivesAllOffered: receivesAllOffered))
    _ = try side.add(.video)
    var peer = Side("right")
    _ = try peer.add(.video, byAddTrack: true)
    try peer.apply(try side.offer())
    var answer = try peer.answer()
    let maps = try #require(document(answer).sections.first).rtpMaps
    let kept = try #require(maps.first { $0.name == "VP9" }).payloadType
    answer.sdp = answer.sdp.split(separator: "\r\n", omittingEmptySubsequences: false).map {
      $0.hasPrefix("m=video")
        ? $0.split(separator: " ").prefix(3).joined(separator: " ") + " \(kept)" : String($0)
    }.joined(separator: "\r\n")
    try side.apply(answer)
    let section = try #require(side.negotiation.sections.first)
    #expect(section.codecs.map(\.name) == ["vp9"] && section.sentCodec?.name == "vp9")
    let left = section.unansweredCodecs
    guard receivesAllOffered else { return #expect(left.isEmpty) }
    #expect(left.first?.name == "vp8")
    #expect(left.allSatisfy { $0.rtxPayloadType == nil && $0.feedback.contains("nack pli") })
    #expect(!left.contains { $0.payloadType == kept })
  }
}
