package import Wire

/// A room as a single machine: its signaling protocol, participants, local and remote media with
/// their connections, and events for the application.
///
/// Connections are separate machines, which receive orders from this machine and send reports to
/// it.
package struct RoomMachine: Machine {
  package typealias Input = RoomInput
  package typealias Output = RoomOutput

  private let protocols: SignalingProtocols
  private var entropy: Entropy?
  private var signaling: (any SignalingMachine)?
  private var signals = Outbox<SignalingOutput>()

  private(set) var configuration = RoomConfiguration(
    signaling: SignalingConfiguration(protocolName: "", urls: []))
  var life = RoomLife()
  var token = TokenState()
  var people = ParticipantTable()
  var localMedia = LocalMediaTable()
  var pool = ReceiverPool(initial: 1, maximum: 1, growth: 1, voices: .all)
  var links = ConnectionTable(delay: .zero, maximum: 0)
  var actions = ActionTable(limit: .zero)
  var share = ScreenShare()
  var waiting = WaitingCalls()

  /// Creates a room that waits for its genesis.
  ///
  /// - Parameter protocols: the supported protocols.
  package init(_ protocols: SignalingProtocols) { self.protocols = protocols }

  package var entropyDrawn: UInt64 { entropy?.drawn ?? 0 }

  /// The protocol's abilities; empty before the genesis.
  var abilities: SignalingAbilities { signaling?.abilities ?? [] }

  package var deadline: Instant? {
    [
      signaling?.deadline, life.deadline, token.deadline, links.deadline, actions.deadline,
      share.deadline,
    ].reduce(nil, earliest)
  }

  package mutating func step(
    _ input: RoomInput, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    switch input {
    case .genesis(let configuration, let seed): begin(configuration, seed)
    case .deadline: reachDeadline(at: now, into: &outbox)
    case .call(let id, let call): handle(call, id: id, at: now, into: &outbox)
    case .transport(let id, let event): emit(.transport(id, event), at: now, into: &outbox)
    case .response(let id, let result): emit(.response(id, result), at: now, into: &outbox)
    case .connection(let id, let report): handle(report, of: id, at: now, into: &outbox)
    case .share(let report): handle(report, at: now, into: &outbox)
    }
  }

  private mutating func begin(_ configuration: RoomConfiguration, _ seed: [UInt8]) {
    self.configuration = configuration
    let entropy = Entropy(seed: seed, scripts: configuration.drawnBytes ?? [:])
    self.entropy = entropy
    signaling = protocols.machine(configuration.signaling, entropy: entropy)
    pool = ReceiverPool(
      initial: configuration.videoReceiverInitialCount,
      maximum: configuration.videoReceiverMaximumCount,
      growth: configuration.videoReceiverGrowthRate,
      voices: voices)
    links = ConnectionTable(
      delay: .milliseconds(configuration.restartDelayMilliseconds),
      maximum: configuration.restartMaximum,
      restartsOnceConnected: configuration.restartsOnceConnected ?? false)
    actions = ActionTable(limit: .milliseconds(configuration.actionTimeoutMilliseconds))
  }

  /// How the voices to play are selected, according to the protocol's abilities and the
  /// configuration.
  private var voices: ReceiverPool.Voices {
    if abilities.contains(.reportedVoices) { return .reported }
    guard configuration.audioOccupants != nil, !abilities.contains(.audioSelection) else {
      return .all
    }
    return .slots(silences: configuration.silencesWithoutSlot ?? false)
  }

  // MARK: Signaling

  /// Whether the configured protocol is supported.
  var hasSignaling: Bool { signaling != nil }

  var signalingDeadline: Instant? { signaling?.deadline }
  var signalingStatus: [RoomSnapshot.Word] {
    (signaling?.status ?? []).map { RoomSnapshot.Word(name: $0.name, value: $0.value) }
  }

  /// Passes an input to the signaling machine and carries out its outputs.
  mutating func emit(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    signaling?.step(input, at: now, into: &signals)
    while let output = signals.next() { carryOut(output, at: now, into: &outbox) }
  }

  mutating func want(
    _ intent: RoomIntent, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    emit(.intent(intent), at: now, into: &outbox)
  }

  private mutating func carryOut(
    _ output: SignalingOutput, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    switch output {
    case .transport(let id, let request): outbox.append(.transport(id, request))
    case .request(let id, let request): outbox.append(.request(id, request))
    case .connection(let id, let request):
      order(request, of: id, at: now, into: &outbox)
    case .event(let event): handle(event, at: now, into: &outbox)
    }
  }

  private mutating func order(
    _ request: ConnectionRequest, of id: ConnectionID, at now: Instant,
    into outbox: inout Outbox<RoomOutput>
  ) {
    switch request {
    case .open(let role, _):
      guard links.open(id, role) else { return }
      outbox.append(.connection(id, .request(request)))
      if role != .down {
        attach(localMedia.attached, to: id, into: &outbox)
      }
      if role != .up, let count = configuration.audioOccupants,
        !abilities.contains(.audioSelection)
      {
        outbox.append(.connection(id, .limitAudio(count)))
      }
    case .close: close(id, into: &outbox)
    case .makeOffer, .setRemote:
      guard links[id] != nil else { return }
      outbox.append(.connection(id, .request(request)))
      if let told = life.reach(.offered) { outbox.append(told) }
    default:
      guard links[id] != nil else { return }
      outbox.append(.connection(id, .request(request)))
    }
  }

  /// Closes a connection and ends the media that it carried.
  mutating func close(_ id: ConnectionID, into outbox: inout Outbox<RoomOutput>) {
    guard let link = links.close(id) else { return }
    outbox.append(localMedia.lose(id))
    outbox.append(pool.lose(link, people))
    outbox.append(.connection(id, .request(.close)))
  }

  // MARK: Deadlines

  private mutating func reachDeadline(at now: Instant, into outbox: inout Outbox<RoomOutput>) {
    if let due = signaling?.deadline, due <= now { emit(.deadline, at: now, into: &outbox) }
    if token.consumeDue(at: now) { outbox.append(.tokenWanted) }
    for action in actions.removeOverdue(at: now) {
      let code = action.kind.timeout
      settle(
        action, SignalingFailure(code, "the service did not answer in time: \(code.meaning)"),
        into: &outbox)
    }
    for remedy in links.consumeDue(at: now) { apply(remedy, at: now, into: &outbox) }
    if let failure = share.expire(at: now) {
      outbox.append(.share(.end(isLeaving: false)))
      outbox.append(.event(.screenShare(share.status)))
      outbox.append(.event(.failed(failure)))
    }
    switch life.expire(at: now) {
    case .connecting:
      fail(SignalingFailure(.unreachable, "the room was not there in time"), at: now, into: &outbox)
    case .disconnecting:
      finish(
        RoomEnding(.disconnected, message: "the service did not say goodbye"), at: now,
        into: &outbox)
    default: break
    }
  }

  private mutating func apply(
    _ remedy: ConnectionTable.Remedy, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    switch remedy {
    case .restart(let id, let attempt):
      outbox.append(.event(.restartingICE(id, attempt: attempt)))
      want(.restartICE(id), at: now, into: &outbox)
    case .giveUp(let id):
      let role = links[id]?.role.rawValue ?? ""
      fail(
        SignalingFailure(
          .connectionFailed,
          "the \(role) connection found no path after \(configuration.restartMaximum) restarts"),
        at: now, into: &outbox)
    }
  }

  // MARK: Closing

  /// Reports a fatal error and leaves the room.
  mutating func fail(
    _ failure: SignalingFailure, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    guard life.state != .disconnected else { return }
    var failure = failure
    failure.isCritical = true
    life.fail()
    outbox.append(.event(.failed(failure)))
    outbox.append(waiting.refuse(failure))
    want(.leave, at: now, into: &outbox)
    finish(RoomEnding(.disconnected, message: failure.message), at: now, into: &outbox)
  }

  /// Ends the room: closes connections, fails pending calls, and emits the end as the last event.
  mutating func finish(
    _ ending: RoomEnding, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    guard let entered = life.enter(.disconnected, at: now) else { return }
    for link in links.connections { close(link.id, into: &outbox) }
    let failure = SignalingFailure(.invalidState, "the room is over")
    for action in actions.removeAll() where action.call != nil {
      settle(action, failure, into: &outbox)
    }
    if let order = share.stop(isLeaving: true, at: now) { outbox.append(.share(order)) }
    for person in people.people where person.isPresent {
      if let change = people.leave(person.id) { outbox.append(.person(change)) }
    }
    token.forget()
    signaling = nil
    signals.removeAll()
    outbox.append(entered)
    outbox.append(.event(.disconnected(ending)))
    let reason = ending.message.isEmpty ? "the room is over" : ending.message
    outbox.append(waiting.refuse(SignalingFailure(.joinRefused, reason)))
    outbox.append(waiting.leave())
  }
}

extension Outbox<RoomOutput> {
  /// Appends the outputs that a change of one of the room's tables returned.
  mutating func append(_ outcome: [RoomOutput]) {
    for output in outcome { append(output) }
  }
}

// MARK: - RoomSnapshot

/// A room's state as plain data.
package struct RoomSnapshot: Sendable {
  /// A present or former participant.
  package struct Participant: Sendable {
    package var number: Int
    package var id: String
    package var name: String
    package var isLocal: Bool
    package var isPresent: Bool
    package var media: [PublishedMedia]
  }

  /// One of the local participant's media.
  package struct OwnMedia: Sendable {
    package var info: LocalMediaInfo
    package var phase: String
    package var media: UInt32?
    package var transceiver: UInt32?
  }

  /// A receiver for a remote participant's audio or video, with the state of its subscription.
  package struct Receiver: Sendable {
    package var media: UInt32
    package var isVideo: Bool
    package var phase: String
    package var profile: VideoProfile?
    package var isPaused: Bool
    package var isMuted: Bool
    package var isOccupant: Bool
    package var connection: UInt32?
    package var mid: String?
    package var transceiver: UInt32?
  }

  /// A connection's role, state and restarts.
  package struct Link: Sendable {
    package var number: UInt32
    package var role: ConnectionRole
    package var state: PeerState
    package var peer: UInt32
    package var restarts: Int
  }

  /// One name and value from the protocol's state.
  package struct Word: Sendable {
    package var name: String
    package var value: String
  }

  package var state: RoomState
  package var progress: Int
  package var participants: [Participant]
  package var ownMedia: [OwnMedia]
  package var receivers: [Receiver]
  package var receiverCount: Int
  package var isMuted: Bool
  package var connections: [Link]
  package var awaitedAnswers: Int
  package var screenShare: ExtensionStatus
  /// The protocol's state as names and values.
  package var signaling: [Word]
  /// The deadlines of all parts, earliest first.
  package var wakes: [(layer: String, at: Instant)]
}

extension RoomMachine {
  /// The state of all parts.
  package var snapshot: RoomSnapshot {
    let wakes: [(layer: String, at: Instant?)] = [
      ("signaling", signalingDeadline), ("life", life.deadline), ("token", token.deadline),
      ("connections", links.deadline), ("actions", actions.deadline),
      ("screen share", share.deadline),
    ]
    return RoomSnapshot(
      state: life.state, progress: life.progress,
      participants: people.people.map { person in
        RoomSnapshot.Participant(
          number: person.number, id: person.id, name: person.name, isLocal: person.isLocal,
          isPresent: person.isPresent, media: people.media(of: person.id))
      },
      ownMedia: localMedia.entries.map { entry in
        RoomSnapshot.OwnMedia(
          info: entry.info, phase: entry.phase.rawValue, media: entry.media?.number,
          transceiver: entry.transceiver)
      },
      receivers: pool.receivers.map { receiver in
        RoomSnapshot.Receiver(
          media: receiver.media.number, isVideo: receiver.isVideo,
          phase: receiver.phase.rawValue, profile: receiver.profile,
          isPaused: receiver.isPaused, isMuted: receiver.isMuted,
          isOccupant: receiver.isOccupant, connection: receiver.connection?.number,
          mid: receiver.mid, transceiver: receiver.transceiver)
      },
      receiverCount: pool.size, isMuted: pool.isMuted,
      connections: links.connections.map { link in
        RoomSnapshot.Link(
          number: link.id.number, role: link.role, state: link.state, peer: link.peer,
          restarts: link.restarts)
      },
      awaitedAnswers: actions.actions.count, screenShare: share.status,
      signaling: signalingStatus,
      wakes: wakes.compactMap { layer, at in at.map { (layer, $0) } }.sorted { $0.at < $1.at })
  }
}
