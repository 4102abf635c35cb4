import Flow
import Media
import Observer
import Peer
import RTP
import SCTP
import Stats
import Wire

/// Models both ends of each observed call by feeding them the packets that they sent and received.
///
/// Packets that waited for keys are older than the step that decrypts them. Each end therefore has
/// its own clock, and its timers fire between such packets.
struct ObservedPeers {
  private struct End {
    var peer: ObservedPeer
    var clock = Instant.zero
  }

  private let firstPeer: UInt32
  private let wallClock: WallClock
  /// Creates the codecs of an end; nil if nothing is decoded.
  private let makeCodecs: ((UInt32) -> any CodecFactory)?
  private let furtherDecoders: [CodecName]
  private let playsG711: Bool
  private let countsEarlyRepeats: Bool
  private let repairsFully: Bool
  private let followsRestarts: Bool
  private let minimumDelay: (UInt32) -> Interval
  private var ends: [End] = []
  /// The known streams, each with the first peer of the call whose ends know the stream.
  private var streams: [Int: (stream: ObservedStream, given: UInt32)] = [:]
  /// The observed transports; nil in older takes, whose stats do not contain them.
  private var transports: ObservedTransports?
  private var channels = ObservedChannels()
  private var outputs = Outbox<ObservedPeer.Output>()
  /// The earliest deadline of any end, or an earlier time; nil if no end has a deadline.
  private(set) var deadline: Instant?
  private var dues = DueQueue()
  /// The interval to which wake-ups are rounded up, in nanoseconds; 0 wakes each end exactly on
  /// time.
  private let wakeInterval: Int64

  /// The time at which to run the ends next; nil if no end has a deadline.
  var wake: Instant? {
    guard wakeInterval > 0, let deadline else { return deadline }
    let rest = deadline.nanoseconds % wakeInterval
    guard rest > 0, deadline.nanoseconds < .max - wakeInterval else { return deadline }
    return Instant(nanoseconds: deadline.nanoseconds -| rest +| wakeInterval)
  }

  /// - Parameters:
  ///   - codecs: creates the codecs of the peer with a number; nil uses the libraries' codecs.
  ///   - minimumDelay: returns the minimum delay of the jitter buffers of the peer with a number.
  init(
    _ genesis: ObserverGenesis, codecs: ((UInt32) -> any CodecFactory)? = nil,
    minimumDelay: @escaping (UInt32) -> Interval = { _ in .zero }
  ) {
    self.minimumDelay = minimumDelay
    firstPeer = min(genesis.firstPeer, ObserverGenesis.firstPeerMaximum)
    wakeInterval = min(max(genesis.wakeMilliseconds ?? 0, 0), 1_000) * 1_000_000
    wallClock = WallClock(unixNanosecondsAtZero: genesis.startUnixNanoseconds)
    makeCodecs = genesis.decodes ? codecs ?? { _ in LibraryCodecs() } : nil
    furtherDecoders = (genesis.decoders ?? []).map { CodecName(rawValue: $0) }
    playsG711 = genesis.playsG711 ?? false
    countsEarlyRepeats = genesis.countsEarlyRepeats ?? false
    repairsFully = genesis.repairsFully ?? false
    followsRestarts = genesis.judgesClosely ?? false
    transports = genesis.tellsTransports == true ? ObservedTransports() : nil
  }

  /// Counts an output of the observer in the statistics of transports and candidate pairs.
  mutating func record(_ output: Observer.Output) { transports?.handle(output) }

  /// Returns what `getStats` would return at a peer.
  func report(of peer: UInt32, at now: Instant) -> StatsReport {
    let index = Int(peer) - Int(firstPeer)
    guard ends.indices.contains(index) else { return StatsReport() }
    return whole(ends[index].peer.report(at: now), of: peer, at: now)
  }

  /// Adds data channels and transports to an end's report.
  private func whole(_ report: StatsReport, of peer: UInt32, at now: Instant) -> StatsReport {
    guard let transports else { return report }
    let index = Int(peer) - Int(firstPeer)
    var report = report
    report.objects += channels.objects(of: peer, at: now, wallClock)
    report.objects += transports.objects(
      ofCall: index / 2 + 1, end: index % 2, peer: peer, at: now, wallClock)
    return report
  }

  /// Passes an output of the observer to the ends of its call.
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

  /// Runs the ends whose deadlines have passed.
  mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<ObserverOutput>) {
    guard let due = deadline, due <= now else { return }
    for index in dues.removeDue(until: now, { ends[$0].peer.deadline }) {
      drive(firstPeer + UInt32(index), .deadline, at: now, into: &outbox)
    }
    deadline = dues.first { ends[$0].peer.deadline }
  }

  /// Ends all observed peers when the capture is over.
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
            number: number, wallClock: wallClock, codecs: makeCodecs?(number),
            furtherDecoders: furtherDecoders, playsG711: playsG711,
            countsEarlyRepeats: countsEarlyRepeats, repairsFully: repairsFully,
            followsRestarts: followsRestarts, minimumDelay: minimumDelay(number))))
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
    // A FlexFEC stream is withheld from the ends until it is known which stream it protects.
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
      // A stream may continue in the next call, whose ends do not know it yet.
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
  /// Whether the stream retransmits the packets of another stream.
  fileprivate var isRepair: Bool { payloads.first?.codec == "rtx" }

  /// Whether the stream carries forward error correction for another stream.
  fileprivate var isCorrection: Bool { payloads.first?.codec.hasPrefix("flexfec") == true }
}

extension ObservedTrack {
  /// Describes a stream from the point of view of one end.
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
          // The packets show whether the real receiver sends NACKs, so NACKs are always allowed for
          // video.
          feedback: stream.kind == .video ? ["nack"] : []))
    }
  }
}

// MARK: - ObservedChannels

/// The data channels of observed calls, from the point of view of both ends.
struct ObservedChannels {
  private struct Association {
    var transport: Int
    var peers: [UInt32]
    var follower = SCTPFollower()
    /// The numbers that the association's channels have at both peers, by the numbers that
    /// `follower` uses.
    var numbers: [Int: UInt32] = [:]
  }

  /// The maximum number of associations; each may have several megabytes of incomplete messages.
  private static let associationsMaximum = 64

  private var associations: [Association] = []
  /// The indexes of associations by their transport's number.
  private var places: [Int: Int] = [:]
  /// The number of channels per call, by its first peer; both peers number them alike.
  private var counts: [UInt32: UInt32] = [:]
  /// The number of data chunks that were acknowledged but are missing from the capture.
  private(set) var missed = 0

  /// Handles a decrypted SCTP packet.
  mutating func receive(
    _ packet: [UInt8], transport: Int, from end: Int, _ peers: [UInt32], at now: Instant,
    into outbox: inout Outbox<ObserverOutput>
  ) {
    guard peers.count == 2, (0...1).contains(end) else { return }
    if places[transport] == nil {
      guard associations.count < Self.associationsMaximum else { return }
      places[transport] = associations.count
      associations.append(Association(transport: transport, peers: peers))
    }
    guard let place = places[transport] else { return }
    associations[place].peers = peers
    var events: [SCTPFollower.Event] = []
    associations[place].follower.receive(packet, from: end, into: &events)
    for event in events { report(event, place, at: now, into: &outbox) }
  }

  private mutating func report(
    _ event: SCTPFollower.Event, _ place: Int, at now: Instant,
    into outbox: inout Outbox<ObserverOutput>
  ) {
    let peers = associations[place].peers
    switch event {
    case .channel(let channel):
      let number = number(of: channel, place)
      for end in 0..<2 {
        outbox.append(
          ObserverOutput(
            .event(.dataChannel(DataChannelRecord(channel, number, end))), of: peers[end],
            at: now))
      }
    case .message(let channel, let end, let isBinary, let bytes):
      let message = DataMessage(
        channel: number(of: channel, place), isBinary: isBinary, bytes: bytes)
      outbox.append(ObserverOutput(sent: message, by: peers[end], at: now))
      outbox.append(ObserverOutput(.event(.message(message)), of: peers[1 - end], at: now))
    case .missed(let count): missed += count
    }
  }

  /// Returns a channel's number, which is the same at both peers; numbers continue across all
  /// transports of a call.
  private mutating func number(of channel: FollowedChannel, _ place: Int) -> UInt32 {
    if let known = associations[place].numbers[channel.number] { return known }
    let first = associations[place].peers[0]
    let number = counts[first, default: 0]
    counts[first] = number &+ 1
    associations[place].numbers[channel.number] = number
    return number
  }

  /// Returns stats objects for a peer's open channels.
  func objects(of peer: UInt32, at now: Instant, _ wallClock: WallClock) -> [StatsObject] {
    var objects: [StatsObject] = []
    for association in associations {
      guard let end = association.peers.firstIndex(of: peer) else { continue }
      for channel in association.follower.channels where channel.state != .closed {
        guard let number = association.numbers[channel.number] else { continue }
        var stats = StatsBuilder(
          id: "D\(peer)-\(number)", type: "data-channel",
          timestamp: wallClock.milliseconds(at: now))
        stats.set("label", channel.options.label)
        stats.set("protocol", channel.options.protocol)
        stats.set("dataChannelIdentifier", channel.options.id)
        stats.set("state", channel.state.rawValue)
        stats.set("messagesSent", channel.messages[end])
        stats.set("bytesSent", channel.bytes[end])
        stats.set("messagesReceived", channel.messages[1 - end])
        stats.set("bytesReceived", channel.bytes[1 - end])
        objects.append(stats.build())
      }
    }
    return objects
  }
}

extension DataChannelRecord {
  /// Describes a channel from the point of view of one end.
  fileprivate init(_ channel: FollowedChannel, _ number: UInt32, _ end: Int) {
    var counters = DataChannelCounters()
    counters.messagesSent = channel.messages[end]
    counters.bytesSent = channel.bytes[end]
    counters.messagesReceived = channel.messages[1 - end]
    counters.bytesReceived = channel.bytes[1 - end]
    self.init(
      channel: number, isRemote: channel.opener.map { $0 != end } ?? false,
      options: channel.options, state: channel.state, counters: counters)
  }
}
