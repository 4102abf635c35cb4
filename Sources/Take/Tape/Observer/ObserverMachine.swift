import Flow
import FoundationEssentials
import ICE
package import Media
package import Observer
package import Peer
import RTP
import SDP
import Secure
package import Stats
package import Wire

/// An observer as a recorded machine; it adds two peers to the take for each call that it finds.
package final class ObserverMachine: RecordedMachine {
  package static var machineKind: MachineKind { .observer }
  package static func decoder(_ contents: ContentSource) -> ObserverDecoder { ObserverDecoder() }

  private var observer = Observer()
  private var firstPeer: UInt32 = 1
  /// The configuration, which includes names for the ends.
  private var genesis = ObserverGenesis()
  /// For each transport, the two peers of the call that it is part of.
  private var peersOfTransport: [Int: [UInt32]] = [:]
  private var outputs = Outbox<Observer.Output>()
  private var receivers = ObservedPeers(ObserverGenesis())
  /// Outputs that did not fit into the step of their input, oldest first.
  private var surplus = Outbox<ObserverOutput>()
  private var rowsPerStep: Int?
  private var now = Instant.zero

  /// Receives each step's input and outputs before the step ends; nil while recording.
  private let onlooker: Onlooker?

  /// A closure that follows an observer in a replay.
  package typealias Onlooker = (
    _ input: ObserverInput, _ outputs: [ObserverOutput], _ at: Instant
  ) -> Void

  /// Creates the codecs of the peer with a number; nil uses the libraries' codecs.
  private let codecs: ((UInt32) -> any CodecFactory)?
  /// Returns the minimum delay of the jitter buffers of the peer with a number, which is normally
  /// zero.
  private let minimumDelay: (UInt32) -> Interval

  /// Creates an observer; its first input must be its genesis.
  package init(
    onlooker: Onlooker? = nil, codecs: ((UInt32) -> any CodecFactory)? = nil,
    minimumDelay: @escaping (UInt32) -> Interval = { _ in .zero }
  ) {
    self.onlooker = onlooker
    self.codecs = codecs
    self.minimumDelay = minimumDelay
  }

  package var deadline: Instant? {
    isBehind ? now : earliest(observer.deadline, receivers.wake)
  }

  /// Whether outputs are left over, in which case another step is due immediately.
  package var isBehind: Bool { !surplus.isEmpty }

  package var machineSnapshot: (any MachineSnapshot)? {
    ObserverSnapshot(
      calls: observer.calls, pairs: observer.pairs, streams: observer.streams,
      waitingPackets: observer.waitingPackets)
  }

  /// Returns whether packets between two addresses belong to a call.
  package func knows(_ tuple: FiveTuple) -> Bool { observer.knows(tuple) }

  /// Whether the observer ignores further paths because it has the maximum number.
  package var isFull: Bool { observer.isFull }

  /// Returns whether two addresses belong to a client and its TURN server.
  package func knowsRelay(_ tuple: FiveTuple) -> Bool { observer.knowsRelay(tuple) }

  /// Returns what `getStats` would return at both ends of every call, limited to what packets show.
  package func stats(at now: Instant) -> [(peer: UInt32, label: String, report: StatsReport)] {
    observer.calls.flatMap { call in
      (0..<2).map { end in
        let peer = firstPeer + 2 * UInt32(call.number - 1) + UInt32(end)
        return (peer, call.addresses[end].description, receivers.report(of: peer, at: now))
      }
    }
  }

  package func step(
    _ input: ObserverInput, at now: Instant, into outbox: inout Outbox<ObserverOutput>
  ) {
    self.now = now
    if case .genesis(let genesis) = input {
      rowsPerStep = genesis.rowsPerStep.map { min(max($0, 1024), RowNumber.perStep / 4) }
    }
    if let rowsPerStep {
      apply(input, at: now, into: &surplus)
      handOn(rowsPerStep, into: &outbox)
    } else {
      apply(input, at: now, into: &outbox)
    }
    onlooker?(input, outbox.outputs, now)
  }

  /// Emits outputs until the step has enough rows, or no output is left.
  private func handOn(_ rowsPerStep: Int, into outbox: inout Outbox<ObserverOutput>) {
    var rows = 0
    while rows < rowsPerStep, var output = surplus.next() {
      output.limitRows(to: rowsPerStep)
      rows += output.rowsMaximum
      outbox.append(output)
    }
  }

  private func apply(
    _ input: ObserverInput, at now: Instant, into outbox: inout Outbox<ObserverOutput>
  ) {
    switch input {
    case .genesis(let genesis):
      self.genesis = genesis
      observer = Observer(genesis.settings)
      firstPeer = min(genesis.firstPeer, ObserverGenesis.firstPeerMaximum)
      receivers = ObservedPeers(genesis, codecs: codecs, minimumDelay: minimumDelay)
    case .datagram(let datagram, let isTruncated, let arrival):
      let tuple = FiveTuple(.udp, from: datagram.local, to: datagram.remote)
      observer.step(
        .datagram(
          tuple, datagram.bytes, isTruncated: isTruncated, arrival: arrival, ecn: datagram.ecn),
        at: now, into: &outputs)
    case .data(let datagram, let arrival):
      let tuple = FiveTuple(.udp, from: datagram.local, to: datagram.remote)
      observer.step(
        .data(tuple, datagram.bytes, arrival: arrival), at: now, into: &outputs)
    case .call(let call):
      if let seen = call.input { observer.step(seen, at: now, into: &outputs) }
    case .deadline:
      if let due = observer.deadline, due <= now {
        observer.step(.deadline, at: now, into: &outputs)
      }
      receivers.reachDeadline(at: now, into: &outbox)
    }
    while let output = outputs.next() {
      if case .transport(let transport) = output {
        peersOfTransport[transport.number] = peers(ofCall: transport.call)
      }
      receivers.record(output)
      let peers = peers(of: output)
      outbox.append(ObserverOutput(output, peers: peers, genesis: genesis))
      if let peers { receivers.handle(output, peers, into: &outbox) }
    }
    if case .call(.end) = input { receivers.end(at: now, into: &outbox) }
  }

  /// Returns the two peers of the call that an output is about; nil before the call is known.
  private func peers(of output: Observer.Output) -> [UInt32]? {
    switch output {
    case .call(let found): peers(ofCall: found.number)
    case .transport(let transport): peers(ofCall: transport.call)
    default: output.transport.flatMap { peersOfTransport[$0] }
    }
  }

  private func peers(ofCall call: Int) -> [UInt32] {
    let first = firstPeer + 2 * UInt32(call - 1)
    return [first, first + 1]
  }
}

/// The state of an observer, for the debugger.
package struct ObserverSnapshot: MachineSnapshot {
  package var calls: [ObservedCall]
  package var pairs: [ObservedPair]
  package var streams: [ObservedStream]
  package var waitingPackets: Int
}

extension ObserverCall {
  /// The call as the observer's input; nil if an address or key is malformed.
  fileprivate var input: Observer.Input? {
    switch self {
    case .keyLog(let lines): return .keyLog([UInt8](lines.utf8))
    case .srtpKey(let text): return (try? SRTPKey(parsing: text)).map { .srtpKey($0) }
    case .description(let text): return .description(text)
    case .signaling(let text): return .description(text, .wire)
    case .notSeen(let kind, let count, let detail):
      return CoverageKind(rawValue: kind).map { .notSeen($0, count: count, detail: detail) }
    case .segment(let source, let destination, let bytes, let lost, let isEnd):
      guard let source = SocketAddress(source), let destination = SocketAddress(destination) else {
        return nil
      }
      return .stream(
        FiveTuple(.tcp, from: source, to: destination), [UInt8](bytes), lost: lost, isEnd: isEnd)
    case .clearPath(let source, let destination, let fragments):
      guard let source = SocketAddress(source), let destination = SocketAddress(destination) else {
        return nil
      }
      return .clearPath(
        FiveTuple(.udp, from: source, to: destination), fragments: fragments)
    case .noMoreKeys: return .noMoreKeys
    case .end: return .end
    }
  }
}

/// An output of an observer, or of its model of an end.
package struct ObserverOutput: RecordedOutput {
  /// An output with its origin.
  package enum Content: Sendable {
    /// An output of the observer itself.
    case output(Observer.Output)
    /// An output of the model of one end, with the end's own time.
    case followed(ObservedPeer.Output, at: Instant)
    /// A message that an end sent on a data channel.
    case sent(DataMessage, at: Instant)
  }

  package private(set) var content: Content
  /// The peers that the output is about, one or both ends of a call; nil if it is not about a call.
  package let peers: [UInt32]?
  /// The names of both ends, if the output begins a call.
  package private(set) var labels: [String] = []

  init(_ output: Observer.Output, peers: [UInt32]?, genesis: ObserverGenesis) {
    if case .call(let call) = output { labels = call.addresses.map(genesis.label) }
    content = .output(output)
    self.peers = peers
  }

  init(_ output: ObservedPeer.Output, of peer: UInt32, at: Instant) {
    content = .followed(output, at: at)
    peers = [peer]
  }

  init(sent message: DataMessage, by peer: UInt32, at: Instant) {
    content = .sent(message, at: at)
    peers = [peer]
  }

  /// Whether the output is an unencrypted packet; nil if it is not a packet at all.
  package var isPacketInClear: Bool? {
    guard case .output(.packet(let packet)) = content else { return nil }
    return packet.isClear
  }

  /// Whether the output is an SCTP packet.
  package var isData: Bool {
    guard case .output(.packet(let packet)) = content else { return false }
    return packet.kind == .sctp
  }

  /// Whether the output has rows; the only packets with rows are unencrypted RTCP.
  package var hasRows: Bool {
    guard case .output(.packet(let packet)) = content else { return true }
    return packet.kind == .rtcp && packet.isClear
  }

  /// The maximum number of rows that the output may have.
  var rowsMaximum: Int {
    switch content {
    case .output(.packet(let packet)):
      // Every four bytes may contain an RTCP block, and each block has a row at both ends.
      packet.kind == .rtcp && packet.isClear ? packet.bytes.count / 2 : 0
    case .output(.stream(let stream)): 2 * max(1, stream.payloads.count)
    case .output: 2
    case .followed(.event, _): 4
    case .followed(.stats(let report), _): report.objects.count
    case .sent: 1
    }
  }

  /// Shortens a stats report that has more objects than fit into a step.
  mutating func limitRows(to most: Int) {
    guard case .followed(.stats(var report), let at) = content, report.objects.count > most else {
      return
    }
    report.objects.removeLast(report.objects.count - most)
    content = .followed(.stats(report), at: at)
  }

  package var byteCount: Int {
    switch content {
    case .output(.packet(let packet)): packet.bytes.count
    case .output(.carried(let datagram)): datagram.bytes.count
    case .output: 0
    case .followed(.event(let event), _): PeerOutput.event(event).byteCount
    case .followed(.stats(let report), _): report.objects.count * 1000
    case .sent(let message, _): message.bytes.count
    }
  }

  package mutating func digest() {
    guard case .followed(.event(.frame), let at) = content,
      case .followed(.event(let event), _) = content
    else { return }
    var output = PeerOutput.event(event)
    output.digest()
    if case .event(let digested) = output { content = .followed(.event(digested), at: at) }
  }

  package func write(to transcript: inout Transcript) {
    switch content {
    case .output(let output): write(output, to: &transcript)
    case .followed(let output, let at):
      guard let peer = peers?.first else { return }
      transcript.add(of: peer, at: at) { transcript in
        switch output {
        case .event(let event): transcript.append(event)
        case .stats(let report): transcript.append(report, id: 0)
        }
      }
    case .sent(let message, let at):
      guard let peer = peers?.first else { return }
      transcript.add(of: peer, at: at) { $0.append(seen: message) }
    }
  }

  private func write(_ output: Observer.Output, to transcript: inout Transcript) {
    switch output {
    case .coverage(let row):
      let reason = row.detail.isEmpty ? "\(row.count)" : "\(row.count): \(row.detail)"
      transcript.addCoverage(
        peer: nil, from: .zero, to: transcript.at, what: row.kind.rawValue, reason: reason)
    case .carried(let datagram):
      // Peer 0 and direction `out` mark the path of an extracted datagram.
      transcript.append(
        Datagram(
          local: datagram.tuple.source, remote: datagram.tuple.destination, bytes: datagram.bytes),
        at: datagram.at, isInbound: false, transportSequenceID: 0)
    default:
      guard let peers else { return }
      for end in 0..<2 { write(output, end, peers[end], to: &transcript) }
    }
  }

  /// Writes an output's rows for one end of the call.
  private func write(
    _ output: Observer.Output, _ end: Int, _ peer: UInt32, to transcript: inout Transcript
  ) {
    switch output {
    case .coverage, .transport, .keys, .extensions, .carried, .checked: break
    case .call(let call):
      var row = PeerRow(label: labels[end], role: "observed")
      row.configuration = "{}"
      row.actor = ActorNumber(number: transcript.actor)
      transcript.add(of: peer, at: call.began) { $0.add(row) }
    case .state(let state) where state.end == end:
      transcript.add(StateRow(machine: state.machine, from: state.from, to: state.to), of: peer)
    case .state: break
    case .candidate(let candidate):
      transcript.add(row(candidate, isLocal: candidate.end == end), of: peer)
    case .pair(let pair): transcript.add(row(pair, end), of: peer)
    case .handshake(_, let facts): transcript.add(row(facts, end), of: peer)
    case .stream(let stream):
      for payload in stream.payloads {
        transcript.add(row(stream, payload, isInbound: stream.from != end), of: peer)
      }
    case .packet(let packet):
      guard packet.kind == .rtcp, packet.isClear else { return }
      for block in RTCPCompound(parsing: packet.bytes.span.bytes).packets {
        let record = RTCPRecord(block, isInbound: packet.from != end)
        transcript.add(
          RTCPRow(
            direction: Direction(isInbound: record.isInbound), type: record.type,
            ssrc: record.ssrc, fields: record.fields), of: peer)
      }
    case .description(let description):
      transcript.add(
        SignalingRow(
          direction: Direction(isInbound: description.end != end),
          transport: description.how.rawValue, type: "description", message: description.text),
        of: peer)
    }
  }

  private func row(_ candidate: ObservedCandidate, isLocal: Bool) -> CandidateRow {
    CandidateRow(
      type: isLocal ? "local-candidate" : "remote-candidate",
      candidateType: candidate.kind?.rawValue ?? "", component: 1,
      protocol: "\(candidate.transportProtocol)", priority: candidate.priority ?? 0,
      address: candidate.address.ip.description, port: candidate.address.port)
  }

  private func row(_ pair: ObservedPair, _ end: Int) -> CandidatePairRow {
    let (local, remote) = (pair.addresses[end], pair.addresses[1 - end])
    var row = CandidatePairRow(
      pair: UInt32(clamping: pair.number), local: local.description,
      remote: remote.description, base: pair.bases[end].description)
    (row.localType, row.remoteType) = (pair.types[end].rawValue, pair.types[1 - end].rawValue)
    row.priority = pair.priority
    row.state = pair.hasSucceeded[end] ? "succeeded" : "in-progress"
    (row.nominated, row.selected) = (pair.isNominated, pair.isSelected)
    (row.requestsSent, row.requestsReceived) = (pair.requests[end], pair.requests[1 - end])
    (row.responsesSent, row.responsesReceived) = (pair.responses[end], pair.responses[1 - end])
    row.currentRoundTrip = pair.roundTrips[end]?.seconds
    return row
  }

  private func row(_ facts: DTLSFacts, _ end: Int) -> EventRow {
    let version = facts.version.map {
      $0 == 0xfefc ? "DTLSv1.3" : $0 == 0xfefd ? "DTLSv1.2" : "DTLSv1"
    }
    let fingerprint = facts.fingerprints[1 - end]?.value
    return EventRow(
      type: "secured",
      detail: JSONText.object([
        ("version", .text(version ?? "")), ("cipherSuite", .text(facts.cipherSuite?.name ?? "")),
        ("profile", .text(facts.profileName ?? "")),
        ("role", .text(facts.client == end ? "client" : "server")),
        ("remoteFingerprint", .text(fingerprint ?? "")),
      ]).text)
  }

  private func row(_ stream: ObservedStream, _ payload: PayloadMeaning, isInbound: Bool)
    -> TrackRow
  {
    TrackRow(
      track: UInt32(clamping: stream.number), mid: stream.mid ?? "",
      kind: payload.kind?.rawValue ?? stream.kind?.rawValue ?? "",
      direction: Direction(isInbound: isInbound), ssrc: stream.ssrc, codec: payload.codec,
      payloadType: payload.payloadType, clockRate: payload.clockRate)
  }
}
