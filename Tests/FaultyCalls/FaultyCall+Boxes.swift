import Lab
import Wire

// Faults of firewalls, NATs and middleboxes, other than loss and delay.
extension FaultyCall {
  /// Prepares a fault of a middlebox; returns false if the planned fault is of another kind.
  mutating func prepareBoxes() -> Bool {
    let plan = plan
    switch plan.kind {
    case .blockedOneWay:
      length = plan.from + plan.length
      words = "nothing passes one way from \(plan.from) ms on, to the end"
      treat { _, bytes, _ in [] }
      isTouched = { $0.box.touched >= 50 }
    case .addressChanges:
      setup.hidden = plan.culprit
      length = plan.from + plan.length
      words = "the NAT before it maps to another port from \(plan.from) ms on"
      arrange = { $0.at(plan.from) { $0.call.network.rebind(plan.culprit) } }
    case .largePacketsLost: prepareLargePackets()
    case .corruptPackets: prepareCorruption()
    case .shortOutages: prepareOutages()
    case .delayOneWay: prepareOneDelay()
    case .channelStaysClosed:
      setup.hasData = true
      setup.cameras = [false, false]
      length = chance.within(12_000...20_000)
      words = "no application data over DTLS from one end"
      arrange = { driven in
        driven.box.treat = { sender, content, bytes, _ in
          // Drops only application data. DTLS 1.2 handshakes use other record types (RFC 6347
          // section 4.1); DTLS 1.3 hides the type of every encrypted record.
          guard sender == plan.culprit, content == .dtls, bytes[0] == 23 || bytes[0] & 0xe0 == 0x20,
            bytes.count > 60
          else { return nil }
          driven.box.touched += 1
          return []
        }
      }
      isTouched = { $0.box.touched >= 2 }
    case .mediaClockJumps, .wallClockJumps: prepareJumps()
    default: return false
    }
    return true
  }

  /// Replaces the culprit's datagrams while the fault lasts; if `treat` returns nil, the datagram
  /// passes unchanged.
  private mutating func treat(
    _ treat: @escaping (Middlebox.Content, [UInt8], Instant) -> Middlebox.Pieces?
  ) {
    let plan = plan
    arrange = { driven in
      driven.box.treat = { sender, content, bytes, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard sender == plan.culprit, milliseconds >= plan.from,
          milliseconds < plan.from + plan.length, let pieces = treat(content, bytes, now)
        else { return nil }
        driven.box.touched += 1
        return pieces
      }
    }
  }

  /// Prepares a tunnel that silently drops large packets.
  private mutating func prepareLargePackets() {
    let most = plan.scaled(1_000, 500)
    // In half of the calls, the route changes back, which ends the fault.
    let ends = plan.seed % 2 == 0
    words = "nothing above \(most) bytes" + (ends ? " for \(plan.length) ms" : "")
    let plan = plan
    arrange = { driven in
      driven.box.treat = { sender, _, bytes, now in
        let milliseconds = Int(now.nanoseconds / 1_000_000)
        guard sender == plan.culprit, milliseconds >= plan.from, bytes.count > most,
          !ends || milliseconds < plan.from + plan.length
        else { return nil }
        driven.box.touched += 1
        return []
      }
    }
    isTouched = { $0.box.touched >= 20 }
  }

  private mutating func prepareCorruption() {
    let chance = chance
    let share = plan.scaled(40, 400)
    words = "\(share / 10) % of the packets with a wrong bit"
    treat { content, bytes, _ in
      guard [.audio, .video, .repair].contains(content), bytes.count > 24,
        chance.happens(perMille: share)
      else { return nil }
      var bytes = bytes
      bytes[chance.within(20...(bytes.count - 1))] ^= UInt8(1 << chance.below(8))
      return [(bytes, .zero)]
    }
    isTouched = { $0.box.touched >= 20 }
  }

  /// Prepares short outages that recur, as if a radio left its channel for a moment.
  private mutating func prepareOutages() {
    let chance = chance
    let length = plan.scaled(120, 320)
    let pause = chance.within(1_200...2_600)
    words = "nothing for \(length) ms of each \(pause) ms"
    let plan = plan
    treat { _, _, now in
      let passed = Int(now.nanoseconds / 1_000_000) - plan.from
      return passed % pause < length ? [] : nil
    }
    isTouched = { $0.box.touched >= 20 }
  }

  private mutating func prepareOneDelay() {
    let delay = plan.scaled(340, 700)
    let isWhole = chance.isOne(in: 2)
    words = "\(delay) ms one way" + (isWhole ? "" : " from \(plan.from) ms on")
    let plan = plan
    if isWhole {
      setup.links[plan.culprit].delay = .milliseconds(Int64(delay))
    } else {
      arrange = {
        $0.at(plan.from) {
          $0.call.network.links[plan.culprit].delay = .milliseconds(Int64(delay))
        }
      }
    }
  }

  /// Returns where sender reports start in a compound packet.
  private static func reports(_ compound: [UInt8]) -> [Int] {
    var places: [Int] = []
    var place = 0
    while place + 4 <= compound.count {
      if compound[place + 1] == 200 { places.append(place) }
      place += (Int(compound[place + 2]) << 8 | Int(compound[place + 3])) * 4 + 4
    }
    return places
  }

  /// Prepares clock changes during the call: the audio clock, or the sender reports' clock.
  private mutating func prepareJumps() {
    let (plan, isBack) = (plan, chance.isOne(in: 2))
    let jump = plan.scaled(4_000, 30_000)
    words = "\(jump) ms \(isBack ? "back" : "ahead")"
    let isMedia = plan.kind == .mediaClockJumps
    arrange = { driven in
      driven.box.rewrite(plan.culprit) { content, packet, now in
        guard content == (isMedia ? .audio : .rtcp),
          Int(now.nanoseconds / 1_000_000) >= plan.from
        else { return true }
        // The RTP timestamp (RFC 3550 section 5.1), or the NTP seconds (section 6.4.1).
        for place in isMedia ? [4] : FaultyCall.reports(packet).map({ $0 + 8 })
        where packet.count >= place + 4 {
          let step = UInt32(isMedia ? jump * 48 : jump / 1_000)
          let time = packet[place..<(place + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
          let other = isBack ? time &- step : time &+ step
          for index in 0..<4 {
            packet[place + index] = UInt8(other >> UInt32(24 - 8 * index) & 255)
          }
          driven.box.touched += 1
        }
        return true
      }
    }
    isTouched = { $0.box.touched >= (isMedia ? 50 : 2) }
  }
}
