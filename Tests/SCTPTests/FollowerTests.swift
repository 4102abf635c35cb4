import SCTP
import Seeded
import Testing
import Wire

/// Tests that an association can be followed through its packets, wherever they are captured.
struct FollowerTests {
  /// A follower's reports.
  private final class Watch {
    var follower = SCTPFollower()
    var messages: [[[UInt8]]] = [[], []]
    var states: [String: [DataChannelState]] = [:]
    var openers: [String: Int] = [:]
    var missed = 0

    func see(_ packet: [UInt8], from end: Int) {
      var events: [SCTPFollower.Event] = []
      follower.receive(packet, from: end, into: &events)
      for event in events {
        switch event {
        case .channel(let channel):
          states[channel.options.label, default: []].append(channel.state)
          openers[channel.options.label] = channel.opener
        case .message(_, let end, _, let bytes): messages[end].append(bytes)
        case .missed(let count): missed += count
        }
      }
    }
  }

  /// Runs a conversation in which a tenth of the packets is lost.
  private func talk(_ watch: Watch, seed: UInt64, interleaved: Bool, sees: @escaping (Int) -> Bool)
    -> Link
  {
    var dice = SeededGenerator(seed: seed &+ 1000)
    var number = 0
    var link = Link(seed: seed, LinkQuality(jitter: .milliseconds(20)))
    link.tamper = { side, packet, _ in
      // The capture is after the loss and before the reordering.
      guard !dice.happens(10) else { return nil }
      number += 1
      if sees(number) { watch.see(packet, from: side) }
      return packet
    }
    link.connect { $1.offersInterleaving = interleaved }
    let ordered = link.open(0, DataChannelInit(label: "ordered"))
    let loose = link.open(1, DataChannelInit(label: "loose", ordered: false))
    link.run(for: .seconds(2))
    for round in 0..<20 {
      link.send(0, ordered, "o\(round)")
      link.step(0, .send(ordered, binary: true, [UInt8](repeating: UInt8(round), count: 9_000)))
      link.step(1, .send(loose, binary: true, [UInt8](repeating: UInt8(round), count: 3_000)))
      link.run(for: .milliseconds(50))
    }
    link.run(for: .seconds(20))
    link.step(0, .close(ordered))
    link.run(for: .seconds(20))
    return link
  }

  @Test(arguments: [false, true], 1...5 as ClosedRange<UInt64>)
  func messagesMatchThoseOfTheEnds(interleaved: Bool, seed: UInt64) {
    let watch = Watch()
    let link = talk(watch, seed: seed, interleaved: interleaved) { _ in true }
    #expect(watch.messages[0] == link.seen[1].messages.map(\.bytes))
    #expect(watch.messages[0].count == 40)
    // The other direction's channel is unordered.
    #expect(Set(watch.messages[1]) == Set(link.seen[0].messages.map(\.bytes)))
    #expect(watch.messages[1].count == 20 && watch.missed == 0)
    #expect(watch.openers == ["ordered": 0, "loose": 1])
    #expect(watch.states["ordered"] == [.open, .closing, .closed])
    #expect(watch.states["loose"] == [.open])
  }

  /// Acknowledged data has arrived, even if the capture lacks it, so later messages do not wait for
  /// it.
  @Test(arguments: [false, true])
  func missingPacketsDoNotDelayLaterMessages(interleaved: Bool) {
    let watch = Watch()
    let link = talk(watch, seed: 7, interleaved: interleaved) { $0 < 30 || $0 % 25 != 0 }
    #expect(watch.missed > 0)
    #expect(watch.messages[0].count > 20 && watch.messages[0].count < 40)
    let all = Set(link.seen[1].messages.map(\.bytes))
    #expect(watch.messages[0].allSatisfy { all.contains($0) })
    // The last single-packet message follows all gaps.
    #expect(watch.messages[0].contains(Array("o19".utf8)))
  }

  /// If a capture starts in the middle of an association, channels have no names.
  @Test(arguments: [false, true])
  func anAssociationIsFollowedFromTheMiddle(interleaved: Bool) {
    let watch = Watch()
    let link = talk(watch, seed: 8, interleaved: interleaved) { $0 > 60 }
    #expect(watch.messages[0].count > 20)
    #expect(watch.messages[0].last == link.seen[1].messages.last?.bytes)
    #expect(Set(watch.follower.channels.map(\.options.label)) == [""])
  }

  @Test func anyBytesAreAccepted() {
    let watch = Watch()
    var dice = SeededGenerator(seed: 3)
    for _ in 0..<5_000 {
      var packet = (0..<dice.below(80)).map { _ in UInt8(dice.below(256)) }
      if packet.count > 16 {
        packet[12] = [0, 1, 2, 3, 64, 130, 192, 194, 6][dice.below(9)]
        packet[14] = 0
        packet[15] = UInt8(packet.count - 12)
      }
      watch.see(packet, from: dice.below(2))
    }
  }
}
