import JSEP
import Media
package import Peer
package import Room
import SDP
package import Tape
package import Wire

/// A participant of one of Retake's own rooms in virtual time: the room, its connections, and a
/// server that sends generated media for the other participants.
///
/// The take holds what the participant's client records: the room and both of its connections.
package final class VirtualRoomCall {
  /// Another participant, with the media that it publishes.
  package struct Guest {
    package var id: String
    package var name: String
    package var media: [RoomMedia]

    package init(id: String, name: String, media: [RoomMedia]) {
      (self.id, self.name, self.media) = (id, name, media)
    }

    fileprivate var member: RoomMember { RoomMember(id: id, displayName: name, media: media) }
  }

  /// The indexes of the participant's two peers and of the server's two peers in `call`.
  private enum Place {
    static let up = 0
    static let down = 1
    static let serverUp = 2
    static let serverDown = 3
  }

  private static let up = ConnectionRole.up
  private static let slice = Interval.milliseconds(5)

  private let recorded: RecordedVirtualCall
  private let actor: UInt32
  private let room = RecordedRoom(.all)
  private let server: VirtualRoomServer
  private let signalingDelay: Interval
  private var lastCall: UInt32 = 0
  private var peers: [ConnectionID: Int] = [:]
  private var sending: [[(media: LocalMediaID, transceiver: UInt32)]] = [[], []]
  private var receiving: [UInt32: String] = [:]
  private var actions: [(at: Instant, act: (VirtualRoomCall) -> Void)] = []
  private var nextStats = Instant.zero
  /// Whether a description is being created or applied, and the peers' events that are handled
  /// afterwards.
  private var isNegotiating = false
  private var deferred: [(peer: Int, event: PeerEvent)] = []

  /// The room's events, in order.
  package private(set) var events: [RoomEvent] = []

  package var call: VirtualCall { recorded.call }
  package var snapshot: RoomSnapshot { room.snapshot }

  /// - Parameters:
  ///   - links: the link from the participant to the server, and the link back.
  ///   - signalingDelay: how long a message to or from the server takes.
  package init(
    path: String, seed: UInt64, links: [LinkSettings], configuration: PeerConfiguration,
    signalingDelay: Interval, label: String = "", tags: [String: String] = [:],
    unixNanoseconds: Int64 = labEpoch
  ) throws(TapeError) {
    var configuration = configuration
    configuration.reportsWithKeyframeDemands = true
    configuration.rampsVolume = true
    // A room has its own time limit, and restarts ICE itself.
    configuration.establishmentTimeoutMilliseconds = 0
    recorded = try RecordedVirtualCall(
      path: path, seed: seed, links: [links[0], links[0], links[1], links[1]],
      labels: ["room up 1", "room down 2"], label: label, tags: tags,
      configurations: [configuration, configuration], unixNanoseconds: unixNanoseconds)
    recorded.call.keepsHistory = false
    actor = recorded.writer?.addActor(.room, label: "room") ?? 0
    server = VirtualRoomServer(recorded.call, up: Place.serverUp, down: Place.serverDown)
    self.signalingDelay = signalingDelay
    recorded.call.onEvent = { [weak self] peer, event in self?.handle(event, of: peer) }
    let entropy = Entropy(seed: (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) })
    step(
      .genesis(
        RoomConfiguration(
          signaling: SignalingConfiguration(
            protocolName: RetakeRoomMachine.name, urls: ["wss://rooms.example/rooms"])),
        seed: entropy.stream("room").bytes(Entropy.seedLength)))
  }

  // MARK: The participant and the others

  /// Joins a room with these participants already present.
  package func join(_ name: String, with guests: [Guest]) {
    server.members = guests.map(\.member)
    call(.connect(RoomJoin(room: "room-1", displayName: name)))
  }

  package func call(_ call: RoomCall) {
    lastCall += 1
    step(.call(id: lastCall, call))
  }

  package func enter(_ guest: Guest) {
    negotiate { $0.deliver($0.server.enter(guest.member)) }
  }

  package func leave(_ id: String, _ cause: LeaveCause) {
    negotiate { $0.deliver($0.server.leave(id, cause)) }
  }

  package func notify(_ notice: RoomNotice) { deliver([notice]) }

  /// Schedules an action at a time since the call began.
  package func at(_ time: Interval, _ act: @escaping (VirtualRoomCall) -> Void) {
    schedule(Instant.zero + time, act)
  }

  private func schedule(_ at: Instant, _ act: @escaping (VirtualRoomCall) -> Void) {
    actions.insert((at, act), at: actions.firstIndex { $0.at > at } ?? actions.endIndex)
  }

  /// Advances time, sampling both connections' statistics every second.
  package func run(until end: Instant) {
    while true {
      while let action = actions.first, action.at <= call.now {
        actions.removeFirst()
        action.act(self)
      }
      if let due = room.deadline, due <= call.now {
        step(.deadline)
        continue
      }
      if nextStats <= call.now {
        nextStats = nextStats + .seconds(1)
        for peer in peers.values.sorted() { call.call(peer, .getStats()) }
      }
      guard call.now < end else { return }
      var next = min(end, call.now + Self.slice, nextStats)
      if let due = room.deadline { next = min(next, due) }
      if let action = actions.first { next = min(next, action.at) }
      call.run(until: next)
    }
  }

  /// Leaves the room and completes the take.
  package func finish() throws(TapeError) -> TapeWriter.Summary {
    call(.disconnect)
    run(until: call.now + signalingDelay + signalingDelay + .milliseconds(20))
    return try recorded.finish()
  }

  // MARK: The room's machine

  private func step(_ input: RoomInput) {
    var outbox = Outbox<RoomOutput>()
    room.step(input, at: call.now, into: &outbox)
    let outputs = outbox.drain()
    recorded.writer?.record(
      StepRecord(
        actor: actor, at: call.now, input: input, outputs: OutputList(outputs),
        deadline: room.deadline, entropyDrawn: room.entropyDrawn))
    for output in outputs { carryOut(output) }
  }

  private func carryOut(_ output: RoomOutput) {
    switch output {
    case .transport(let id, .open):
      schedule(call.now + signalingDelay + signalingDelay) {
        $0.step(.transport(id, .opened(subprotocol: RoomRequest.subprotocol)))
      }
    case .transport(_, .send(.text(let text))):
      schedule(call.now + signalingDelay) { $0.serve(text) }
    case .transport(let id, .close(let code, let reason)):
      schedule(call.now + signalingDelay) {
        $0.step(.transport(id, .closed(code: code, reason: reason)))
      }
    case .connection(let id, let order): carryOut(order, of: id)
    case .event(let event): events.append(event)
    default: break
    }
  }

  private func serve(_ text: String) {
    guard let request = try? RoomRequest(parsing: text) else { return }
    negotiate { $0.deliver($0.server.notices(for: request)) }
  }

  /// Runs a closure that creates or applies descriptions, and then handles the events that the
  /// peers emitted meanwhile, so that candidates follow their descriptions.
  private func negotiate(_ body: (VirtualRoomCall) -> Void) {
    isNegotiating = true
    body(self)
    isNegotiating = false
    let events = deferred
    deferred = []
    for (peer, event) in events { handle(event, of: peer) }
  }

  private func deliver(_ notices: [RoomNotice]) {
    schedule(call.now + signalingDelay) {
      for notice in notices {
        $0.step(.transport(TransportID(1), .frame(.text(notice.text))))
      }
    }
  }

  // MARK: Connections

  /// Reports to the room after the current step, as an independent connection would.
  private func report(_ report: RoomConnectionReport, of id: ConnectionID) {
    schedule(call.now) { $0.step(.connection(id, report)) }
  }

  private func carryOut(_ order: RoomConnectionOrder, of id: ConnectionID) {
    if case .request(.open(let role, _)) = order {
      let peer = role == Self.up ? Place.up : Place.down
      peers[id] = peer
      report(.opened(peer: UInt32(peer + 1)), of: id)
      return
    }
    guard let peer = peers[id] else { return }
    switch order {
    case .request(let request): negotiate { $0.carryOut(request, of: id, peer) }
    case .attach(let media): attach(media, of: id, peer)
    case .detach(let media):
      guard let place = sending[peer].firstIndex(where: { $0.media == media }) else { return }
      call.call(peer, .removeTrack(transceiver: sending[peer].remove(at: place).transceiver))
    case .limitAudio(let count): call.call(peer, .limitAudioSlots(count))
    case .exemptAudio(let transceiver, let isExempt):
      call.call(peer, .exemptFromAudioSlots(transceiver: transceiver, isExempt))
    case .setAudible(let transceiver, let isAudible):
      call.call(
        peer, .setEnabled(transceiver: transceiver, isInbound: true, isEnabled: isAudible))
    case .setSilenced(let transceiver, let isSilenced):
      call.call(
        peer, .setEnabled(transceiver: transceiver, isInbound: true, isEnabled: !isSilenced))
    }
  }

  private func attach(_ media: LocalMediaInfo, of id: ConnectionID, _ peer: Int) {
    guard !sending[peer].contains(where: { $0.media == media.id }) else { return }
    let source =
      media.kind == .audio
      ? MediaSource.tone(hertz: 330, pauseSeconds: 2)
      : .pattern(width: 160, height: 90, framesPerSecond: 10)
    let reply = call.call(
      peer, .addTrack(kind: media.kind, streamIDs: ["local"], source: source))
    guard case .transceiver(let transceiver) = reply else { return }
    call.call(peer, .setDirection(transceiver: transceiver.id, .sendonly))
    sending[peer].append((media.id, transceiver.id))
    report(.sending(media.id, transceiver: transceiver.id), of: id)
  }

  private func carryOut(_ request: ConnectionRequest, of id: ConnectionID, _ peer: Int) {
    switch request {
    case .makeOffer(let iceRestart):
      let reply = call.call(peer, .createOffer(iceRestart: iceRestart))
      guard case .description(let offer) = reply else { return refuse(reply, of: id) }
      setLocal(offer, of: id, peer)
    case .setRemote(let description):
      let reply = call.call(peer, .setRemoteDescription(description))
      guard reply.error == nil else { return refuse(reply, of: id) }
      if description.type == .offer { setLocal(nil, of: id, peer) }
      guard case .transceivers(let transceivers) = call.call(peer, .transceivers) else { return }
      for transceiver in transceivers where transceiver.isReceiving {
        reportReceiving(transceiver, of: id)
      }
    case .addCandidate(let candidate): call.call(peer, .addICECandidate(candidate))
    case .close:
      call.call(peer, .close)
      peers[id] = nil
    default: break
    }
  }

  private func refuse(_ reply: PeerReply, of id: ConnectionID) {
    if let error = reply.error { report(.report(.refused(error)), of: id) }
  }

  private func setLocal(_ offer: SessionDescription?, of id: ConnectionID, _ peer: Int) {
    let reply = call.call(peer, .setLocalDescription(offer))
    guard reply.error == nil else { return refuse(reply, of: id) }
    guard case .description(let description) = call.call(peer, .localDescription),
      case .transceivers(let transceivers) = call.call(peer, .transceivers)
    else { return }
    let media = sending[peer].compactMap { entry in
      transceivers.first { $0.id == entry.transceiver }?.mid.map {
        LocalMediaPlace(media: entry.media, mid: $0)
      }
    }
    report(.report(.description(description, media: media)), of: id)
  }

  private func reportReceiving(_ transceiver: TransceiverInfo, of id: ConnectionID) {
    guard let mid = transceiver.mid, receiving[transceiver.id] != mid else { return }
    receiving[transceiver.id] = mid
    report(.receiving(mid: mid, transceiver: transceiver.id), of: id)
  }

  private func handle(_ event: PeerEvent, of peer: Int) {
    guard !isNegotiating else {
      switch event {
      case .localCandidate, .state, .secured, .track, .audioSlot: deferred.append((peer, event))
      default: break
      }
      return
    }
    if let notice = server.candidate(event, of: peer) { return deliver([notice]) }
    guard let id = peers.first(where: { $0.value == peer })?.key else { return }
    switch event {
    case .localCandidate(let candidate): report(.report(.candidate(candidate)), of: id)
    case .state(let change) where change.machine == "connection":
      report(.report(.state(PeerState(rawValue: change.to) ?? .new)), of: id)
    case .secured: report(.secured, of: id)
    case .track(let transceiver): reportReceiving(transceiver, of: id)
    case .audioSlot(let track, let isHeld) where track.isInbound:
      report(.audioSlot(transceiver: track.transceiver, isHeld: isHeld), of: id)
    default: break
    }
  }
}

extension TransceiverInfo {
  fileprivate var isReceiving: Bool {
    currentDirection == .recvonly || currentDirection == .sendrecv
  }
}

// MARK: - VirtualRoomServer

/// The server of a room: it receives the participant's media, and sends a tone for each voice, and
/// a pattern for each video that the participant subscribes to.
private final class VirtualRoomServer {
  var members: [RoomMember] = []
  private let call: VirtualCall
  private let up: Int
  private let down: Int
  /// The sent media, in the order of their sections.
  private var sent: [(number: UInt32, transceiver: UInt32)] = []
  /// Whether an offer awaits its answer, and whether another one has to follow.
  private var isOffering = false
  private var hasMore = false
  private var nextLocal: UInt32 = 900

  init(_ call: VirtualCall, up: Int, down: Int) {
    (self.call, self.up, self.down) = (call, up, down)
  }

  /// Returns the notice that signals a candidate of one of the server's peers; nil for other
  /// events.
  func candidate(_ event: PeerEvent, of peer: Int) -> RoomNotice? {
    guard peer == up || peer == down, case .localCandidate(let candidate) = event else {
      return nil
    }
    return .candidate(peer == up ? .up : .down, candidate)
  }

  func notices(for request: RoomRequest) -> [RoomNotice] {
    switch request {
    case .join:
      for member in members { sendVoices(of: member) }
      let joined = RoomNotice.joined(
        participant: "me", session: "session-1", isResumed: false, members: members, ICEServers())
      return [joined] + offer()
    case .offer(let number, let sdp, let media): return answer(sdp, media, number)
    case .answer(let sdp):
      call.call(
        down, .setRemoteDescription(SessionDescription(type: .answer, sdp: sdp)))
      isOffering = false
      return offer()
    case .candidate(let connection, let candidate):
      call.call(connection == .up ? up : down, .addICECandidate(candidate))
      return []
    case .subscribe(let number, let media):
      for each in media { send(each) }
      return [.result(request: number, nil)] + offer()
    case .unsubscribe(let number, let media):
      stop(media)
      return [.result(request: number, nil)] + offer()
    case .stop(let number), .profile(let number, _, _), .pause(let number, _, _),
      .message(let number, _):
      return [.result(request: number, nil)]
    case .update, .restart, .renew, .leave: return []
    }
  }

  func enter(_ member: RoomMember) -> [RoomNotice] {
    members.append(member)
    sendVoices(of: member)
    return [.entered(member)] + offer()
  }

  func leave(_ id: String, _ cause: LeaveCause) -> [RoomNotice] {
    stop(members.filter { $0.id == id }.flatMap(\.media).map(\.number))
    members.removeAll { $0.id == id }
    return [.left(participant: id, cause)] + offer()
  }

  private func sendVoices(of member: RoomMember) {
    for media in member.media where media.kind == .audio { send(media.number) }
  }

  private func stop(_ media: [UInt32]) {
    for each in sent where media.contains(each.number) {
      call.call(down, .removeTrack(transceiver: each.transceiver))
      hasMore = true
    }
    sent.removeAll { media.contains($0.number) }
  }

  private func answer(
    _ sdp: String, _ media: [RoomLocalMedia], _ number: UInt32
  ) -> [RoomNotice] {
    call.call(up, .setRemoteDescription(SessionDescription(type: .offer, sdp: sdp)))
    call.call(up, .setLocalDescription(nil))
    guard case .description(let answer) = call.call(up, .localDescription) else { return [] }
    let numbers = media.map { each in
      nextLocal += 1
      return RoomLocalNumber(local: each.local, number: nextLocal)
    }
    return [.answer(sdp: answer.sdp), .local(numbers), .result(request: number, nil)]
  }

  private func send(_ number: UInt32) {
    guard !sent.contains(where: { $0.number == number }),
      let owner = members.first(where: { $0.media.contains { $0.number == number } }),
      let media = owner.media.first(where: { $0.number == number })
    else { return }
    let source =
      media.kind == .audio
      ? MediaSource.tone(hertz: 200 + 10 * Int(number), pauseSeconds: 2)
      : .pattern(width: 160, height: 90, framesPerSecond: 10)
    let reply = call.call(
      down,
      .addTransceiver(
        kind: media.kind, direction: .sendonly, streamIDs: [owner.id], source: source))
    guard case .transceiver(let transceiver) = reply else { return }
    sent.append((number, transceiver.id))
    hasMore = true
  }

  /// Returns the next offer; empty while an offer is under way, or if nothing has changed.
  private func offer() -> [RoomNotice] {
    guard hasMore, !isOffering else { return [] }
    call.call(down, .setLocalDescription(nil))
    guard case .description(let offer) = call.call(down, .localDescription),
      case .transceivers(let transceivers) = call.call(down, .transceivers)
    else { return [] }
    (isOffering, hasMore) = (true, false)
    let places = sent.compactMap { entry in
      transceivers.first { $0.id == entry.transceiver }?.mid.map {
        RoomPlace(number: entry.number, mid: $0)
      }
    }
    return [.offer(sdp: offer.sdp, media: places)]
  }
}
