import Media
package import Peer
import RTP
import Stats
package import Wire

// Makes the endpoint a recorded machine: defines its kinds of inputs, and writes its outputs as
// rows.

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
    // The outputs are read in place, because copying one would retain each of its parts.
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

  /// Replaces a decoded video frame with its digest; the take stores nothing else of it.
  ///
  /// The decoding thread calls this while the frame is still in the processor's caches, and can
  /// then decode the next frame into the same memory. On the writer's thread, fetching the frame
  /// again would cost more than the digest.
  package mutating func digest() {
    guard case .event(.frame(var frame)) = self, case .videoFrame(let videoFrame) = frame.decoded,
      !videoFrame.samples.isEmpty
    else { return }
    frame.decoded = .digest(videoFrame.digest)
    self = .event(.frame(frame))
  }
}

extension StepRecord {
  /// Creates the record of an endpoint's step.
  package init(
    peer: UInt32, at: Instant, input: PeerInput, outputs: [PeerOutput], deadline: Instant?,
    entropyDrawn: UInt64
  ) {
    self.init(
      actor: peer, at: at, input: input, outputs: OutputList(outputs), deadline: deadline,
      entropyDrawn: entropyDrawn)
  }

  /// The input and outputs of an endpoint's step; nil and an empty array for other machines.
  package var peerInput: PeerInput? { input as? PeerInput }
  package var peerOutputs: [PeerOutput] { (outputs as? OutputList<PeerOutput>)?.all ?? [] }
}

/// The state, besides the current step, that an endpoint's rows depend on.
final class EndpointNotes: ActorNotes {
  /// The id of the transport-wide sequence number header extension; 0 if it is not negotiated.
  var transportSequenceID: UInt8 = 0
  var meter = LevelMeter()
  var calls = CallMemory()

  /// The members of each stats object in the last row about it, by id.
  private var samples: [String: String] = [:]
  /// The ids of all objects in the last complete report, in order.
  private var reported: [String] = []

  /// Returns whether a stats object changed since its last row, and records the new members.
  func isNews(_ id: String, _ members: String) -> Bool {
    samples.updateValue(members, forKey: id) != members
  }

  /// Returns the ids that the last complete report had and this report lacks; remembers this
  /// report's ids.
  func gone(_ report: StatsReport) -> [String] {
    let present = report.objects.map(\.id)
    let known = Set(present)
    let gone = reported.filter { !known.contains($0) }
    reported = present
    // If the object reappears, it gets a row even if its members are unchanged.
    for id in gone { samples[id] = nil }
    return gone
  }
}

// MARK: - LevelMeter

/// Sums up each track's audio over 100 ms for the rows of `level`.
struct LevelMeter {
  /// The sum of a track's audio since the track's last row.
  struct Sum {
    var began: Instant
    var energy: UInt64 = 0
    var samples: Int64 = 0
    var peak: UInt16 = 0
    /// The decaying peak of libwebrtc's level meter.
    ///
    /// It falls to a quarter with every row, and in libwebrtc every 110 ms.
    var meter: UInt16 = 0
    /// The loudest level in the sender's packets (RFC 6464); nil if they have none.
    var senderLevel: UInt8?
    var isVoice = false
    /// The sources that are mixed into the track, each with its loudest level (RFC 6465).
    var contributors: [Contributor] = []

    mutating func add(_ contributor: Contributor) {
      guard let index = contributors.firstIndex(where: { $0.source == contributor.source }) else {
        if contributors.count < Sum.contributorsMaximum { contributors.append(contributor) }
        return
      }
      guard let level = contributor.level else { return }
      contributors[index].level = min(level, contributors[index].level ?? level)
    }

    /// The maximum number of contributors.
    ///
    /// A packet has at most 15, but a remote peer may name others in each packet.
    private static let contributorsMaximum = 32
  }

  private struct Track {
    var transceiver: UInt32
    var isInbound: Bool
    var sum: Sum?
    var meter: UInt16 = 0
  }

  private var tracks: [Track] = []

  /// The number of samples per row, which is 100 ms.
  private static let window = Int64(AudioBlock.sampleRate / 10)
  /// A sum that began longer ago than this is discarded.
  private static let longestWindow = Interval.milliseconds(300)
  /// The maximum number of tracks with rows; only a faulty application creates more transceivers.
  private static let tracksMaximum = 1024

  /// Adds a block to its track's sum; returns the sum if it has reached 100 ms.
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
