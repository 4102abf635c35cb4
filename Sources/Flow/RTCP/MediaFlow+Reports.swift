import RTP
import Wire

/// The reference time of a receiver that waits for an answer (RFC 3611 section 4.4).
struct ReferenceTime {
  var ssrc: UInt32
  var compactNTP: UInt32
  var arrival: Instant
}

extension MediaFlow {
  /// A report that is due waits so long for a step that happens anyway.
  static let reportSlack = Interval.milliseconds(50)
  /// How many receivers' reference times are answered at once.
  private static let maximumReferenceTimes = 8

  /// The source that feedback comes from: the first one that is sent, else 1 as others do.
  var localSSRC: UInt32 { senders.first { $0.isActive }?.ssrc ?? 1 }

  /// Sets the time of the next report when none is set: reports stop when nothing is sent or
  /// received, and begin early, so that the peer soon knows this end (RFC 3550 section 6.2).
  mutating func scheduleReport(at now: Instant) {
    guard reportDue == nil else { return }
    let isFirst = reportCount == 0
    let random = Int64(entropy.integer(below: 1_000_000_000))
    let interval = Interval(nanoseconds: 500_000_000 + random)
    reportDue = now + (isFirst ? interval / 2 : interval)
  }

  /// Sends the reports of all streams in one compound packet (RFC 3550 section 6.1).
  mutating func report(at now: Instant, into outbox: inout Outbox<Output>) {
    reportDue = nil
    reportCount += 1
    var packets = reportPackets(at: now)
    if reportsBitrate {
      let ssrcs = receivers.filter { $0.kind == .video && !$0.hasEnded }.map(\.ssrc)
      if !ssrcs.isEmpty, let bitrate = incoming.estimate(at: now) {
        packets.append(
          .maximumBitrate(
            MaximumBitrate(senderSSRC: localSSRC, bitrate: bitrate, ssrcs: ssrcs)))
      }
    }
    put(packets, into: &outbox)
  }

  /// Sender reports, or a receiver report where nothing is sent; names; extended reports.
  private mutating func reportPackets(at now: Instant) -> [RTCPPacket] {
    var blocks: [ReportBlock] = []
    for index in receivers.indices where !receivers[index].hasEnded {
      blocks += receivers[index].reportBlocks(at: now)
    }
    if let worst = blocks.map(\.fractionLost).max() { incoming.receive(fractionLost: worst) }
    blocks = Array(blocks.prefix(31))
    var packets: [RTCPPacket] = []
    var chunks: [SourceDescription.Chunk] = []
    for index in senders.indices where senders[index].isActive && senders[index].sentSinceReport {
      guard var report = senders[index].report(at: now, wallClock: wallClock) else { continue }
      senders[index].sentSinceReport = false
      if packets.isEmpty { report.blocks = blocks }
      packets.append(.senderReport(report))
      chunks.append(.init(ssrc: report.ssrc, cname: cname))
    }
    let isReceiver = packets.isEmpty
    if isReceiver {
      packets.append(.receiverReport(ReceiverReport(ssrc: localSSRC, blocks: blocks)))
      chunks.append(.init(ssrc: localSSRC, cname: cname))
    }
    packets.append(.sourceDescription(SourceDescription(chunks: chunks)))
    // The peer's report blocks are about what is sent; who receives asks for its round trip
    // (RFC 3611 section 4.4).
    let receives = isReceiver || receivers.contains { !$0.hasEnded }
    var extended = ExtendedReport(
      ssrc: localSSRC, receiverReferenceTime: receives ? wallClock.ntp(at: now) : nil)
    for reference in referenceTimes {
      extended.delays.append(
        .init(
          ssrc: reference.ssrc, lastReport: reference.compactNTP,
          delaySinceLastReport: (now - reference.arrival).compactUnits))
    }
    referenceTimes.removeAll()
    if receives || !extended.delays.isEmpty { packets.append(.extendedReport(extended)) }
    return packets
  }

  /// Keeps a receiver's reference time until the next report answers it.
  mutating func keep(_ reference: ReferenceTime) {
    referenceTimes.removeAll { $0.ssrc == reference.ssrc }
    if referenceTimes.count == MediaFlow.maximumReferenceTimes { referenceTimes.removeFirst() }
    referenceTimes.append(reference)
  }

  /// Sends one feedback message: alone where that was agreed, else behind an empty report and a
  /// name (RFC 4585 section 3.1, RFC 5506).
  mutating func sendFeedback(_ packet: RTCPPacket, into outbox: inout Outbox<Output>) {
    guard !usesReducedSize else {
      put([packet], into: &outbox)
      return
    }
    let name = SourceDescription(chunks: [.init(ssrc: localSSRC, cname: cname)])
    put(
      [.receiverReport(ReceiverReport(ssrc: localSSRC)), .sourceDescription(name), packet],
      into: &outbox)
  }

  /// Says goodbye for all streams that were sent, and stops.
  mutating func close(at now: Instant, into outbox: inout Outbox<Output>) {
    isClosed = true
    guard isWritable else { return }
    var ssrcs: [UInt32] = []
    for sender in senders where sender.isActive {
      ssrcs.append(sender.ssrc)
      if let rtx = sender.rtxSSRC { ssrcs.append(rtx) }
    }
    guard !ssrcs.isEmpty else { return }
    var packets = reportPackets(at: now)
    packets.append(.goodbye(Goodbye(ssrcs: Array(ssrcs.prefix(31)))))
    put(packets, into: &outbox)
  }

  private func put(_ packets: [RTCPPacket], into outbox: inout Outbox<Output>) {
    var writer = ByteWriter(capacity: 512 + MediaFlow.reservedOverhead)
    for packet in packets {
      packet.write(into: &writer)
      outbox.append(.rtcpBlock(RTCPRecord(packet, isInbound: false)))
    }
    var bytes = writer.bytes
    writer = ByteWriter()
    bytes.reserveCapacity(bytes.count + MediaFlow.reservedOverhead)
    outbox.append(.rtcp(bytes))
  }
}
