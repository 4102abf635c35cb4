import Media
package import Peer
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
