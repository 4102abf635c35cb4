import RTP
import Wire

extension MediaFlow {
  mutating func receiveRTP(
    _ bytes: [UInt8], arrival: Instant, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes) else {
      refused.malformed += 1
      return
    }
    let values = HeaderExtensions(parsing: bytes.span.bytes, header: header, map: extensions)
    // Every packet counts for the path, whatever it carries and whoever it is for.
    if reportsArrivals, let sequence = values.transportSequence {
      arrivals.receive(sequence, arrival: arrival, at: now)
      reportedSSRC = header.ssrc
    }
    if reportsBitrate { incoming.receive(bytes: bytes.count, at: arrival) }
    guard let route = route(header, values, bytes, at: now, into: &outbox),
      let index = receivers.firstIndex(where: { $0.ssrc == route.stream }),
      let section = sections.first(where: { $0.mid == receivers[index].mid })
    else {
      // A packet of padding only probes the path and needs no stream.
      if !header.payload.isEmpty { refused.unroutable += 1 }
      return
    }
    scheduleReport(at: now)
    switch section.payload(header.payloadType) {
    case .media(let codec) where !route.isRetransmission:
      receivers[index].receive(
        ReceiveStream.Packet(
          header: header, extensions: values, bytes: bytes, arrival: arrival, codec: codec),
        at: now, into: &outbox)
    case .retransmission(let codec) where route.isRetransmission:
      receivers[index].receiveRetransmission(
        ReceiveStream.Packet(
          header: header, extensions: values, bytes: bytes, arrival: arrival, codec: codec),
        at: now, into: &outbox)
    default:
      refused.unusablePayload += 1
      if !route.isRetransmission {
        receivers[index].receiveUnusable(header, arrival: arrival, at: now)
      }
    }
  }

  // MARK: - Routing (RFC 9143 section 9.2)

  /// Finds the stream of a packet: by its mid, a known or announced source, or its payload type.
  private mutating func route(
    _ header: RTPHeader, _ values: HeaderExtensions, _ bytes: [UInt8], at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> Route? {
    let mid = values.mid.map { bytes[$0] }
    if let route = routes.first(where: { $0.ssrc == header.ssrc }),
      let receiver = receivers.first(where: { $0.ssrc == route.stream }),
      mid == nil || mid?.elementsEqual(receiver.mid.utf8) == true
    {
      guard receiver.hasEnded else { return route }
      return revive(route, receiver, header, at: now, into: &outbox) ? route : nil
    }
    // Padding alone shows nothing about the streams.
    guard !header.payload.isEmpty, routes.count < MediaFlow.maximumRoutes,
      let section = section(of: header, mid: mid), let receiving = section.section.receiving
    else { return nil }
    switch section.payload(header.payloadType) {
    case .media:
      let place = receiving.ssrcs.firstIndex(of: header.ssrc)
      let rtx = place.flatMap { $0 < receiving.rtxSSRCs.count ? receiving.rtxSSRCs[$0] : nil }
      begin(header.ssrc, rtxSSRC: rtx, in: section, at: now, into: &outbox)
      return learn(header.ssrc, stream: header.ssrc, isRetransmission: false)
    case .retransmission:
      let place = receiving.rtxSSRCs.firstIndex { $0 == header.ssrc }
      let announced = place.flatMap { $0 < receiving.ssrcs.count ? receiving.ssrcs[$0] : nil }
      guard
        let index = receivers.lastIndex(where: {
          $0.mid == section.mid && !$0.hasEnded && (announced == nil || $0.ssrc == announced)
        })
      else { return nil }
      receivers[index].rtxSSRC = header.ssrc
      return learn(header.ssrc, stream: receivers[index].ssrc, isRetransmission: true)
    case nil: return nil
    }
  }

  private func section(of header: RTPHeader, mid: ArraySlice<UInt8>?) -> SectionState? {
    if let mid { return sections.first { $0.midBytes.elementsEqual(mid) } }
    if let announced = sections.first(where: {
      guard let receiving = $0.section.receiving else { return false }
      return receiving.ssrcs.contains(header.ssrc) || receiving.rtxSSRCs.contains(header.ssrc)
    }) {
      return announced
    }
    var found: SectionState?
    for section in sections where section.payload(header.payloadType) != nil {
      // A payload type that two sections use tells nothing.
      if found != nil { return nil }
      found = section
    }
    return found
  }

  /// Begins a stream; the one that the section had so far gives way to it.
  private mutating func begin(
    _ ssrc: UInt32, rtxSSRC: UInt32?, in section: SectionState, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    routes.removeAll { $0.stream == ssrc || $0.ssrc == ssrc }
    for index in receivers.indices.reversed() {
      let receiver = receivers[index]
      guard receiver.mid == section.mid || receiver.ssrc == ssrc else { continue }
      if !receiver.hasEnded {
        outbox.append(.streamEnded(mid: receiver.mid, ssrc: receiver.ssrc))
        receivers[index].end()
      }
      receivers[index].isReplaced = true
      // Of former streams only the last one is kept, for packets that come late.
      if receiver.ssrc == ssrc || receiver.isReplaced {
        routes.removeAll { $0.stream == receiver.ssrc }
        receivers.remove(at: index)
      }
    }
    receivers.append(
      ReceiveStream(mid: section.mid, kind: section.kind, ssrc: ssrc, rtxSSRC: rtxSSRC, at: now))
    outbox.append(.streamBegan(mid: section.mid, ssrc: ssrc))
  }

  private mutating func learn(_ ssrc: UInt32, stream: UInt32, isRetransmission: Bool) -> Route {
    let route = Route(ssrc: ssrc, stream: stream, isRetransmission: isRetransmission)
    routes.removeAll {
      $0.ssrc == ssrc || isRetransmission && $0.isRetransmission && $0.stream == stream
    }
    routes.append(route)
    return route
  }

  /// Takes a stream up again that said BYE or was replaced; false for a packet that is only late.
  private mutating func revive(
    _ route: Route, _ receiver: ReceiveStream, _ header: RTPHeader, at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> Bool {
    guard !route.isRetransmission, !header.payload.isEmpty else { return false }
    let current = receivers.firstIndex { $0.mid == receiver.mid && !$0.hasEnded }
    if let current {
      let last = receivers[current].counters.lastPacketReceived ?? now
      guard now - last >= .seconds(1) else { return false }
      outbox.append(.streamEnded(mid: receiver.mid, ssrc: receivers[current].ssrc))
      receivers[current].end()
      receivers[current].isReplaced = true
    }
    guard let index = receivers.firstIndex(where: { $0.ssrc == route.stream }) else { return false }
    receivers[index].resume()
    outbox.append(.streamBegan(mid: receiver.mid, ssrc: receiver.ssrc))
    return true
  }

  // MARK: - What is asked for

  /// How long a repeated request waits for the answer to the one before.
  var requestSpacing: Interval {
    guard let roundTrip else { return .milliseconds(100) }
    return max(roundTrip * 5 / 4, .milliseconds(20))
  }

  /// Asks for the packets that are missing (RFC 4585 section 6.2.1).
  mutating func requestMissing(at now: Instant, into outbox: inout Outbox<Output>) {
    for index in receivers.indices where !receivers[index].hasEnded {
      guard let codec = receivers[index].codec else { continue }
      let requested = receivers[index].demand(
        codec, at: now, spacing: requestSpacing, into: &outbox)
      var start = 0
      while start < requested.count {
        let end = min(start + 200, requested.count)
        receivers[index].countNACK()
        sendFeedback(
          .genericNACK(
            GenericNACK(
              senderSSRC: localSSRC, mediaSSRC: receivers[index].ssrc,
              sequences: Array(requested[start..<end]))), into: &outbox)
        start = end
      }
    }
  }

  /// A decoder wants a key frame; the request is repeated until one comes.
  mutating func requestKeyframe(mid: String) {
    for index in receivers.indices
    where receivers[index].mid == mid && !receivers[index].hasEnded {
      receivers[index].keyframeWanted = true
    }
  }

  /// Asks for key frames where they are needed.
  mutating func requestKeyframes(at now: Instant, into outbox: inout Outbox<Output>) {
    for index in receivers.indices
    where receivers[index].kind == .video && !receivers[index].hasEnded {
      guard let codec = receivers[index].codec,
        let request = receivers[index].keyframeRequest(
          codec, senderSSRC: localSSRC, roundTrip: roundTrip, at: now)
      else { continue }
      sendFeedback(request, into: &outbox)
    }
  }

  /// Reports the arrival times of packets with transport-wide sequence numbers.
  mutating func reportArrivals(at now: Instant, into outbox: inout Outbox<Output>) {
    for feedback in arrivals.report(senderSSRC: localSSRC, mediaSSRC: reportedSSRC) {
      sendFeedback(.transportFeedback(feedback), into: &outbox)
    }
  }
}
