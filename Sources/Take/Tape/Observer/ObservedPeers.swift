import Flow
import Media
import Observer
import Peer
import RTP
import Stats
import Wire

/// The ends of the calls that an observer found: hands each what it receives and sends.
///
/// Packets that waited for keys are older than the step that opens them; their ends then live
/// through the time in between within that step.
struct ObservedPeers {
  private struct End {
    var peer: ObservedPeer
    var clock = Instant.zero
  }

  private let firstPeer: UInt32
  private let wallClock: WallClock
  private let codecs: (any CodecFactory)?
  private let furtherDecoders: [CodecName]
  private let playsG711: Bool
  private let countsEarlyRepeats: Bool
  private let repairsFully: Bool
  private var ends: [End] = []
  /// The streams as they are known, and the first peer of the call that they were given to.
  private var streams: [Int: (stream: ObservedStream, given: UInt32)] = [:]
  /// Nil where samples of the stats say nothing about them.
  private var transports: ObservedTransports?
  private var channels = ObservedChannels()
  private var outputs = Outbox<ObservedPeer.Output>()
  /// When some end wants its deadline; it may be too early, never too late.
  private(set) var deadline: Instant?
  private var dues = DueQueue()
  /// The multiples of time at which they are woken; 0 for any time.
  private let wakeInterval: Int64

  /// When some end is to be woken.
  var wake: Instant? {
    guard wakeInterval > 0, let deadline else { return deadline }
    let rest = deadline.nanoseconds % wakeInterval
    guard rest > 0, deadline.nanoseconds < .max - wakeInterval else { return deadline }
    return Instant(nanoseconds: deadline.nanoseconds -| rest +| wakeInterval)
  }

  init(_ genesis: ObserverGenesis) {
    firstPeer = min(genesis.firstPeer, ObserverGenesis.firstPeerMaximum)
    wakeInterval = min(max(genesis.wakeMilliseconds ?? 0, 0), 1_000) * 1_000_000
    wallClock = WallClock(unixNanosecondsAtZero: genesis.startUnixNanoseconds)
    codecs = genesis.decodes ? LibraryCodecs() : nil
    furtherDecoders = (genesis.decoders ?? []).map { CodecName(rawValue: $0) }
    playsG711 = genesis.playsG711 ?? false
    countsEarlyRepeats = genesis.countsEarlyRepeats ?? false
    repairsFully = genesis.repairsFully ?? false
    transports = genesis.tellsTransports == true ? ObservedTransports() : nil
  }

  /// Records what the wire shows below the streams.
  mutating func record(_ output: Observer.Output) { transports?.handle(output) }

  /// What getStats would give at a peer.
  func report(of peer: UInt32, at now: Instant) -> StatsReport {
    let index = Int(peer) - Int(firstPeer)
    guard ends.indices.contains(index) else { return StatsReport() }
    return whole(ends[index].peer.report(at: now), of: peer, at: now)
  }

  /// A report of an end with what is known of its transports.
  private func whole(_ report: StatsReport, of peer: UInt32, at now: Instant) -> StatsReport {
    guard let transports else { return report }
    let index = Int(peer) - Int(firstPeer)
    var report = report
    report.objects += channels.objects(of: peer, at: now, wallClock)
    report.objects += transports.objects(
      ofCall: index / 2 + 1, end: index % 2, peer: peer, at: now, wallClock)
    return report
  }

  /// Handles what the wire showed of a call.
  mutating func handle(
    _ output: Observer.Output, _ peers: [UInt32], into outbox: inout Outbox<ObserverOutput>
  ) {
    switch output {
    case .call: add(through: peers)
    case .stream(let stream):
      add(through: peers)
      learn(stream, peers, into: &outbox)
    case .extensions(_, let map, _):
      add(through: peers)
      for peer in peers { drive(peer, .extensions(map), at: .zero, into: &outbox) }
    case .packet(let packet): handle(packet, peers, into: &outbox)
    case .description(let description):
      add(through: peers)
      let isMozilla = description.text.contains("o=mozilla")
      guard isMozilla else { return }
      drive(peers[description.end], .countsMediaAlone, at: .zero, into: &outbox)
    default: break
    }
  }

  /// Lets all ends do what is due.
  mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<ObserverOutput>) {
    guard let due = deadline, due <= now else { return }
    for index in dues.removeDue(until: now, { ends[$0].peer.deadline }) {
      drive(firstPeer + UInt32(index), .deadline, at: now, into: &outbox)
    }
    deadline = dues.first { ends[$0].peer.deadline }
  }

  /// Ends the capture.
  mutating func end(at now: Instant, into outbox: inout Outbox<ObserverOutput>) {
    for index in ends.indices {
      drive(firstPeer + UInt32(index), .end, at: now, into: &outbox)
    }
  }

  // MARK: Ends

  private mutating func add(through peers: [UInt32]) {
    while let last = peers.last, Int(last) - Int(firstPeer) >= ends.count {
      let number = firstPeer + UInt32(ends.count)
      ends.append(
        End(
          peer: ObservedPeer(
            number: number, wallClock: wallClock, codecs: codecs,
            furtherDecoders: furtherDecoders, playsG711: playsG711,
            countsEarlyRepeats: countsEarlyRepeats, repairsFully: repairsFully)))
    }
  }

  private mutating func drive(
    _ peer: UInt32, _ input: consuming ObservedPeer.Input, at instant: Instant,
    into outbox: inout Outbox<ObserverOutput>
  ) {
    let index = Int(peer) - Int(firstPeer)
    guard ends.indices.contains(index) else { return }
    let at = max(ends[index].clock, instant)
    while let due = ends[index].peer.deadline, due < at {
      let past = max(ends[index].clock, due)
      ends[index].clock = past
      ends[index].peer.step(.deadline, at: past, into: &outputs)
      emit(peer, at: past, into: &outbox)
    }
    ends[index].clock = at
    ends[index].peer.step(input, at: at, into: &outputs)
    emit(peer, at: at, into: &outbox)
    let due = ends[index].peer.deadline
    deadline = earliest(deadline, due)
    dues.schedule(index, at: due)
  }

  private mutating func emit(
    _ peer: UInt32, at instant: Instant, into outbox: inout Outbox<ObserverOutput>
  ) {
    while var output = outputs.next() {
      if case .stats(let report) = output { output = .stats(whole(report, of: peer, at: instant)) }
      outbox.append(ObserverOutput(output, of: peer, at: instant))
    }
  }

  // MARK: Streams and packets

  private mutating func learn(
    _ stream: ObservedStream, _ peers: [UInt32], into outbox: inout Outbox<ObserverOutput>
  ) {
    streams[stream.number] = (stream, peers[0])
    guard !stream.isRepair || stream.repairs != nil else { return }
    // What it protects is not known yet.
    guard !repairsFully || !stream.isCorrection || stream.protects != nil else { return }
    for end in 0..<2 {
      var track = ObservedTrack(stream, isInbound: stream.from != end)
      if transports != nil { track.transport = stream.transport }
      drive(peers[end], .stream(track), at: .zero, into: &outbox)
    }
  }

  private mutating func handle(
    _ packet: ObservedPacket, _ peers: [UInt32], into outbox: inout Outbox<ObserverOutput>
  ) {
    switch packet.kind {
    case .rtp(let header, let number):
      // A stream that continues in another call is news to its ends.
      if let known = streams[number], known.given != peers[0] {
        learn(known.stream, peers, into: &outbox)
      }
      var seen = SeenPacket(
        header: header, bytes: packet.isClear ? packet.bytes : [], isClear: packet.isClear)
      seen.arrival = packet.at
      seen.ecn = packet.ecn
      for end in 0..<2 {
        drive(
          peers[end],
          .rtp(seen, stream: UInt32(clamping: number), isInbound: packet.from != end),
          at: packet.at, into: &outbox)
      }
    case .rtcp where packet.isClear:
      let compound = RTCPCompound(parsing: packet.bytes.span.bytes).packets
      for end in 0..<2 {
        drive(
          peers[end], .rtcp(compound, isInbound: packet.from != end), at: packet.at,
          into: &outbox)
      }
    case .sctp where packet.isClear:
      channels.receive(
        packet.bytes, transport: packet.transport, from: packet.from, peers, at: packet.at,
        into: &outbox)
    case .rtcp, .sctp: break
    }
  }
}

extension ObservedStream {
  /// Whether it sends packets of another one again.
  fileprivate var isRepair: Bool { payloads.first?.codec == "rtx" }

  /// Whether it corrects errors of another one.
  fileprivate var isCorrection: Bool { payloads.first?.codec.hasPrefix("flexfec") == true }
}

extension ObservedTrack {
  /// A stream as one of its ends has it.
  fileprivate init(_ stream: ObservedStream, isInbound: Bool) {
    self.init(
      number: UInt32(clamping: stream.number), ssrc: stream.ssrc, isInbound: isInbound,
      kind: stream.kind, mid: stream.mid ?? "")
    repairs = stream.repairs
    protects = stream.protects
    protectedBy = stream.protectedBy
    agreesOnCorrection = stream.agreesOnCorrection
    canonicalName = stream.canonicalName
    for payload in stream.payloads where payload.codec == "rtx" {
      repeatedTypes[payload.payloadType] = payload.associated
    }
    for payload in stream.payloads where payload.parameters?.isEmpty == false {
      parameters[payload.payloadType] = payload.parameters
    }
    for payload in stream.payloads where payload.codec != "rtx" && payload.clockRate > 0 {
      codecs.append(
        FlowSection.Codec(
          payloadType: payload.payloadType, name: CodecName(rawValue: payload.codec),
          clockRate: payload.clockRate, rtxPayloadType: nil,
          // Whether the real receiver asks for lost packets shows in whether they come.
          feedback: stream.kind == .video ? ["nack"] : []))
    }
  }
}
