import Foundation
import Lab
import Peer
import Room
import Testing
import Wire

/// How many rooms and events are tested: twenty rooms by default, more with `make fuzz`.
private enum DamageBudget {
  /// How many events each room gets.
  static let length = 400
  static let lanes = 20
  private static let inputs = ProcessInfo.processInfo.environment["RETAKE_MUTATIONS_EACH"]
    .flatMap { Int($0) }
  static let rounds = max(1, (inputs ?? 0) / (length * lanes))
  static let minutes = inputs == nil ? 10 : 720
}

/// If a service and connections do anything at any time, nothing traps, nothing grows without
/// bound, and the order of events stays valid.
@Suite(.timeLimit(.minutes(DamageBudget.minutes))) struct DamageTests {
  @Test(arguments: 0..<DamageBudget.lanes) func anythingMayHappenInAnyOrder(lane: Int) {
    for round in 0..<DamageBudget.rounds { damage(seed: round * DamageBudget.lanes + lane) }
  }

  private func damage(seed: Int) {
    let random = Entropy(seed: [UInt8(seed & 255), UInt8(seed >> 8 & 255)]).stream("test")
    func number(_ bound: UInt64) -> UInt32 { UInt32(random.integer(below: bound)) }
    let room = VirtualRoom(abilities: SignalingAbilities(rawValue: number(128)))
    if seed % 4 != 0 { room.enter([.named("p1", .audio(1, of: "p1"))]) }
    for _ in 0..<DamageBudget.length {
      let (media, person) = (MediaID(number(6)), "p\(number(4))")
      let connection = number(3)
      switch number(30) {
      case 0: room.call(.connect(RoomJoin(room: "room-1")))
      case 1: room.open()
      case 2: room.serve(.joined(JoinedRoom(participant: "p0")))
      case 3: room.serve(.participantEntered(.named(person, .video(media.number, of: person))))
      case 4: room.serve(.participantLeft(person, .left))
      case 5: room.serve(.published(owner: person, [.audio(media.number, of: person)]))
      case 6: room.serve(.unpublished(owner: person, [media]))
      case 7: room.serve(.assigned(media, ConnectionID(connection), mid: "\(number(3))"))
      case 8: room.serve(.unassigned(media))
      case 9: room.serve(.open(number(2) == 0 ? .down : .up, ICEServers()), of: connection)
      case 10: room.serve(.makeOffer(iceRestart: false), of: connection)
      case 11: room.serve(.close, of: connection)
      case 12: room.report(.receiving(mid: "\(number(3))", transceiver: number(3)), of: connection)
      case 13: room.report(.sending(LocalMediaID(number(3)), transceiver: 1), of: connection)
      case 14:
        room.report(.audioSlot(transceiver: number(3), isHeld: number(2) == 0), of: connection)
      case 15: room.report(.report(.state(.failed)), of: connection)
      case 16: room.report(.report(.state(.connected)), of: connection)
      case 17: room.call(.publish([LocalMediaInfo(id: LocalMediaID(number(4)), kind: .audio)]))
      case 18: room.call(.unpublish([LocalMediaID(number(4))]))
      case 19: room.serve(.localPublished(LocalMediaID(number(4)), media))
      case 20: room.serve(.localUnpublished(LocalMediaID(number(4))))
      case 21: room.call(.subscribe(media))
      case 22: room.call(.unsubscribe(media))
      case 23: room.serve(.result(ActionID(number(40)), nil))
      case 24: room.serve(.result(ActionID(number(40)), SignalingFailure(.serviceError, "no")))
      case 25: room.call(.setMuted(number(2) == 0))
      case 26: room.wait(.milliseconds(Int64(number(5_000))))
      case 27: room.call(.requestScreenShare)
      case 28: room.report(number(2) == 0 ? .connected : .crashed(code: nil))
      default: room.transport(.frame(.text("[{\"event\":")))
      }
    }
    room.serve(.ended(RoomEnding(.destroyed)))
    room.call(.disconnect)
    #expect(room.snapshot.state == .disconnected)
    #expect(room.events.last.map { if case .disconnected = $0 { true } else { false } } == true)
    #expect(room.names.filter { $0 == "disconnected" }.count == 1)
    // Each report that media is carried is followed by exactly one report that it no longer is.
    var carried: [CarriedMedia] = []
    for change in room.people {
      switch change {
      case .carried(let media): carried.append(media)
      case .ended(let media):
        let index = carried.firstIndex {
          $0.peer == media.peer && $0.transceiver == media.transceiver
            && $0.isInbound == media.isInbound && $0.participant == media.participant
        }
        #expect(index != nil, "\(media)")
        if let index { carried.remove(at: index) }
      case .entered, .left: break
      }
    }
    #expect(carried.isEmpty, "\(carried)")
  }
}
