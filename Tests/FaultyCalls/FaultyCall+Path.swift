import Lab
import Wire

// Faults of the path.
extension FaultyCall {
  /// Prepares a fault of the path; returns false if the planned fault is of another kind.
  mutating func preparePath() -> Bool {
    switch plan.kind {
    case .audioLoss, .videoLoss, .loss, .repairsLost, .lossBurst, .mediaDeadOneWay, .rtcpLost:
      prepareLoss()
    case .lossyPath: prepareLossyPath()
    case .bottleneck, .jitter, .reordering, .duplicates, .longDelay: prepareDelay()
    case .deadPath: prepareDeadPath()
    case .consentLost: prepareConsent()
    default: return false
    }
    return true
  }

  private mutating func prepareLoss() {
    switch plan.kind {
    case .audioLoss:
      let share = plan.scaled(60, 250)
      words = "\(share / 10) % of audio"
      lose([.audio], perMille: share, minimum: 15)
    case .videoLoss:
      let share = plan.scaled(60, 250)
      words = "\(share / 10) % of video"
      lose([.video], perMille: share, minimum: 20)
    case .loss:
      let share = plan.scaled(60, 200)
      words = "\(share / 10) % of all"
      lose([.audio, .video, .repair], perMille: share, minimum: 20)
    case .repairsLost:
      let share = plan.scaled(60, 150)
      words = "\(share / 10) % of video and all repairs"
      let (plan, chance) = (plan, chance)
      arrange = { driven in
        driven.box.treat = { sender, content, _, now in
          let milliseconds = Int(now.nanoseconds / 1_000_000)
          guard sender == plan.culprit, milliseconds >= plan.from,
            milliseconds < plan.from + plan.length
          else { return nil }
          if content == .repair {
            driven.box.touched += 1
            return []
          }
          return content == .video && chance.happens(perMille: share) ? [] : nil
        }
      }
      isTouched = { $0.box.touched >= 20 }
    case .lossBurst:
      words = "nothing for \(plan.length) ms"
      lose([.audio, .video, .repair, .rtcp], perMille: 1_000, minimum: 10, share: 0)
    case .mediaDeadOneWay:
      words = "no media for \(plan.length) ms"
      lose([.audio, .video, .repair], perMille: 1_000, minimum: 50, share: 0)
    default:
      words = "no RTCP for \(plan.length) ms"
      lose([.rtcp], perMille: 1_000, minimum: 4, share: 0)
    }
  }

  /// Loses packets of every protocol in both directions, from the call's first packet on.
  private mutating func prepareLossyPath() {
    let share = plan.scaled(250, 650)
    words = "\(share / 10) % of everything in both directions"
    let chance = chance
    arrange = { driven in
      driven.box.treat = { _, _, _, _ in
        guard chance.happens(perMille: share) else { return nil }
        driven.box.touched += 1
        return []
      }
    }
    isTouched = { $0.box.touched >= 100 }
  }

  private mutating func prepareDelay() {
    let (plan, chance) = (plan, chance)
    let from = Instant.zero + .milliseconds(Int64(plan.from))
    let to = from + .milliseconds(Int64(plan.length))
    switch plan.kind {
    case .bottleneck:
      let rate = plan.scaled(260, 110)
      let queue = chance.within(250...800)
      words = "\(rate) kbit/s with a queue of \(queue) ms"
      arrange = { driven in
        driven.at(plan.from) {
          $0.call.network.links[plan.culprit].bitsPerSecond = UInt64(rate) * 1_000
          $0.call.network.links[plan.culprit].queueLimit = .milliseconds(Int64(queue))
        }
        driven.at(plan.from + plan.length) {
          $0.call.network.links[plan.culprit].bitsPerSecond = nil
        }
      }
    case .jitter: prepareJitter(from: from, to: to)
    case .reordering:
      let share = plan.scaled(60, 250)
      words = "\(share / 10) % come later than those after them"
      arrange = { driven in
        driven.box.treat = { sender, content, bytes, now in
          guard sender == plan.culprit, now >= from, now < to, content != .stun,
            chance.happens(perMille: share)
          else { return nil }
          driven.box.touched += 1
          return [(bytes, .milliseconds(Int64(chance.within(25...70))))]
        }
      }
      isTouched = { $0.box.touched >= 20 }
    case .duplicates:
      let share = plan.scaled(40, 400)
      words = "\(share / 10) % come twice"
      arrange = { driven in
        driven.box.treat = { sender, content, bytes, now in
          guard sender == plan.culprit, now >= from, now < to, content != .stun,
            chance.happens(perMille: share)
          else { return nil }
          driven.box.touched += 1
          return [(bytes, .zero), (bytes, .milliseconds(Int64(chance.within(0...8))))]
        }
      }
      isTouched = { $0.box.touched >= 15 }
    default:
      let each = plan.scaled(240, 600)
      words = "\(each) ms each way"
      if chance.isOne(in: 2) {
        setup.links[0].delay = .milliseconds(Int64(each))
        setup.links[1].delay = .milliseconds(Int64(each))
      } else {
        arrange = { driven in
          driven.at(plan.from) {
            for link in 0..<2 { $0.call.network.links[link].delay = .milliseconds(Int64(each)) }
          }
        }
      }
    }
  }

  /// Repeatedly holds packets back and releases them together, as radio does.
  ///
  /// Packets keep their order but not their spacing.
  private mutating func prepareJitter(from: Instant, to: Instant) {
    let (plan, chance) = (plan, chance)
    let most = plan.scaled(130, 190)
    words = "held back for up to \(most) ms, and let go at once"
    var release = Instant.zero
    var (former, jitter) = (0.0, 0.0)
    arrange = { driven in
      driven.box.treat = { sender, content, bytes, now in
        guard sender == plan.culprit, now >= from, now < to else { return nil }
        if now >= release { release = now + .milliseconds(Int64(chance.within(100...most))) }
        if content == .audio {
          // Interarrival jitter (RFC 3550 appendix A.8), in milliseconds.
          let wait = Double((release - now).nanoseconds) / 1e6
          jitter += (abs(wait - former) - jitter) / 16
          former = wait
          if jitter >= 31 { driven.box.touched += 1 }
        }
        return [(bytes, release - now)]
      }
    }
    // Three seconds of audio packets.
    isTouched = { $0.box.touched >= 150 }
  }

  private mutating func prepareDeadPath() {
    let plan = plan
    words = "nothing either way for \(plan.length) ms"
    if chance.isOne(in: 3) {
      words += ", to the end"
      length = plan.from + plan.length
    }
    arrange = { driven in
      driven.box.treat = { _, _, _, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard milliseconds >= plan.from, milliseconds < plan.from + plan.length else { return nil }
        driven.box.touched += 1
        return []
      }
    }
    isTouched = { $0.box.touched >= 50 }
  }

  private mutating func prepareConsent() {
    let plan = plan
    words = "no checks for \(plan.length) ms"
    arrange = { driven in
      driven.box.treat = { _, content, _, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard content == .stun, milliseconds >= plan.from,
          milliseconds < plan.from + plan.length
        else { return nil }
        driven.box.touched += 1
        return []
      }
    }
    isTouched = { $0.box.touched >= 6 }
  }
}
