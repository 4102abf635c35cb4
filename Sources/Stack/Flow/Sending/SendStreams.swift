import RTP
import Wire

/// What a sent stream is called: its section, and its layer if there are several (RFC 8852).
struct StreamName: Hashable {
  let mid: String
  let rid: String?

  init(_ mid: String, _ rid: String?) {
    self.mid = mid
    self.rid = rid
  }
}

/// Owns the streams that are or were sent over a transport, and finds the one that something is
/// about.
struct SendStreams {
  private(set) var all: [SendStream] = []
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// The source that feedback comes from: the first one that is sent, else 1 as others do.
  var localSSRC: UInt32 { all.firstIndex { $0.isActive }.map { all[$0].ssrc } ?? 1 }

  /// Whether video is sent now.
  var sendsVideo: Bool { all.indices.contains { all[$0].kind == .video && all[$0].isActive } }

  /// The sources that are sent now, with those of retransmissions.
  var activeSSRCs: [UInt32] {
    var ssrcs: [UInt32] = []
    for stream in all where stream.isActive {
      ssrcs.append(stream.ssrc)
      if let rtx = stream.rtxSSRC { ssrcs.append(rtx) }
    }
    return ssrcs
  }

  /// The place of the stream that a section sends now under a name.
  func index(of name: StreamName) -> Int? { all.firstIndex { $0.name == name && $0.isActive } }

  /// The place of a stream that is sent now.
  func index(of ssrc: UInt32) -> Int? { all.firstIndex { $0.ssrc == ssrc && $0.isActive } }

  /// The place of the stream that a report is about.
  func index(of block: ReportBlock) -> Int? {
    all.firstIndex { $0.ssrc == block.ssrc || $0.rtxSSRC == block.ssrc }
  }

  /// Applies what sections agreed on.
  mutating func configure(_ sections: [SectionState]) {
    // A stream that is not sent for now is kept: its numbers have to continue, or SRTP would refuse
    // them as replayed (RFC 3711 section 3.3.2).
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

  /// Cuts a frame of a stream into packets' shares.
  mutating func split(_ frame: EncodedFrame, _ index: Int, at now: Instant) -> [PayloadPart] {
    all[index].split(frame, at: now)
  }

  /// Records a frame of a stream that cannot be sent.
  mutating func discardFrame(_ index: Int) { all[index].discardFrame() }

  /// Records frames of video that were cut and will not be sent.
  mutating func loseFrames() {
    for index in all.indices where all[index].kind == .video { all[index].loseFrames() }
  }

  /// The streams of video that lack frames which others may depend on; it is told once.
  mutating func takeLosses() -> [StreamName] {
    var names: [StreamName] = []
    for index in all.indices where all[index].takeLoss() {
      if all[index].isActive, all[index].kind == .video { names.append(all[index].name) }
    }
    return names
  }

  /// Builds the packet of a share for sending at this moment.
  mutating func packet(
    for part: PayloadPart, _ index: Int, transportSequence: UInt16, sendTime: UInt32,
    at now: Instant
  ) -> [UInt8] {
    all[index].packet(
      for: part, transportSequence: transportSequence, sendTime: sendTime, at: now)
  }

  /// Builds the packet that brings a lost one again, or repeats it.
  mutating func retransmission(
    of lost: UInt16, _ index: Int, transportSequence: UInt16, sendTime: UInt32
  ) -> (bytes: [UInt8], isRepeated: Bool)? {
    all[index].retransmission(
      of: lost, transportSequence: transportSequence, sendTime: sendTime)
  }

  // MARK: - Feedback and reports

  /// Counts packets that the peer asked for again.
  mutating func countNACK(_ index: Int) { all[index].countNACK() }

  /// Whether a packet that the peer misses is to be sent again.
  mutating func mayResend(
    _ sequence: UInt16, _ index: Int, at now: Instant, spacing: Interval
  ) -> Bool {
    all[index].mayResend(sequence, at: now, spacing: spacing)
  }

  /// Takes a demand for a key frame; returns the stream when its encoder is to be asked.
  mutating func takeDemand(of ssrc: UInt32, number: UInt8?, at now: Instant) -> StreamName? {
    guard let index = all.firstIndex(where: { $0.ssrc == ssrc && $0.kind == .video }),
      all[index].takeDemand(number, at: now)
    else { return nil }
    return all[index].name
  }

  /// Handles what the peer reports on a stream or on its retransmissions.
  mutating func receive(
    _ block: ReportBlock, _ index: Int, roundTrip: Interval?, at arrival: Instant
  ) {
    all[index].receive(block, roundTrip: roundTrip, at: arrival)
  }

  /// The reports of the streams of which something was sent since the last ones.
  mutating func takeReports(_ wallClock: WallClock, at now: Instant) -> [SenderReport] {
    var reports: [SenderReport] = []
    for index in all.indices where all[index].isActive {
      if let report = all[index].takeReport(wallClock, at: now) { reports.append(report) }
    }
    return reports
  }
}
