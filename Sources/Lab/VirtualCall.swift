import JSEP
package import Media
package import Peer
import SDP
package import Secure
package import Tape
package import Wire

/// Full client stacks, usually two, in virtual time over a seeded network.
///
/// The same seed produces the same call, step by step; a sink can record the steps like those of a
/// live call.
package final class VirtualCall {
  /// Receives every step in order.
  package typealias StepSink = (StepRecord) -> Void

  package private(set) var now = Instant.zero
  package var network: VirtualNetwork
  /// The peers' stream connections, which have the first link's delay and lose nothing.
  package var streams: VirtualStreams
  /// Each peer's events with their instants, for assertions.
  package private(set) var events: [[(at: Instant, event: PeerEvent)]]

  /// Each peer's replies, in order.
  package private(set) var replies: [[(id: UInt32, reply: PeerReply)]]
  /// Each peer's last state per machine.
  private var states: [[String: String]]
  /// The number of video frames that each peer received.
  package private(set) var videoFramesReceived: [Int]

  /// Whether `events` keeps decoded media; a minute of it fills gigabytes.
  package var keepsMedia = false
  /// Whether `events` and `replies` are kept at all; an hour's events and replies fill gigabytes.
  package var keepsHistory = true
  /// Whether names published over mDNS can be resolved.
  package var resolvesNames = true
  /// Called with each event of each peer, including media.
  package var onEvent: ((Int, PeerEvent) -> Void)?
  /// Returns the ECN mark with which a datagram arrives; nil if IP headers are not read.
  package var marking: (_ bytes: [UInt8]) -> ECNMark? = { _ in nil }
  /// For each peer that is a leg of a relay, the index of the relay's other leg.
  package var otherLegs: [Int: Int] = [:]
  /// Called with each datagram that a peer sends.
  package var onDatagram: ((Int, Datagram) -> Void)?

  private var peers: [PeerMachine]
  private let addresses: [IPAddress]
  private var nextPort: UInt16 = 40_000
  private var nextCall: UInt32 = 1
  /// The names published over mDNS.
  private var names: [String: IPAddress] = [:]
  /// For each stalled peer, the time at which its process resumes, and the datagrams that arrived
  /// meanwhile.
  private var stalls: [(until: Instant, arrivals: [VirtualNetwork.Arrival])?]
  private var outbox = Outbox<PeerOutput>()
  private let sink: StepSink?
  private let peerNumbers: [UInt32]

  /// Creates a call with one peer per link; the peers' seeds derive from `seed`.
  package init(
    seed: UInt64, links: [LinkSettings] = [LinkSettings(), LinkSettings()],
    configurations: [PeerConfiguration] = [], unixNanoseconds: Int64 = labEpoch,
    peerNumbers: [UInt32]? = nil, security: any SecurityFactory = LibrarySecurity(),
    sink: StepSink? = nil
  ) {
    let entropy = Entropy(seed: (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) })
    network = VirtualNetwork(entropy: entropy.stream("network"), links: links)
    streams = VirtualStreams(entropy: entropy.stream("streams"))
    streams.delay = links.first?.delay ?? .zero
    let seeds = entropy.stream("seeds")
    let codecs = LibraryCodecs()
    peers = links.map { _ in PeerMachine(codecs: codecs, security: security) }
    events = links.map { _ in [] }
    replies = links.map { _ in [] }
    states = links.map { _ in [:] }
    videoFramesReceived = links.map { _ in 0 }
    stalls = links.map { _ in nil }
    addresses = links.indices.map { IPAddress(ipv4: 0x0a00_0001 + UInt32($0)) }
    self.peerNumbers = peerNumbers ?? links.indices.map { UInt32($0) + 1 }
    self.sink = sink
    for index in peers.indices {
      let genesis = Genesis(
        seed: seeds.bytes(Entropy.seedLength),
        wallClock: WallClock(unixNanosecondsAtZero: unixNanoseconds),
        configuration: index < configurations.count ? configurations[index] : PeerConfiguration())
      step(index, .genesis(genesis))
      // Peers of older takes receive no network types.
      let knowsTypes = genesis.configuration.hasCompleteStatistics == true
      step(index, .interfaces([addresses[index]], types: knowsTypes ? [.ethernet] : []))
    }
  }

  /// Calls a peer's API; returns its reply, or `.done` if it has not replied yet.
  @discardableResult
  package func call(_ peer: Int, _ call: PeerCall) -> PeerReply {
    let id = nextCall
    nextCall += 1
    var reply = PeerReply.done
    for case .reply(id, let given) in step(peer, .call(id: id, call)) { reply = given }
    return reply
  }

  /// Sends a message on a peer's data channel.
  /// - Returns: the error, or nil; if the sender has to wait, the reply is added to `replies`
  ///   later.
  @discardableResult
  package func send(_ peer: Int, _ message: DataMessage) -> PeerError? {
    let id = nextCall
    nextCall += 1
    for case .reply(id, .failure(let error)) in step(peer, .send(id: id, message)) { return error }
    return nil
  }

  @discardableResult
  package func step(_ peer: Int, _ input: PeerInput) -> [PeerOutput] {
    peers[peer].step(input, at: now, into: &outbox)
    let outputs = outbox.drain()
    sink?(
      StepRecord(
        peer: peerNumbers[peer], at: now, input: input, outputs: outputs,
        deadline: peers[peer].deadline, entropyDrawn: peers[peer].entropyDrawn))
    for output in outputs { perform(output, of: peer) }
    return outputs
  }

  private func perform(_ output: PeerOutput, of peer: Int) {
    switch output {
    case .datagram(let datagram):
      onDatagram?(peer, datagram)
      let isOnStream = streams.send(
        datagram.bytes, from: datagram.local, to: datagram.remote, at: now)
      if !isOnStream {
        network.send(
          datagram.bytes, from: datagram.local, to: datagram.remote, of: peer, at: now)
      }
    case .request(.bindSocket(let id, let ip)):
      let address = newEnd(ip)
      network.bind(address, of: peer)
      step(peer, .answer(.socketBound(id: id, address)))
    case .request(.listen(let id, let ip)):
      let address = newEnd(ip)
      streams.listen(at: address, of: peer)
      step(peer, .answer(.socketBound(id: id, address)))
    case .request(.openStream(let id, let target)):
      guard target.kind == .peer else {
        step(peer, .answer(.socketFailed(id: id, code: 111)))
        return
      }
      streams.connect(
        id: id, from: newEnd(target.local), to: target.remote, of: peer, at: now)
    case .request(.closeSocket(let address)):
      network.close(address)
      streams.stopListening(at: address)
    case .request(.closeStream(let local, let remote)): streams.close(local, remote, at: now)
    case .request(.publishName(let name, let ip)): names[name] = ip
    case .request(.resolveName(let id, let name)):
      let known = resolvesNames ? names[name].map { [$0] } : nil
      step(peer, .answer(.nameResolved(id: id, known ?? [])))
    case .reply(let id, let reply): if keepsHistory { replies[peer].append((id, reply)) }
    case .event(let event): record(event, of: peer)
    case .relayed(let packet): if let other = otherLegs[peer] { step(other, .relayed(packet)) }
    }
  }

  private func record(_ event: PeerEvent, of peer: Int) {
    switch event {
    case .state(let transition): states[peer][transition.machine] = transition.to
    case .frame(let frame) where frame.kind == .video && frame.isInbound:
      videoFramesReceived[peer] += 1
    default: break
    }
    if keepsHistory { events[peer].append((now, keepsMedia ? event : event.withoutMedia)) }
    onEvent?(peer, event)
  }

  private func newEnd(_ ip: IPAddress) -> SocketAddress {
    defer { nextPort += 1 }
    return SocketAddress(ip, port: nextPort)
  }

  private func handle(_ delivery: VirtualStreams.Delivery) {
    let peer = delivery.host
    switch delivery.event {
    case .connected(let id, let local): step(peer, .answer(.socketBound(id: id, local)))
    case .refused(let id): step(peer, .answer(.socketFailed(id: id, code: 111)))
    case .accepted(let local, let remote):
      step(peer, .answer(.streamAccepted(local: local, remote: remote)))
    case .message(let local, let remote, let bytes):
      let datagram = Datagram(local: local, remote: remote, bytes: bytes)
      step(peer, .datagram(datagram, arrival: delivery.at))
    case .lost(let local, let remote):
      step(peer, .sendFailed(SendFailure(local: local, remote: remote, code: 104)))
    }
  }

  /// Stalls a peer's process.
  ///
  /// Datagrams that arrive in the meantime, and deadlines that pass, are handled when the process
  /// resumes. Do not call the peer before then.
  package func stall(_ peer: Int, for interval: Interval) {
    stalls[peer] = (now + interval, stalls[peer]?.arrivals ?? [])
  }

  /// Returns when a peer's stall ends; nil if its process runs.
  package func stalledUntil(_ peer: Int) -> Instant? { stalls[peer]?.until }

  private func wake(_ peer: Int) {
    let arrivals = stalls[peer]?.arrivals ?? []
    stalls[peer] = nil
    for arrival in arrivals { receive(arrival) }
  }

  private func receive(_ arrival: VirtualNetwork.Arrival) {
    let datagram = Datagram(
      local: arrival.local, remote: arrival.remote, bytes: arrival.bytes,
      ecn: marking(arrival.bytes))
    step(arrival.host, .datagram(datagram, arrival: arrival.at))
  }

  /// Advances virtual time: arrivals and deadlines happen in order.
  package func run(until end: Instant) {
    while true {
      var next = earliest(network.nextArrival, streams.nextArrival)
      for index in peers.indices {
        next = earliest(next, stalls[index]?.until ?? peers[index].deadline)
      }
      guard let next, next <= end else { break }
      now = max(now, next)
      if let peer = stalls.indices.first(where: { stalls[$0].map { $0.until <= now } ?? false }) {
        wake(peer)
        continue
      }
      if let arrival = network.next(until: now) {
        if stalls[arrival.host] != nil {
          stalls[arrival.host]?.arrivals.append(arrival)
          continue
        }
        receive(arrival)
        continue
      }
      if let delivery = streams.next(until: now) {
        handle(delivery)
        continue
      }
      for index in peers.indices where stalls[index] == nil {
        if let due = peers[index].deadline, due <= now { step(index, .deadline) }
      }
    }
    now = max(now, end)
  }

  package func run(for interval: Interval) { run(until: now + interval) }

  /// Exchanges an offer and its answer between two peers.
  /// - Parameters:
  ///   - gatheringTime: how long each side gathers; zero suffices without servers.
  ///   - edit: how signaling changes the text of each description.
  /// - Returns: the first error, or nil.
  @discardableResult
  package func negotiate(
    from offerer: Int = 0, to answerer: Int = 1, gatheringTime: Interval = .zero,
    edit: (String) -> String = { $0 }
  ) -> PeerError? {
    if let error = call(offerer, .setLocalDescription(nil)).error { return error }
    run(for: gatheringTime)
    guard case .description(var offer) = call(offerer, .localDescription) else { return nil }
    offer.sdp = edit(offer.sdp)
    signal(offer, from: offerer, to: answerer)
    if let error = call(answerer, .setRemoteDescription(offer)).error { return error }
    if let error = call(answerer, .setLocalDescription(nil)).error { return error }
    run(for: gatheringTime)
    guard case .description(var answer) = call(answerer, .localDescription) else { return nil }
    answer.sdp = edit(answer.sdp)
    signal(answer, from: answerer, to: offerer)
    return call(offerer, .setRemoteDescription(answer)).error
  }

  /// Exchanges an offer and its answer between two peers through the legs of a relay.
  /// - Parameter legs: the legs that the offerer and the answerer see.
  /// - Returns: the first error, or nil.
  @discardableResult
  package func negotiate(
    from offerer: Int, over legs: (offerer: Int, answerer: Int), to answerer: Int,
    edit: (String) -> String = { $0 }
  ) -> PeerError? {
    if let error = call(offerer, .setLocalDescription(nil)).error { return error }
    let path = [offerer, legs.offerer, legs.answerer, answerer]
    if let error = relay(call(offerer, .localDescription), over: path, edit: edit) { return error }
    if let error = call(answerer, .setLocalDescription(nil)).error { return error }
    return relay(call(answerer, .localDescription), over: path.reversed(), edit: edit)
  }

  /// Passes a description from one peer through both legs of a relay to the other peer; returns the
  /// first error, or nil.
  private func relay(
    _ reply: PeerReply, over path: [Int], edit: (String) -> String
  ) -> PeerError? {
    guard case .description(var description) = reply else { return reply.error }
    description.sdp = edit(description.sdp)
    if let error = call(path[1], .setRemoteDescription(description)).error { return error }
    let shown = call(path[2], .setLocalDescription(description))
    guard case .description(let description) = shown else { return shown.error }
    return call(path[3], .setRemoteDescription(description)).error
  }

  private func signal(_ description: SessionDescription, from sender: Int, to receiver: Int) {
    for (peer, isInbound) in [(sender, false), (receiver, true)] {
      step(
        peer,
        .signaling(
          SignalingMessage(
            isInbound: isInbound, transport: "virtual", type: description.type.rawValue,
            message: description.sdp)))
    }
  }

  /// Returns the state that a peer's machine reported last; nil if it reported none.
  package func state(_ machine: String, of peer: Int) -> String? { states[peer][machine] }

  /// Returns a peer's frames of one kind in one direction, from its recorded events.
  package func frames(of peer: Int, kind: MediaKind, isInbound: Bool) -> [FrameRecord] {
    events[peer].compactMap { entry in
      guard case .frame(let frame) = entry.event, frame.kind == kind, frame.isInbound == isInbound
      else { return nil }
      return frame
    }
  }
}

/// The wall-clock time at which a virtual call starts: 2026-01-01T00:00:00Z.
package let labEpoch: Int64 = 1_767_225_600_000_000_000

extension PeerEvent {
  fileprivate var withoutMedia: PeerEvent {
    guard case .frame(var frame) = self else { return self }
    frame.decoded = .none
    return .frame(frame)
  }
}

extension PeerReply {
  /// The error; nil for other replies.
  package var error: PeerError? {
    if case .failure(let error) = self { return error }
    return nil
  }
}

// MARK: - Media

extension VirtualCall {
  /// Makes peers, by default all, send audio and video from these sources.
  package func addMedia(
    audio: MediaSource = .tone(hertz: 440, pauseSeconds: 0), videoFrames: MediaSource? = nil,
    from senders: [Int]? = nil
  ) {
    for peer in senders ?? Array(network.links.indices) {
      call(peer, .addTrack(kind: .audio, streamIDs: ["s"], source: audio))
      guard let videoFrames else { continue }
      call(peer, .addTrack(kind: .video, streamIDs: ["s"], source: videoFrames))
    }
  }
}

// MARK: - Layers

extension VirtualCall {
  /// Makes a peer send simulcast layers with these encodings, smallest first; returns the
  /// transceiver's number, or nil if that failed.
  @discardableResult
  package func addLayers(
    _ encodings: [RTPEncoding], _ videoFrames: MediaSource, from peer: Int = 0
  ) -> UInt32? {
    let reply = call(
      peer,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: ["s"], source: videoFrames,
        sendEncodings: encodings))
    guard case .transceiver(let transceiver) = reply else { return nil }
    return transceiver.id
  }

  /// Returns an edit that makes an answer accept simulcast layers, as an SFU does; an ordinary
  /// endpoint leaves them out of its answer.
  /// - Parameter layers: as in a simulcast line (RFC 8853 section 5.1): `q;h;~f`.
  package static func accepting(_ layers: String) -> (String) -> String {
    { sdp in
      guard var document = try? SDPDocument(parsing: sdp),
        let index = document.sections.firstIndex(where: { $0.kind == .video }),
        document.sections[index].simulcast == nil
      else { return sdp }
      for rid in layers.split(whereSeparator: { ";,".contains($0) }) {
        let id = String(rid.drop { $0 == "~" })
        document.sections[index].append(RestrictionID(id: id, isSent: false))
      }
      document.sections[index].append(Simulcast(received: layers))
      return document.text
    }
  }
}
