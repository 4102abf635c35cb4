package import Room
package import Wire

/// A room as a machine that can be recorded and replayed.
package final class RecordedRoom: RecordedMachine {
  package static var machineKind: MachineKind { .room }
  package static func decoder(_ contents: ContentSource) -> RoomDecoder { RoomDecoder() }

  private var machine: RoomMachine

  /// Creates a room; its first input must be its genesis.
  ///
  /// - Parameter protocols: the signaling protocols that rooms can use.
  package init(_ protocols: SignalingProtocols) { machine = RoomMachine(protocols) }

  package var deadline: Instant? { machine.deadline }
  package var entropyDrawn: UInt64 { machine.entropyDrawn }
  package var machineSnapshot: (any MachineSnapshot)? { machine.snapshot }
  package var snapshot: RoomSnapshot { machine.snapshot }

  package func step(
    _ input: RoomInput, at now: Instant, into outbox: inout Outbox<RoomOutput>
  ) {
    machine.step(input, at: now, into: &outbox)
  }
}

extension RoomSnapshot: MachineSnapshot {}

extension RoomOutput: RecordedOutput {
  package var byteCount: Int {
    switch self {
    case .transport(_, .send(let frame)): frame.byteCount
    case .request(_, let request): request.body.count
    default: 0
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .transport(let id, .send(let frame)):
      transcript.add(SignalingRow(frame, over: "websocket \(id.number)", isInbound: false))
    case .transport(let id, let request):
      transcript.add(EventRow(ordering: request, with: ("transport", id.number)))
    case .request(let id, let request):
      transcript.add(
        SignalingRow(
          direction: .outbound, transport: "http \(id.number)", type: request.method,
          message: CanonicalJSON.text(RequestText(request))))
    case .connection(let id, .request(let request)):
      transcript.add(EventRow(ordering: request, with: ("connection", id.number)))
    case .connection(let id, let order):
      transcript.add(EventRow(ordering: order, with: ("connection", id.number)))
    case .reply(let call, .done): transcript.add(CallReplyRow(call: call))
    case .reply(let call, .failed(let failure)):
      transcript.add(CallReplyRow(call: call, error: failure.text))
    case .state(let machine, let from, let to):
      transcript.add(StateRow(machine: machine, from: from, to: to))
    case .event(let event):
      transcript.add(EventRow(type: event.name, detail: JSONText.object(event.members).text))
    case .person(let change): transcript.append(change)
    case .share(let order): transcript.add(EventRow(ordering: order, with: nil))
    case .tokenWanted: transcript.add(EventRow(type: "tokenWanted", detail: "{}"))
    }
  }
}

extension EventRow {
  /// Creates a row for an order of a room to one of its parts.
  fileprivate init(ordering order: some Encodable, with place: (name: String, number: UInt32)?) {
    let parts = CallText(encoding: order)
    let whose = place.map { "\"\($0.name)\":\($0.number)," } ?? ""
    self.init(
      type: "order",
      detail: "{\(whose)\"order\":\(CanonicalJSON.text(parts.name)),\"with\":\(parts.arguments)}")
  }
}

extension Transcript {
  fileprivate mutating func append(_ change: PersonChange) {
    switch change {
    case .entered(let number, let id, let name, let isLocal):
      add(
        PresenceRow(
          actor: ActorNumber(number: actor), at: at, participant: number, id: id, name: name,
          isLocal: isLocal, isPresent: true))
    case .left(let number):
      add(PresenceRow(actor: ActorNumber(number: actor), at: at, participant: number))
    case .carried(let media): append(media, isCarried: true)
    case .ended(let media): append(media, isCarried: false)
    }
  }

  private mutating func append(_ media: CarriedMedia, isCarried: Bool) {
    add(
      CarriageRow(
        actor: ActorNumber(number: actor), participant: media.participant, media: media.media,
        kind: media.kind.rawValue, direction: Direction(isInbound: media.isInbound),
        track: media.transceiver, extraValue: media.extraValue, isCarried: isCarried),
      of: media.peer)
  }
}

// MARK: Texts

extension SignalingFailure {
  /// The code and the message of the error, on one line.
  package var text: String { "\(code.rawValue): \(message)" }

  fileprivate var members: [(String, JSONText?)] {
    [
      ("code", .integer(Int64(code.rawValue))), ("message", .text(message)),
      ("critical", .flag(isCritical)),
      ("serverCode", serverCode.map { .integer(Int64($0)) }),
      ("media", media.map { .integer(Int64($0.number)) }),
    ]
  }
}

extension MediaID {
  fileprivate var member: (String, JSONText?) { ("media", .integer(Int64(number))) }
}

extension PublishedMedia {
  fileprivate var members: [(String, JSONText?)] {
    [
      id.member, ("owner", .text(owner)), ("kind", .text(kind.rawValue)),
      ("active", .flag(isActive)), ("alwaysOn", isAlwaysOn ? .flag(true) : nil),
      ("extraValue", extraValue.isEmpty ? nil : .text(extraValue)),
      (
        "profiles",
        profiles.isEmpty ? nil : .text(profiles.map(\.rawValue).joined(separator: " "))
      ),
    ]
  }
}

extension RoomEvent {
  fileprivate var members: [(String, JSONText?)] {
    switch self {
    case .connecting(let progress): [("progress", .integer(Int64(progress)))]
    case .connected(let participants):
      [("participants", .text(participants.joined(separator: " ")))]
    case .disconnected(let ending):
      [
        ("reason", .text(ending.reason.rawValue)),
        ("code", ending.code.map { .integer(Int64($0)) }),
        ("message", ending.message.isEmpty ? nil : .text(ending.message)),
      ]
    case .failed(let failure): failure.members
    case .participantEntered(let id): [("participant", .text(id))]
    case .participantLeft(let id, let cause):
      [("participant", .text(id)), ("cause", .text(cause.rawValue))]
    case .localMediaPublished(let id, let media):
      [("local", .integer(Int64(id.number))), media.member]
    case .localMediaUnpublished(let id): [("local", .integer(Int64(id.number)))]
    case .localMediaMuted(let id, let isMuted):
      [("local", .integer(Int64(id.number))), ("muted", .flag(isMuted))]
    case .remotePublished(let media), .remoteUnpublished(let media),
      .remoteStateChanged(let media):
      media.members
    case .remoteSubscribed(let media, let connection, let transceiver):
      [
        media.member, ("connection", .integer(Int64(connection.number))),
        ("track", .integer(Int64(transceiver))),
      ]
    case .remoteUnsubscribed(let media), .audioOccupied(let media), .audioVacated(let media):
      [media.member]
    default: laterMembers
    }
  }

  private var laterMembers: [(String, JSONText?)] {
    switch self {
    case .talking(let participant, let isTalking, let level):
      [
        ("participant", .text(participant)), ("talking", .flag(isTalking)),
        ("dbov", level.map { .integer(Int64($0)) }),
      ]
    case .message(let message):
      [
        ("sender", .text(message.sender)), ("type", .text(message.type)),
        ("text", .text(message.text)),
      ]
    case .notification(let type, let text): [("type", .text(type)), ("text", .text(text))]
    case .redirected(let url): [("url", .text(url))]
    case .reconnecting(let attempt, let reason):
      [("attempt", .integer(Int64(attempt))), ("reason", .text(reason))]
    case .restartingICE(let connection, let attempt):
      [("connection", .integer(Int64(connection.number))), ("attempt", .integer(Int64(attempt)))]
    case .receiversGrown(let size): [("size", .integer(Int64(size)))]
    case .screenShare(let status): [("status", .text("\(status)"))]
    default: []
    }
  }
}
