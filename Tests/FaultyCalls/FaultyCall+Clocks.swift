import Lab
import Media
import Peer
import RTP
import Wire

// Stalled processes, and wrong clocks and counters.
extension FaultyCall {
  mutating func prepareClocks() {
    switch plan.kind {
    case .ownProcess, .peerProcess: prepareStall()
    case .slowProcessor:
      let plan = plan
      let pause = plan.scaled(110, 170)
      words = "\(pause) ms of each 200 ms"
      arrange = { driven in
        for place in 0..<(plan.length / 200) {
          driven.at(plan.from + place * 200) {
            $0.call.stall(plan.culprit, for: .milliseconds(Int64(pause)))
          }
        }
      }
    case .clockSkew:
      let plan = plan
      let skew = plan.scaled(250, 1_500) * (chance.isOne(in: 2) ? 1 : -1)
      words = "\(skew) ppm"
      length = plan.length
      arrange = { $0.clockSkew[plan.culprit] = skew }
    case .requestsUnanswered: prepareRequests()
    default: prepareNumbers()
    }
  }

  private mutating func prepareStall() {
    let (plan, chance) = (plan, chance)
    let pause = plan.scaled(280, 1_500)
    let count = chance.within(1...3)
    words = "\(count) times \(pause) ms"
    arrange = { driven in
      for number in 0..<count {
        driven.at(plan.from + number * 2_600) {
          $0.call.stall(plan.culprit, for: .milliseconds(Int64(pause)))
        }
      }
    }
    length = plan.from + count * 2_600 + chance.within(3_000...6_000)
  }

  /// Drops some video packets with all their retransmissions, and after that every keyframe
  /// request.
  private mutating func prepareRequests() {
    let plan = plan
    let hole = plan.scaled(700, 1_500)
    words = "\(hole) ms of video lost, requests lost for \(plan.length) ms"
    arrange = { driven in
      let requests = [UInt8(206)]
      driven.box.rewrite(plan.victim) { content, packet, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard content == .rtcp, milliseconds >= plan.from,
          milliseconds < plan.from + plan.length
        else { return true }
        let rest = FaultyCall.without(requests, packet)
        if rest.count < packet.count { driven.box.touched += 1 }
        packet = rest
        return !rest.isEmpty
      }
      driven.box.treat = { sender, content, _, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard sender == plan.culprit, content == .video || content == .repair,
          milliseconds >= plan.from, milliseconds < plan.from + hole
        else { return nil }
        return []
      }
    }
    isTouched = { $0.box.touched >= 2 }
  }

  /// Returns a compound packet without some types of picture requests (RFC 4585 section 6.3, RFC
  /// 5104 section 4.3.1); the REMB estimate shares their type and stays.
  static func without(_ types: [UInt8], _ compound: [UInt8]) -> [UInt8] {
    var rest: [UInt8] = []
    var place = 0
    while place + 4 <= compound.count {
      let length = (Int(compound[place + 2]) << 8 | Int(compound[place + 3])) * 4 + 4
      let end = min(compound.count, place + length)
      let format = compound[place] & 31
      if !(types.contains(compound[place + 1]) && (format == 1 || format == 4)) {
        rest += compound[place..<end]
      }
      place = end
    }
    return rest
  }

  private mutating func prepareNumbers() {
    let (plan, chance) = (plan, chance)
    switch plan.kind {
    case .sequenceRestart:
      let jump = plan.scaled(5_000, 20_000)
      words = "\(jump) numbers further"
      arrange = { driven in
        driven.box.rewrite(plan.culprit) { content, packet, now in
          guard content == .audio, Int(now.nanoseconds / 1_000_000) >= plan.from else {
            return true
          }
          driven.box.touched += 1
          let number = (Int(packet[2]) << 8 | Int(packet[3])) + jump
          (packet[2], packet[3]) = (UInt8(number >> 8 & 255), UInt8(number & 255))
          return true
        }
      }
      isTouched = { $0.box.touched >= 50 }
    case .unevenTimes:
      let most = plan.scaled(60, 400)
      words = "up to \(most) ticks more"
      arrange = { driven in
        driven.box.rewrite(plan.culprit) { content, packet, now in
          let milliseconds = Int(now.nanoseconds / 1_000_000)
          guard content == .audio, milliseconds >= plan.from,
            milliseconds < plan.from + plan.length
          else { return true }
          driven.box.touched += 1
          let time = packet[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
          let other = time &+ UInt32(chance.below(most))
          for index in 0..<4 { packet[4 + index] = UInt8(other >> UInt32(24 - 8 * index) & 255) }
          return true
        }
      }
      isTouched = { $0.box.touched >= 60 }
    default:
      let type = UInt8(chance.within(36...60))
      let share = plan.scaled(80, 1_000)
      words = "\(share / 10) % of the packets have type \(type)"
      arrange = { driven in
        driven.box.rewrite(plan.culprit) { content, packet, now in
          let milliseconds = Int(now.nanoseconds / 1_000_000)
          guard content == .audio || content == .video, milliseconds >= plan.from,
            milliseconds < plan.from + plan.length, chance.happens(perMille: share)
          else { return true }
          driven.box.touched += 1
          packet[1] = packet[1] & 128 | type
          return true
        }
      }
      isTouched = { $0.box.touched >= 10 }
    }
  }
}
