import SDP
import Testing
import Wire

@testable import JSEP

@Suite struct MutationTests {
  /// An offer is answered section by section, or refused without a trace.
  private func offer(_ text: String, to start: Side) {
    var side = start
    do {
      try side.take(.offer, text)
      _ = try side.answer()
      let documents = side.negotiation.documents
      let kinds = documents.currentRemote?.sections.map(\.kind)
      #expect(documents.currentLocal?.sections.map(\.kind) == kinds)
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
    try running.take(.offer, try sample(name))
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

  @Test(arguments: 0..<2)
  func randomDamageToAnAnswerDoesNoHarm(seed: Int) throws {
    var random = SeededGenerator(state: UInt64(seed))
    var side = Side("a")
    var other = Side("b")
    _ = try side.add(.video)
    _ = try side.add(.audio)
    try other.take(try side.offer())
    let answer = Array(try other.answer().sdp.utf8)
    let words = ["0", "1", "96", "a=", "m=audio 9 X 0\r\n", "\r\n", " ", "BUNDLE", "active"]
    for _ in 0..<1500 {
      var bytes = answer
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: bytes.indices, using: &random)
        let word = Array((words.randomElement(using: &random) ?? "").utf8)
        let end = min(bytes.count, place + Int.random(in: 0...4, using: &random))
        bytes.replaceSubrange(place..<end, with: word)
      }
      var taker = side
      do {
        try taker.take(.answer, String(decoding: bytes, as: UTF8.self))
        #expect(taker.negotiation.signalingState == .stable)
        _ = try taker.negotiation.createOffer(taker.transport)
      } catch let error as JSEPError {
        #expect(error.kind == .syntax || error.kind == .invalidAccess, "\(error)")
        #expect(taker.negotiation.signalingState == .haveLocalOffer)
      }
    }
  }
}
