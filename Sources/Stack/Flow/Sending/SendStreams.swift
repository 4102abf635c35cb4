import RTP
import Wire

/// Identifies a sent stream: its section, and its layer if there are several (RFC 8852).
struct StreamName: Hashable {
  let mid: String
  let rid: String?

  init(_ mid: String, _ rid: String?) {
    self.mid = mid
    self.rid = rid
  }
}

/// The streams that are or were sent over a transport.
struct SendStreams {
  private(set) var all: [SendStream] = []
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// The SSRC that feedback comes from: the first sent one, or 1 as in other stacks.
  var localSSRC: UInt32 { all.firstIndex { $0.isActive }.map { all[$0].ssrc } ?? 1 }

  /// Whether video is currently sent.
  var sendsVideo: Bool { all.indices.contains { all[$0].kind == .video && all[$0].isActive } }

  /// The SSRCs that are currently sent, with RTX.
  var activeSSRCs: [UInt32] {
    var ssrcs: [UInt32] = []
    for stream in all where stream.isActive {
      ssrcs.append(stream.ssrc)
      if let rtx = stream.rtxSSRC { ssrcs.append(rtx) }
    }
    return ssrcs
  }

  /// The index of the stream that a section currently sends.
  func index(of name: StreamName) -> Int? { all.firstIndex { $0.name == name && $0.isActive } }

  /// The index of a stream that is currently sent.
  func index(of ssrc: UInt32) -> Int? { all.firstIndex { $0.ssrc == ssrc && $0.isActive } }

  /// The index of the stream that a report block is about.
  func index(of block: ReportBlock) -> Int? {
    all.firstIndex { $0.ssrc == block.ssrc || $0.rtxSSRC == block.ssrc }
  }

  /// Applies what sections negotiated.
  mutating func configure(_ sections: [SectionState]) {
    // A paused stream is kept: its numbers have to continue, or SRTP would reject them as replay
    // (RFC 3711 section 3.3.2).
    for index in all.indices { all[index].pause() }
    for section in sections {
      guard let sending = section.section.sending else { continue }
      let ssrcs = sending.sources.map(\.ssrc)
      for source in sending.sources {
        if let index = all.firstIndex(where: { $0.ssrc == source.ssrc && $0.mid == section.mid }) {
          all[index].configure(source, sending.codec, section: section)
        } else {
          all.removeAll {
            $0.mid == section.mid && !ssrcs.contains($0.ssrc) || $0.ssrc == source.ssrc
          }
          all.append(SendStream(source, sending.codec, section: section, entropy: entropy))
        }
      }
    }
  }

  // MARK: - Frames and packets

  mutating func split(_ frame: EncodedFrame, _ index: Int, at now: Instant) -> [PayloadPart] {
    all[index].split(frame, at: now)
  }

  /// Records a frame that cannot be sent.
  mutating func discardFrame(_ index: Int) { all[index].discardFrame() }

  /// Records packetized video frames that will not be sent.
  mutating func loseFrames() {
    for index in all.indices where all[index].kind == .video { all[index].loseFrames() }
  }

  /// Returns, once, the video streams that lack frames which later ones may depend on.
  mutating func consumeLosses() -> [StreamName] {
    var names: [StreamName] = []
    for index in all.indices where all[index].consumeLoss() {
      if all[index].isActive, all[index].kind == .video { names.append(all[index].name) }
    }
    return names
  }

  /// Builds a packet for sending now.
  mutating func packet(
    for part: PayloadPart, _ index: Int, transportSequence: UInt16, sendTime: UInt32,
    at now: Instant
  ) -> [UInt8] {
    all[index].packet(
      for: part, transportSequence: transportSequence, sendTime: sendTime, at: now)
  }

  /// Builds a retransmission, or repeats the packet.
  mutating func retransmission(
    of lost: UInt16, _ index: Int, transportSequence: UInt16, sendTime: UInt32
  ) -> (bytes: [UInt8], isRepeated: Bool)? {
    all[index].retransmission(
      of: lost, transportSequence: transportSequence, sendTime: sendTime)
  }

  // MARK: - Feedback and reports

  /// Counts a NACK.
  mutating func countNACK(_ index: Int) { all[index].countNACK() }

  mutating func mayResend(
    _ sequence: UInt16, _ index: Int, at now: Instant, spacing: Interval
  ) -> Bool {
    all[index].mayResend(sequence, at: now, spacing: spacing)
  }

  /// Handles a key frame request; returns the stream whose encoder should be asked.
  mutating func acceptDemand(of ssrc: UInt32, number: UInt8?, at now: Instant) -> StreamName? {
    guard let index = all.firstIndex(where: { $0.ssrc == ssrc && $0.kind == .video }),
      all[index].acceptDemand(number, at: now)
    else { return nil }
    return all[index].name
  }

  /// Handles the peer's report block on a stream or its RTX.
  mutating func receive(
    _ block: ReportBlock, _ index: Int, roundTrip: Interval?, at arrival: Instant
  ) {
    all[index].receive(block, roundTrip: roundTrip, at: arrival)
  }

  /// Returns the reports of the streams that sent something since their last ones.
  mutating func makeReports(_ wallClock: WallClock, at now: Instant) -> [SenderReport] {
    var reports: [SenderReport] = []
    for index in all.indices where all[index].isActive {
      if let report = all[index].makeReport(wallClock, at: now) { reports.append(report) }
    }
    return reports
  }
}
