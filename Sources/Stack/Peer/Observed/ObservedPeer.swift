import Flow
package import Media
package import RTP
package import Stats
package import Wire

/// An endpoint of an observed call: processes the received packets as the endpoint would, and shows
/// as much of the sent media as the packets reveal.
///
/// It sends and requests nothing: a retransmission or key frame arrives only if the real receiver
/// requested it. The jitter buffers, decoders and statistics are those of `PeerStack`.
package struct ObservedPeer: Machine {
  package enum Input {
    /// A stream started, or more became known about its contents.
    case stream(ObservedTrack)
    /// The meaning of the streams' header extensions.
    case extensions(HeaderExtensionMap)
    /// A stream's packet, received or sent by this peer.
    case rtp(SeenPacket, stream: UInt32, isInbound: Bool)
    /// The decrypted packets of a compound, received or sent by this peer.
    case rtcp([RTCPPacket], isInbound: Bool)
    /// The endpoint counts a stream without its retransmissions.
    case countsMediaAlone
    case deadline
    /// The capture ended: emit the last stats sample.
    case end
  }

  package enum Output: Sendable {
    case event(PeerEvent)
    case stats(StatsReport)
  }

  /// The interval between stats samples, the same as for live peers.
  package static let statsInterval = Interval.seconds(1)

  /// The peer's number, which is part of its stats ids.
  let number: UInt32
  let wallClock: WallClock
  private(set) var inbound: InboundTracks
  private(set) var outbound: OutboundTracks
  private var speakers = SpeakerWatch()
  private var references = ReferenceTimes()
  private var samples = SampleSchedule()
  private var outputs = Outbox<ReceivingTrack.Output>()
  package private(set) var deadline: Instant?
  /// Whether the endpoint counts a stream without its retransmissions, as Firefox and aiortc do.
  private(set) var countsMediaAlone = false

  /// Creates a peer without streams.
  ///
  /// - Parameters:
  ///   - number: the peer's number.
  ///   - codecs: the codecs; nil if no media is decoded.
  ///   - furtherDecoders: pass-through codecs that are decoded here.
  ///   - playsG711: whether G.711 is played, and decoded even without `codecs`.
  ///   - countsEarlyRepeats: whether a retransmission sent without a request counts once it is
  ///     requested after all.
  ///   - followsRestarts: whether a stream restarts if its sequence numbers do, even if they step
  ///     back only a little.
  ///   - minimumDelay: the minimum delay of the jitter buffers.
  package init(
    number: UInt32, wallClock: WallClock, codecs: (any CodecFactory)?,
    furtherDecoders: [CodecName] = [], playsG711: Bool = false,
    countsEarlyRepeats: Bool = false, repairsFully: Bool = true, followsRestarts: Bool = true,
    minimumDelay: Interval = .zero
  ) {
    self.number = number
    self.wallClock = wallClock
    outbound = OutboundTracks(
      countsEarlyRepeats: countsEarlyRepeats, repairsFully: repairsFully)
    inbound = InboundTracks(
      codecs: codecs, furtherDecoders: furtherDecoders, playsG711: playsG711,
      repairsFully: repairsFully, followsRestarts: followsRestarts, minimumDelay: minimumDelay)
  }

  package mutating func step(
    _ input: consuming Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch consume input {
    case .stream(let track): learn(track, at: now, into: &outbox)
    case .extensions(let map):
      inbound.setExtensions(map)
      outbound.setExtensions(map)
    case .rtp(let packet, let stream, let isInbound):
      samples.recordPackets(at: now)
      if isInbound {
        play(inbound.receive(packet, stream, at: now), at: now, into: &outbox)
      } else {
        outbound.send(packet, stream)
      }
    case .rtcp(let packets, let isInbound):
      samples.recordPackets(at: now)
      receive(packets, isInbound: isInbound, at: now, into: &outbox)
    case .countsMediaAlone: countsMediaAlone = true
    case .deadline: reachDeadline(at: now, into: &outbox)
    case .end: outbox.append(.stats(report(at: now)))
    }
    deadline = earliest(samples.due, inbound.deadline)
  }

  private mutating func learn(
    _ track: ObservedTrack, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard track.isInbound else {
      if track.isNamedByUUID { countsMediaAlone = true }
      return outbound.learn(track)
    }
    play(inbound.learn(track, at: now), at: now, into: &outbox)
  }

  private mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<Output>) {
    for place in inbound.indices {
      if inbound.playDue(place, at: now, into: &outputs) { emit(at: now, into: &outbox) }
    }
    if samples.consumeDue(at: now) { outbox.append(.stats(report(at: now))) }
  }

  // MARK: Frames

  private mutating func play(
    _ completed: InboundTracks.Completed?, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let completed else { return }
    for frame in completed.frames {
      if inbound.play(frame, completed.place, at: now, into: &outputs) {
        emit(at: now, into: &outbox)
      } else {
        let number = inbound.all[completed.place].track.number
        outbox.append(.event(.frame(record(of: frame, number))))
      }
    }
  }

  /// Returns the record of a frame that is not played.
  private func record(of frame: ReceivedFrame, _ number: UInt32) -> FrameRecord {
    var record = FrameRecord(
      transceiver: number, kind: frame.kind, isInbound: true, codec: frame.codec,
      ssrc: frame.ssrc, rtpTime: frame.rtpTime, isKey: frame.isKey, width: 0, height: 0,
      bytes: frame.bytes, outcome: "not decoded", decoded: .none, quantiser: 0)
    record.audioLevel = frame.audioLevel
    record.isVoice = frame.isVoice
    return record
  }

  /// Emits events for the frames that a playout played or refused, and for the speech in them.
  private mutating func emit(at now: Instant, into outbox: inout Outbox<Output>) {
    while let output = outputs.next() {
      switch output {
      case .audio(_, let level, let record):
        let isKnown: Bool =
          if case .none = record.decoded { record.audioLevel != nil } else { true }
        outbox.append(.event(.frame(record)))
        guard isKnown else { continue }
        for event in speakers.observe(record, level: level, at: now) {
          outbox.append(.event(event))
        }
      case .videoFrame(_, _, let record), .undecodable(let record), .passed(_, let record):
        outbox.append(.event(.frame(record)))
      }
    }
  }

  // MARK: RTCP

  /// The maximum number of sender reports per datagram that synchronise playouts, and of reference
  /// time replies processed per report; real packets contain a few.
  private static let reportsMaximum = 32

  private mutating func receive(
    _ packets: [RTCPPacket], isInbound: Bool, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var reporters: Set<UInt32> = []
    var reports = 0
    for packet in packets {
      switch packet {
      case .senderReport(let report):
        reporters.insert(report.ssrc)
        if isInbound {
          reports += 1
          inbound.receive(report, aligns: reports <= ObservedPeer.reportsMaximum, at: now)
          receive(answers: report.blocks, at: now)
        } else {
          outbound.send(report, at: now)
          inbound.receive(report.blocks)
        }
      case .receiverReport(let report):
        if isInbound {
          receive(answers: report.blocks, at: now)
        } else {
          inbound.receive(report.blocks)
        }
      case .goodbye(let goodbye):
        if isInbound { inbound.end(goodbye.ssrcs) }
      case .genericNACK(let nack):
        if isInbound {
          outbound.receive(nack)
        } else {
          inbound.countNACK(nack.mediaSSRC)
        }
      case .pictureLoss(let loss):
        countKeyframeRequest(
          loss.mediaSSRC, isFIR: false, isInbound: isInbound, at: now, into: &outbox)
      case .fullIntraRequest(let request):
        for entry in request.entries {
          countKeyframeRequest(
            entry.ssrc, isFIR: true, isInbound: isInbound, at: now, into: &outbox)
        }
      case .extendedReport(let report):
        receive(report, reporters: reporters, isInbound: isInbound, at: now)
      case .transportFeedback(let feedback): if isInbound { outbound.receive(feedback) }
      case .maximumBitrate, .sourceDescription, .other: break
      }
    }
  }

  /// Applies the remote peer's report blocks about local streams.
  private mutating func receive(answers blocks: [ReportBlock], at now: Instant) {
    if let roundTrip = outbound.receive(blocks, at: now) {
      inbound.awaitRepairs(taking: roundTrip)
    }
  }

  private mutating func countKeyframeRequest(
    _ ssrc: UInt32, isFIR: Bool, isInbound: Bool, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    if isInbound {
      outbound.countKeyframeRequest(ssrc, isFIR: isFIR)
    } else {
      play(
        inbound.countKeyframeRequest(ssrc, isFIR: isFIR, at: now), at: now, into: &outbox)
    }
  }

  /// Handles a receiver's reference time, or a sender's reply to it.
  private mutating func receive(
    _ report: ExtendedReport, reporters: Set<UInt32>, isInbound: Bool, at now: Instant
  ) {
    guard isInbound else {
      if let time = report.receiverReferenceTime { references.send(time, at: now) }
      return
    }
    for answer in report.delays.prefix(ObservedPeer.reportsMaximum) {
      guard let length = references.roundTrip(answer, at: now) else { continue }
      inbound.receive(roundTrip: length, to: reporters.union([report.ssrc]))
      inbound.awaitRepairs(taking: length)
    }
  }
}

/// The reference times that an observed peer sent, and the round trips that the replies reveal:
/// from the capture point to the sender and back (RFC 3611 sections 4.4 and 4.5).
struct ReferenceTimes {
  /// The maximum number of stored times.
  private static let most = 16

  private var sent: [(compactNTP: UInt32, at: Instant)] = []

  mutating func send(_ time: UInt64, at now: Instant) {
    if sent.count >= ReferenceTimes.most { sent.removeFirst() }
    sent.append((UInt32(truncatingIfNeeded: time >> 16), now))
  }

  /// Returns a reply's round trip, or nil if its request was not seen.
  func roundTrip(_ answer: ExtendedReport.DelayBlock, at now: Instant) -> Interval? {
    guard answer.lastReport != 0,
      let asked = sent.last(where: { $0.compactNTP == answer.lastReport })
    else { return nil }
    // The delay is in units of 1/65536 s.
    let lay = Interval(
      nanoseconds: Int64((UInt64(answer.delaySinceLastReport) * 1_000_000_000) >> 16))
    return max((now - asked.at) - lay, .zero)
  }
}

/// Determines when an observed peer's stats are sampled: while packets arrive and shortly
/// afterwards.
struct SampleSchedule {
  /// The time without packets after which sampling stops.
  private static let silence = Interval.seconds(5)

  private var lastPacket: Instant?
  private(set) var due: Instant?

  mutating func recordPackets(at now: Instant) {
    lastPacket = now
    if due == nil { due = now + ObservedPeer.statsInterval }
  }

  /// Returns whether a sample is due; missed samples are skipped.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let due, due <= now else { return false }
    let isSilent = lastPacket.map { now - $0 > SampleSchedule.silence } ?? true
    let next = due + ObservedPeer.statsInterval
    self.due = isSilent ? nil : next > now ? next : now + ObservedPeer.statsInterval
    return true
  }
}
