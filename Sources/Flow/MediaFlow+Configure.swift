import RTP
import Wire

extension MediaFlow {
  /// How many sources are known at once; more are refused.
  static let maximumRoutes = 128

  mutating func configure(
    _ sections: [FlowSection], at now: Instant, into outbox: inout Outbox<Output>
  ) {
    self.sections = sections.map { SectionState($0) }
    extensions = HeaderExtensionMap()
    for section in sections {
      for agreed in section.extensions { extensions.add(uri: agreed.uri, id: agreed.id) }
    }
    reportsArrivals = self.sections.contains { $0.reportsArrivals }
    reportsBitrate =
      !reportsArrivals && self.sections.contains { $0.receives(feedback: "goog-remb") }
    // One compound goes to all sections, so all of them have to agree.
    usesReducedSize = !sections.isEmpty && sections.allSatisfy(\.reducedSizeRTCP)
    configureSenders()
    configureReceivers(into: &outbox)
  }

  private mutating func configureSenders() {
    // A stream that is not sent for now is kept: its numbers have to go on, or SRTP would refuse
    // them as replayed (RFC 3711 section 3.3.2).
    for index in senders.indices { senders[index].isActive = false }
    for section in sections {
      guard let sending = section.section.sending else { continue }
      if let index = senders.firstIndex(where: {
        $0.ssrc == sending.ssrc && $0.mid == section.mid
      }) {
        senders[index].isActive = true
        senders[index].configure(sending, section: section)
      } else {
        senders.removeAll { $0.mid == section.mid || $0.ssrc == sending.ssrc }
        senders.append(SendStream(sending, section: section, entropy: entropy))
      }
    }
  }

  private mutating func configureReceivers(into outbox: inout Outbox<Output>) {
    for index in receivers.indices.reversed() {
      let receiver = receivers[index]
      if let section = sections.first(where: { $0.mid == receiver.mid }) {
        // A retransmission source announced late replaces one that was only guessed.
        guard let receiving = section.section.receiving,
          let place = receiving.ssrcs.firstIndex(of: receiver.ssrc),
          place < receiving.rtxSSRCs.count, let rtx = receiving.rtxSSRCs[place]
        else { continue }
        receivers[index].rtxSSRC = rtx
      } else {
        if !receiver.hasEnded {
          outbox.append(.streamEnded(mid: receiver.mid, ssrc: receiver.ssrc))
        }
        routes.removeAll { $0.stream == receiver.ssrc }
        receivers.remove(at: index)
      }
    }
  }

  mutating func setWritable(_ isWritable: Bool, into outbox: inout Outbox<Output>) {
    guard isWritable != self.isWritable else { return }
    self.isWritable = isWritable
    if isWritable {
      for index in senders.indices where senders[index].lostFrames {
        senders[index].lostFrames = false
        guard senders[index].isActive, senders[index].kind == .video else { continue }
        outbox.append(.keyframeRequested(mid: senders[index].mid))
      }
    } else if !pacer.isEmpty {
      // Pictures that waited would come too late; a key frame is asked for when the path is back.
      pacer.removeAll()
      for index in senders.indices where senders[index].kind == .video {
        senders[index].lostFrames = true
      }
    }
  }
}
