import RTP
import Wire

/// The streams received on a transport, and the SSRCs assigned to them (RFC 9143 section 9.2).
struct ReceiveStreams {
  typealias Output = MediaFlow.Output

  /// An SSRC assigned to a stream.
  struct Route {
    let ssrc: UInt32
    /// The stream's media SSRC.
    let stream: UInt32
    let isRetransmission: Bool
  }

  /// The index of a packet's stream, and whether the packet is RTX.
  struct Place {
    let index: Int
    let isRetransmission: Bool
  }

  /// The maximum number of SSRCs assigned to streams; more are refused.
  static let routesMaximum = 128
  /// The maximum number of simulcast layers received in a section; more are refused.
  static let layersMaximum = 4
  private static let earlyProbesMaximum = 64
  /// The maximum number of packets in a NACK.
  private static let requestedMaximum = 200

  /// A packet's header extensions that identify its stream.
  struct Name {
    var mid: ArraySlice<UInt8>?
    /// The layer (RFC 8852 section 3.1).
    var rid: ArraySlice<UInt8>?
    /// The layer that a retransmission repairs (RFC 8852 section 3.2).
    var repairedRID: ArraySlice<UInt8>?
  }

  private(set) var all: [ReceiveStream] = []
  private(set) var routes: [Route] = []
  /// Padding from announced sources whose stream has not started yet.
  private var earlyProbes: [(header: RTPHeader, arrival: Instant, ecn: ECNMark?)] = []

  var isReceiving: Bool { all.indices.contains { !all[$0].hasEnded } }

  /// When missing packets are next requested or given up.
  var deadline: Instant? {
    var deadline: Instant?
    // The loop uses indices, because iterating over the elements would copy each stream.
    for index in all.indices where !all[index].hasEnded {
      deadline = earliest(deadline, all[index].videoFrames.missing.due)
    }
    return deadline
  }

  /// SSRCs of the video streams, for REMB.
  var videoSSRCs: [UInt32] {
    all.indices.filter { all[$0].kind == .video && !all[$0].hasEnded }.map { all[$0].ssrc }
  }

  /// Applies a negotiation; streams of removed sections end.
  mutating func configure(_ agreement: FlowAgreement, into outbox: inout Outbox<Output>) {
    for index in all.indices.reversed() {
      if let section = agreement.section(all[index].mid) {
        // An RTX SSRC that is announced late replaces one that was only guessed.
        guard let receiving = section.section.receiving,
          let place = receiving.ssrcs.firstIndex(of: all[index].ssrc),
          place < receiving.rtxSSRCs.count, let rtx = receiving.rtxSSRCs[place]
        else { continue }
        all[index].learn(rtxSSRC: rtx)
      } else {
        if !all[index].hasEnded { reportEnd(index, into: &outbox) }
        remove(index)
      }
    }
  }

  private func reportEnd(_ index: Int, into outbox: inout Outbox<Output>) {
    outbox.append(.streamEnded(mid: all[index].mid, ssrc: all[index].ssrc))
  }

  private mutating func remove(_ index: Int) {
    let ssrc = all[index].ssrc
    routes.removeAll { $0.stream == ssrc }
    all.remove(at: index)
  }

  // MARK: - Routing

  /// Finds a packet's stream: by MID, by a known or announced SSRC, or by payload type; nil if
  /// there is none.
  ///
  /// The first packet of a stream starts it.
  mutating func route(
    _ header: RTPHeader, _ name: Name, _ agreement: FlowAgreement, at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> Place? {
    let mid = name.mid
    if let route = routes.first(where: { $0.ssrc == header.ssrc }),
      let index = all.firstIndex(where: { $0.ssrc == route.stream }),
      mid == nil || mid?.elementsEqual(all[index].mid.utf8) == true
    {
      let place = Place(index: index, isRetransmission: route.isRetransmission)
      guard all[index].hasEnded else { return place }
      return revive(place, header, at: now, into: &outbox) ? place : nil
    }
    // Padding alone does not identify a stream.
    guard !header.payload.isEmpty, routes.count < Self.routesMaximum,
      let section = agreement.section(of: header, mid: mid),
      let receiving = section.section.receiving
    else { return nil }
    switch section.payload(header.payloadType) {
    case .media:
      let place = receiving.ssrcs.firstIndex(of: header.ssrc)
      let rtx = place.flatMap { $0 < receiving.rtxSSRCs.count ? receiving.rtxSSRCs[$0] : nil }
      let rid = name.rid.map { String(decoding: $0, as: UTF8.self) }
      guard layers(of: section.mid, beside: rid).count < Self.layersMaximum else { return nil }
      begin(header.ssrc, rtxSSRC: rtx, rid: rid, in: section, at: now, into: &outbox)
      return learn(header.ssrc, all.count - 1, isRetransmission: false)
    case .retransmission:
      let place = receiving.rtxSSRCs.firstIndex { $0 == header.ssrc }
      let announced = place.flatMap { $0 < receiving.ssrcs.count ? receiving.ssrcs[$0] : nil }
      guard
        let index = all.lastIndex(where: {
          $0.mid == section.mid && !$0.hasEnded && (announced == nil || $0.ssrc == announced)
            && $0.isRepaired(by: name.repairedRID)
        })
      else { return nil }
      all[index].learn(rtxSSRC: header.ssrc)
      return learn(header.ssrc, index, isRetransmission: true)
    case nil: return nil
    }
  }

  /// Returns the other layers of a section that are being received.
  private func layers(of mid: String, beside rid: String?) -> [Int] {
    all.indices.filter {
      all[$0].mid == mid && !all[$0].hasEnded && all[$0].isLayer(beside: rid)
    }
  }

  /// Starts a stream, replacing the section's or layer's previous one.
  private mutating func begin(
    _ ssrc: UInt32, rtxSSRC: UInt32?, rid: String?, in section: SectionState, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    routes.removeAll { $0.stream == ssrc || $0.ssrc == ssrc }
    for index in all.indices.reversed()
    where all[index].mid == section.mid && !all[index].isLayer(beside: rid)
      || all[index].ssrc == ssrc
    {
      let wasReplaced = all[index].isReplaced
      if !all[index].hasEnded {
        reportEnd(index, into: &outbox)
        all[index].end()
      }
      all[index].replace()
      // Only the last replaced stream is kept, for late packets.
      if all[index].ssrc == ssrc || wasReplaced { remove(index) }
    }
    all.append(
      ReceiveStream(
        mid: section.mid, rid: rid, kind: section.kind, ssrc: ssrc, rtxSSRC: rtxSSRC, at: now))
    countEarlyProbes(all.count - 1)
    outbox.append(.streamBegan(mid: section.mid, ssrc: ssrc))
  }

  private mutating func learn(_ ssrc: UInt32, _ index: Int, isRetransmission: Bool) -> Place {
    let stream = all[index].ssrc
    routes.removeAll {
      $0.ssrc == ssrc || isRetransmission && $0.isRetransmission && $0.stream == stream
    }
    routes.append(Route(ssrc: ssrc, stream: stream, isRetransmission: isRetransmission))
    return Place(index: index, isRetransmission: isRetransmission)
  }

  /// Restarts a stream that ended by BYE or was replaced; returns false if the packet is only late,
  /// a retransmission, or padding.
  private mutating func revive(
    _ place: Place, _ header: RTPHeader, at now: Instant, into outbox: inout Outbox<Output>
  ) -> Bool {
    guard !place.isRetransmission, !header.payload.isEmpty else { return false }
    let mid = all[place.index].mid
    let rid = all[place.index].rid
    if let current = all.firstIndex(where: {
      $0.mid == mid && !$0.hasEnded && !$0.isLayer(beside: rid)
    }) {
      let last = all[current].counters.lastPacketReceived ?? now
      guard now - last >= .seconds(1) else { return false }
      reportEnd(current, into: &outbox)
      all[current].end()
      all[current].replace()
    }
    all[place.index].resume()
    outbox.append(.streamBegan(mid: mid, ssrc: all[place.index].ssrc))
    return true
  }

  // MARK: - Packets

  /// Handles a packet with a negotiated payload type.
  mutating func receive(
    _ packet: ReceiveStream.Packet, _ place: Place, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    if place.isRetransmission {
      all[place.index].receiveRetransmission(packet, at: now, into: &outbox)
    } else {
      all[place.index].receive(packet, at: now, into: &outbox)
    }
  }

  mutating func count(_ ecn: ECNMark?, _ place: Place) { all[place.index].count(ecn) }

  /// Counts padding that probes the path on an announced RTX SSRC, even before the stream's first
  /// packet, as libwebrtc does.
  mutating func countProbe(
    _ header: RTPHeader, arrival: Instant, ecn: ECNMark?, _ agreement: FlowAgreement
  ) {
    if let index = all.firstIndex(where: { $0.rtxSSRC == header.ssrc && !$0.hasEnded }) {
      all[index].countProbe(header, arrival: arrival, ecn: ecn)
    } else if earlyProbes.count < Self.earlyProbesMaximum,
      agreement.sections.contains(where: {
        $0.section.receiving?.rtxSSRCs.contains(header.ssrc) == true
      })
    {
      earlyProbes.append((header, arrival, ecn))
    }
  }

  /// Counts padding that arrived before its stream started.
  private mutating func countEarlyProbes(_ index: Int) {
    guard !earlyProbes.isEmpty, let rtx = all[index].rtxSSRC else { return }
    for probe in earlyProbes where probe.header.ssrc == rtx {
      all[index].countProbe(probe.header, arrival: probe.arrival, ecn: probe.ecn)
    }
    earlyProbes.removeAll { $0.header.ssrc == rtx }
  }

  /// Counts a packet with an unnegotiated payload type on a media SSRC; on an RTX SSRC, such a
  /// packet is ignored.
  mutating func receiveUnusable(
    _ header: RTPHeader, _ place: Place, arrival: Instant, at now: Instant
  ) {
    guard !place.isRetransmission else { return }
    all[place.index].receiveUnusable(header, arrival: arrival, at: now)
  }

  /// Returns a stream's due NACKs and counts them; delivers frames that waited for packets now
  /// given up.
  mutating func demands(
    _ index: Int, senderSSRC: UInt32, at now: Instant, spacing: Interval,
    into outbox: inout Outbox<Output>
  ) -> [GenericNACK] {
    // Called in every step, and nearly always nothing is due.
    guard let due = all[index].videoFrames.missing.due, due <= now, !all[index].hasEnded,
      let codec = all[index].codec
    else { return [] }
    let sequences = all[index].demand(codec, at: now, spacing: spacing, into: &outbox)
    return stride(from: 0, to: sequences.count, by: Self.requestedMaximum).map { start in
      all[index].countNACK()
      return GenericNACK(
        senderSSRC: senderSSRC, mediaSSRC: all[index].ssrc,
        sequences: Array(sequences[start...].prefix(Self.requestedMaximum)))
    }
  }

  /// Records that a section's decoder needs a key frame.
  mutating func wantKeyframe(_ mid: String) {
    for index in all.indices where all[index].mid == mid && !all[index].hasEnded {
      all[index].wantKeyframe()
    }
  }

  /// Returns a PLI or FIR for a stream if one is needed and allowed now; otherwise nil.
  mutating func keyframeRequest(
    _ index: Int, senderSSRC: UInt32, roundTrip: Interval?, at now: Instant
  ) -> RTCPPacket? {
    guard all[index].kind == .video, !all[index].hasEnded, all[index].needsKeyframe,
      let codec = all[index].codec
    else { return nil }
    return all[index].keyframeRequest(
      codec, senderSSRC: senderSSRC, roundTrip: roundTrip, at: now)
  }

  // MARK: - Reports

  mutating func receive(_ report: SenderReport, at arrival: Instant) {
    guard let index = all.firstIndex(where: { $0.ssrc == report.ssrc }) else { return }
    all[index].receive(report, at: arrival)
  }

  /// Records a round trip measured to the sender of these SSRCs.
  mutating func receive(roundTrip: Interval, of ssrcs: [UInt32]) {
    for index in all.indices where ssrcs.contains(all[index].ssrc) {
      all[index].receive(roundTrip: roundTrip)
    }
  }

  /// Ends the streams that a BYE names, and reports their ends.
  mutating func end(_ ssrcs: [UInt32], into outbox: inout Outbox<Output>) {
    for index in all.indices where !all[index].hasEnded && ssrcs.contains(all[index].ssrc) {
      all[index].end()
      reportEnd(index, into: &outbox)
    }
  }

  /// Returns report blocks that cover the time since the last ones.
  mutating func makeReportBlocks(at now: Instant) -> [ReportBlock] {
    var blocks: [ReportBlock] = []
    for index in all.indices where !all[index].hasEnded {
      blocks += all[index].makeReportBlocks(at: now)
    }
    return blocks
  }
}

extension ReceiveStream {
  /// Returns whether `rid` names a simulcast layer other than this stream's.
  fileprivate func isLayer(beside rid: String?) -> Bool {
    guard let own = self.rid, let rid else { return false }
    return own != rid
  }

  /// Returns whether retransmissions that name this layer, or no layer, may repair this stream.
  fileprivate func isRepaired(by rid: ArraySlice<UInt8>?) -> Bool {
    guard let own = self.rid, let rid else { return true }
    return rid.elementsEqual(own.utf8)
  }
}

extension ReceiveStreams.Name {
  /// Reads what a packet's header extensions say about its stream.
  init(_ extensions: HeaderExtensions, in bytes: [UInt8]) {
    self.init(
      mid: extensions.mid.map { bytes[$0] }, rid: extensions.streamID.map { bytes[$0] },
      repairedRID: extensions.repairedStreamID.map { bytes[$0] })
  }
}
