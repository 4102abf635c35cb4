import Foundation
import Peer
import Room
import Testing
import Wire

@testable import RoomClient

/// Tests a server's room without sockets.
struct HostedRoomTests {
  private func room(_ ids: String...) -> HostedRoom {
    var room = HostedRoom()
    for id in ids { _ = room.enter(id, RoomJoin(room: "r", displayName: id)) }
    return room
  }

  @Test func oneThatHasLeftHasNoPartInTheRoom() {
    var room = room("ann", "ben")
    _ = room.leave("ann", .left)
    let media = [RoomLocalMedia(mid: "0", local: 1, kind: .audio)]
    let published = room.publish(media, of: "ann") { 7 }
    #expect(published.notices.isEmpty && published.fault?.code == .invalidState)
    let message = room.message(UserMessage(text: "boo"), from: "ann")
    #expect(message.notices.isEmpty && message.fault?.code == .invalidState)
    #expect(room.change(RoomMedia(number: 7, kind: .audio), of: "ann").isEmpty)
    #expect(room.talking("ann", true).isEmpty)
    #expect(room.want([7], true, of: "ann")?.code == .invalidState)
    _ = room.enter("cid", RoomJoin(room: "r"))
    #expect(room.media.isEmpty && room.wanted(by: "cid").isEmpty)
    #expect(room.list(without: "cid").map(\.id) == ["ben"])
  }

  @Test func aParticipantNamedOftenIsReportedOnce() {
    let room = room("ann", "ben", "cid")
    let targets = Array(repeating: "ben", count: 200) + ["cid"] + Array(repeating: "ben", count: 55)
    let message = room.message(UserMessage(targets: targets, text: "hi"), from: "ann")
    #expect(message.notices.map(\.to) == ["ben", "cid"])
    guard case .message(let told)? = message.notices.first?.notice else {
      Issue.record("no message")
      return
    }
    #expect(told.targets == ["ben", "cid"] && told.sender == "ann")
  }

  @Test func mediaOfOneDoesNotGrowWithItsOffers() {
    var room = room("ann", "ben")
    var last: UInt32 = 0
    for start: UInt32 in [0, 64, 128, 192] {
      let offered = (0..<256).map { index in
        RoomLocalMedia(mid: "\(index)", local: (start + UInt32(index)) % 256, kind: .audio)
      }
      _ = room.publish(offered, of: "ann") {
        last += 1
        return last
      }
      #expect(room.media.count == HostedRoom.mediaMaximum)
    }
  }

  @Test func newcomersAreSentNoMoreThanFits() {
    var room = HostedRoom()
    let metadata = "\"" + String(repeating: "m", count: 60_000) + "\""
    var entered = 0
    for index in 0..<HostedRoom.membersMaximum {
      let fault = room.enter("p\(index)", RoomJoin(room: "r", metadata: metadata)).fault
      if fault == nil { entered += 1 }
    }
    #expect(entered == HostedRoom.detailBytes / metadata.utf8.count)
    let value = String(repeating: "v", count: 60_000)
    let media = [RoomLocalMedia(mid: "0", local: 1, kind: .audio, extraValue: value)]
    #expect(room.publish(media, of: "p0") { 1 }.fault?.code == .publishFailed)
    var other = self.room("ann")
    #expect(other.publish(media, of: "ann") { 1 }.fault == nil)
    let grown = RoomMedia(number: 1, kind: .audio, extraValue: value + value)
    #expect(other.change(grown, of: "ann").isEmpty)
    #expect(other.media.first?.media.extraValue == value)
  }

  /// Participants send any messages in any order, about any participant, even after they have left.
  @Test func anyMessagesFromAnyParticipantLeaveTheRoomConsistent() {
    var random = Shuffled(state: 11)
    let ids =
      ["ann", "ben", "", "\u{1b}]0;x\u{7}", "a\u{202e}b", String(repeating: "i", count: 250)]
      + (0..<6).map { "p\($0)" }
    var room = HostedRoom()
    var last: UInt32 = 0
    var effects = 0
    for _ in 0..<20_000 {
      let id = ids[random.below(ids.count)]
      let number = UInt32(random.below(Int(last) + 2))
      var notices: [HostedRoom.Notice] = []
      switch random.below(9) {
      case 0, 1: notices = room.enter(id, RoomJoin(room: "r", metadata: "{}")).notices
      case 2: notices = room.leave(id, .left)
      case 3, 4:
        let media = (0..<random.below(70)).map { _ in
          RoomLocalMedia(
            mid: "\(random.below(4))", local: UInt32(random.below(90)), kind: .video,
            extraValue: String(repeating: "x", count: random.below(4_000)))
        }
        notices =
          room.publish(media, of: id) {
            last += 1
            return last
          }.notices
      case 5: notices = room.change(RoomMedia(number: number, kind: .audio), of: id)
      case 6: _ = room.want([number, number], random.below(2) == 0, of: id)
      case 7: _ = room.pause(number, random.below(2) == 0, of: id)
      default:
        let targets = (0..<random.below(300)).map { _ in ids[random.below(ids.count)] }
        notices = room.message(UserMessage(targets: targets, text: "t"), from: id).notices
        #expect(Set(notices.map(\.to)).count == notices.count)
      }
      effects += notices.count
      let present = Set(room.members.map(\.id))
      guard present.count == room.members.count, notices.allSatisfy({ present.contains($0.to) }),
        room.media.allSatisfy({ present.contains($0.owner) }),
        Set(room.media.map(\.media.number)).count == room.media.count
      else {
        Issue.record("\(room)")
        return
      }
      for member in room.members {
        let own = room.media.filter { $0.owner == member.id }
        let bytes = own.reduce(member.metadata?.utf8.count ?? 0) {
          $0 + $1.media.extraValue.utf8.count
        }
        if own.count > HostedRoom.mediaMaximum || bytes > HostedRoom.memberDetailBytes {
          Issue.record("\(member.id) has \(own.count) media and \(bytes) bytes")
        }
        let numbers = Set(room.media.map(\.media.number))
        if !member.wanted.union(member.paused).isSubset(of: numbers) {
          Issue.record("\(member.id) wants what nobody publishes")
        }
      }
    }
    #expect(effects > 10_000)
  }

  @Test func aSenderIsSlowedByTheMessagesItCauses() {
    var allowance = SpeechAllowance()
    let now = ContinuousClock.now
    #expect(allowance.spend(SpeechAllowance.burstBytes, now: now) == .zero)
    #expect(allowance.spend(SpeechAllowance.usualBytesPerSecond, now: now) == .seconds(1))
    #expect(allowance.spend(0, now: now + .seconds(1)) == .zero)
    #expect(allowance.spend(0, now: now + .seconds(1_000_000)) == .zero)
    #expect(allowance.spend(SpeechAllowance.burstBytes + 1, now: now + .seconds(1_000_001)) > .zero)
  }
}

/// Random numbers that are the same in every run.
private struct Shuffled {
  var state: UInt64

  mutating func below(_ end: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 33) % UInt64(max(end, 1)))
  }
}
