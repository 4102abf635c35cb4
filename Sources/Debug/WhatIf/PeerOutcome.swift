import Media
import Peer
import Stats
import Wire

/// What became of a session for one peer: what people would have seen and heard of it.
package struct PeerOutcome: Sendable, Codable {
  private enum CodingKeys: CodingKey {
    case peer, label, states, freezes, measures, refusals
  }

  /// A time in which a video frame stood still.
  package struct Freeze: Hashable, Sendable, Codable {
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    package var track: UInt32

    package var seconds: Double { Double(toNanoseconds -| fromNanoseconds) / 1e9 }
  }

  /// A state that was reached.
  package struct State: Hashable, Sendable, Codable {
    package var machine: String
    package var state: String
    package var atNanoseconds: Int64
  }

  /// A number that is compared.
  package struct Measure: Hashable, Sendable, Codable {
    package var name: String
    package var value: Double
  }

  package let peer: UInt32
  package let label: String
  package private(set) var states: [State] = []
  package private(set) var freezes: [Freeze] = []
  package private(set) var measures: [Measure] = []
  /// What was refused, and how often it was told.
  package private(set) var refusals: [String] = []

  private var shown: [(track: UInt32, rule: FreezeRule)] = []
  private var frames: [(name: String, count: Int)] = []
  private var samples: [(name: String, count: Int)] = []
  private var sentBytes = 0
  private var sentPackets = 0
  private var report = StatsReport()
  private var hasFinalReport = false

  init(peer: UInt32, label: String) {
    self.peer = peer
    self.label = label
  }

  // MARK: Collecting

  mutating func take(_ output: PeerOutput, at now: Instant) {
    switch output {
    case .datagram(let datagram):
      sentBytes += datagram.bytes.count
      sentPackets += 1
    case .event(.state(let transition)):
      states.append(
        State(machine: transition.machine, state: transition.to, atNanoseconds: now.nanoseconds))
    case .event(.frame(let frame)): take(frame, at: now)
    case .event(.refused(let layer, let reason)):
      let text = "\(layer): \(reason)"
      if !refusals.contains(text) { refusals.append(text) }
    default: break
    }
  }

  private mutating func take(_ frame: FrameRecord, at now: Instant) {
    let track = "track \(frame.transceiver) \(frame.kind.rawValue)"
    guard frame.isInbound else {
      Self.add(1, "\(track) frames sent", to: &frames)
      return
    }
    if frame.kind == .audio {
      var count = 0
      if case .audio(let block) = frame.decoded { count = block.frameCount }
      Self.add(count, "\(track) \(frame.outcome)", to: &samples)
      return
    }
    Self.add(
      1, "\(track) frames \(frame.outcome == "decoded" ? "shown" : frame.outcome)", to: &frames)
    guard frame.outcome == "decoded" else { return }
    let index: Int
    if let known = shown.firstIndex(where: { $0.track == frame.transceiver }) {
      index = known
    } else {
      index = shown.count
      shown.append((frame.transceiver, FreezeRule()))
    }
    if let begin = shown[index].rule.show(at: now) {
      freezes.append(
        Freeze(
          fromNanoseconds: begin.nanoseconds, toNanoseconds: now.nanoseconds,
          track: frame.transceiver))
    }
  }

  private static func add(_ count: Int, _ name: String, to list: inout [(name: String, count: Int)])
  {
    if let index = list.firstIndex(where: { $0.name == name }) {
      list[index].count += count
    } else {
      list.append((name, count))
    }
  }

  /// Takes the stats while there are streams; the last sample counts.
  mutating func sample(_ report: StatsReport) {
    guard !hasFinalReport else { return }
    self.report = report
    hasFinalReport = true
  }

  // MARK: The result

  mutating func finish(at end: Instant, stats: StatsReport) {
    sample(stats)
    for entry in frames { add(entry.name, Double(entry.count)) }
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
    let seconds = max(0.001, Double(end.nanoseconds) / 1e9)
    add("packets sent", Double(sentPackets))
    add("sent kbit/s", Double(sentBytes) * 8 / seconds / 1000)
  }

  private mutating func addInbound(_ object: StatsObject) {
    let name = "mid \(text(object, "mid")) \(text(object, "kind"))"
    for (member, words) in [
      ("packetsReceived", "packets received"), ("packetsLost", "packets lost"),
      ("packetsDiscarded", "packets discarded"), ("nackCount", "NACKs sent"),
      ("pliCount", "key frame requests sent"), ("framesDropped", "frames dropped"),
      ("concealmentEvents", "concealment events"),
    ] {
      if let value = number(object, member) { add("\(name) \(words)", value) }
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

/// What counts as a freeze: a gap of at least three times the average and 150 ms more than it
/// (W3C freezeCount).
struct FreezeRule: Sendable {
  private var last: Instant?
  private var gaps: [Int64] = []

  /// Takes a video frame that is shown; gives when the one before it was, if that was a freeze.
  mutating func show(at now: Instant) -> Instant? {
    defer { last = now }
    guard let last else { return nil }
    let gap = (now - last).nanoseconds
    guard gap.magnitude <= 5_000_000_000 else { return nil }
    defer {
      if gaps.count == 30 { gaps.removeFirst() }
      gaps.append(gap)
    }
    guard gaps.count >= 5 else { return nil }
    let average = gaps.reduce(0, +) / Int64(gaps.count)
    return gap >= max(3 * average, average + 150_000_000) ? last : nil
  }
}
