import Media
package import Peer
import RTP
import Stats
package import Wire

// The endpoint as a machine on the tape: the kinds of its inputs, and what of it is written.

extension StepKind {
  package static let interfaces = StepKind(1)
  package static let datagram = StepKind(2)
  package static let call = StepKind(4)
  package static let captured = StepKind(5)
  package static let socketBound = StepKind(6)
  package static let socketFailed = StepKind(7)
  package static let nameResolved = StepKind(8)
  package static let sendFailed = StepKind(9)
  package static let signaling = StepKind(10)
  package static let send = StepKind(11)
  package static let streamAccepted = StepKind(12)
  package static let relayed = StepKind(13)
}

extension PeerMachine: RecordedMachine {
  package static var machineKind: MachineKind { .endpoint }
  package static func decoder(_ contents: ContentSource) -> EndpointDecoder {
    EndpointDecoder(contents)
  }
  package var machineSnapshot: (any MachineSnapshot)? { snapshot }
}

extension PeerSnapshot: MachineSnapshot {
  package var drawnBytes: [(stream: String, bytes: UInt64)] {
    entropy.map { ($0.stream, $0.bytes) }
  }
  package var wakes: [(layer: String, at: Instant)] { deadlines.map { ($0.layer, $0.at) } }
}

extension PeerInput: RecordedInput {
  package var stepKind: StepKind {
    switch self {
    case .genesis: .genesis
    case .interfaces: .interfaces
    case .datagram: .datagram
    case .deadline: .deadline
    case .call: .call
    case .captured: .captured
    case .answer(.socketBound): .socketBound
    case .answer(.socketFailed): .socketFailed
    case .answer(.nameResolved): .nameResolved
    case .sendFailed: .sendFailed
    case .signaling: .signaling
    case .send: .send
    case .answer(.streamAccepted): .streamAccepted
    case .relayed: .relayed
    }
  }

  package var byteCount: Int {
    switch self {
    case .datagram(let datagram, _): datagram.bytes.count
    case .send(_, let message): message.bytes.count
    case .captured(_, let media):
      switch media {
      case .audio(let block): block.samples.count * 2
      case .videoFrame(let videoFrame), .frame(let videoFrame, _): videoFrame.samples.count
      case .encoded(_, let stream): stream.count
      }
    case .relayed(let packet): packet.bytes.count
    default: 0
    }
  }

  package func write(to transcript: inout Transcript) { transcript.append(self) }

  package func moved(by interval: Interval) -> any RecordedInput {
    guard case .datagram(let datagram, let arrival) = self else { return self }
    return PeerInput.datagram(datagram, arrival: arrival + interval)
  }
}

extension PeerOutput: RecordedOutput {
  package static func write(_ outputs: [Self], to transcript: inout Transcript) {
    // Where they are, because a copy of an output counts every part of it.
    let outputs = outputs.span
    for index in outputs.indices { transcript.append(outputs[index]) }
  }

  package var byteCount: Int {
    switch self {
    case .datagram(let datagram): datagram.bytes.count
    case .event(.message(let message)): message.bytes.count
    case .event(.frame(let frame)):
      switch frame.decoded {
      case .none, .digest: frame.bytes.count
      case .audio(let block): frame.bytes.count + block.samples.count * 2
      case .videoFrame(let videoFrame): frame.bytes.count + videoFrame.samples.count
      }
    default: 0
    }
  }

  package func write(to transcript: inout Transcript) { transcript.append(self) }

  /// Puts a digest in the place of a decoded video frame.
  ///
  /// It is made on the thread that decoded, while a video frame is in the processor's caches and so
  /// that the next one is decoded into the same memory: left to the writer's thread, both cost more
  /// than the digest itself.
  package mutating func digest() {
    guard case .event(.frame(var frame)) = self, case .videoFrame(let videoFrame) = frame.decoded,
      !videoFrame.samples.isEmpty
    else { return }
    frame.decoded = .digest(videoFrame.digest)
    self = .event(.frame(frame))
  }
}

extension StepRecord {
  /// A step of an endpoint.
  package init(
    peer: UInt32, at: Instant, input: PeerInput, outputs: [PeerOutput], deadline: Instant?,
    entropyDrawn: UInt64
  ) {
    self.init(
      actor: peer, at: at, input: input, outputs: OutputList(outputs), deadline: deadline,
      entropyDrawn: entropyDrawn)
  }

  /// The input and the outputs of an endpoint; nil and none for another machine.
  package var peerInput: PeerInput? { input as? PeerInput }
  package var peerOutputs: [PeerOutput] { (outputs as? OutputList<PeerOutput>)?.all ?? [] }
}

/// What the rows of an endpoint need of its steps before.
final class EndpointNotes: ActorNotes {
  /// The number of the header extension that counts packets over all streams of the transport.
  var transportSequenceID: UInt8 = 0
  var meter = LevelMeter()
  var calls = CallMemory()

  /// The members of each stats object as they were last written.
  private var samples: [String: String] = [:]
  /// The objects of the last whole report, in its order.
  private var reported: [String] = []

  /// Whether a stats object differs from the one that the peer's last report had under its name.
  func isNews(_ id: String, _ members: String) -> Bool {
    samples.updateValue(members, forKey: id) != members
  }

  /// The objects of the peer's last whole report that the present one no longer has.
  func gone(_ report: StatsReport) -> [String] {
    let present = report.objects.map(\.id)
    let known = Set(present)
    let gone = reported.filter { !known.contains($0) }
    reported = present
    // An object that comes back is news again, whatever it says.
    for id in gone { samples[id] = nil }
    return gone
  }
}

// MARK: - LevelMeter

/// Sums up the blocks of audio of each track of a peer over 100 ms: the rows of `level`.
struct LevelMeter {
  /// What was heard of a track in the last tenth of a second.
  struct Sum {
    var began: Instant
    var energy: UInt64 = 0
    var samples: Int64 = 0
    var peak: UInt16 = 0
    /// The largest absolute sample with what is left of those before: libwebrtc's meter falls to a
    /// quarter in each 110 ms.
    var meter: UInt16 = 0
    /// The loudest level that the sender put into its packets; nil when it put none.
    var senderLevel: UInt8?
    var isVoice = false
    /// Who was mixed into it, with the loudest level that the mixer told of each.
    var contributors: [Contributor] = []

    mutating func add(_ contributor: Contributor) {
      guard let index = contributors.firstIndex(where: { $0.source == contributor.source }) else {
        if contributors.count < Sum.contributorsMaximum { contributors.append(contributor) }
        return
      }
      guard let level = contributor.level else { return }
      contributors[index].level = min(level, contributors[index].level ?? level)
    }

    /// A packet names 15 at most; who names others in each packet is not believed.
    private static let contributorsMaximum = 32
  }

  private struct Track {
    var transceiver: UInt32
    var isInbound: Bool
    var sum: Sum?
    var meter: UInt16 = 0
  }

  private var tracks: [Track] = []

  /// How many samples make a row: 100 ms.
  private static let window = Int64(AudioBlock.sampleRate / 10)
  /// What lies longer apart is not summed up together.
  private static let longestWindow = Interval.milliseconds(300)
  /// A transceiver number comes from this side, so there are few; more have no rows.
  private static let tracksMaximum = 1024

  /// Handles a block; returns the sum of a tenth of a second when that is full.
  mutating func add(_ frame: borrowing FrameRecord, samples: Int, at now: Instant) -> Sum? {
    let transceiver = frame.transceiver
    let isInbound = frame.isInbound
    let known = tracks.firstIndex {
      $0.transceiver == transceiver && $0.isInbound == isInbound
    }
    if known == nil {
      guard tracks.count < LevelMeter.tracksMaximum else { return nil }
      tracks.append(Track(transceiver: transceiver, isInbound: isInbound))
    }
    let index = known ?? tracks.count - 1
    var sum = tracks[index].sum ?? Sum(began: now)
    if now - sum.began > LevelMeter.longestWindow { sum = Sum(began: now) }
    sum.energy &+= frame.energy
    sum.samples += Int64(samples)
    sum.peak = max(sum.peak, frame.peak)
    if let level = frame.audioLevel { sum.senderLevel = min(level, sum.senderLevel ?? level) }
    sum.isVoice = sum.isVoice || frame.isVoice
    for contributor in frame.contributors { sum.add(contributor) }
    let isFull = sum.samples >= LevelMeter.window
    if isFull {
      sum.meter = max(sum.peak, tracks[index].meter >> 2)
      tracks[index].meter = sum.meter
    }
    tracks[index].sum = isFull ? nil : sum
    return isFull ? sum : nil
  }
}
