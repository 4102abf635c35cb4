import SDP
import Seeded
import Testing
import Wire

@testable import JSEP

struct MutationTests {
  /// Answers an offer section by section, or expects a refusal without side effects.
  private func offer(_ text: String, to start: Side) {
    var side = start
    do {
      try side.apply(.offer, text)
      _ = try side.answer()
      let set = side.negotiation.descriptions
      let kinds = set.currentRemote?.document.sections.map(\.kind)
      #expect(set.currentLocal?.document.sections.map(\.kind) == kinds)
      #expect(side.negotiation.signalingState == .stable)
      let mids = side.negotiation.sections.map(\.mid)
      #expect(Set(mids).count == mids.count)
      _ = try side.negotiation.createOffer(side.transport)
    } catch let error as JSEPError {
      #expect(error.kind == .syntax || error.kind == .invalidAccess, "\(error)")
      #expect(side.negotiation.transceivers == start.negotiation.transceivers)
    } catch {
      Issue.record(error)
    }
  }

  @Test(arguments: [
    "chromium-offer", "firefox-offer", "aiortc-offer", "janus-offer", "chromium-simulcast-offer",
    "firefox-answer",
  ])
  func anyLineOfAnOfferMayBeRemovedOrMoved(name: String) throws {
    var fresh = Side("a")
    _ = try fresh.add(.audio, byAddTrack: true)
    var running = fresh
    try running.apply(.offer, try sample(name))
    _ = try running.answer()
    let lines = try sample(name).split(separator: "\r\n")
    for index in lines.indices {
      var changed = lines
      let line = changed.remove(at: index)
      offer(changed.joined(separator: "\r\n"), to: index % 2 == 0 ? fresh : running)
      changed.insert(line, at: index * 31 % changed.count)
      offer(changed.joined(separator: "\r\n"), to: index % 2 == 0 ? running : fresh)
    }
  }

  /// If any line of a sample is removed, doubled or cut, the sample yields an answer, or one error
  /// that names the faulty or missing line.
  @Test(arguments: [
    "aiortc-answer", "aiortc-offer", "chromium-answer", "chromium-datachannel-offer",
    "chromium-offer", "chromium-recvonly-offer", "chromium-simulcast-offer",
    "chromium-unencrypted-offer", "firefox-answer", "firefox-offer", "firefox-recvonly-answer",
    "gstreamer-offer", "janus-answer", "janus-audiobridge-answer", "janus-offer",
    "janus-recording-offer", "libwebrtc-answer", "libwebrtc-offer",
  ])
  func errorsNameTheirLines(name: String) throws {
    let lines = try sample(name).split(separator: "\r\n").map { String($0) }
    for index in lines.indices {
      var removed = lines
      removed.remove(at: index)
      var doubled = lines
      doubled.insert(lines[index], at: index)
      var cut = lines
      cut[index] = String(lines[index].prefix(index * 7 % lines[index].utf8.count))
      for changed in [removed, doubled, cut] {
        var side = Side("a")
        _ = try side.add(.audio, byAddTrack: true)
        do throws(JSEPError) {
          let text = changed.joined(separator: "\r\n") + "\r\n"
          side.changes += try side.negotiation.setRemote(
            SessionDescription(type: .offer, sdp: text))
          // Only every third line tests answers, for speed.
          guard index % 3 == 0 else { continue }
          let answer = try side.negotiation.createAnswer(side.transport)
          side.changes += try side.negotiation.setLocal(answer)
          #expect(side.negotiation.signalingState == .stable)
        } catch {
          let digits =
            error.reason.hasPrefix("line ")
            ? error.reason.dropFirst(5).prefix { $0.isNumber } : ""
          let number = Int(digits) ?? 0
          let isMissing = error.reason.contains("= line")
          #expect((1...changed.count).contains(number) || isMissing, "\(error.reason)")
        }
      }
    }
  }

  @Test(arguments: 0..<2)
  func randomDamageToAnAnswerDoesNoHarm(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    var side = Side("a")
    var other = Side("b")
    _ = try side.add(.audio)
    // With seed 1, the answer accepts simulcast layers.
    let rids = seed == 1 ? ["q", "h", "f"] : []
    _ = try side.negotiation.addTransceiver(
      kind: .video, direction: .sendrecv, streamIDs: [], byAddTrack: false, rids: rids)
    try other.apply(try side.offer())
    let lines = rids.map { "a=rid:\($0) recv max-br=9\r\n" } + ["a=simulcast:recv q,h;~f\r\n"]
    let answer = Array((try other.answer().sdp + (seed == 1 ? lines.joined() : "")).utf8)
    let words = [
      "0", "1", "96", "a=", "m=audio 9 X 0\r\n", "\r\n", " ", "BUNDLE", "active", ";", "~", ",",
    ]
    for _ in 0..<1500 {
      var bytes = answer
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: bytes.indices, using: &random)
        let word = Array((words.randomElement(using: &random) ?? "").utf8)
        let end = min(bytes.count, place + Int.random(in: 0...4, using: &random))
        bytes.replaceSubrange(place..<end, with: word)
      }
      var receiver = side
      do {
        try receiver.apply(.answer, String(decoding: bytes, as: UTF8.self))
        #expect(receiver.negotiation.signalingState == .stable)
        _ = try receiver.negotiation.createOffer(receiver.transport)
      } catch let error as JSEPError {
        #expect(error.kind == .syntax || error.kind == .invalidAccess, "\(error)")
        #expect(receiver.negotiation.signalingState == .haveLocalOffer)
      }
    }
  }
}
