import RTP
import Wire

extension MediaFlow {
  /// The target bit rate is told anew at most so often.
  private static let targetSpacing = Interval.milliseconds(150)

  /// Sends a frame's packets: sound at once, pictures at the pacer's rate.
  mutating func send(
    _ frame: EncodedFrame, mid: String, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let index = senders.firstIndex(where: { $0.mid == mid && $0.isActive }),
      !frame.bytes.isEmpty
    else { return }
    guard isWritable, senders[index].codec.name == frame.codec else {
      senders[index].discardFrame()
      return
    }
    scheduleReport(at: now)
    let ssrc = senders[index].ssrc
    let parts = senders[index].split(frame, at: now)
    if senders[index].kind == .audio {
      for part in parts { _ = transmit(part, from: index, at: now, into: &outbox) }
    } else {
      for part in parts { pacer.append(part, ssrc: ssrc, at: now) }
    }
  }

  /// Sends what the pacer lets go.
  mutating func sendPaced(at now: Instant, into outbox: inout Outbox<Output>) {
    while let item = pacer.next(at: now) {
      var length = 0
      switch item {
      case .part(let ssrc, let part):
        guard let index = senders.firstIndex(where: { $0.ssrc == ssrc && $0.isActive })
        else { continue }
        length = transmit(part, from: index, at: now, into: &outbox)
        resendBudget.earn(bytes: length)
      case .resend(let ssrc, let sequence):
        guard let index = senders.firstIndex(where: { $0.ssrc == ssrc && $0.isActive })
        else { continue }
        length = retransmit(sequence, from: index, at: now, into: &outbox)
      }
      pacer.sent(bytes: length, at: now, targetBitrate: congestion.target)
    }
  }

  private mutating func transmit(
    _ part: PayloadPart, from index: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Int {
    let packet = senders[index].packet(
      for: part, transportSequence: UInt16(truncatingIfNeeded: transportSequence),
      sendTime: sendTime(now), at: now)
    return put(packet, isNumbered: senders[index].carriesTransportSequence, at: now, into: &outbox)
  }

  private mutating func retransmit(
    _ sequence: UInt16, from index: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Int {
    guard resendBudget.mayResend(at: now, targetBitrate: congestion.target),
      let (packet, isRepeated) = senders[index].retransmission(
        of: sequence, transportSequence: UInt16(truncatingIfNeeded: transportSequence),
        sendTime: sendTime(now))
    else { return 0 }
    resendBudget.spend(bytes: packet.count, at: now)
    let isNumbered = senders[index].carriesTransportSequence && !isRepeated
    return put(packet, isNumbered: isNumbered, at: now, into: &outbox)
  }

  private mutating func put(
    _ packet: [UInt8], isNumbered: Bool, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Int {
    if isNumbered {
      congestion.packetSent(transportSequence, bytes: packet.count, at: now)
      transportSequence += 1
    }
    let length = packet.count
    outbox.append(.rtp(packet))
    return length
  }

  /// The moment as abs-send-time carries it: seconds as a 6.18 fixed point number.
  private func sendTime(_ now: Instant) -> UInt32 {
    UInt32(truncatingIfNeeded: wallClock.ntp(at: now) >> 14) & 0xff_ffff
  }

  /// What is left for encoders when the retransmissions of late go on, in bits per second.
  private func encoderTarget(at now: Instant) -> UInt64 {
    let total = Double(congestion.target)
    let rest = max(total - resendBudget.rate(at: now), total / 2)
    return UInt64(max(rest, min(total, AdaptiveBitrate.minimum)))
  }

  /// Tells a target that changed by more than a twentieth, or reached its bounds.
  mutating func announceTarget(at now: Instant, into outbox: inout Outbox<Output>) {
    guard senders.indices.contains(where: { senders[$0].kind == .video && senders[$0].isActive })
    else { return }
    let target = encoderTarget(at: now)
    if let announcedTarget {
      let change = max(target, announcedTarget.bitrate) - min(target, announcedTarget.bitrate)
      let isBound = congestion.isBound && target == congestion.target && change > 0
      guard change * 20 > announcedTarget.bitrate || isBound,
        now - announcedTarget.at >= MediaFlow.targetSpacing
      else { return }
    }
    announcedTarget = (target, now)
    outbox.append(.targetBitrate(target))
  }
}
