import RTP
import Wire

extension MediaFlow {
  /// The peer's demands for key frames are passed on at most so often.
  private static let keyframeSpacing = Interval.milliseconds(300)
  /// A round trip this long is not believed.
  private static let longestRoundTrip = Interval.seconds(30)

  mutating func receiveRTCP(
    _ bytes: [UInt8], arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    let compound = RTCPCompound(parsing: bytes.span.bytes)
    if compound.malformedCount > 0 { refused.malformed += 1 }
    // The senders that report in one compound are one peer, so an answer for one is for all.
    var senders: [UInt32] = []
    for packet in compound.packets {
      outbox.append(.rtcpBlock(RTCPRecord(packet, isInbound: true)))
      if case .senderReport(let report) = packet { senders.append(report.ssrc) }
      if case .extendedReport(let report) = packet {
        receive(report, senders: senders, arrival: arrival)
      } else {
        receive(packet, arrival: arrival, at: now, into: &outbox)
      }
    }
  }

  private mutating func receive(
    _ packet: RTCPPacket, arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch packet {
    case .senderReport(let report):
      if let index = receivers.firstIndex(where: { $0.ssrc == report.ssrc }) {
        receivers[index].receive(report, at: arrival)
      }
      receive(report.blocks, arrival: arrival, at: now, into: &outbox)
    case .receiverReport(let report):
      receive(report.blocks, arrival: arrival, at: now, into: &outbox)
    case .goodbye(let goodbye): end(goodbye.ssrcs, into: &outbox)
    case .genericNACK(let nack): resend(nack, at: now)
    case .pictureLoss(let loss):
      demandKeyframe(of: loss.mediaSSRC, number: nil, at: now, into: &outbox)
    case .fullIntraRequest(let request):
      for entry in request.entries {
        demandKeyframe(of: entry.ssrc, number: entry.number, at: now, into: &outbox)
      }
    case .maximumBitrate(let limit):
      congestion.receive(maximumBitrate: limit.bitrate, at: now)
    case .transportFeedback(let feedback): congestion.receive(feedback, at: now)
    case .extendedReport, .sourceDescription, .other: break
    }
  }

  private mutating func receive(
    _ blocks: [ReportBlock], arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    for block in blocks {
      guard
        let index = senders.firstIndex(where: {
          $0.ssrc == block.ssrc || $0.rtxSSRC == block.ssrc
        })
      else { continue }
      let measured = roundTrip(
        lastReport: block.lastSenderReport, delay: block.delaySinceLastSenderReport,
        arrival: arrival)
      if let measured { roundTrip = measured }
      senders[index].receive(block, roundTrip: measured, at: arrival)
      guard block.ssrc == senders[index].ssrc else { continue }
      outbox.append(.lossReported(mid: senders[index].mid, block.fractionLost))
      if senders[index].kind == .video {
        congestion.receive(fractionLost: block.fractionLost, at: now)
      }
    }
  }

  /// The time from a report to its answer without the time it lay at the peer (RFC 3550 section
  /// 6.4.1); nil when nothing was answered, or when the answer cannot be true.
  private func roundTrip(lastReport: UInt32, delay: UInt32, arrival: Instant) -> Interval? {
    guard lastReport != 0 else { return nil }
    let units = wallClock.compactNTP(at: arrival) &- lastReport &- delay
    // Rounding may give slightly less than nothing.
    if Int32(bitPattern: units) <= 0, Int32(bitPattern: units) > -65 {
      return Interval(compactUnits: 1)
    }
    let length = Interval(compactUnits: units)
    return length < MediaFlow.longestRoundTrip ? length : nil
  }

  private mutating func receive(
    _ report: ExtendedReport, senders: [UInt32], arrival: Instant
  ) {
    if let time = report.receiverReferenceTime {
      keep(
        ReferenceTime(
          ssrc: report.ssrc, compactNTP: UInt32(truncatingIfNeeded: time >> 16),
          arrival: arrival))
    }
    for delay in report.delays where delay.ssrc == localSSRC {
      guard
        let measured = roundTrip(
          lastReport: delay.lastReport, delay: delay.delaySinceLastReport, arrival: arrival)
      else { continue }
      roundTrip = measured
      for index in receivers.indices
      where receivers[index].ssrc == report.ssrc || senders.contains(receivers[index].ssrc) {
        receivers[index].receive(roundTrip: measured)
      }
    }
  }

  private mutating func end(_ ssrcs: [UInt32], into outbox: inout Outbox<Output>) {
    for index in receivers.indices
    where !receivers[index].hasEnded && ssrcs.contains(receivers[index].ssrc) {
      receivers[index].end()
      outbox.append(.streamEnded(mid: receivers[index].mid, ssrc: receivers[index].ssrc))
    }
  }

  /// Queues the packets that the peer misses; one is sent again at most once per round trip.
  private mutating func resend(_ nack: GenericNACK, at now: Instant) {
    guard let index = senders.firstIndex(where: { $0.ssrc == nack.mediaSSRC && $0.isActive })
    else { return }
    senders[index].countNACK()
    guard isWritable, senders[index].codec.feedback.contains("nack") else { return }
    let spacing = min(max(roundTrip ?? .milliseconds(20), .milliseconds(5)), .milliseconds(500))
    for sequence in nack.sequences
    where senders[index].mayResend(sequence, at: now, spacing: spacing) {
      guard pacer.resend(sequence, ssrc: nack.mediaSSRC, at: now) else { return }
    }
  }

  private mutating func demandKeyframe(
    of ssrc: UInt32, number: UInt8?, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let index = senders.firstIndex(where: { $0.ssrc == ssrc && $0.kind == .video })
    else { return }
    if let number {
      // The same number is the same demand, repeated in case it was lost.
      guard senders[index].lastDemand != number else { return }
      senders[index].lastDemand = number
    }
    senders[index].countKeyframeRequest(isFIR: number != nil)
    if let last = senders[index].keyframeRequestedAt, now - last < MediaFlow.keyframeSpacing {
      return
    }
    senders[index].keyframeRequestedAt = now
    outbox.append(.keyframeRequested(mid: senders[index].mid))
  }
}
