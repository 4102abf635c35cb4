import Media
import Peer
package import Queries
import Stats
import Tape
import Wire

/// A session's outcome for one peer, as its user would have perceived it.
package struct PeerOutcome: Sendable, Codable {
  private enum CodingKeys: CodingKey {
    case peer, label, states, freezes, measures, refusals
  }

  /// A period in which a received track's video was frozen.
  package struct Freeze: Hashable, Sendable, Codable {
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    package var track: UInt32

    package var seconds: Double { Double(toNanoseconds -| fromNanoseconds) / 1e9 }
  }

  /// A period in which no new picture was shown, with the pictures around it.
  package struct Stop: Sendable {
    package var track: UInt32
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    /// The timestamps of the pictures before and after the stop; `after` is nil if no picture
    /// followed.
    package var before: UInt32
    package var after: UInt32?

    package var seconds: Double { Double(max(0, toNanoseconds -| fromNanoseconds)) / 1e9 }
  }

  /// A state that one of the peer's machines reached, with the time.
  package struct State: Hashable, Sendable, Codable {
    package var machine: String
    package var state: String
    package var atNanoseconds: Int64
  }

  /// A named number by which outcomes are compared.
  package struct Measure: Hashable, Sendable, Codable {
    package var name: String
    package var value: Double
  }

  package let peer: UInt32
  package let label: String
  /// Whether the peer is an end of an observed call, of which only the receiving side runs.
  private(set) var isObserved = false
  package private(set) var states: [State] = []
  package private(set) var freezes: [Freeze] = []
  package private(set) var measures: [Measure] = []
  /// The distinct reasons for which layers refused input, each as `layer: reason`.
  package private(set) var refusals: [String] = []

  /// Freezes, and gaps too long to count as freezes, including a gap at the end.
  package private(set) var stops: [Stop] = []
  /// The concealed blocks of audio that hide a loss.
  package private(set) var concealed: [PlayoutJudge.Concealed] = []

  private var shown: [(track: UInt32, rule: FreezeRule, at: Int64, rtpTime: UInt32)] = []
  private var judge = PlayoutJudge()
  private var frames: [(name: String, count: Int)] = []
  private var samples: [(name: String, count: Int)] = []
  /// The number of frames shown after the recording's end, from packets that arrived before it.
  private var late: [(name: String, count: Int)] = []
  /// The highest sequence number sent on each stream.
  private var highest: [UInt32: UInt16] = [:]
  /// The number of packets that the remote peer requested in the recording but this run did not
  /// send.
  private var unsent = 0
  private var sentBytes = 0
  private var sentPackets = 0
  private var report = StatsReport()
  private var hasFinalReport = false

  init(peer: UInt32, label: String, isObserved: Bool = false) {
    self.peer = peer
    self.label = label
    self.isObserved = isObserved
  }

  /// The time at which the connection was closed, in nanoseconds; nil if it was not closed.
  private var closed: Int64? {
    states.first { $0.machine == "connection" && $0.state == "closed" }?.atNanoseconds
  }

  // MARK: Collecting

  mutating func record(_ output: PeerOutput, at now: Instant) {
    switch output {
    case .datagram(let datagram):
      sentBytes += datagram.bytes.count
      sentPackets += 1
      countSent(datagram.bytes)
    case .event(.state(let transition)):
      states.append(
        State(machine: transition.machine, state: transition.to, atNanoseconds: now.nanoseconds))
    case .event(.frame(let frame)): record(frame, at: now)
    case .event(.refused(let layer, let reason)):
      let text = "\(layer): \(reason)"
      if !refusals.contains(text) { refusals.append(text) }
    default: break
    }
  }

  /// Counts frames that a peer shows after the end of its recording, from packets that arrived
  /// before it.
  mutating func countLate(_ output: PeerOutput, at now: Instant) {
    guard case .event(.frame(let frame)) = output, frame.isInbound else { return }
    guard frame.outcome == "decoded" else {
      play(frame, at: now)
      return
    }
    if frame.kind == .video {
      Self.add(1, "track \(frame.transceiver) video frames under way at the end", to: &late)
    }
    record(frame, at: now)
  }

  private mutating func play(_ frame: FrameRecord, at now: Instant) {
    guard frame.isInbound, frame.kind == .audio else { return }
    judge.play(
      track: frame.transceiver, ssrc: frame.ssrc, rtpTime: frame.rtpTime, outcome: frame.outcome,
      at: now.nanoseconds)
  }

  /// Records the arrival of an RTP packet from its unencrypted header; ignores other datagrams.
  mutating func receive(_ bytes: [UInt8]) {
    guard bytes.count >= 12, bytes[0] >> 6 == 2, !(192...223).contains(bytes[1]) else { return }
    func number(_ range: Range<Int>) -> UInt32 {
      bytes[range].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }
    judge.arrive(
      ssrc: number(8..<12), sequence: UInt16(bytes[2]) << 8 | UInt16(bytes[3]),
      rtpTime: number(4..<8))
  }

  /// The maximum number of streams to count, more than any real session has.
  private static let streamMaximum = 4_096

  private mutating func countSent(_ bytes: [UInt8]) {
    // RTP, judging by its version and second byte (RFC 5761 section 4).
    guard bytes.count >= 12, bytes[0] >> 6 == 2, !(192...223).contains(bytes[1]) else { return }
    let sequence = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    let ssrc = bytes[8..<12].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard let former = highest[ssrc] else {
      if highest.count < Self.streamMaximum { highest[ssrc] = sequence }
      return
    }
    if Int16(bitPattern: sequence &- former) > 0 { highest[ssrc] = sequence }
  }

  private struct Asked: Codable {
    var sequences: [UInt16]
  }

  /// Counts the packets that a step's NACKs request but this run did not send.
  mutating func countUnsent(_ step: TapeChunk.Step, _ rows: RowList) {
    for row in step.rows where rows.table(row) == .rtcp {
      guard rows[row, column: "type"] == .text("nack"),
        rows[row, column: "direction"] == .text(Direction.inbound.rawValue),
        case .integer(let ssrc) = rows[row, column: "ssrc"],
        case .text(let fields) = rows[row, column: "fields"],
        let asked = CanonicalJSON.value(Asked.self, from: fields)
      else { continue }
      guard let highest = highest[UInt32(truncatingIfNeeded: ssrc)] else {
        unsent += asked.sequences.count
        continue
      }
      unsent += asked.sequences.count { Int16(bitPattern: $0 &- highest) > 0 }
    }
  }

  private mutating func record(_ frame: FrameRecord, at now: Instant) {
    let track = "track \(frame.transceiver) \(frame.kind.rawValue)"
    guard frame.isInbound else {
      Self.add(1, "\(track) frames sent", to: &frames)
      return
    }
    if frame.kind == .audio {
      play(frame, at: now)
      // Blocks that conceal a loss and blocks inserted to slow down playout have the same outcome;
      // the statistics distinguish them.
      guard frame.outcome != "concealed" else { return }
      var count = 0
      if case .audio(let block) = frame.decoded { count = block.frameCount }
      Self.add(count, "\(track) \(frame.outcome)", to: &samples)
      return
    }
    Self.add(
      1, "\(track) frames \(frame.outcome == "decoded" ? "shown" : frame.outcome)", to: &frames)
    guard frame.outcome == "decoded" else { return }
    show(frame, at: now)
  }

  private mutating func show(_ frame: FrameRecord, at now: Instant) {
    let known = shown.firstIndex { $0.track == frame.transceiver }
    let index = known ?? shown.count
    if known == nil {
      shown.append((frame.transceiver, FreezeRule(), now.nanoseconds, frame.rtpTime))
    }
    let begin = shown[index].rule.show(at: now)
    if let begin {
      freezes.append(
        Freeze(
          fromNanoseconds: begin.nanoseconds, toNanoseconds: now.nanoseconds,
          track: frame.transceiver))
    }
    let last = shown[index]
    if begin != nil || now.nanoseconds -| last.at > FreezeRule.longest {
      stops.append(
        Stop(
          track: frame.transceiver, fromNanoseconds: last.at, toNanoseconds: now.nanoseconds,
          before: last.rtpTime, after: frame.rtpTime))
    }
    (shown[index].at, shown[index].rtpTime) = (now.nanoseconds, frame.rtpTime)
  }

  private static func add(_ count: Int, _ name: String, to list: inout [(name: String, count: Int)])
  {
    if let index = list.firstIndex(where: { $0.name == name }) {
      list[index].count += count
    } else {
      list.append((name, count))
    }
  }

  /// Stores the peer's final statistics; later calls have no effect.
  mutating func sample(_ report: StatsReport) {
    guard !hasFinalReport else { return }
    self.report = report
    hasFinalReport = true
  }

  // MARK: Result

  mutating func finish(at end: Instant, stats: StatsReport) {
    sample(stats)
    concealed = judge.finish()
    let over = closed.map { min($0, end.nanoseconds) } ?? end.nanoseconds
    for track in shown where over > track.at {
      stops.append(
        Stop(
          track: track.track, fromNanoseconds: track.at, toNanoseconds: over,
          before: track.rtpTime))
    }
    for entry in frames { add(entry.name, Double(entry.count)) }
    for entry in late { add(entry.name, Double(entry.count)) }
    if unsent > 0 { add("packets asked for again that were not sent", Double(unsent)) }
    for entry in samples { add("\(entry.name) ms", Double(entry.count) / 48) }
    for track in shown {
      let own = freezes.filter { $0.track == track.track }
      add("track \(track.track) video freezes", Double(own.count))
      add("track \(track.track) video frozen ms", own.reduce(0) { $0 + $1.seconds * 1000 })
    }
    for object in report.objects where object.type == "inbound-rtp" { addInbound(object) }
    for object in report.objects where object.type == "outbound-rtp" { addOutbound(object) }
    if let bitrate = report.objects.compactMap({ number($0, "availableOutgoingBitrate") }).first {
      add("available outgoing kbit/s", bitrate / 1000)
    }
    guard !isObserved else { return }
    let seconds = max(0.001, Double(end.nanoseconds) / 1e9)
    add("packets sent", Double(sentPackets))
    add("sent kbit/s", Double(sentBytes) * 8 / seconds / 1000)
  }

  private mutating func addInbound(_ object: StatsObject) {
    // In observed calls a stream's mid may be unknown.
    let ssrc = number(object, "ssrc").map { "ssrc \(Int64(saturating: $0))" }
    let isNamed = object["mid"] != nil && text(object, "mid") != ""
    let place = isObserved && !isNamed ? ssrc : nil
    let name = "\(place ?? "mid \(text(object, "mid"))") \(text(object, "kind"))"
    for (member, words) in [
      ("packetsReceived", "packets received"), ("packetsLost", "packets lost"),
      ("packetsDiscarded", "packets discarded"), ("nackCount", "NACKs sent"),
      ("pliCount", "key frame requests sent"), ("framesDropped", "frames dropped"),
      ("concealmentEvents", "concealment events"),
    ] {
      if let value = number(object, member) { add("\(name) \(words)", value) }
    }
    for (member, words) in [
      ("concealedSamples", "concealed"), ("insertedSamplesForDeceleration", "slowed down"),
    ] {
      if let value = number(object, member) { add("\(name) \(words) ms", value / 48) }
    }
    if let delay = number(object, "jitterBufferDelay"),
      let count = number(object, "jitterBufferEmittedCount"), count > 0
    {
      add("\(name) mean delay in the jitter buffer ms", delay / count * 1000)
    }
  }

  private mutating func addOutbound(_ object: StatsObject) {
    let name = "mid \(text(object, "mid")) \(text(object, "kind"))"
    for (member, words) in [
      ("retransmittedPacketsSent", "retransmissions"), ("keyFramesEncoded", "key frames encoded"),
    ] {
      if let value = number(object, member) { add("\(name) \(words)", value) }
    }
    if let bitrate = number(object, "targetBitrate") {
      add("\(name) target kbit/s", bitrate / 1000)
    }
  }

  private mutating func add(_ name: String, _ value: Double) {
    measures.append(Measure(name: name, value: value))
  }

  private func number(_ object: StatsObject, _ name: String) -> Double? {
    switch object[name] {
    case .integer(let value)?: Double(value)
    case .number(let value)?: value
    default: nil
    }
  }

  private func text(_ object: StatsObject, _ name: String) -> String {
    if case .text(let value)? = object[name] { return value }
    return "?"
  }
}

/// Detects freezes: gaps that are at least three times as long as the average gap, and at least 150
/// ms longer (W3C freezeCount).
struct FreezeRule: Sendable {
  /// The longest gap that counts as a freeze, in nanoseconds; a longer one is a pause.
  static let longest: Int64 = 5_000_000_000
  private var last: Instant?
  private var gaps: [Int64] = []

  /// Handles a displayed frame; returns the previous frame's time if the gap between them was a
  /// freeze.
  mutating func show(at now: Instant) -> Instant? {
    defer { last = now }
    guard let last else { return nil }
    let gap = (now - last).nanoseconds
    guard gap.magnitude <= UInt64(Self.longest) else { return nil }
    defer {
      if gaps.count == 30 { gaps.removeFirst() }
      gaps.append(gap)
    }
    guard gaps.count >= 5 else { return nil }
    let average = gaps.reduce(0, +) / Int64(gaps.count)
    return gap >= max(3 * average, average + 150_000_000) ? last : nil
  }
}
