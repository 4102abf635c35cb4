import Flow
package import Media
package import RTP
package import Stats
package import Wire

/// An end of somebody else's call: what it receives, driven as an endpoint's streams are, and what
/// the wire shows of what it sends.
///
/// Nothing is sent, and nothing is asked for: the packets that the real receiver asked for come, or
/// they do not. Jitter buffers, decoders and statistics are those of `PeerStack`.
package struct ObservedPeer: Machine {
  package enum Input {
    /// A stream began, or more is known of what it carries.
    case stream(ObservedTrack)
    /// What the header extensions of the streams mean.
    case extensions(HeaderExtensionMap)
    /// A packet of the stream with a number, to this peer or from it.
    case rtp(SeenPacket, stream: UInt32, isInbound: Bool)
    /// The packets of a compound in the clear, to this peer or from it.
    case rtcp([RTCPPacket], isInbound: Bool)
    case deadline
    /// The capture is over: a last sample of the stats is told.
    case end
  }

  package enum Output: Sendable {
    case event(PeerEvent)
    /// A sample of the stats.
    case stats(StatsReport)
  }

  /// How far samples of the stats lie apart, as those of a recorder's own peers.
  package static let statsInterval = Interval.seconds(1)
  /// After so long without packets there is nothing to sample.
  private static let silence = Interval.seconds(5)
  /// How many streams have playouts, and how many of those decoders; more are counted alone.
  private static let playoutsMaximum = 256
  private static let decodersMaximum = 64
  /// How many reference times of extended reports are remembered.
  private static let referencesMaximum = 16

  /// The number of the peer, which its stats are named after.
  let number: UInt32
  let wallClock: WallClock
  private let codecs: any CodecFactory
  private let silentCodecs = UndecodedCodecs()
  private let decodes: Bool
  private let furtherDecoders: [CodecName]

  private(set) var inbound: [InboundTrack] = []
  private(set) var outbound: [OutboundTrack] = []
  /// The places by number; a stream that goes on in another transport may turn round.
  private var inboundPlaces: [UInt32: Int] = [:]
  private var outboundPlaces: [UInt32: Int] = [:]
  private var speakers = SpeakerWatch()
  private var extensions = HeaderExtensionMap()
  /// The reference times that this peer told, and when (RFC 3611 section 4.4).
  private var references: [(compactNTP: UInt32, at: Instant)] = []
  private var lastPacket: Instant?
  private var nextSample: Instant?
  private var outputs = Outbox<ReceivingTrack.Output>()
  package private(set) var deadline: Instant?

  /// - Parameters:
  ///   - number: the peer's.
  ///   - codecs: nil where nothing is decoded.
  ///   - furtherDecoders: the codecs that are decoded among those passed through otherwise.
  package init(
    number: UInt32, wallClock: WallClock, codecs: (any CodecFactory)?,
    furtherDecoders: [CodecName] = []
  ) {
    self.number = number
    self.furtherDecoders = furtherDecoders
    self.wallClock = wallClock
    self.codecs = codecs ?? silentCodecs
    decodes = codecs != nil
  }

  package mutating func step(
    _ input: consuming Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch consume input {
    case .stream(let track): learn(track, at: now, into: &outbox)
    case .extensions(let map):
      extensions = map
      for index in inbound.indices { inbound[index].extensions = map }
    case .rtp(let packet, let stream, let isInbound):
      note(now)
      if isInbound {
        receive(packet, stream, at: now, into: &outbox)
      } else {
        send(packet, stream)
      }
    case .rtcp(let packets, let isInbound):
      note(now)
      receive(packets, isInbound: isInbound, at: now)
    case .deadline: reachDeadline(at: now, into: &outbox)
    case .end: outbox.append(.stats(report(at: now)))
    }
    deadline = nextSample
    // By index, because a track that is taken out of its array is a copy of many parts.
    for index in inbound.indices { deadline = earliest(deadline, inbound[index].deadline) }
  }

  private mutating func note(_ now: Instant) {
    lastPacket = now
    if nextSample == nil { nextSample = now + ObservedPeer.statsInterval }
  }

  private mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<Output>) {
    for index in inbound.indices {
      play(inbound[index].reachDeadline(at: now), index, at: now, into: &outbox)
      guard let due = inbound[index].playout?.deadline, due <= now else { continue }
      inbound[index].playout?.step(.deadline, at: now, into: &outputs)
      tell(at: now, into: &outbox)
    }
    guard let due = nextSample, due <= now else { return }
    outbox.append(.stats(report(at: now)))
    let isSilent = lastPacket.map { now - $0 > ObservedPeer.silence } ?? true
    let next = due + ObservedPeer.statsInterval
    nextSample = isSilent ? nil : next > now ? next : now + ObservedPeer.statsInterval
  }

  // MARK: Streams

  private mutating func learn(
    _ track: ObservedTrack, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard track.isInbound else {
      if let place = outboundPlaces[track.number] { return outbound[place].learn(track) }
      outboundPlaces[track.number] = outbound.count
      outbound.append(OutboundTrack(track))
      return
    }
    if let place = inboundPlaces[track.number] {
      return play(inbound[place].learn(track, at: now), place, at: now, into: &outbox)
    }
    inboundPlaces[track.number] = inbound.count
    let mayDecode = decodes && inbound.count < ObservedPeer.decodersMaximum
    var begun = InboundTrack(
      track, codecs: mayDecode ? codecs : silentCodecs, decodes: mayDecode,
      furtherDecoders: furtherDecoders)
    begun.extensions = extensions
    inbound.append(begun)
  }

  private mutating func receive(
    _ packet: SeenPacket, _ stream: UInt32, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let place = inboundPlaces[stream] else { return }
    guard let repaired = inbound[place].track.repairs else {
      let frames = inbound[place].receive(packet, arrival: now, at: now)
      return play(frames, place, at: now, into: &outbox)
    }
    guard let index = inbound.firstIndex(where: { $0.track.ssrc == repaired }) else { return }
    let type = inbound[place].track.repeatedTypes[packet.header.payloadType]
    let frames = inbound[index].receiveRepair(packet, of: type, arrival: now, at: now)
    play(frames, index, at: now, into: &outbox)
  }

  private mutating func send(_ packet: SeenPacket, _ stream: UInt32) {
    guard let place = outboundPlaces[stream] else { return }
    guard let repaired = outbound[place].track.repairs else {
      return outbound[place].send(packet.header, isRetransmission: false)
    }
    guard let index = outbound.firstIndex(where: { $0.track.ssrc == repaired }) else { return }
    outbound[index].send(packet.header, isRetransmission: true)
  }

  // MARK: Frames

  private mutating func play(
    _ frames: [ReceivedFrame], _ index: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    for frame in frames {
      if inbound[index].isPlayed(frame), index < ObservedPeer.playoutsMaximum {
        inbound[index].play(frame, at: now, into: &outputs)
        tell(at: now, into: &outbox)
      } else {
        outbox.append(.event(.frame(record(of: frame, inbound[index].track.number))))
      }
    }
  }

  /// What is told of a frame that has no playout.
  private func record(of frame: ReceivedFrame, _ number: UInt32) -> FrameRecord {
    var record = FrameRecord(
      transceiver: number, kind: frame.kind, isInbound: true, codec: frame.codec,
      ssrc: frame.ssrc, rtpTime: frame.rtpTime, isKey: frame.isKey, width: 0, height: 0,
      bytes: frame.bytes, outcome: "not decoded", decoded: .none, quantiser: 0)
    record.audioLevel = frame.audioLevel
    record.isVoice = frame.isVoice
    return record
  }

  /// Tells what a playout gave.
  private mutating func tell(at now: Instant, into outbox: inout Outbox<Output>) {
    while let output = outputs.next() {
      switch output {
      case .audio(_, let level, let record):
        let isKnown: Bool =
          if case .none = record.decoded { record.audioLevel != nil } else { true }
        outbox.append(.event(.frame(record)))
        guard isKnown else { continue }
        for event in speakers.hear(record, level: level, at: now) { outbox.append(.event(event)) }
      case .videoFrame(_, _, let record), .undecodable(let record), .passed(_, let record):
        outbox.append(.event(.frame(record)))
      }
    }
  }

  // MARK: RTCP

  private mutating func receive(_ packets: [RTCPPacket], isInbound: Bool, at now: Instant) {
    var senders: [UInt32] = []
    for packet in packets {
      switch packet {
      case .senderReport(let report):
        senders.append(report.ssrc)
        receive(report, isInbound: isInbound, at: now)
        receive(report.blocks, isInbound: isInbound, at: now)
      case .receiverReport(let report): receive(report.blocks, isInbound: isInbound, at: now)
      case .goodbye(let goodbye):
        guard isInbound else { continue }
        for index in inbound.indices where goodbye.ssrcs.contains(inbound[index].track.ssrc) {
          inbound[index].end()
        }
      case .genericNACK(let nack):
        if isInbound, let index = outboundIndex(nack.mediaSSRC) {
          outbound[index].countNACK()
        } else if !isInbound, let index = inboundIndex(nack.mediaSSRC) {
          inbound[index].countNACK()
        }
      case .pictureLoss(let loss):
        countKeyframeRequest(loss.mediaSSRC, isFIR: false, isInbound: isInbound)
      case .fullIntraRequest(let request):
        for entry in request.entries {
          countKeyframeRequest(entry.ssrc, isFIR: true, isInbound: isInbound)
        }
      case .extendedReport(let report):
        receive(report, senders: senders, isInbound: isInbound, at: now)
      case .maximumBitrate, .transportFeedback, .sourceDescription, .other: break
      }
    }
  }

  private mutating func receive(_ report: SenderReport, isInbound: Bool, at now: Instant) {
    guard isInbound else {
      if let index = outboundIndex(report.ssrc) { outbound[index].report(report, at: now) }
      return
    }
    guard let index = inboundIndex(report.ssrc) else { return }
    inbound[index].receive(report, at: now)
    alignPlayouts()
  }

  private mutating func receive(_ blocks: [ReportBlock], isInbound: Bool, at now: Instant) {
    guard isInbound else { return }
    for block in blocks {
      if let index = outboundIndex(block.ssrc) { outbound[index].receive(block, at: now) }
    }
  }

  private mutating func countKeyframeRequest(_ ssrc: UInt32, isFIR: Bool, isInbound: Bool) {
    if isInbound, let index = outboundIndex(ssrc) {
      outbound[index].countKeyframeRequest(isFIR: isFIR)
    } else if !isInbound, let index = inboundIndex(ssrc) {
      inbound[index].countKeyframeRequest(isFIR: isFIR)
    }
  }

  /// A receiver's reference time and the answer to it: the round trip from the place of the capture
  /// to the sender and back (RFC 3611 sections 4.4 and 4.5).
  private mutating func receive(
    _ report: ExtendedReport, senders: [UInt32], isInbound: Bool, at now: Instant
  ) {
    guard isInbound else {
      guard let time = report.receiverReferenceTime else { return }
      if references.count >= ObservedPeer.referencesMaximum { references.removeFirst() }
      references.append((UInt32(truncatingIfNeeded: time >> 16), now))
      return
    }
    for delay in report.delays where delay.lastReport != 0 {
      guard let asked = references.last(where: { $0.compactNTP == delay.lastReport }) else {
        continue
      }
      // In units of 1/65536 s.
      let lay = Interval(
        nanoseconds: Int64((UInt64(delay.delaySinceLastReport) * 1_000_000_000) >> 16))
      let length = max((now - asked.at) - lay, .zero)
      for index in inbound.indices
      where inbound[index].track.ssrc == report.ssrc
        || senders.contains(inbound[index].track.ssrc)
      {
        inbound[index].receive(roundTrip: length)
      }
    }
  }

  private func inboundIndex(_ ssrc: UInt32) -> Int? {
    inbound.lastIndex { $0.track.ssrc == ssrc }
  }

  private func outboundIndex(_ ssrc: UInt32) -> Int? {
    outbound.lastIndex { $0.track.ssrc == ssrc }
  }

  /// Lets audio and video of one end wait for the slower of them, as endpoints do.
  private mutating func alignPlayouts() {
    let played = inbound.indices.filter { inbound[$0].playout != nil }
    var tracks = played.compactMap { inbound[$0].playout }
    let names = played.map { (inbound[$0].track.number, inbound[$0].track.canonicalName) }
    tracks.alignPlayouts(played.compactMap { inbound[$0].counters }) { number in
      names.first { $0.0 == number }?.1.map { [$0] } ?? []
    }
    for (place, track) in zip(played, tracks) { inbound[place].playout = track }
  }
}
